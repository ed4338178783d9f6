package bench_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestMain(m *testing.M) {
	logging.Disable()
	servertest.Main(m)
}

// profile locks and does nothing else.
func profile(handovers int) guard.Profile {
	return guard.Profile{
		Name: "bench", Lock: []driver.Consistency{driver.Primary, driver.Async},
		TTL: 10 * time.Second, Wait: time.Minute, Handovers: handovers, LockOutage: guard.Refuse,
	}
}

func openGuard(tb testing.TB, p guard.Profile, store driver.Backend) *guard.Guard {
	tb.Helper()
	g, err := guard.New(p, guard.On(store), guard.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// trips counts round trips of a Redis client.
type trips struct{ n atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.n.Add(1); return next(ctx, cmd) }
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.n.Add(1); return next(ctx, cmds) }
}

// openRedis is a store on a server of its own, whose round trips are counted, and
// a client to ask the server what it has seen.
func openRedis(tb testing.TB) (*redisstore.Store, *redis.Client, *trips) {
	tb.Helper()
	addr := servertest.Redis(tb).Addr
	connect := func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addr})
		tb.Cleanup(func() { _ = client.Close() })
		return client
	}
	client, counted := connect(), &trips{}
	client.AddHook(counted)
	s, err := redisstore.New(client)
	if err != nil {
		tb.Fatal(err)
	}
	return s, connect(), counted
}
