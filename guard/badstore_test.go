package guard_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// local is a store inside this process with a hook before Release.
type local struct {
	*memstore.Store
	before func()
}

func (l *local) Release(ctx context.Context, g driver.Grant) error {
	l.before()
	return l.Store.Release(ctx, g)
}

// A context that ends during Unlock does not keep the key held.
func TestLease_UnlockGivesBackAlthoughItsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := &local{Store: memstore.New(), before: cancel}
		g := newGuard(t, lockOnly(), s)
		if err := g.WithLock(ctx, "k", nothing); err != nil {
			t.Error(err)
		}
		if !free(t, s.Store, "k") {
			t.Error("the key is still held")
		}
	})
}

// A store that panics inside its caller does not keep the key from those who wait.
func TestGuard_AStoreThatPanicsLeavesTheKeyUsable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &panicking{Store: memstore.New()}
		s.left.Store(1)
		g := newGuard(t, lockOnly(), s)
		go func() {
			defer func() { _ = recover() }() // as net/http does
			_ = g.WithLock(t.Context(), "k", nothing)
		}()
		time.Sleep(time.Second)
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Errorf("the call behind it: got %v, want nil", err)
		}
	})
}

type panicking struct {
	*memstore.Store
	left atomic.Int32
}

func (p *panicking) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if p.left.Add(-1) == 0 {
		time.Sleep(2 * time.Second)
		panic("store")
	}
	return p.Store.Acquire(ctx, r)
}

// A part of the store that does not answer costs the holds of the other part nothing.
func TestGuard_StuckRenewalsDoNotStarveTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		g := newGuard(t, lockOnly(), sharded{connect(memstore.New())})
		for i := range 1500 {
			if _, _, err := g.Lock(t.Context(), fmt.Sprint("dead", i)); err != nil {
				t.Fatal(err)
			}
		}
		_, l, err := g.Lock(t.Context(), "healthy")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("the hold whose shard answers: got %v, want it held", err)
		}
		_ = l.Unlock(t.Context())
	})
}

// sharded is a store of which one part does not answer renewals.
type sharded struct{ *wire }

func (s sharded) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	if strings.HasPrefix(g.Key, "pawl:dead") {
		<-ctx.Done()
		return driver.Grant{}, ctx.Err()
	}
	return s.wire.Renew(ctx, g)
}

// One AcquireWait that hangs (a half-open link) does not make a key unusable for as long as calls overlap.
func TestGuard_AWaitThatHangsDoesNotKeepAFreeKeyBusyForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		w.traits.FIFO = false // where the place in line is lost with the wait
		held := rival(t, s, "k", time.Hour)
		g := newGuard(t, lockOnly(), w)
		w.breaks(func(ctx context.Context, call string, n int) error {
			if call == "AcquireWait" && n == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}, nil)
		time.AfterFunc(time.Second, func() { _ = s.Release(context.Background(), held) })
		const calls = 120
		errs := make(chan error, calls)
		for i := range calls { // one a second, each waits for five
			time.AfterFunc(time.Duration(i)*time.Second, func() {
				errs <- g.WithLock(context.Background(), "k", nothing, guard.Wait(5*time.Second))
			})
		}
		failed := 0
		for range calls {
			if err := <-errs; err != nil {
				failed++
			}
		}
		if failed > 40 {
			t.Errorf("%d of %d calls failed: the key has been free since the first second", failed, calls)
		}
	})
}

// liar is a store whose answers can be anything.
type liar struct {
	*wire
	acquire, renew func(g driver.Grant, err error) (driver.Grant, error)
	wait           func(r driver.Request) (driver.Grant, error)
	calls          int
}

func (l *liar) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	g, err := l.wire.Acquire(ctx, r)
	if l.acquire != nil {
		return l.acquire(g, err)
	}
	return g, err
}

func (l *liar) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	l.calls++
	if l.wait != nil {
		return l.wait(r)
	}
	return l.wire.AcquireWait(ctx, r)
}

func (l *liar) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	l.calls++
	return l.renew(l.wire.Renew(ctx, g))
}

func TestGuard_AGrantWithoutALifeIsNoHold(t *testing.T) {
	for _, lie := range []func(driver.Grant, error) (driver.Grant, error){
		func(driver.Grant, error) (driver.Grant, error) { return driver.Grant{}, nil },
		func(g driver.Grant, err error) (driver.Grant, error) { g.Until = time.Now(); return g, err },
	} {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			g := newGuard(t, lockOnly(), &liar{wire: connect(s), acquire: lie})
			wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrUnavailable)
			time.Sleep(time.Second)
			if !free(t, s, "k") {
				t.Error("the key is still held")
			}
		})
	}
}

func TestGuard_ARenewalThatLiesLosesTheHoldInTimeAndIsNotRepeatedInALoop(t *testing.T) {
	for _, lie := range []func(driver.Grant, error) (driver.Grant, error){
		func(driver.Grant, error) (driver.Grant, error) { return driver.Grant{}, nil },
		func(driver.Grant, error) (driver.Grant, error) { return driver.Grant{}, driver.ErrBusy },
		func(g driver.Grant, err error) (driver.Grant, error) {
			g.Until = g.Until.Add(-time.Hour)
			return g, err
		},
		func(g driver.Grant, err error) (driver.Grant, error) { g.TTL = 0; return g, err },
		func(g driver.Grant, err error) (driver.Grant, error) { g.TTL = -time.Hour; return g, err },
	} {
		bubble(t, func(t *testing.T) {
			l := &liar{wire: connect(memstore.New()), renew: lie}
			g := newGuard(t, lockOnly(), l)
			began := time.Now()
			wantErr(t, g.WithLock(t.Context(), "k", func(ctx context.Context) error { <-ctx.Done(); return nil }), guard.ErrLost)
			if held := time.Since(began); held > 20*time.Second { // one TTL after the last renewal that may be believed
				t.Errorf("the hold was lost after %v", held)
			}
			if l.calls > 20 {
				t.Errorf("%d renewals in one TTL", l.calls)
			}
		})
	}
}

func TestGuard_AWaitThatLiesIsNotRepeatedInALoop(t *testing.T) {
	for _, lie := range []func(driver.Request) (driver.Grant, error){
		func(driver.Request) (driver.Grant, error) { return driver.Grant{}, driver.ErrBusy },
		func(r driver.Request) (driver.Grant, error) { return driver.Grant{Request: r, Token: 1}, nil },
	} {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			rival(t, s, "k", time.Hour)
			l := &liar{wire: connect(s), wait: lie}
			wantErr(t, newGuard(t, lockOnly(), l).WithLock(t.Context(), "k", nothing), guard.ErrBusy)
			if l.calls > 60 {
				t.Errorf("%d waits in 5s", l.calls)
			}
		})
	}
}
