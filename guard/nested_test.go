package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

func TestGuard_ANestedCallIsInsideTheHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			outer := fencing.Grants(ctx)
			return g.WithLock(ctx, "k", func(ctx context.Context) error {
				if inner := fencing.Grants(ctx); len(inner) != 1 || inner[0] != outer[0] {
					t.Errorf("got grants %v inside of %v, want the same", inner, outer)
				}
				_, l, err := g.TryLock(ctx, "k")
				if err != nil {
					return err
				}
				return l.Unlock(ctx)
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := w.log(); len(got) != 2 {
			t.Errorf("got calls %v, want one acquire and one release", got)
		}
	})
}

func TestGuard_SiblingsOnOneHoldRunOneAtATime(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			inside := make(chan struct{}, 1)
			var all errgroup.Group
			for range 10 {
				all.Go(func() error {
					return g.WithLock(ctx, "k", func(context.Context) error {
						select {
						case inside <- struct{}{}:
						default:
							return errors.New("two siblings run at once")
						}
						time.Sleep(time.Millisecond)
						<-inside
						return nil
					})
				})
			}
			return all.Wait()
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestGuard_ANestedHoldThatOutlivesTheOuterKeepsTheKey(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		var nestedEnd, next time.Time
		nestedRuns := make(chan struct{})
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			go func() {
				if err := g.WithLock(context.WithoutCancel(ctx), "k", func(context.Context) error {
					close(nestedRuns)
					time.Sleep(30 * time.Second) // and it is renewed
					nestedEnd = time.Now()
					return nil
				}); err != nil {
					t.Error(err)
				}
			}()
			<-nestedRuns
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if free(t, s, "k") {
			t.Error("the key is free while a nested fn runs")
		}
		if err := g.WithLock(t.Context(), "k", func(context.Context) error { next = time.Now(); return nil }, guard.Wait(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if next.Before(nestedEnd) {
			t.Errorf("the next fn ran at %v, the nested one ended at %v", next, nestedEnd)
		}
	})
}

func TestGuard_AfterTheEndOfAHoldItsContextAcquiresAfresh(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		ctx, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(ctx); err != nil {
			t.Fatal(err)
		}
		if ctx.Err() == nil {
			t.Error("the context of a hold that has ended is alive")
		}
		rival(t, s, "k", time.Hour)
		wantErr(t, g.WithLock(context.WithoutCancel(ctx), "k", nothing, guard.Wait(time.Second)), guard.ErrBusy)
	})
}

func TestGuard_AGrantFromElsewhereIsNoHold(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		rival(t, s, "k", time.Hour)
		ctx := fencing.NewContext(t.Context(), fencing.Grant{Resource: "pawl:k", Token: 1 << 40, Origin: g.Plan().Lock + "/pawl"})
		wantErr(t, g.WithLock(ctx, "k", nothing, guard.Wait(0)), guard.ErrBusy)
	})
}

// Two holders that take two keys in opposite orders would wait for each other:
// inside a hold a key that sorts earlier is tried, not waited for.
func TestGuard_KeysOutOfOrderAreTriedNotWaitedFor(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		both := func(first, second string) error {
			return g.WithLock(t.Context(), first, func(ctx context.Context) error {
				time.Sleep(time.Second)
				return g.WithLock(ctx, second, nothing, guard.Wait(time.Hour))
			})
		}
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- both("a", "b") }()
		wantErr(t, both("b", "a"), guard.ErrBusy)
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v, want no wait for the earlier key", took)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestGuard_WithLocksTakesAllOrNone(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		err := g.WithLocks(t.Context(), []string{"b", "a", "c", "a"}, func(ctx context.Context) error {
			if got := len(fencing.Grants(ctx)); got != 3 {
				t.Errorf("got %d grants, want three", got)
			}
			for _, k := range []string{"a", "b", "c"} {
				if !g.Held(ctx, k) || free(t, s, k) {
					t.Errorf("%s is not held", k)
				}
			}
			return errFn
		})
		if !errors.Is(err, errFn) {
			t.Errorf("got %v, want fn's error", err)
		}
		rival(t, s, "c", time.Hour)
		wantErr(t, g.WithLocks(t.Context(), []string{"a", "b", "c"}, nothing), guard.ErrBusy)
		synctest.Wait()
		if !free(t, s, "a") || !free(t, s, "b") {
			t.Error("a key is held after none was got")
		}
	})
}

func TestGuard_WithLocksInOppositeOrdersDoNotDeadlock(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		var all errgroup.Group
		for i := range 20 {
			keys := []string{"a", "b", "c"}
			if i%2 == 1 {
				keys = []string{"c", "b", "a"}
			}
			all.Go(func() error {
				return g.WithLocks(t.Context(), keys, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
			})
		}
		if err := all.Wait(); err != nil {
			t.Error(err)
		}
	})
}

func TestGuard_LossOfOneOfSeveralIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		g := newGuard(t, lockOnly(), connect(s))
		err := g.WithLocks(t.Context(), []string{"a", "b"}, func(ctx context.Context) error {
			h, _ := s.Holder(ctx, "pawl:a")
			_ = s.Release(ctx, driver.Grant{Request: driver.Request{Key: "pawl:a", Owner: h.Owner}})
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), guard.ErrLost) {
				t.Errorf("got cause %v, want ErrLost", context.Cause(ctx))
			}
			return nil
		})
		wantErr(t, err, guard.ErrLost)
	})
}
