package guard_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// TestSimulation runs processes, stores and faults on one simulated clock, a
// schedule a seed. A failure names its seed.
func TestSimulation(t *testing.T) {
	seeds := uint64(300)
	if os.Getenv("PAWL_SOAK") == "1" {
		seeds = 20_000
	}
	for seed := range seeds {
		bubble(t, func(t *testing.T) {
			s := newSimulation(t, seed)
			s.run()
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		})
	}
}

const (
	simTTL       = 500 * time.Millisecond
	simProcesses = 3
	simCalls     = 8
)

// simulation is one schedule: three processes, three callers each, two keys.
type simulation struct {
	t     *testing.T
	seed  uint64
	store *memstore.Store

	mu      sync.Mutex
	running map[string]map[int]context.Context // key -> caller -> the context of its fn
	ended   map[string]fencing.Token           // key -> the greatest token of a fn that has ended
	started int
}

func newSimulation(t *testing.T, seed uint64) *simulation {
	t.Helper()
	return &simulation{
		t: t, seed: seed, store: memstore.New(),
		running: map[string]map[int]context.Context{"a": {}, "b": {}}, ended: map[string]fencing.Token{},
	}
}

func (s *simulation) run() {
	var all sync.WaitGroup
	var guards []*guard.Guard
	for p := range simProcesses {
		g := s.process(p)
		guards = append(guards, g)
		for c := range 3 {
			all.Go(func() { s.caller(g, 3*p+c) })
		}
	}
	all.Wait()
	time.Sleep(20 * simTTL) // what is stuck comes back, what was lost lapses
	synctest.Wait()
	for _, key := range []string{"a", "b"} {
		if !free(s.t, s.store, key) {
			s.t.Errorf("%s is held after everybody has left", key)
		}
	}
	for p, g := range guards {
		if n := guard.Queues(g); n != 0 {
			s.t.Errorf("process %d still has %d queues", p, n)
		}
	}
	if s.started == 0 {
		s.t.Error("no fn ran")
	}
}

// process is a guard on its own connection, of one of the kinds of stores.
func (s *simulation) process(p int) *guard.Guard {
	w := connect(s.store)
	w.traits.FIFO = s.seed%2 == 0
	w.traits.Session = s.seed%5 == 0
	faults := s.random(100 + p)
	var mu sync.Mutex
	roll := func() (n int, d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		return faults.IntN(100), time.Duration(faults.IntN(40_000_000))
	}
	w.breaks(func(ctx context.Context, _ string, _ int) error {
		n, d := roll()
		time.Sleep(d)
		switch {
		case n < 4:
			return errNet // the request is lost
		case n < 7:
			<-ctx.Done() // a black hole
			return ctx.Err()
		case n < 9:
			time.Sleep(2 * simTTL) // the client ignores its context, and the request arrives late
		}
		return nil
	}, func(context.Context, string, int) error {
		n, d := roll()
		time.Sleep(d)
		if n < 5 {
			return errNet // the reply is lost
		}
		return nil
	})
	profile := lockOnly()
	profile.TTL, profile.Wait, profile.MaxHold = simTTL, 2*time.Second, 3*time.Second
	store := driver.Backend(w)
	if s.seed%3 == 0 {
		store = polled{w}
	}
	return newGuard(s.t, profile, store)
}

func (s *simulation) random(actor int) *rand.Rand {
	return rand.New(rand.NewPCG(s.seed, uint64(actor)))
}

// caller makes its calls, of every kind, one after the other.
func (s *simulation) caller(g *guard.Guard, id int) {
	r := s.random(id)
	for range simCalls {
		time.Sleep(time.Duration(r.IntN(200_000_000)))
		key := []string{"a", "b"}[r.IntN(2)]
		ctx, cancel := s.t.Context(), context.CancelFunc(func() {})
		if r.IntN(4) == 0 {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(800_000_000)))
		}
		work := time.Duration(r.IntN(400_000_000))
		if r.IntN(10) == 0 {
			work = 4 * simTTL
		}
		wait := []time.Duration{0, 100 * time.Millisecond, 2 * time.Second}[r.IntN(3)]
		s.call(ctx, g, id, key, work, wait)
		cancel()
	}
}

func (s *simulation) call(ctx context.Context, g *guard.Guard, id int, key string, work, wait time.Duration) {
	s.mu.Lock()
	before := s.ended[key]
	s.mu.Unlock()
	ran := false
	err := g.WithLock(ctx, key, func(ctx context.Context) error {
		ran = true
		s.begin(ctx, id, key, before)
		defer s.end(ctx, id, key)
		timer := time.NewTimer(work)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return nil
		}
	}, guard.Wait(wait))
	refused := errors.Is(err, guard.ErrBusy) || errors.Is(err, guard.ErrUnavailable)
	if ran && refused || !ran && !refused {
		s.t.Errorf("caller %d: fn ran: %v, the error is %v", id, ran, err)
	}
}

// begin holds fn's start against the promises: whoever else runs has been told
// of its loss, and the token is greater than those of all that had ended.
func (s *simulation) begin(ctx context.Context, id int, key string, before fencing.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	for other, running := range s.running[key] {
		if running.Err() == nil {
			s.t.Errorf("caller %d began on %s while %d runs and has not been told anything", id, key, other)
		}
	}
	if tok := fencing.Grants(ctx)[0].Token; tok <= before {
		s.t.Errorf("caller %d has token %d on %s, one that had ended before had %d", id, tok, key, before)
	}
	s.running[key][id] = ctx
}

func (s *simulation) end(ctx context.Context, id int, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running[key], id)
	s.ended[key] = max(s.ended[key], fencing.Grants(ctx)[0].Token)
}
