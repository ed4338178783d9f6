package bench_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/guard"
)

func nothing(context.Context) error { return nil }

// BenchmarkRoundTrips_FreeKeyOnRedis is a free acquire and release: what it takes,
// and how often the server is asked.
func BenchmarkRoundTrips_FreeKeyOnRedis(b *testing.B) {
	store, client, counted := openRedis(b)
	g := openGuard(b, profile(0), store)
	lockOnce(b, g) // connects, loads the scripts
	trips, scripts := counted.n.Load(), scriptCalls(b, client)
	b.ReportAllocs()
	for b.Loop() {
		lockOnce(b, g)
	}
	b.ReportMetric(float64(counted.n.Load()-trips)/float64(b.N), "trips/op")
	b.ReportMetric(float64(scriptCalls(b, client)-scripts)/float64(b.N), "scripts/op")
}

func TestRoundTrips_FreeKeyOnRedisTakesTwo(t *testing.T) {
	store, client, counted := openRedis(t)
	g := openGuard(t, profile(0), store)
	lockOnce(t, g) // connects, loads the scripts
	trips, scripts := counted.n.Load(), scriptCalls(t, client)
	const locks = 50
	for range locks {
		lockOnce(t, g)
	}
	if got := counted.n.Load() - trips; got != 2*locks {
		t.Errorf("got %d round trips for %d locks, want two each", got, locks)
	}
	if got := scriptCalls(t, client) - scripts; got != 2*locks {
		t.Errorf("the server ran %d scripts for %d locks, want two each", got, locks)
	}
}

func lockOnce(tb testing.TB, g *guard.Guard) {
	tb.Helper()
	if err := g.WithLock(tb.Context(), "key", nothing); err != nil {
		tb.Fatal(err)
	}
}

// scriptCalls is how often the server was asked to run a script, by whatever
// command. What scripts call themselves is not counted.
func scriptCalls(tb testing.TB, client *redis.Client) (calls int64) {
	tb.Helper()
	info, err := client.Info(tb.Context(), "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(line, ":calls=")
		if !strings.HasPrefix(name, "cmdstat_eval") && !strings.HasPrefix(name, "cmdstat_fcall") {
			continue
		}
		n, _, _ := strings.Cut(stats, ",")
		more, err := strconv.ParseInt(n, 10, 64)
		if err != nil {
			tb.Fatalf("INFO commandstats says %q: %v", line, err)
		}
		calls += more
	}
	return calls
}
