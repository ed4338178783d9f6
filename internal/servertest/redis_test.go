package servertest_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/internal/servertest"
)

func newRedis(t *testing.T, addr string) *redis.Client {
	t.Helper()
	return newRedisWithin(t, addr, 10*time.Second)
}

const short = 600 * time.Millisecond

// newRedisWithin does not wait longer for a reply; it is for replies that do not come.
func newRedisWithin(t *testing.T, addr string, timeout time.Duration) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: timeout, DialTimeout: time.Second})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRedis_ServesAndForgetsOnRestart(t *testing.T) {
	s := servertest.Redis(t, "--maxmemory", "64mb")
	c := newRedis(t, s.Addr)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := c.ConfigGet(t.Context(), "maxmemory").Val()["maxmemory"]; got != "67108864" {
		t.Errorf("got maxmemory %s, want the argument's 67108864", got)
	}
	s.Kill()
	if err := newRedis(t, s.Addr).Ping(t.Context()).Err(); err == nil {
		t.Fatal("got an answer of a killed server")
	}
	s.Restart(t)
	if got, err := newRedis(t, s.Addr).Exists(t.Context(), "k").Result(); got != 0 || err != nil {
		t.Errorf("got %d, %v, want an empty server", got, err)
	}
}

func TestRedis_KeepsAnAppendOnlyFile(t *testing.T) {
	s := servertest.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	if err := newRedis(t, s.Addr).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Restart(t)
	if got, err := newRedis(t, s.Addr).Get(t.Context(), "k").Result(); got != "v" || err != nil {
		t.Errorf("got %q, %v, want v", got, err)
	}
}

func TestRedis_PausesAndResumes(t *testing.T) {
	s := servertest.Redis(t, "--maxmemory", "64mb")
	s.Pause()
	var netErr net.Error
	if err := newRedisWithin(t, s.Addr, short).Ping(t.Context()).Err(); !errors.As(err, &netErr) || !netErr.Timeout() {
		t.Errorf("got %v of a paused server, want a timeout", err)
	}
	s.Resume()
	if err := newRedis(t, s.Addr).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
	s.Pause() // cleanup must end a stopped server, too
}

func TestRedis_ReplicaFollows(t *testing.T) {
	primary := servertest.Redis(t, "--maxmemory", "64mb")
	replica := servertest.RedisReplica(t, primary)
	c := newRedis(t, primary.Addr)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Wait(t.Context(), 1, 2*time.Second).Result(); got != 1 || err != nil {
		t.Fatalf("got %d replicas, %v, want 1", got, err)
	}
	if got := newRedis(t, replica.Addr).Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("got %q of the replica, want v", got)
	}
}

func TestSentinel_ReplacesADeadPrimary(t *testing.T) {
	set := servertest.Sentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: set.Name, SentinelAddrs: set.Addrs()})
	t.Cleanup(func() { c.Close() })
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	set.Primary.Kill()
	deadline := time.Now().Add(20 * time.Second)
	for c.Set(t.Context(), "k", "after", 0).Err() != nil {
		if time.Now().After(deadline) {
			t.Fatal("no new primary after 20 s")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if got := newRedis(t, set.Replica.Addr).Get(t.Context(), "k").Val(); got != "after" {
		t.Errorf("the replica has %q, want it to be the new primary", got)
	}
}

func TestRedisCluster_ServesAllSlots(t *testing.T) {
	var addrs []string
	for _, s := range servertest.RedisCluster(t) {
		addrs = append(addrs, s.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs})
	t.Cleanup(func() { c.Close() })
	for key := range strings.SplitSeq("abcdefghijklmnopqrstuvwxyz", "") {
		if err := c.Set(t.Context(), key, key, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProxy_LosesTheReplyOfARealWrite(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr)
	c := newRedis(t, p.Addr())
	p.DropReplyAfter([]byte("incr"))
	if err := c.Incr(t.Context(), "n").Err(); err == nil {
		t.Fatal("got a reply that was dropped")
	}
	await(t, p.Dropped())
	if got, err := c.Get(t.Context(), "n").Int(); got != 1 || err != nil {
		t.Errorf("got %d, %v, want 1: the request was to arrive", got, err)
	}
}

func TestProxy_HeldWriteLandsLate(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr)
	c, direct := newRedisWithin(t, p.Addr(), short), newRedis(t, s.Addr)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.Hold()
	if err := c.Set(t.Context(), "k", "late", 0).Err(); err == nil {
		t.Fatal("got a reply through a held proxy")
	}
	if got := direct.Exists(t.Context(), "k").Val(); got != 0 {
		t.Fatal("the write passed a held proxy")
	}
	p.Heal()
	for deadline := time.Now().Add(5 * time.Second); direct.Get(t.Context(), "k").Val() != "late"; {
		if time.Now().After(deadline) {
			t.Fatal("the held write did not land")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestProxy_HoldRepliesOfARealWrite(t *testing.T) {
	s := servertest.Redis(t)
	p := servertest.NewProxy(t, s.Addr)
	c := newRedisWithin(t, p.Addr(), short)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	p.HoldReplies()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil {
		t.Fatal("got a held reply")
	}
	if got := newRedis(t, s.Addr).Get(t.Context(), "k").Val(); got != "v" {
		t.Errorf("got %q, want v: the request was to pass", got)
	}
	p.Heal()
	if err := newRedis(t, p.Addr()).Ping(t.Context()).Err(); err != nil {
		t.Errorf("got %v after Heal", err)
	}
}
