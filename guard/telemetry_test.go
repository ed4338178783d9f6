package guard_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

func TestTelemetry_CountsWhatHappened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		spans := tracetest.NewInMemoryExporter()
		var log bytes.Buffer
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w,
			guard.WithTelemetry(sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))),
			guard.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		_, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = g.TryLock(t.Context(), "k")
		wantErr(t, err, guard.ErrBusy)
		var second sync.WaitGroup
		second.Go(func() {
			err := g.WithLock(t.Context(), "k", func(ctx context.Context) error {
				w.breaks(func(context.Context, string, int) error { return errNet }, nil)
				<-ctx.Done()
				return nil
			})
			wantErr(t, err, guard.ErrLost)
		})
		synctest.Wait()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		second.Wait()
		wantErr(t, g.WithLock(t.Context(), "k", nothing), guard.ErrUnavailable)

		synctest.Wait() // the loss is told first and reported after
		counts := collect(t, reader)
		for name, want := range map[string]int64{
			"pawl.lock.handovers": 1, "pawl.lock.losses": 1, "pawl.lock.verdicts": 4,
			"pawl.lock.wait": 2, "pawl.lock.hold": 2,
		} {
			if counts[name] != want {
				t.Errorf("%s: got %d, want %d", name, counts[name], want)
			}
		}
		if counts["pawl.lock.unanswered"] == 0 {
			t.Error("failed renewals were not counted")
		}
		if got := len(spans.GetSpans()); got != 4 {
			t.Errorf("got %d spans, want one a call", got)
		}
		for _, want := range []string{"profile stock, lock on wired (queued)", "lease lost", "the lock's store did not answer", "renewal not confirmed"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log.String())
			}
		}
	})
}

// collect sums the points of every instrument.
func collect(t *testing.T, r sdkmetric.Reader) map[string]int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int64{}
	for _, s := range data.ScopeMetrics {
		for _, m := range s.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					counts[m.Name] += p.Value
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					counts[m.Name] += int64(p.Count)
				}
			}
		}
	}
	return counts
}

// A logger that blocks must not keep other holders from learning of their loss.
func TestTelemetry_ASlowLoggerDelaysNobodysLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		stuck := make(chan struct{})
		g := newGuard(t, lockOnly(), w, guard.WithLogger(slog.New(blocking{stuck})))
		var leases []*guard.Lease
		for _, k := range []string{"a", "b", "c"} {
			_, l, err := g.Lock(t.Context(), k)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		w.breaks(func(context.Context, string, int) error { return errNet }, nil)
		for _, l := range leases {
			<-l.Done() // a deadlock of the bubble, if a logger is in the way
		}
		close(stuck)
	})
}

// blocking is a handler that takes the plan, and blocks on all that follows.
type blocking struct{ stuck chan struct{} }

func (blocking) Enabled(context.Context, slog.Level) bool { return true }
func (b blocking) WithAttrs([]slog.Attr) slog.Handler     { return b }
func (b blocking) WithGroup(string) slog.Handler          { return b }
func (b blocking) Handle(_ context.Context, r slog.Record) error {
	if r.Level > slog.LevelInfo {
		<-b.stuck
		return errors.New("stuck")
	}
	return nil
}
