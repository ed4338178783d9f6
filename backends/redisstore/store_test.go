package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

func TestNew_RefusesAMissingClient(t *testing.T) {
	var none *redis.Client
	for name, c := range map[string]redis.UniversalClient{"nil": nil, "nil pointer": none} {
		if _, err := redisstore.New(c); err == nil {
			t.Errorf("New of a %s: got nil, want an error", name)
		}
	}
}

func TestNew_RefusesARing(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	if _, err := redisstore.New(ring); err == nil {
		t.Error("got nil, want an error: it moves keys to where nobody holds them")
	}
}

func TestNew_DoesNotDial(t *testing.T) {
	c := clientWith(t, &redis.Options{
		Addr: "unused",
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			t.Error("New: got a connection, want none before the first call")
			return nil, errors.New("no network here")
		},
	})
	if got := newStore(t, c).Traits().Name; got != "redis" {
		t.Errorf("name: got %q, want redis", got)
	}
}

func TestStore_RefusesBeforeAnyCall(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	g := acquire(t, s, request(t, "k", long))
	before := calls(t, plain)

	r := request(t, "other", long)
	r.Generation = 64
	if _, err := s.Acquire(t.Context(), r); err == nil {
		t.Error("Acquire with a generation of 7 bits: got nil, want an error")
	}
	short := request(t, "other", time.Millisecond)
	if _, err := s.Acquire(t.Context(), short); err == nil {
		t.Error("Acquire with a lease of 1 ms: got nil, want an error")
	}
	g.TTL = 0
	if _, err := s.Renew(t.Context(), g); err == nil || errors.Is(err, driver.ErrLost) {
		t.Errorf("Renew with a lease of 0: got %v, want an error that is no verdict", err)
	}
	if diff := cmp.Diff(map[string]int{}, spent(before, calls(t, plain), "evalsha", "eval")); diff != "" {
		t.Errorf("scripts run (-want +got):\n%s", diff)
	}
}

// A lone acquire and release are two commands on the wire, and nothing else is.
func TestStore_LockAndUnlockAreTwoCommands(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	release(t, s, acquire(t, s, request(t, "k", long))) // connections are made, scripts are known
	before := calls(t, plain)
	const rounds = 10
	for range rounds {
		release(t, s, acquire(t, s, request(t, "k", long)))
	}
	wire := []string{
		"evalsha", "eval", "ping", "hello", "client|setinfo", "client|setname", "select", "auth", "command",
		"script|load", "script|exists", "subscribe", "unsubscribe", "multi", "exec",
	}
	if diff := cmp.Diff(map[string]int{"evalsha": 2 * rounds}, spent(before, calls(t, plain), wire...)); diff != "" {
		t.Errorf("commands of %d rounds (-want +got):\n%s", rounds, diff)
	}
}

// trips counts pipelines, which is what costs a round trip.
type trips struct{ pipelines, commands atomic.Int64 }

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.pipelines.Add(1)
		c.commands.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

func TestStore_RenewsManyLocksInFewRoundTrips(t *testing.T) {
	const locks = 10_000
	server := servertest.Redis(t)
	c := client(t, server.Addr)
	s := newStore(t, c)
	grants := make([]driver.Grant, locks)
	all := func(do func(i int) error) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range locks {
			wg.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("lock %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
	all(func(i int) (err error) {
		grants[i], err = s.Acquire(t.Context(), request(t, strconv.Itoa(i), long))
		return err
	})
	if _, err := s.Renew(t.Context(), grants[0]); err != nil { // the script is known from here on
		t.Fatal(err)
	}
	var count trips
	c.AddHook(&count)
	all(func(i int) (err error) {
		grants[i], err = s.Renew(t.Context(), grants[i])
		return err
	})
	t.Logf("%d renewals in %d round trips", locks, count.pipelines.Load())
	if got := count.commands.Load(); got != locks {
		t.Errorf("commands: got %d, want %d", got, locks)
	}
	if got := count.pipelines.Load(); got > locks/20 {
		t.Errorf("round trips for %d renewals: got %d, want at most %d", locks, got, locks/20)
	}
	all(func(i int) error { return s.Release(t.Context(), grants[i]) })
}

// Repeating a request may only move the end of its lease away: its first answer
// may be believed already.
func TestStore_RepeatedAcquireNeverShortensTheLease(t *testing.T) {
	s, _ := single(t)
	r := request(t, "k", long)
	first := acquire(t, s, r)
	r.TTL = time.Second
	second := acquire(t, s, r)
	if second.Token != first.Token {
		t.Errorf("token of the repetition: got %d, want %d", second.Token, first.Token)
	}
	holder, err := s.Holder(t.Context(), r.Key)
	if err != nil || holder.TTL < long/2 {
		t.Errorf("left of the lease: got %v, %v, want about %v", holder.TTL, err, long)
	}
	if second.Until.After(time.Now().Add(time.Second)) {
		t.Errorf("Until of the repetition: got %v ahead, want at most the second it asked for", time.Until(second.Until))
	}
}
