package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// TestSimulation_OfNestedHolds plays what TestSimulation does not: nested holds,
// several keys at once, leases that are bound to other contexts, guards of
// different settings in one process, and a Close in the middle of it all.
func TestSimulation_OfNestedHolds(t *testing.T) {
	seeds := uint64(150)
	if os.Getenv("PAWL_SOAK") == "1" {
		seeds = 10_000
	}
	for seed := range seeds {
		bubble(t, func(t *testing.T) {
			p := &play{
				t: t, seed: seed, s: memstore.New(),
				running: map[string]map[*stage]bool{"a": {}, "b": {}, "c": {}}, closed: map[*guard.Guard]bool{},
			}
			p.run()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

type play struct {
	t    *testing.T
	seed uint64
	s    *memstore.Store

	mu      sync.Mutex
	running map[string]map[*stage]bool
	closed  map[*guard.Guard]bool
	started int
}

func (p *play) random(actor int) *rand.Rand { return rand.New(rand.NewPCG(p.seed, uint64(actor))) }

func (p *play) run() {
	r := p.random(0)
	var all sync.WaitGroup
	var guards []*guard.Guard
	for process := range 2 {
		store := p.store(r)
		for i := range 2 {
			g := newGuard(p.t, p.profile(r), store)
			guards = append(guards, g)
			for c := range 3 {
				actor := 1 + 10*len(guards) + c
				all.Go(func() { p.caller(g, p.random(actor), fmt.Sprintf("process %d guard %d caller %d", process, i, c)) })
			}
		}
	}
	if r.IntN(3) == 0 {
		after, patience := time.Duration(r.IntN(3000))*time.Millisecond, time.Duration(r.IntN(1000))*time.Millisecond
		all.Go(func() { p.close(guards[0], after, patience) })
	}
	all.Wait()
	time.Sleep(30 * time.Second) // what is stuck comes back, what was lost lapses
	synctest.Wait()
	for key := range p.running {
		if !free(p.t, p.s, key) {
			p.t.Errorf("%s is held after everybody has left", key)
		}
	}
	for i, g := range guards {
		p.close(g, 0, time.Millisecond)
		if n := guard.Queues(g); n != 0 {
			p.t.Errorf("guard %d still has %d queues", i, n)
		}
	}
	if p.started == 0 {
		p.t.Error("no fn ran")
	}
}

func (p *play) profile(r *rand.Rand) guard.Profile {
	q := lockOnly()
	q.TTL = []time.Duration{500 * time.Millisecond, 800 * time.Millisecond}[r.IntN(2)]
	q.Wait = 2 * time.Second
	q.MaxHold = []time.Duration{0, 1500 * time.Millisecond}[r.IntN(2)]
	q.Handovers = []int{0, -1, 3}[r.IntN(3)]
	return q
}

// store is a process's connection, of one of the kinds of stores.
func (p *play) store(r *rand.Rand) driver.Backend {
	kind := r.IntN(4)
	if kind == 0 {
		return p.s
	}
	w := connect(p.s)
	w.traits.FIFO, w.traits.Session = r.IntN(2) == 0, r.IntN(3) == 0
	faults := p.random(1000 + r.IntN(1000))
	var mu sync.Mutex
	roll := func() int {
		mu.Lock()
		defer mu.Unlock()
		return faults.IntN(100)
	}
	w.breaks(func(ctx context.Context, call string, _ int) error {
		n := roll()
		time.Sleep(time.Duration(n%20) * time.Millisecond)
		switch {
		case n < 4, n < 30 && call == "Renew":
			return errNet // the request is lost
		case n < 7:
			<-ctx.Done() // a black hole
			return ctx.Err()
		case n < 9:
			time.Sleep(time.Second) // the client ignores its context
		}
		return nil
	}, func(context.Context, string, int) error {
		if roll() < 5 {
			return errNet // the reply is lost
		}
		return nil
	})
	if kind == 1 {
		return polled{w}
	}
	return w
}

// close closes g, and gives up what has not ended when patience has.
func (p *play) close(g *guard.Guard, after, patience time.Duration) {
	time.Sleep(after)
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	err := g.Close(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed[g] = true
	if after == 0 && err != nil {
		p.t.Errorf("Close after all has ended: %v", err)
	}
}

func (p *play) caller(g *guard.Guard, r *rand.Rand, who string) {
	for range 6 {
		time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
		ctx, cancel := p.t.Context(), context.CancelFunc(func() {})
		if r.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(1500))*time.Millisecond)
		}
		p.step(ctx, g, r, who)
		cancel()
	}
}

const inside = " >"

// step is one call of any kind; who says how deep it is nested.
func (p *play) step(ctx context.Context, g *guard.Guard, r *rand.Rand, who string) {
	keys := []string{string(rune('a' + r.IntN(3)))}
	wait := []time.Duration{0, 100 * time.Millisecond, 2 * time.Second}[r.IntN(3)]
	opts := []guard.LockOption{guard.Wait(wait)}
	if r.IntN(4) == 0 {
		opts = append(opts, guard.TTL(time.Second))
	}
	var under context.Context // what fn ran under
	fn := func(ctx context.Context) error { under = ctx; p.act(ctx, g, r, who, keys); return nil }
	began, kind := time.Now(), r.IntN(4)
	var err error
	switch kind {
	case 0, 1:
		err = g.WithLock(ctx, keys[0], fn, opts...)
	case 2:
		keys = []string{"c", "a", "b"}
		err = g.WithLocks(ctx, keys, fn, opts...)
	case 3:
		var l *guard.Lease
		var held context.Context
		if held, l, err = g.Lock(ctx, keys[0], opts...); err == nil {
			if r.IntN(2) == 0 {
				held = l.Bind(p.t.Context())
			}
			_ = fn(held)
			err = l.Unlock(ctx)
			p.ended(who, l, err)
			if errors.Is(err, guard.ErrUnavailable) {
				err = nil // the release is unknown; the hold was good
			}
		}
	}
	p.judge(under, who, err, time.Since(began), wait)
}

// act is what fn does: work, alone or with nested calls beside it.
func (p *play) act(ctx context.Context, g *guard.Guard, r *rand.Rand, who string, keys []string) {
	defer p.leave(p.enter(ctx, g, who, keys))
	var all sync.WaitGroup
	defer all.Wait()
	if r.IntN(2) == 0 && strings.Count(who, inside) < 2 {
		for i := range 1 + r.IntN(2) {
			own := rand.New(rand.NewPCG(r.Uint64(), uint64(i)))
			all.Go(func() { p.step(ctx, g, own, fmt.Sprint(who, inside, i)) })
		}
	}
	work := time.Duration([]int{470, 755, 2000, 10, 100, 300}[r.IntN(6)]) * time.Millisecond // two are the life of a lease
	if r.IntN(3) == 0 {
		time.Sleep(work) // it does not look at its context
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(work):
	}
}
