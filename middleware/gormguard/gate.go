package gormguard

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// nested is how long a transaction waits for another of the same hold where two
// cannot be open at once. It is enough for a goroutine beside this one, and ends
// the wait of one that waits for itself.
const nested = time.Second

// gate lets one transaction of a hold in at a time, where the database has one
// writer (SQLite) or the pool one connection: a second one that is begun inside
// the first would wait for ever.
type gate struct {
	mu      sync.Mutex
	open    map[fencing.Grant]struct{}
	changed chan struct{} // closed when one left; nil: nobody waits
}

func newGate() *gate { return &gate{open: map[fencing.Grant]struct{}{}} }

// wait returns when no other transaction of these grants is open, and then is
// one of them if in is true: leave must follow.
func (g *gate) wait(ctx context.Context, grants []fencing.Grant, in bool) error {
	timer := time.NewTimer(nested)
	defer timer.Stop()
	for {
		changed := g.try(grants, in)
		if changed == nil {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return fmt.Errorf("%w: a transaction of the hold of %q is open on this connection pool, "+
				"which cannot have two: use its tx", guard.ErrInvalid, grants[0].Resource)
		}
	}
}

// try enters, if in is true and nobody shares a grant, or returns what to wait
// for.
func (g *gate) try(grants []fencing.Grant, in bool) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if slices.ContainsFunc(grants, g.isOpen) {
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		return g.changed
	}
	if in {
		for _, grant := range grants {
			g.open[grant] = struct{}{}
		}
	}
	return nil
}

func (g *gate) isOpen(grant fencing.Grant) bool {
	_, ok := g.open[grant]
	return ok
}

func (g *gate) leave(grants []fencing.Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range grants {
		delete(g.open, grant)
	}
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}
