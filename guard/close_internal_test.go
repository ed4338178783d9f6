package guard

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
)

// guardsOn returns two guards of one process.
func guardsOn(t *testing.T, s driver.Locker) (a, b *Guard) {
	t.Helper()
	p := Stock()
	p.Ledger, p.MaxHold = nil, 0
	var gs [2]*Guard
	for i := range gs {
		g, err := New(p, On(s), SingleProcess(), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		gs[i] = g
	}
	return gs[0], gs[1]
}

// deaf loses releases.
type deaf struct{ *memstore.Store }

func (deaf) Release(context.Context, driver.Grant) error { return errors.New("lost") }

func TestTenure_GivenUpNestedHoldLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := deaf{memstore.New()}
		a, b := guardsOn(t, s)
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
		if err := b.Close(over); !errors.Is(err, ErrLost) {
			t.Fatalf("Close: got %v", err)
		}
		_ = nested.Unlock(t.Context())
		time.Sleep(time.Hour)
		if n := Queues(a); n != 0 {
			t.Errorf("%d queues are left", n)
		}
		if h, err := s.Holder(t.Context(), "pawl:k"); err != nil || h.Owner != "" {
			t.Error("the key is still held and renewed after an hour")
		}
	})
}

// What a guard gives up is its own: not what another guard has nested in a hold
// that the first has unlocked.
func TestTenure_GiveUpSparesOtherGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := guardsOn(t, memstore.New())
		ctx, outer, err := a.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, nested, err := b.Lock(context.WithoutCancel(ctx), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, other, err := a.Lock(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		_ = outer.Unlock(t.Context())
		over, cancel := context.WithCancel(t.Context())
		cancel()
		_ = a.Close(over)
		if err := nested.Err(); err != nil {
			t.Errorf("the nested hold of the guard that is open: got %v, want it held", err)
		}
		if err := nested.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		_ = other.Unlock(t.Context())
		time.Sleep(time.Minute)
		if n := Queues(a); n != 0 {
			t.Errorf("%d queues are left", n)
		}
	})
}
