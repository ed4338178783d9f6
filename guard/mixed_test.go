package guard_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// While WithLocks waits for a later key it may lose an earlier one: fn has not
// begun, so this is no loss.
func TestWithLocks_ALossBeforeFnBeganIsNoErrLost(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		held := rival(t, s, "b", time.Hour)
		g := newGuard(t, lockOnly(), store)
		time.AfterFunc(time.Second, func() { takeAway(t, s, "a") })
		time.AfterFunc(10*time.Second, func() { _ = s.Release(context.Background(), held) })
		ran := false
		err := g.WithLocks(t.Context(), []string{"a", "b"}, func(context.Context) error { ran = true; return nil }, guard.Wait(time.Minute))
		if err != nil || !ran {
			t.Errorf("got %v, fn ran: %v; want a second try within Wait", err, ran)
		}
	})
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		rival(t, s, "b", time.Hour)
		g := newGuard(t, lockOnly(), store)
		time.AfterFunc(time.Second, func() { takeAway(t, s, "a") })
		wantErr(t, g.WithLocks(t.Context(), []string{"a", "b"}, nothing, guard.Wait(4*time.Second)), guard.ErrBusy)
	})
}

// takeAway frees a key at the store behind its holder's back.
func takeAway(t *testing.T, s *memstore.Store, key string) {
	t.Helper()
	h, err := s.Holder(context.Background(), "pawl:"+key)
	if err != nil {
		t.Error(err)
	}
	_ = s.Release(context.Background(), driver.Grant{Request: driver.Request{Key: "pawl:" + key, Owner: h.Owner}})
}

func TestGuard_AnOuterUnlockLeavesTheHoldToTheNested(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		a, b := newGuard(t, lockOnly(), s), newGuard(t, lockOnly(), s)
		ctx, outer, err := a.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, nested, err := b.Lock(context.WithoutCancel(ctx), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := outer.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if err := a.Close(over); err != nil {
			t.Errorf("Close of a: got %v, want nil: nothing of it is left", err)
		}
		if err := nested.Err(); err != nil {
			t.Errorf("got %v, want b's hold to be held", err)
		}
		_ = nested.Unlock(t.Context())
	})
}

func TestGuard_NestedInOppositeOrders(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGuard(t, lockOnly(), memstore.New())
		began := time.Now()
		err := g.WithLocks(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
			var all sync.WaitGroup
			for _, o := range [][2]string{{"a", "b"}, {"b", "a"}} {
				all.Go(func() {
					_ = g.WithLock(ctx, o[0], func(ctx context.Context) error { // one of them may be busy
						time.Sleep(time.Second)
						return g.WithLock(ctx, o[1], nothing)
					})
				})
			}
			all.Wait()
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %v: the two waited for each other", took)
		}
	})
}

func TestGuard_MixedGenerationsAndTTLs(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		var all sync.WaitGroup
		running := 0
		for i := range 4 {
			p := lockOnly()
			p.TTL = time.Duration(1+i%2) * time.Second
			p.Handovers = []int{0, -1, 2, 250}[i]
			g := newGuard(t, p, store, guard.WithGeneration(uint8(i/2)))
			for range 5 {
				all.Go(func() {
					for range 5 {
						err := g.WithLock(t.Context(), "k", func(context.Context) error {
							if running++; running != 1 {
								t.Error("two at once")
							}
							time.Sleep(10 * time.Millisecond)
							running--
							return nil
						}, guard.Wait(time.Minute))
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
	})
}

func TestGuard_PanicsUnwindNestedHolds(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		func() {
			defer func() { _ = recover() }()
			_ = g.WithLocks(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
				return g.WithLock(ctx, "a", func(ctx context.Context) error {
					return g.WithLock(ctx, "b", func(ctx context.Context) error {
						return g.WithLock(ctx, "c", func(context.Context) error { panic("fn") })
					})
				})
			})
		}()
		for _, k := range []string{"a", "b", "c"} {
			if !free(t, s, k) {
				t.Errorf("%s is still held", k)
			}
		}
		if n := guard.Queues(g); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
}

// Durations of centuries overflow nowhere.
func TestGuard_HugeDurations(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2, 150 * 365 * 24 * time.Hour} {
			p := lockOnly()
			p.TTL, p.Wait, p.MaxHold = d, d, d
			g := newGuard(t, p, store)
			next := make(chan error, 1)
			err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
				go func() { next <- g.WithLock(t.Context(), "k", nothing) }()
				time.Sleep(time.Hour)
				return ctx.Err()
			})
			if err != nil {
				t.Errorf("%v: got %v, want nil", d, err)
			}
			if err := <-next; err != nil {
				t.Errorf("%v: the call behind it: got %v, want nil", d, err)
			}
			if !free(t, s, "k") {
				t.Error("held")
			}
		}
	})
}

func TestWithLocks_APanicWhileAcquiringReleases(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &tripping{Store: memstore.New()}
		g := newGuard(t, lockOnly(), s)
		func() {
			defer func() { _ = recover() }()
			_ = g.WithLocks(t.Context(), []string{"a", "b"}, nothing)
		}()
		time.Sleep(time.Minute)
		if !free(t, s.Store, "a") {
			t.Error("the first key is still held")
			h, _ := s.Holder(t.Context(), "pawl:a")
			_ = s.Release(t.Context(), h)
		}
	})
}

type tripping struct{ *memstore.Store }

func (s *tripping) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if r.Key == "pawl:b" {
		panic("store")
	}
	return s.Store.Acquire(ctx, r)
}
