package redisstore_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/lease"
	"github.com/pawl-go/pawl/internal/servertest"
)

// rounds makes n grants of the key "k", each greater than the one before, and a
// counter beside them, as other libraries take their tokens from.
func rounds(t *testing.T, s *redisstore.Store, c redis.UniversalClient, n int, last driver.Grant) (driver.Grant, int64) {
	t.Helper()
	var counter int64
	for range n {
		g := acquire(t, s, request(t, "k", long))
		if g.Token <= last.Token {
			t.Fatalf("token of the next holder: got %d, want more than %d", g.Token, last.Token)
		}
		last = g
		release(t, s, g)
		var err error
		if counter, err = c.Incr(t.Context(), t.Name()+":counter").Result(); err != nil {
			t.Fatal(err)
		}
	}
	return last, counter
}

func TestStore_TokensGrowThroughFlushAll(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	last, naive := rounds(t, s, plain, 50, driver.Grant{})
	if err := plain.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, after := rounds(t, s, plain, 1, last); after > naive {
		t.Errorf("a counter after FLUSHALL: got %d, want it to have gone back from %d, or the test shows nothing", after, naive)
	}
}

func TestStore_TokensGrowThroughARestartWithoutPersistence(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	last, naive := rounds(t, s, plain, 50, driver.Grant{})
	server.Kill()
	server.Restart(t)
	if _, after := rounds(t, s, plain, 1, last); after > naive {
		t.Errorf("a counter after the restart: got %d, want it to have gone back from %d, or the test shows nothing", after, naive)
	}
}

// The promoted replica is empty: it has seen nothing of the last 2.3 s, in which
// the key had its first grants.
func TestStore_TokensGrowThroughALossyFailover(t *testing.T) {
	set := servertest.Sentinel(t)
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: set.Name, SentinelAddrs: set.Addrs()})
	t.Cleanup(func() { _ = c.Close() })
	s := newStore(t, c)

	start := time.Now()
	replica := client(t, set.Replica.Addr)
	last, naive := rounds(t, s, c, 50, driver.Grant{})
	eventually(t, "replication", func() bool { return replica.DBSize(t.Context()).Val() > 0 })
	time.Sleep(2300*time.Millisecond - time.Since(start))
	lose(t, set)

	eventually(t, "failover", func() bool { return c.Set(t.Context(), "probe", 1, 0).Err() == nil })
	if n, err := c.Exists(t.Context(), t.Name()+":counter").Result(); n != 0 || err != nil {
		t.Fatalf("keys of the promoted replica: got %d, %v, want none: the failover lost nothing", n, err)
	}
	if _, after := rounds(t, s, c, 1, last); after > naive {
		t.Errorf("a counter after the failover: got %d, want it to have gone back from %d, or the test shows nothing", after, naive)
	}
}

// lose makes the replica forget everything and the primary die before it can
// send it again.
func lose(t *testing.T, set *servertest.SentinelSet) {
	t.Helper()
	replica := client(t, set.Replica.Addr)
	set.Primary.Pause()
	for _, args := range [][]any{{"CONFIG", "SET", "replica-read-only", "no"}, {"FLUSHALL"}, {"CONFIG", "SET", "replica-read-only", "yes"}} {
		if err := replica.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set.Primary.Kill()
}

// The script follows the rule that internal/lease states, also when the order
// comes from a server whose clock is ahead.
func TestStore_FollowsTheClockRule(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	for range servertest.Count(50, 2000) {
		r := request(t, "k", long)
		now := lease.Ticks(time.Now())
		last, at := now-1000+rand.Uint64N(2000), now-1000+rand.Uint64N(2000)
		order := "pawl:{" + r.Key + "}:order"
		if err := plain.HSet(t.Context(), order, "last", last, "at", at).Err(); err != nil {
			t.Fatal(err)
		}
		low := lease.Next(last, at, lease.Ticks(time.Now()))
		g := acquire(t, s, r)
		high := lease.Next(last, at, lease.Ticks(time.Now()))
		if got, err := strconv.ParseUint(g.Handle, 10, 64); err != nil || got < low || got > high {
			t.Fatalf("sequence after last %d at %d: got %q, want one in [%d, %d]", last, at, g.Handle, low, high)
		}
		release(t, s, g)
	}
}

func TestStore_RefusesASequenceThatDoesNotFit(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	r := request(t, "k", long)
	full := map[string]any{"last": uint64(1)<<48 - 1, "at": lease.Ticks(time.Now().Add(time.Hour))}
	if err := plain.HSet(t.Context(), "pawl:{"+r.Key+"}:order", full).Err(); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Acquire(t.Context(), r); err == nil {
		t.Errorf("Acquire after the last sequence number: got token %d, want an error", g.Token)
	}
	if holder, err := s.Holder(t.Context(), r.Key); holder.Token != 0 || err != nil {
		t.Errorf("holder after the refusal: got %q, %v, want nobody", holder.Owner, err)
	}
}

// What orders the holders outlives them, and ends a week after the last.
func TestStore_KeepsTheOrderForAWeek(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	r := request(t, "k", long)
	order := "pawl:{" + r.Key + "}:order"
	const week = 7 * 24 * time.Hour
	left := func(after string) {
		t.Helper()
		if got := plain.PTTL(t.Context(), order).Val(); got < week-time.Minute || got > week+long {
			t.Errorf("life of the order after %s: got %v, want about %v", after, got, week)
		}
		plain.PExpire(t.Context(), order, time.Minute)
	}
	g := acquire(t, s, r)
	left("Acquire")
	acquire(t, s, r)
	left("Acquire repeated")
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	left("Renew")
	release(t, s, g)
	left("Release")
	if n := plain.Exists(t.Context(), "pawl:{"+r.Key+"}:lock").Val(); n != 0 {
		t.Errorf("lock after Release: got %d keys, want none", n)
	}
}
