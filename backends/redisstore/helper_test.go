package redisstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// long is a lease that no test outlives: what happens under it is not due to time.
const long = time.Hour

// client is a plain client of its own, as another process has.
func client(t *testing.T, addr string) *redis.Client {
	t.Helper()
	return clientWith(t, &redis.Options{Addr: addr})
}

func clientWith(t *testing.T, o *redis.Options) *redis.Client {
	t.Helper()
	c := redis.NewClient(o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func newStore(t *testing.T, c redis.UniversalClient) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// single is a store on a server of the test's own.
func single(t *testing.T) (*redisstore.Store, *servertest.Server) {
	t.Helper()
	server := servertest.Redis(t)
	return newStore(t, client(t, server.Addr)), server
}

var attempts atomic.Int64

// request is an attempt of a new owner, on a key of the test's own.
func request(t *testing.T, key string, ttl time.Duration) driver.Request {
	t.Helper()
	owner := "test#" + strconv.FormatInt(attempts.Add(1), 10) + rand.Text()[:6]
	return driver.Request{Key: t.Name() + ":" + key, Owner: owner, TTL: ttl}
}

func acquire(t *testing.T, s driver.Locker, r driver.Request) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire of a free key: got %v, want nil", err)
	}
	return g
}

func release(t *testing.T, s driver.Locker, g driver.Grant) {
	t.Helper()
	if err := s.Release(t.Context(), g); err != nil {
		t.Fatalf("Release of a live hold: got %v, want nil", err)
	}
}

// soon is a context that ends before the test's patience does.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for what a server tells only when asked.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it never came to that", what)
		}
	}
}

type answer struct {
	driver.Grant
	err error
}

// wait starts an AcquireWait, which ends by itself if the test does.
func wait(ctx context.Context, s *redisstore.Store, r driver.Request) <-chan answer {
	ended := make(chan answer, 1)
	go func() {
		g, err := s.AcquireWait(ctx, r)
		ended <- answer{g, err}
	}()
	return ended
}

func served(t *testing.T, ended <-chan answer) driver.Grant {
	t.Helper()
	got := <-ended
	if got.err != nil {
		t.Fatalf("AcquireWait: got %v, want the key", got.err)
	}
	return got.Grant
}

// calls counts the commands that a server has run, by name.
func calls(t *testing.T, c *redis.Client) map[string]int {
	t.Helper()
	text, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		counts[name], _ = strconv.Atoi(n)
	}
	return counts
}

// spent is what was run between two counts, without what a script runs inside.
func spent(before, after map[string]int, names ...string) map[string]int {
	diff := make(map[string]int)
	for _, name := range names {
		if n := after[name] - before[name]; n != 0 {
			diff[name] = n
		}
	}
	return diff
}

func wantBusy(t *testing.T, s driver.Locker, r driver.Request) {
	t.Helper()
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, driver.ErrBusy) {
		t.Fatalf("Acquire of a held key: got %v, want ErrBusy", err)
	}
}
