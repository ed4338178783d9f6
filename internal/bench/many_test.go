package bench_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"
	gormpg "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/gormstore"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

const (
	// mostGoroutines is what guard may run while locks are held, however many: 128
	// workers for renewals, each with a watchdog, batches in flight and their timers.
	mostGoroutines = 2*128 + 64
	// leastShared is how many renewals share a round trip.
	leastShared = 10
)

// BenchmarkMany_TenThousandHeldLocks holds 10,000 locks for two renewals of each:
// an operation is that. Acquiring and releasing them is not measured.
func BenchmarkMany_TenThousandHeldLocks(b *testing.B) {
	for name, open := range manyStores {
		b.Run(name, func(b *testing.B) {
			const ttl = 10 * time.Second
			m := newMany(b, open, ttl)
			m.hold(b, 10_000)
			var cost cost
			for b.Loop() {
				cost = m.watch(2 * ttl / 3)
			}
			b.ReportMetric(float64(cost.goroutines), "goroutines")
			b.ReportMetric(cost.shared(), "renewals/trip")
			b.ReportMetric(cost.rate, "renewals/s")
			cost.check(b)
		})
	}
}

func TestMany_HeldLocksShareGoroutinesAndRoundTrips(t *testing.T) {
	tests := map[string]struct {
		locks int
		ttl   time.Duration
	}{
		"Redis": {10_000, 10 * time.Second},
		// Each is a commit: fewer at a time make the same renewals a second.
		"PostgreSQL": {servertest.Count(4000, 10_000), time.Duration(servertest.Count(8, 15)) * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m := newMany(t, manyStores[name], tt.ttl)
			m.hold(t, tt.locks)
			cost := m.watch(tt.ttl / 3)
			t.Logf("%d locks: %+v, %.1f renewals a trip", tt.locks, cost, cost.shared())
			cost.check(t)
		})
	}
}

var manyStores = map[string]func(testing.TB) (driver.Locker, *atomic.Int64){"Redis": manyRedis, "PostgreSQL": manyPostgres}

type many struct {
	guard           *guard.Guard
	renewals, trips *atomic.Int64
	goroutines      int // before
	leases          []*guard.Lease
}

func newMany(tb testing.TB, open func(testing.TB) (driver.Locker, *atomic.Int64), ttl time.Duration) *many {
	tb.Helper()
	store, trips := open(tb)
	m := &many{renewals: &atomic.Int64{}, trips: trips}
	p := profile(0)
	p.TTL = ttl
	m.guard = openGuard(tb, p, &counting{store, m.renewals})
	return m
}

// hold acquires n locks and gives them back when the test is done.
func (m *many) hold(tb testing.TB, n int) {
	tb.Helper()
	m.leases = make([]*guard.Lease, n)
	tb.Cleanup(func() { m.each(tb, func(i int) error { return m.leases[i].Unlock(context.Background()) }) })
	m.goroutines = runtime.NumGoroutine()
	m.each(tb, func(i int) (err error) {
		_, m.leases[i], err = m.guard.Lock(tb.Context(), "key:"+strconv.Itoa(i))
		return err
	})
}

func (m *many) each(tb testing.TB, do func(i int) error) {
	tb.Helper()
	var all errgroup.Group
	all.SetLimit(64)
	for i := range m.leases {
		all.Go(func() error { return do(i) })
	}
	if err := all.Wait(); err != nil {
		tb.Error(err)
	}
}

// cost is what holding costs.
type cost struct {
	goroutines      int // at most, beyond those that were there before
	renewals, trips int64
	rate            float64 // renewals a second
	lost            int
}

func (m *many) watch(d time.Duration) (c cost) {
	renewals, trips := m.renewals.Load(), m.trips.Load()
	began := time.Now()
	for time.Since(began) < d {
		c.goroutines = max(c.goroutines, runtime.NumGoroutine()-m.goroutines)
		time.Sleep(time.Millisecond)
	}
	c.renewals, c.trips = m.renewals.Load()-renewals, m.trips.Load()-trips
	c.rate = float64(c.renewals) / time.Since(began).Seconds()
	for _, l := range m.leases {
		if l == nil || l.Err() != nil {
			c.lost++
		}
	}
	return c
}

func (c cost) shared() float64 { return float64(c.renewals) / float64(c.trips) }

func (c cost) check(tb testing.TB) {
	tb.Helper()
	if c.lost > 0 {
		tb.Errorf("%d leases were lost", c.lost)
	}
	if c.goroutines > mostGoroutines {
		tb.Errorf("got %d goroutines while locks are held, want at most %d", c.goroutines, mostGoroutines)
	}
	if c.shared() < leastShared {
		tb.Errorf("got %.1f renewals a round trip, want at least %d", c.shared(), leastShared)
	}
}

// counting counts confirmed renewals.
type counting struct {
	driver.Locker
	renewals *atomic.Int64
}

func (s *counting) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	g, err := s.Locker.Renew(ctx, g)
	if err == nil {
		s.renewals.Add(1)
	}
	return g, err
}

func manyRedis(tb testing.TB) (driver.Locker, *atomic.Int64) {
	tb.Helper()
	s, _, counted := openRedis(tb)
	return s, &counted.n
}

// statements counts what is sent to PostgreSQL.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func manyPostgres(tb testing.TB) (driver.Locker, *atomic.Int64) {
	tb.Helper()
	config, err := pgx.ParseConfig(servertest.PostgresDB(tb))
	if err != nil {
		tb.Fatal(err)
	}
	counted := &statements{}
	config.Tracer = counted
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(32)
	pool.SetMaxIdleConns(32)
	tb.Cleanup(func() { _ = pool.Close() })
	db, err := gorm.Open(gormpg.New(gormpg.Config{Conn: pool}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		tb.Fatal(err)
	}
	if err := gormstore.Migrate(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
	s, err := gormstore.New(db)
	if err != nil {
		tb.Fatal(err)
	}
	return s, &counted.n
}
