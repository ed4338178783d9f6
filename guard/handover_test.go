package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

// line starts n calls of WithLock in a known order, while somebody else of this
// process holds the key, and returns what releases the holder and waits for all.
func line(t *testing.T, g *guard.Guard, n int, fn func(i int, ctx context.Context)) (release func()) {
	t.Helper()
	_, l, err := g.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := g.WithLock(t.Context(), "k", func(ctx context.Context) error { fn(i, ctx); return nil }, guard.Wait(time.Hour)); err != nil {
				t.Errorf("waiter %d: %v", i, err)
			}
		})
		synctest.Wait() // it stands in line
	}
	return func() {
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
	}
}

func TestGuard_HandsOverInArrivalOrderWithGrowingTokens(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		var order []int
		var tokens []fencing.Token
		line(t, g, 150, func(i int, ctx context.Context) {
			order = append(order, i)
			tokens = append(tokens, fencing.Grants(ctx)[0].Token)
		})()
		if !slices.IsSorted(order) || len(order) != 150 {
			t.Errorf("got order %v", order)
		}
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != 150 {
			t.Errorf("tokens do not grow: %v", tokens)
		}
	})
}

func TestGuard_HandsOverWithoutTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		line(t, g, 64, func(int, context.Context) {})()
		if got, want := fmt.Sprint(w.log()), "[Acquire Release]"; got != want {
			t.Errorf("got calls %v for 65 holds, want %v", got, want)
		}
	})
}

func TestGuard_GivesTheKeyBackAfterTheChainsShare(t *testing.T) {
	short := lockOnly()
	short.Handovers = 3
	none := lockOnly()
	none.Handovers = -1
	tests := []struct {
		name     string
		profile  guard.Profile
		work     time.Duration
		waiters  int
		acquires int // of the store, the first holder's included
	}{
		{"Handovers", short, 0, 8, 3},                           // 1+3, 1+3, 1
		{"NoHandovers", none, 0, 4, 5},                          // each its own
		{"WithinAQuarterOfWait", lockOnly(), time.Minute, 9, 1}, // waiters wait an hour: a chain may last 15 minutes
		{"AQuarterOfWaitIsOver", lockOnly(), 10 * time.Minute, 4, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := connect(memstore.New())
				w.traits.FIFO = false
				tt.profile.MaxHold = 0
				g := newGuard(t, tt.profile, w)
				line(t, g, tt.waiters, func(int, context.Context) { time.Sleep(tt.work) })()
				if got := w.count("Acquire"); got != tt.acquires {
					t.Errorf("got %d acquires at the store, want %d", got, tt.acquires)
				}
			})
		})
	}
}

func TestGuard_AnotherProcessGetsItsTurn(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		t.Run(fmt.Sprintf("FIFO=%v", fifo), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				busy, other := connect(s), connect(s)
				busy.traits.FIFO, other.traits.FIFO = fifo, fifo
				crowd := newGuard(t, lockOnly(), busy)
				single := newGuard(t, lockOnly(), other)
				stop, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				for range 64 {
					all.Go(func() {
						for stop.Err() == nil {
							_ = crowd.WithLock(stop, "k", func(context.Context) error { time.Sleep(time.Millisecond); return nil })
						}
					})
				}
				time.Sleep(time.Second)
				for range 5 {
					if err := single.WithLock(t.Context(), "k", nothing); err != nil {
						t.Errorf("the other process starves: %v", err)
					}
				}
				cancel()
				all.Wait()
			})
		})
	}
}

func TestGuard_HandOverInheritsTheEndOfTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		p := lockOnly()
		p.Wait = time.Hour
		g := newGuard(t, p, w)
		_, first, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		w.breaks(func(_ context.Context, call string, _ int) error { // nothing is renewed from now on
			if call == "Renew" {
				return errNet
			}
			return nil
		}, nil)
		told := make(chan time.Time, 1)
		go func() {
			err := g.WithLock(t.Context(), "k", func(ctx context.Context) error { <-ctx.Done(); told <- time.Now(); return nil })
			wantErr(t, err, guard.ErrLost)
		}()
		time.Sleep(4 * time.Second)
		granted := time.Now().Add(-4 * time.Second)
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if end := (<-told).Sub(granted); end >= p.TTL {
			t.Errorf("the second holder was told %v after the store's grant, want before its TTL of %v", end, p.TTL)
		}
	})
}

func TestGuard_DoesNotHandOverALeaseThatIsNearlyOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		_, first, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		w.breaks(func(_ context.Context, call string, _ int) error {
			if call == "Renew" {
				return errNet
			}
			return nil
		}, nil)
		done := make(chan error, 1)
		time.Sleep(6 * time.Second)
		go func() { done <- g.WithLock(t.Context(), "k", nothing) }()
		synctest.Wait()
		if err := first.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := w.count("Acquire"); got != 1 {
			t.Errorf("got %d acquires since, want one: the lease had 4s of 10s left", got)
		}
	})
}

func TestGuard_AWaiterThatNeedsMoreGetsAGrantOfItsOwn(t *testing.T) {
	for name, second := range map[string]struct {
		opts []guard.Option
		call []guard.LockOption
	}{
		"LongerTTL":       {nil, []guard.LockOption{guard.TTL(time.Minute)}},
		"OtherGeneration": {[]guard.Option{guard.WithGeneration(3)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := connect(memstore.New())
				g := newGuard(t, lockOnly(), w)
				other := newGuard(t, lockOnly(), w, second.opts...)
				_, l, err := g.Lock(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() { done <- other.WithLock(t.Context(), "k", nothing, second.call...) }()
				synctest.Wait()
				if err := l.Unlock(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := w.count("Acquire"); got != 2 {
					t.Errorf("got %d acquires, want two", got)
				}
			})
		})
	}
}

func TestGuard_AWaiterThatLeavesBlocksNobody(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error, 1)
		done := make(chan error, 1)
		go func() { left <- g.WithLock(ctx, "k", nothing) }()
		synctest.Wait()
		go func() { done <- g.WithLock(t.Context(), "k", nothing) }()
		synctest.Wait()
		leave()
		err = <-left
		wantErr(t, err, guard.ErrBusy)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error joined", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestGuard_TwoGuardsOnOneStoreShareAQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		a, b := newGuard(t, lockOnly(), w), newGuard(t, guard.ConfigChange(), w)
		inside, most := 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				g := []*guard.Guard{a, b}[i%2]
				err := g.WithLock(t.Context(), "k", func(context.Context) error {
					mu.Lock()
					inside++
					most = max(most, inside)
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					inside--
					mu.Unlock()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%d ran at once", most)
		}
		if got := w.count("Acquire"); got != 1 {
			t.Errorf("got %d acquires, want one: the guards share a queue", got)
		}
	})
}

func TestGuard_NamespacesNeverMeet(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		a := newGuard(t, lockOnly(), store, guard.WithNamespace("a"))
		b := newGuard(t, lockOnly(), store, guard.WithNamespace("b"))
		err := a.WithLock(t.Context(), "k", func(context.Context) error { return b.WithLock(t.Context(), "k", nothing) })
		if err != nil {
			t.Error(err)
		}
	})
}

// On a polled store the others look every 250 ms only: a crowd that paused for
// 10 ms each time would starve them.
func TestGuard_AnotherProcessThatPollsGetsItsTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		crowd := newGuard(t, lockOnly(), polled{connect(s)})
		other := newGuard(t, lockOnly(), polled{connect(s)})
		stop, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 64 {
			all.Go(func() {
				for stop.Err() == nil {
					_ = crowd.WithLock(stop, "k", func(context.Context) error { time.Sleep(time.Millisecond); return nil })
				}
			})
		}
		time.Sleep(time.Second)
		for range 20 {
			began := time.Now()
			if err := other.WithLock(t.Context(), "k", nothing); err != nil {
				t.Fatalf("the other process starves: %v", err)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the other process had its turn after %v, want a quarter of Wait and two polls at most", took)
			}
		}
		cancel()
		all.Wait()
	})
}
