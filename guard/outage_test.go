package guard_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// A call that does not wait is told when the store fails, also if it joined an
// attempt that had been told busy before.
func TestTryLock_ThatJoinsALateAttemptDoesNotWaitOutAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), polled{w})
		time.AfterFunc(500*time.Millisecond, func() {
			w.breaks(func(ctx context.Context, _ string, _ int) error { <-ctx.Done(); return errNet }, nil)
		})
		wantErr(t, g.WithLock(t.Context(), "k", nothing, guard.Wait(time.Second)), guard.ErrBusy)
		time.AfterFunc(time.Hour, func() { w.breaks(nil, nil) }) // so that the test ends
		began := time.Now()
		_, _, err := g.TryLock(t.Context(), "k")
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("TryLock came back after %v (%v), want within the bound of one call", took, err)
		}
	})
}

// A waiter that was told busy survives one lost reply, whichever attempt it belongs to.
func TestGuard_AWaiterBehindALocalHolderSurvivesALostReply(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		w, ok := wireOf(store)
		if !ok {
			return // a Local store loses no reply
		}
		g := newGuard(t, lockOnly(), store)
		_, l, err := g.Lock(t.Context(), "k", guard.TTL(5*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { got <- g.WithLock(t.Context(), "k", nothing) }() // needs a longer lease: no hand-over
		synctest.Wait()
		w.breaks(func(_ context.Context, call string, n int) error {
			if call == "Acquire" && n == 1 {
				return errNet
			}
			return nil
		}, nil)
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Errorf("got %v, want the key: the call was told busy and has Wait left", err)
		}
	})
}

// A call whose store never answered it is unavailable, however busy the key was before it came.
func TestGuard_ACallBegunInAnOutageIsUnavailableOnAHotPolledKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), polled{w})
		var errs [5]chan error
		for i := range errs { // each begins before the last one gives up
			errs[i] = make(chan error, 1)
			time.AfterFunc(time.Duration(i)*time.Second+time.Millisecond, func() {
				errs[i] <- g.WithLock(context.Background(), "k", nothing, guard.Wait(1500*time.Millisecond))
			})
		}
		time.AfterFunc(500*time.Millisecond, func() {
			w.breaks(func(context.Context, string, int) error { return errNet }, nil)
		})
		wantErr(t, <-errs[0], guard.ErrBusy) // it was told before the cut
		for _, err := range errs[1:] {
			wantErr(t, <-err, guard.ErrUnavailable)
		}
	})
}

// A process that is alone with a key never makes a caller wait longer than the holds before it take.
func TestGuard_TheRestOfAPolledKeyIsNotLongerThanWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGuard(t, lockOnly(), polled{connect(memstore.New())})
		var all sync.WaitGroup
		busy := 0
		var mu sync.Mutex
		for range 4 {
			all.Go(func() {
				for range 20 {
					err := g.WithLock(t.Context(), "k", func(context.Context) error {
						time.Sleep(10 * time.Millisecond)
						return nil
					}, guard.Wait(250*time.Millisecond))
					if err != nil {
						mu.Lock()
						busy++
						mu.Unlock()
					}
				}
			})
		}
		all.Wait()
		if busy > 0 {
			t.Errorf("%d of 80 calls were busy: the key was free, and nobody else wanted it", busy)
		}
	})
}

// The caller's context may end at any instant of a call.
func TestGuard_AContextMayEndAtAnyCheck(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		for n := 1; n < 12; n++ {
			for _, wait := range []time.Duration{0, time.Second} {
				inner, cancel := context.WithCancel(t.Context())
				ctx := &freezing{Context: inner, after: n, sleep: cancel}
				ran := false
				err := g.WithLock(ctx, "k", func(context.Context) error { ran = true; return nil }, guard.Wait(wait))
				if ran != (err == nil) {
					t.Errorf("check %d: fn ran: %v, %v", n, ran, err)
				}
				if err != nil {
					wantErr(t, err, guard.ErrUnavailable)
				}
				cancel()
				time.Sleep(time.Second)
				if !free(t, s, "k") {
					t.Errorf("check %d: the key is held", n)
				}
			}
		}
		if n := guard.Queues(g); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
}

func TestTryLock_InAnOutageIsUnavailable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), polled{w})
		time.AfterFunc(time.Second, func() {
			w.breaks(func(context.Context, string, int) error { return errNet }, nil)
		})
		go func() { _ = g.WithLock(context.Background(), "k", nothing, guard.Wait(time.Minute)) }()
		time.Sleep(30 * time.Second)
		_, _, err := g.TryLock(t.Context(), "k")
		wantErr(t, err, guard.ErrUnavailable)
	})
}

func wireOf(store driver.Backend) (*wire, bool) {
	if p, ok := store.(polled); ok {
		store = p.Locker
	}
	w, ok := store.(*wire)
	return w, ok
}
