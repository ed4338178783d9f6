package guard_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// stage is one fn, or what lies between Lock and Unlock, on one key.
type stage struct {
	key   string
	ctx   context.Context
	who   string
	token fencing.Token
}

func (p *play) ended(who string, l *guard.Lease, err error) {
	select {
	case <-l.Done():
	default:
		p.t.Errorf("%s: Done is open after Unlock", who)
	}
	if err == nil && !errors.Is(l.Err(), context.Canceled) {
		p.t.Errorf("%s: Unlock gave nil, Err gives %v", who, l.Err())
	}
}

// judge holds what a call returned against what happened.
func (p *play) judge(under context.Context, who string, err error, took, wait time.Duration) {
	if err == nil {
		if under == nil {
			p.t.Errorf("%s: nil, and fn did not run", who)
		} else if cause := context.Cause(under); !strings.Contains(who, inside) && errors.Is(cause, guard.ErrLost) {
			p.t.Errorf("%s: nil, and fn's context says %v", who, cause)
		}
		return
	}
	sentinels := 0
	for _, s := range []error{guard.ErrBusy, guard.ErrLost, guard.ErrUnavailable, guard.ErrInvalid} {
		if errors.Is(err, s) {
			sentinels++
		}
	}
	if sentinels != 1 {
		p.t.Errorf("%s: %d sentinels in %v", who, sentinels, err)
	}
	if ran := under != nil; ran != errors.Is(err, guard.ErrLost) {
		p.t.Errorf("%s: fn ran: %v, the error is %v", who, ran, err)
	} else if !ran && took > 3*(wait+time.Second) {
		p.t.Errorf("%s: refused after %v, Wait was %v: %v", who, took, wait, err)
	}
}

// enter holds a start against the promises; nested ones are inside of a hold
// that has been looked at.
func (p *play) enter(ctx context.Context, g *guard.Guard, who string, keys []string) (entered []*stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started++
	if p.closed[g] && ctx.Err() == nil {
		p.t.Errorf("%s began after Close", who)
	}
	if strings.Contains(who, inside) {
		return nil
	}
	tokens := map[string]fencing.Token{}
	for _, g := range fencing.Grants(ctx) {
		tokens[g.Resource] = g.Token
	}
	for _, k := range keys {
		for other := range p.running[k] {
			if other.ctx.Err() == nil {
				p.t.Errorf("%s began on %s while %s runs and has been told nothing", who, k, other.who)
			}
			if token := tokens["pawl:"+k]; token <= other.token {
				p.t.Errorf("%s has token %d on %s, %s before it has %d", who, token, k, other.who, other.token)
			}
		}
		s := &stage{key: k, ctx: ctx, who: who, token: tokens["pawl:"+k]}
		p.running[k][s] = true
		entered = append(entered, s)
	}
	return entered
}

func (p *play) leave(entered []*stage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range entered {
		delete(p.running[s.key], s)
	}
}
