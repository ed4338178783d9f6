package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

func TestGuard_BusyAfterWait(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), store)
		began := time.Now()
		wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrBusy)
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("gave up after %v, want the profile's Wait of 5s", took)
		}
		began = time.Now()
		wantErr(t, g.WithLock(t.Context(), "k", nothing, guard.Wait(time.Second)), guard.ErrBusy)
		if took := time.Since(began); took != time.Second {
			t.Errorf("gave up after %v, want the call's Wait of 1s", took)
		}
		began = time.Now()
		_, _, err := g.TryLock(t.Context(), "k")
		wantErr(t, err, guard.ErrBusy)
		if took := time.Since(began); took != 0 {
			t.Errorf("TryLock took %v, want no wait", took)
		}
	})
}

func TestGuard_WaitsForAnotherProcess(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		held := rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), store)
		go func() {
			time.Sleep(2 * time.Second)
			if err := s.Release(context.Background(), held); err != nil {
				t.Error(err)
			}
		}()
		began := time.Now()
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 2*time.Second || took > 2*time.Second+320*time.Millisecond {
			t.Errorf("got the key after %v, want 2s and a poll at most", took)
		}
	})
}

func TestGuard_WaitsForTheEndOfADeadHolder(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		rival(t, s, "k", 3*time.Second) // nobody renews it
		g := newGuard(t, lockOnly(), store)
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGuard_AContextThatEndsBeforeAnAnswerIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		w.breaks(func(ctx context.Context, _ string, _ int) error { <-ctx.Done(); return ctx.Err() }, nil)
		g := newGuard(t, lockOnly(), w)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := g.WithLock(ctx, "k", nothing)
		wantErr(t, err, guard.ErrUnavailable)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error joined", err)
		}
		synctest.Wait()
	})
}

func TestGuard_ACutWhileQueuedEndsAsBusy(t *testing.T) {
	for _, polls := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			w := connect(s)
			rival(t, s, "k", time.Hour)
			store := driver.Backend(w)
			if polls {
				store = polled{w}
			}
			g := newGuard(t, lockOnly(), store)
			time.AfterFunc(time.Second, func() {
				w.breaks(func(context.Context, string, int) error { return errNet }, nil)
			})
			wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrBusy)
		})
	}
}

func TestGuard_AWaiterSurvivesAnOutageWhileQueued(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		held := rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), polled{w})
		time.AfterFunc(500*time.Millisecond, func() {
			w.breaks(func(context.Context, string, int) error { return errNet }, nil)
		})
		time.AfterFunc(1500*time.Millisecond, func() { _ = s.Release(context.Background(), held) })
		time.AfterFunc(2*time.Second, func() { w.breaks(nil, nil) })
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Errorf("got %v, want the key after the outage", err)
		}
	})
}

// A client that ignores its context must not keep a caller (fault F7).
func TestGuard_CallsReturnWithin100msOfTheContextsEnd(t *testing.T) {
	stuck := func(_ context.Context, _ string, _ int) error { time.Sleep(time.Minute); return errNet }
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		_, lease, err := g.Lock(t.Context(), "held")
		if err != nil {
			t.Fatal(err)
		}
		w.breaks(stuck, nil)
		calls := map[string]func(ctx context.Context) error{
			"Lock":    func(ctx context.Context) error { _, _, err := g.Lock(ctx, "a"); return err },
			"TryLock": func(ctx context.Context) error { _, _, err := g.TryLock(ctx, "b"); return err },
			"Unlock":  lease.Unlock,
			"Holder":  func(ctx context.Context) error { _, _, err := g.Holder(ctx, "c"); return err },
		}
		for name, call := range calls {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			began := time.Now()
			wantErr(t, call(ctx), guard.ErrUnavailable)
			if took := time.Since(began); took < 200*time.Millisecond || took > 300*time.Millisecond {
				t.Errorf("%s returned after %v, want within 100 ms of its context's 200 ms", name, took)
			}
			cancel()
		}
		time.Sleep(5 * time.Minute) // let what is stuck come back
	})
}

func TestGuard_AStoreThatNeverAnswersIsGivenUpWithinTheCallsBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		w.breaks(func(_ context.Context, _ string, _ int) error { time.Sleep(time.Minute); return errNet }, nil)
		g := newGuard(t, lockOnly(), w)
		began := time.Now()
		_, _, err := g.TryLock(t.Context(), "k")
		wantErr(t, err, guard.ErrUnavailable)
		if took := time.Since(began); took > 10*time.Second/3+100*time.Millisecond {
			t.Errorf("TryLock took %v, want TTL/3 at most", took)
		}
		time.Sleep(5 * time.Minute)
	})
}

// An unknown Acquire is released by its owner, and never told as busy or held
// (fault F6).
func TestGuard_ALostReplyOfAcquireLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		w.breaks(nil, func(_ context.Context, call string, n int) error {
			if call == "Acquire" && n == 1 {
				return errNet
			}
			return nil
		})
		err := g.WithLock(t.Context(), "k", nothing)
		wantErr(t, err, guard.ErrUnavailable)
		if !errors.Is(err, errNet) {
			t.Errorf("got %v, want the store's error reachable", err)
		}
		synctest.Wait()
		if !free(t, s, "k") {
			t.Error("the key is held after the clean-up")
		}
		if got := w.count("Release"); got != 1 {
			t.Errorf("got %d releases, want one", got)
		}
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Errorf("got %v, want the key free", err)
		}
	})
}

// A store may answer an Acquire with ErrLost, when a copy of it comes after its
// own release. That is no verdict on this call.
func TestGuard_ErrLostIsNoVerdictOnAnAcquire(t *testing.T) {
	lost := func(_ context.Context, call string, _ int) error {
		if call == "Acquire" {
			return fmt.Errorf("released: %w", driver.ErrLost)
		}
		return nil
	}
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		w.breaks(lost, nil)
		g := newGuard(t, lockOnly(), w)
		wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrUnavailable)
		w.breaks(nil, nil)
		rival(t, s, "k", time.Hour)
		time.AfterFunc(time.Second, func() { w.breaks(lost, nil) })
		wantErr(t, newGuard(t, lockOnly(), polled{w}).WithLock(t.Context(), "k", nothing), guard.ErrBusy)
	})
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		w.traits.Consistency = driver.Local
		w.breaks(lost, nil)
		wantErr(t, newGuard(t, lockOnly(), w).WithLock(t.Context(), "k", nothing), guard.ErrUnavailable)
	})
}

func TestGuard_AnAcquireThatLandsLateIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		w.breaks(func(_ context.Context, call string, _ int) error { // it lands after the caller, and the first clean-up, are gone
			if call == "Acquire" {
				time.Sleep(5 * time.Second)
			}
			return nil
		}, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w.store = s
		wantErr(t, g.WithLock(ctx, "k", nothing), guard.ErrUnavailable)
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if !free(t, s, "k") {
			t.Error("the key is held by an attempt that nobody waits for")
		}
	})
}

func TestGuard_OnASessionStoreACleanUpIsRepeatedUntilItIsConfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		w.traits.Session = true
		g := newGuard(t, lockOnly(), w)
		w.breaks(func(_ context.Context, call string, n int) error {
			if call == "Release" && n <= 2 {
				return errNet
			}
			return nil
		}, func(_ context.Context, call string, n int) error {
			if call == "Acquire" && n == 1 {
				return errNet
			}
			return nil
		})
		wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrUnavailable)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := w.count("Release"); got != 3 {
			t.Errorf("got %d releases, want three: two failed", got)
		}
		if !free(t, s, "k") {
			t.Error("the key is still held")
		}
	})
}

func TestGuard_ALostReplyOfReleaseIsAnErrorOfUnlockOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		loseRelease := func(_ context.Context, call string, _ int) error {
			if call == "Release" {
				return errNet
			}
			return nil
		}
		w.breaks(nil, loseRelease)
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Errorf("WithLock: got %v, want nil: fn ran under the lock", err)
		}
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		first := l.Unlock(t.Context())
		wantErr(t, first, guard.ErrUnavailable)
		if second := l.Unlock(t.Context()); second != first { //nolint:errorlint // the same
			t.Errorf("the second Unlock returned %v, want what the first did", second)
		}
		if err := l.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("got Err %v after Unlock, want context.Canceled", err)
		}
	})
}

func TestGuard_AGrantThatArrivesAfterItsEndIsNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		p := lockOnly()
		p.TTL = 200 * time.Millisecond
		g := newGuard(t, p, w)
		w.breaks(nil, func(_ context.Context, call string, n int) error {
			if call == "Acquire" && n == 1 {
				time.Sleep(190 * time.Millisecond) // the client ignores its bound of 100 ms a little longer than guard waits
			}
			return nil
		})
		ran := false
		err := g.WithLock(t.Context(), "k", func(context.Context) error { ran = true; return nil })
		wantErr(t, err, guard.ErrUnavailable)
		if ran {
			t.Error("fn ran on a lease that was over")
		}
		time.Sleep(time.Second)
	})
}

// A client that gives a request up does not stop the server: a clean-up could
// overtake it. So an Acquire whose callers have left is let finish.
func TestGuard_AnAcquireThatNobodyWaitsForIsLetFinish(t *testing.T) {
	slow := func(ctx context.Context, call string, _ int) error {
		if call != "Acquire" {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
			return nil
		case <-ctx.Done():
			t.Error("the Acquire was cancelled")
			return ctx.Err()
		}
	}
	leave := func(t *testing.T, g *guard.Guard) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		wantErr(t, g.WithLock(ctx, "k", nothing), guard.ErrUnavailable)
		if took := time.Since(began); took != 10*time.Millisecond {
			t.Errorf("the caller left after %v, want at its context's end", took)
		}
	}
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		w.breaks(slow, nil)
		g := newGuard(t, lockOnly(), w)
		leave(t, g)
		time.Sleep(time.Second)
		if !free(t, s, "k") {
			t.Error("the grant was not given back")
		}
		if got, want := fmt.Sprint(w.log()), "[Acquire Release]"; got != want {
			t.Errorf("got calls %v, want %v", got, want)
		}
		if n := guard.Queues(g); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		w.breaks(slow, nil)
		g := newGuard(t, lockOnly(), w)
		leave(t, g)
		_, l, err := g.TryLock(t.Context(), "k") // joins it: the key is not another's
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if got, want := fmt.Sprint(w.log()), "[Acquire Release]"; got != want {
			t.Errorf("got calls %v, want %v", got, want)
		}
	})
	bubble(t, func(t *testing.T) { // Close waits for it
		s := memstore.New()
		w := connect(s)
		w.breaks(slow, nil)
		g := newGuard(t, lockOnly(), w)
		leave(t, g)
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !free(t, s, "k") {
			t.Error("Close returned before the grant was given back")
		}
	})
}
