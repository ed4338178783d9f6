package guardtest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/guard/guardtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestNew_ServesEveryProfileThatLocks(t *testing.T) {
	for _, p := range []guard.Profile{guard.DuplicateSubmit(), guard.Stock(), guard.Payment(), guard.Leadership(), guard.ConfigChange()} {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, _ := guardtest.New(t, p, guard.WithNamespace("elsewhere"))
				if err := g.WithLock(t.Context(), "k", func(ctx context.Context) error { return ctx.Err() }); err != nil {
					t.Errorf("got %v, want nil", err)
				}
			})
		})
	}
}

func TestSwitch_Hold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, sw := guardtest.New(t, guard.Stock())
		sw.Hold("k")
		if _, _, err := g.TryLock(t.Context(), "k"); !errors.Is(err, guard.ErrBusy) {
			t.Errorf("TryLock: got %v, want ErrBusy", err)
		}
		began := time.Now()
		if _, _, err := g.Lock(t.Context(), "k"); !errors.Is(err, guard.ErrBusy) {
			t.Errorf("Lock: got %v, want ErrBusy", err)
		}
		if waited := time.Since(began); waited != guard.Stock().Wait {
			t.Errorf("waited %v, want the profile's Wait", waited)
		}
		_, l, err := g.Lock(t.Context(), "other")
		if err != nil {
			t.Fatalf("another key: got %v, want nil", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestSwitch_LoseIsToldWithinAThirdOfTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, sw := guardtest.New(t, guard.Stock(), guard.WithNamespace("shop"))
		began := time.Now()
		err := g.WithLock(t.Context(), guard.Key("sku", 42), func(ctx context.Context) error {
			sw.Lose(guard.Key("sku", 42))
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), guard.ErrLost) {
				t.Errorf("got cause %v, want ErrLost", context.Cause(ctx))
			}
			return nil
		})
		if !errors.Is(err, guard.ErrLost) {
			t.Errorf("got %v, want ErrLost", err)
		}
		if took := time.Since(began); took > guard.Stock().TTL/3 {
			t.Errorf("told after %v, want TTL/3 at most", took)
		}
	})
}

func TestSwitch_DownAndUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, sw := guardtest.New(t, guard.Stock())
		err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
			sw.Down()
			<-ctx.Done() // it cannot be renewed
			return nil
		})
		if !errors.Is(err, guard.ErrLost) {
			t.Errorf("a hold when the store goes down: got %v, want ErrLost", err)
		}
		if _, _, err := g.TryLock(t.Context(), "k"); !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("a call while it is down: got %v, want ErrUnavailable", err)
		}
		if _, _, err := g.Holder(t.Context(), "k"); !errors.Is(err, guard.ErrUnavailable) {
			t.Errorf("Holder while it is down: got %v, want ErrUnavailable", err)
		}
		sw.Up()
		if err := g.WithLock(t.Context(), "k", func(context.Context) error { return nil }); err != nil {
			t.Errorf("after Up: got %v, want nil", err)
		}
	})
}
