package guard

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

const scope = "github.com/pawl-go/pawl/guard"

// telemetry is what a guard reports: to its logger what a person should act on,
// to OpenTelemetry what is counted. Labels are the plan, never a key.
type telemetry struct {
	g      *Guard
	tracer trace.Tracer // nil: not wanted
	meters *meters      // nil: not wanted
}

type meters struct {
	wait, hold, lag      metric.Float64Histogram
	losses, handovers    metric.Int64Counter
	verdicts, unanswered metric.Int64Counter
	labels               attribute.Set
}

func newTelemetry(g *Guard, c *config) (*telemetry, error) {
	t := &telemetry{g: g}
	if c.tracing != nil {
		t.tracer = c.tracing.Tracer(scope)
	}
	if c.metering == nil {
		return t, nil
	}
	m := c.metering.Meter(scope)
	var errs [7]error
	t.meters = &meters{labels: attribute.NewSet(
		attribute.String("pawl.profile", g.plan.Profile), attribute.String("pawl.store", g.plan.Lock))}
	seconds := metric.WithUnit("s")
	t.meters.wait, errs[0] = m.Float64Histogram("pawl.lock.wait", seconds, metric.WithDescription("from the call until the lock was held"))
	t.meters.hold, errs[1] = m.Float64Histogram("pawl.lock.hold", seconds, metric.WithDescription("from the grant until the lease ended"))
	t.meters.lag, errs[2] = m.Float64Histogram("pawl.lock.renewal", seconds, metric.WithDescription("duration of a confirmed renewal; the margin is TTL less this"))
	t.meters.losses, errs[3] = m.Int64Counter("pawl.lock.losses", metric.WithDescription("leases lost, by cause"))
	t.meters.handovers, errs[4] = m.Int64Counter("pawl.lock.handovers", metric.WithDescription("holds passed on inside this process"))
	t.meters.verdicts, errs[5] = m.Int64Counter("pawl.lock.verdicts", metric.WithDescription("how lock calls ended"))
	t.meters.unanswered, errs[6] = m.Int64Counter("pawl.lock.unanswered", metric.WithDescription("renewals and releases that the store did not confirm"))
	return t, errors.Join(errs[:]...)
}

// reports tells whether calls are counted.
func (t *telemetry) reports() bool { return t.meters != nil || t.tracer != nil }

func (t *telemetry) acquired(ctx context.Context, c *call) { t.verdict(ctx, c, "held") }

func (t *telemetry) failed(ctx context.Context, c *call, err error) {
	switch {
	case errors.Is(err, ErrBusy):
		t.verdict(ctx, c, "busy")
	case errors.Is(err, ErrUnavailable):
		t.verdict(ctx, c, "unavailable")
		t.g.log.Warn("pawl: the lock's store did not answer", "profile", t.g.plan.Profile, "store", t.g.plan.Lock, "key", c.key, "err", err)
	default:
		t.verdict(ctx, c, "invalid")
	}
}

// verdict counts how a call ended, and how long it took to be held.
func (t *telemetry) verdict(ctx context.Context, c *call, what string) {
	if !t.reports() {
		return
	}
	now := time.Now()
	if t.tracer != nil {
		_, span := t.tracer.Start(ctx, "pawl."+c.op, trace.WithTimestamp(c.began),
			trace.WithAttributes(attribute.String("pawl.profile", t.g.plan.Profile), attribute.String("pawl.verdict", what)))
		span.End(trace.WithTimestamp(now))
	}
	t.count(func(m *meters) metric.Int64Counter { return m.verdicts }, attribute.String("pawl.verdict", what))
	if t.meters != nil && what == "held" {
		t.meters.wait.Record(context.Background(), now.Sub(c.began).Seconds(), metric.WithAttributeSet(t.meters.labels))
	}
}

func (t *telemetry) lost(ten *tenure, why error) {
	t.count(func(m *meters) metric.Int64Counter { return m.losses }, attribute.String("pawl.cause", why.Error()))
	t.g.log.Warn("pawl: lease lost", "profile", t.g.plan.Profile, "store", t.g.plan.Lock, "key", ten.q.key, "cause", why)
}

func (t *telemetry) handedOver() {
	t.count(func(m *meters) metric.Int64Counter { return m.handovers })
}

func (t *telemetry) renewed(took time.Duration) {
	if t.meters != nil {
		t.meters.lag.Record(context.Background(), took.Seconds(), metric.WithAttributeSet(t.meters.labels))
	}
}

func (t *telemetry) renewFailed(ten *tenure, err error) { t.unconfirmed("renewal", ten, err) }

func (t *telemetry) releaseFailed(ten *tenure, err error) { t.unconfirmed("release", ten, err) }

func (t *telemetry) unconfirmed(what string, ten *tenure, err error) {
	t.count(func(m *meters) metric.Int64Counter { return m.unanswered }, attribute.String("pawl.call", what))
	t.g.log.LogAttrs(context.Background(), slog.LevelWarn, "pawl: "+what+" not confirmed",
		slog.String("profile", t.g.plan.Profile), slog.String("store", t.g.plan.Lock), slog.String("key", ten.q.key), slog.Any("err", err))
}

// ended reports how long a hold lasted.
func (t *telemetry) ended(since time.Time) {
	if t.meters != nil {
		t.meters.hold.Record(context.Background(), time.Since(since).Seconds(), metric.WithAttributeSet(t.meters.labels))
	}
}

func (t *telemetry) count(which func(*meters) metric.Int64Counter, more ...attribute.KeyValue) {
	if t.meters != nil {
		which(t.meters).Add(context.Background(), 1, metric.WithAttributeSet(t.meters.labels), metric.WithAttributes(more...))
	}
}
