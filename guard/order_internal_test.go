package guard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/memstore"
)

func breakGuard(t *testing.T) *Guard {
	t.Helper()
	p := Stock()
	p.Ledger = nil
	g, err := New(p, On(memstore.New()), SingleProcess(), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lapse puts the end of l into the past, as after a freeze: no timer has fired yet.
func lapse(l *Lease) {
	l.ten.q.mu.Lock()
	l.ten.grant.Until = time.Now().Add(-time.Second)
	l.ten.q.mu.Unlock()
}

// The first to notice a lapse may be a nested lease that is being unlocked.
func TestLease_ANestedLeaseThatFindsTheHoldLapsedIsLostToo(t *testing.T) {
	g := breakGuard(t)
	ctx, outer, err := g.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	inside, nested, err := g.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	lapse(outer)
	if err := nested.Unlock(t.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("Unlock of the nested lease: got %v, want ErrLost", err)
	}
	if err := nested.Err(); !errors.Is(err, ErrLost) {
		t.Errorf("Err of the nested lease: got %v, want ErrLost", err)
	}
	select {
	case <-nested.Done():
	default:
		t.Error("Done of the nested lease is still open")
	}
	if cause := context.Cause(inside); !errors.Is(cause, ErrLost) {
		t.Errorf("cause of its context: got %v, want ErrLost", cause)
	}
	_ = outer.Unlock(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := g.Close(ctx); err != nil {
		t.Errorf("Close with no lease left: got %v, want nil", err)
	}
}

// WithLock must not return nil in the moment between a loss and its telling.
func TestLease_UnlockWhileALossIsBeingToldIsLost(t *testing.T) {
	g := breakGuard(t)
	ctx, outer, err := g.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	_, nested, err := g.Lock(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	lapse(outer)
	outer.mu.Lock() // the telling of the loss stops at the first holder
	told := make(chan struct{})
	go func() { g.hub.tick(outer.ten); close(told) }()
	for range 20 { // until the loss is decided, if that can be seen before it is told
		time.Sleep(time.Millisecond)
		if q := outer.ten.q; q.mu.TryLock() {
			decided := nested.state != open
			q.mu.Unlock()
			if decided {
				break
			}
		}
	}
	got := make(chan error, 1)
	go func() { got <- nested.Unlock(t.Context()) }()
	select {
	case err := <-got:
		if !errors.Is(err, ErrLost) {
			t.Errorf("Unlock after the loss: got %v, want ErrLost", err)
		}
	case <-time.After(50 * time.Millisecond): // it waits for the telling: fine
		defer func() {
			if err := <-got; !errors.Is(err, ErrLost) {
				t.Errorf("Unlock after the loss: got %v, want ErrLost", err)
			}
		}()
	}
	outer.mu.Unlock()
	<-told
}

// A hand-over must not start the next holder before the contexts of the last are over.
func TestLease_ContextsEndBeforeTheKeyIsHandedOn(t *testing.T) {
	g := breakGuard(t)
	_, l, err := g.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	bound := l.Bind(t.Context())
	next := make(chan error, 1)
	go func() {
		next <- g.WithLock(t.Context(), "k", func(context.Context) error {
			if bound.Err() == nil {
				t.Error("the next holder runs, and the context of the last has not ended")
			}
			return nil
		})
	}()
	for {
		l.ten.q.mu.Lock()
		waits := l.ten.q.first != nil
		l.ten.q.mu.Unlock()
		if waits {
			break
		}
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock() // the Unlock is preempted where it ends the contexts
	unlocked := make(chan error, 1)
	go func() { unlocked <- l.Unlock(context.Background()) }()
	select {
	case err = <-next:
	case <-time.After(50 * time.Millisecond): // it waits for the contexts: fine
		defer func() {
			if err := <-next; err != nil {
				t.Error(err)
			}
		}()
	}
	l.mu.Unlock()
	if err != nil {
		t.Error(err)
	}
	if err := <-unlocked; err != nil {
		t.Error(err)
	}
}

// fn's own error may have come from another WithLocks.
func TestWithLocks_RunsFnOnceWhateverItReturns(t *testing.T) {
	g := breakGuard(t)
	runs := 0
	err := g.WithLocks(t.Context(), []string{"a", "b"}, func(context.Context) error {
		if runs++; runs > 3 {
			return nil
		}
		// What an inner WithLocks(Wait(0)) of fn returns when one of its leases ended too soon.
		return fmt.Errorf("inner: %w", g.fail("WithLocks", "c", because(ErrBusy, errNotBegun)))
	})
	if runs != 1 {
		t.Errorf("fn ran %d times (the error is %v), want once", runs, err)
	}
}
