package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// ttl is the lease of the conformance cases: long enough for a busy machine.
const ttl = 500 * time.Millisecond

// open returns a store on a client of its own for each call, as separate
// processes have.
func open(t testing.TB, dial func() redis.UniversalClient) func() driver.Locker {
	t.Helper()
	return func() driver.Locker {
		client := dial()
		t.Cleanup(func() { _ = client.Close() })
		s, err := redisstore.New(client)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func runLocker(t *testing.T, dial func() redis.UniversalClient) {
	t.Helper()
	drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
		Open: func(t *testing.T) func() driver.Locker { t.Helper(); return open(t, dial) },
		TTL:  ttl,
	})
}

func TestStore_KeepsTheContractOnASingleServer(t *testing.T) {
	server := servertest.Redis(t)
	runLocker(t, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: server.Addr}) })
}

func TestStore_KeepsTheContractBehindSentinel(t *testing.T) {
	set := servertest.Sentinel(t)
	runLocker(t, func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: set.Name, SentinelAddrs: set.Addrs()})
	})
}

func TestStore_KeepsTheContractOnACluster(t *testing.T) {
	var addrs []string
	for _, node := range servertest.RedisCluster(t) {
		addrs = append(addrs, node.Addr)
	}
	runLocker(t, func() redis.UniversalClient { return redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs}) })
}

func BenchmarkStore(b *testing.B) {
	server := servertest.Redis(b)
	drivertest.BenchmarkLocker(b, drivertest.Harness[driver.Locker]{
		Open: func(*testing.T) func() driver.Locker {
			return open(b, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: server.Addr}) })
		},
		TTL: ttl,
	})
}
