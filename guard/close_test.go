package guard_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// One guard's Close does not wait for the calls of another guard on the same store.
func TestGuard_CloseDoesNotWaitForAnotherGuardsCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		w := connect(s)
		rival(t, s, "k", time.Hour)
		a, b := newGuard(t, lockOnly(), w), newGuard(t, lockOnly(), w)
		go func() { _ = a.WithLock(t.Context(), "k", nothing, guard.Wait(time.Second)) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = b.WithLock(ctx, "k", nothing, guard.Wait(10*time.Minute)) }()
		time.Sleep(2 * time.Second) // a's call has left
		bounded, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		if err := a.Close(bounded); err != nil {
			t.Errorf("Close of a guard without calls: got %v, want nil", err)
		}
	})
}

// meter calls a function whenever a hold is recorded.
type meter struct {
	noop.MeterProvider
	noopMeter
	hold func()
}

type noopMeter struct{ noop.Meter }

func (m *meter) Meter(string, ...metric.MeterOption) metric.Meter { return m }

func (m *meter) Float64Histogram(name string, _ ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	if name == "pawl.lock.hold" {
		return histogram{hold: m.hold}, nil
	}
	return noop.Float64Histogram{}, nil
}

type histogram struct {
	noop.Float64Histogram
	hold func()
}

func (h histogram) Record(context.Context, float64, ...metric.RecordOption) { h.hold() }

// Close waits until an Unlock under way has given the key back: the caller closes the client next.
func TestGuard_CloseWaitsForAnUnlockUnderWay(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		var g *guard.Guard
		closed := make(chan error, 1)
		m := &meter{hold: func() { // the Unlock is preempted where it tells the end of the hold
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := g.Close(ctx); err == nil && !free(t, s, "k") {
				t.Error("Close returned nil before the key was given back")
			}
			closed <- nil
		}}
		g = newGuard(t, lockOnly(), store, guard.WithTelemetry(nil, m))
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		<-closed
	})
}

// fn does not begin after Close has given up what was left.
func TestGuard_NoFnBeginsAfterCloseHasGivenUp(t *testing.T) {
	bothPaths(t, func(t *testing.T, _ *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		over, cancel := context.WithCancel(t.Context())
		cancel()
		gaveUp := false
		ctx := &freezing{Context: t.Context(), after: 2, sleep: func() {
			wantErr(t, g.Close(over), guard.ErrLost)
			gaveUp = true
		}}
		err := g.WithLock(ctx, "k", func(context.Context) error {
			if gaveUp {
				t.Error("fn began after Close had returned")
			}
			return nil
		})
		wantErr(t, err, guard.ErrInvalid)
	})
}

func TestGuard_CloseGivesUpNestedHoldsToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		a, b := newGuard(t, lockOnly(), s), newGuard(t, lockOnly(), s)
		ctx, outer, err := a.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, nested, err := b.Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		over, cancel := context.WithCancel(t.Context())
		cancel()
		wantErr(t, b.Close(over), guard.ErrLost)
		if !errors.Is(nested.Err(), guard.ErrLost) {
			t.Errorf("the nested hold of the closed guard: got %v, want ErrLost", nested.Err())
		}
		if err := outer.Err(); err != nil {
			t.Errorf("the hold of the guard that is open: got %v, want it held", err)
		}
		_ = nested.Unlock(t.Context())
		_ = outer.Unlock(t.Context())
	})
}
