package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
)

func cluster(t *testing.T) (*redis.ClusterClient, []*servertest.Server) {
	t.Helper()
	nodes := servertest.RedisCluster(t)
	var addrs []string
	for _, node := range nodes {
		addrs = append(addrs, node.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { _ = c.Close() })
	return c, nodes
}

// A node that does not answer costs the locks of the other nodes nothing, though
// their renewals travel in one batch.
func TestStore_SilentClusterNodeHoldsUpNoOther(t *testing.T) {
	c, nodes := cluster(t)
	for _, node := range nodes { // else the others stop too, as the cluster's own choice
		if err := client(t, node.Addr).ConfigSet(t.Context(), "cluster-require-full-coverage", "no").Err(); err != nil {
			t.Fatal(err)
		}
	}
	s := newStore(t, c)
	const locks = 90
	grants := make([]driver.Grant, locks)
	silent := make([]bool, locks)
	for i := range grants {
		grants[i] = acquire(t, s, request(t, strconv.Itoa(i), long))
		node, err := c.MasterForKey(t.Context(), "pawl:{"+grants[i].Key+"}:lock")
		if err != nil {
			t.Fatal(err)
		}
		silent[i] = node.Options().Addr == nodes[0].Addr
	}
	renew := func(ctx context.Context, check func(i int, err error)) {
		var wg sync.WaitGroup
		for i, g := range grants {
			wg.Go(func() {
				_, err := s.Renew(ctx, g)
				check(i, err)
			})
		}
		wg.Wait()
	}
	renew(soon(t), func(i int, err error) {
		if err != nil {
			t.Errorf("lock %d, all nodes well: got %v, want nil", i, err)
		}
	})
	nodes[0].Pause()
	defer nodes[0].Resume()
	for range 3 { // as guard does, every third of the lease
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		renew(ctx, func(i int, err error) {
			if silent[i] == (err == nil) {
				t.Errorf("lock %d, node silent: %v: got %v", i, silent[i], err)
			}
		})
	}
}

// The register of a fence lies where the command goes, with a hash tag or without.
func TestFenced_WorksOnACluster(t *testing.T) {
	c, _ := cluster(t)
	f := redisstore.Fence(c)
	first, _, third := succession(t)
	for _, key := range []string{"plain", "{tag}:a", "a{in}b", "{{x}}", "%", "shop:sku:42"} {
		if err := f.Do(first, "SET", key, 1).Err(); err != nil {
			t.Errorf("write to %q: got %v, want nil", key, err)
		}
		if got, err := f.Eval(third, "return redis.call('GET', KEYS[1])", []string{key}).Text(); err != nil || got != "1" {
			t.Errorf("read of %q: got %q, %v, want 1", key, got, err)
		}
		if err := f.Do(first, "GET", key).Err(); !errors.Is(err, fencing.ErrStale) {
			t.Errorf("late read of %q: got %v, want %v", key, err, fencing.ErrStale)
		}
	}
	if err := f.Do(third, "MSET", "{tag}:a", 1, "{tag}:b", 2).Err(); err != nil {
		t.Errorf("two keys of one tag: got %v, want nil", err)
	}
}
