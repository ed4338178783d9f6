package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

func TestLease_OutlivesTheContextOfLock(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		ctx, cancel := context.WithCancel(t.Context())
		held, l, err := g.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		if held.Err() == nil {
			t.Error("the work context did not end with its parent")
		}
		time.Sleep(30 * time.Second)
		if l.Err() != nil || free(t, s, "k") {
			t.Errorf("got Err %v, want the lease alive and renewed", l.Err())
		}
		bound := l.Bind(t.Context())
		if !g.Held(bound, "k") || fencing.Grants(bound)[0].Token != l.Token() {
			t.Error("a bound context does not hold the key")
		}
		if err := l.Unlock(ctx); err != nil {
			t.Errorf("got %v: Unlock works after ctx has ended", err)
		}
		<-l.Done()
		<-bound.Done()
		if !free(t, s, "k") {
			t.Error("the key is held after Unlock")
		}
		if late := l.Bind(t.Context()); late.Err() == nil {
			t.Error("a context bound to an ended lease is alive")
		}
	})
}

func TestLease_LossReachesAllThatIsBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		held, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		bound := l.Bind(t.Context())
		w.breaks(func(context.Context, string, int) error { return errNet }, nil)
		<-l.Done()
		wantErr(t, l.Err(), guard.ErrLost)
		for _, ctx := range []context.Context{held, bound} {
			<-ctx.Done()
			wantErr(t, context.Cause(ctx), guard.ErrLost)
		}
		first := l.Unlock(t.Context())
		wantErr(t, first, guard.ErrLost)
		if second := l.Unlock(t.Context()); second != first { //nolint:errorlint // the same
			t.Errorf("got %v, want what the first call returned", second)
		}
	})
}

func TestLease_BindForgetsContextsThatHaveEnded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGuard(t, lockOnly(), memstore.New())
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			b := l.Bind(ctx)
			cancel()
			<-b.Done()
		}
		synctest.Wait()
		if got := guard.BoundContexts(l); got != 0 {
			t.Errorf("the lease still knows %d ended contexts", got)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGuard_HolderNamesTheIdentity(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store, guard.WithIdentity("billing-3"))
		if _, ok := store.(driver.Viewer); !ok {
			_, _, err := g.Holder(t.Context(), "k")
			wantErr(t, err, guard.ErrInvalid)
			return
		}
		who, tok, err := g.Holder(t.Context(), "k")
		if err != nil || who != "" || tok != 0 {
			t.Errorf("got %q, %d, %v; want nobody", who, tok, err)
		}
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		who, tok, err = g.Holder(t.Context(), "k")
		if err != nil || who != "billing-3" || tok != l.Token() {
			t.Errorf("got %q, %d, %v; want billing-3, %d", who, tok, err, l.Token())
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGuard_CloseWaitsForHoldsAndRefusesCalls(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		ended := false
		go func() {
			_ = g.WithLock(t.Context(), "k", func(context.Context) error { time.Sleep(20 * time.Second); ended = true; return nil })
		}()
		synctest.Wait()
		if err := g.Close(t.Context()); err != nil {
			t.Errorf("got %v, want nil", err)
		}
		if !ended || !free(t, s, "k") {
			t.Error("Close returned while a hold was on")
		}
		err := g.WithLock(t.Context(), "k", nothing)
		wantErr(t, err, guard.ErrInvalid)
		if !strings.Contains(err.Error(), "closed") {
			t.Errorf("got %v, want it to say closed", err)
		}
	})
}

func TestGuard_CloseGivesUpWhatIsLeft(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 1)
		go func() { waits <- g.WithLock(t.Context(), "k", nothing, guard.Wait(time.Hour)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = g.Close(ctx)
		wantErr(t, err, guard.ErrLost)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the context's error joined", err)
		}
		<-l.Done()
		wantErr(t, l.Err(), guard.ErrLost)
		wantErr(t, <-waits, guard.ErrInvalid)
		w.breaks(nil, nil)
		time.Sleep(time.Minute)
		if got := w.count("Renew"); got != 0 {
			t.Errorf("got %d renewals after Close", got)
		}
	})
}

// A process that was frozen between the grant and fn must not start fn on a dead
// lease: the call goes back to waiting.
func TestGuard_AFrozenProcessDoesNotStartFnOnADeadLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		g := newGuard(t, lockOnly(), w)
		frozen := &freezing{Context: t.Context(), after: 2, sleep: func() {
			w.breaks(func(_ context.Context, call string, _ int) error {
				if call == "Renew" {
					return errNet
				}
				return nil
			}, nil)
			time.Sleep(time.Minute)
			w.breaks(nil, nil)
		}}
		err := g.WithLock(frozen, "k", func(ctx context.Context) error {
			h, err := s.Holder(ctx, "pawl:k")
			if err != nil || h.Token != fencing.Grants(ctx)[0].Token {
				t.Errorf("fn runs with token %d, the store's holder has %d (%v)", fencing.Grants(ctx)[0].Token, h.Token, err)
			}
			return ctx.Err()
		}, guard.Wait(2*time.Minute))
		if err != nil {
			t.Errorf("got %v, want fn to run under a grant of its own", err)
		}
		if got := w.count("Acquire"); got != 1 {
			t.Errorf("got %d acquires after the freeze, want one", got)
		}
	})
}

// freezing is a context whose Err stops the caller once, where guard asks
// whether the caller still wants its turn.
type freezing struct {
	context.Context
	after int
	sleep func()
}

func (f *freezing) Err() error {
	if f.after--; f.after == 0 {
		f.sleep()
	}
	return f.Context.Err()
}
