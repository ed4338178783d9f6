package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// cleanUp is how long the detached clean-up after an unknown outcome may take.
const cleanUp = 300 * time.Millisecond

// A reply is lost once. Whatever the client library makes of that: a nil error
// means held, nobody is told that another holds the key, and the key is free
// after one release.
func TestLostReply_ChangesNothing(t *testing.T) {
	noRetries := func(o *redis.Options) { o.MaxRetries = -1 }
	sideBySide(t, []lossyClient{
		{"RedisWithRetries", redisPlace(), nil}, // three, the default
		{"RedisWithout", redisPlace(), []func(*redis.Options){noRetries}},
		{"PostgreSQL", postgresPlace(), nil},
		{"MariaDB", mariadbPlace(), nil},
	}, func(t *testing.T, c lossyClient) {
		url := c.place.open(t)
		proxy, through := throughProxy(t, url)
		l := &lossy{proxy: proxy, direct: openStore(t, url), renewed: make(chan error, 1000), busy: make(chan error, 1000)}
		s := spied(openStore(t, through, c.change...), nil, func(call string, _ driver.Grant, err error) {
			switch {
			case call == "Renew":
				l.renewed <- err
			case errors.Is(err, driver.ErrBusy):
				l.busy <- err
			}
		})
		l.guard = openGuard(t, profile(time.Second, 0), s)
		if err := l.guard.WithLock(t.Context(), newKey("warm"), nothing); err != nil { // connects, loads scripts
			t.Fatal(err)
		}
		for range servertest.Count(3, 20) {
			l.acquire(t)
			l.renew(t)
			l.release(t)
			l.wait(t)
		}
	})
}

type lossyClient struct {
	name   string
	place  place
	change []func(*redis.Options)
}

func (c lossyClient) String() string { return c.name }

// Without owners and idempotent scripts the client's own retry lies: SETNX says
// "false, nil" to the caller who got the lock.
func TestLostReply_TheRedisClientLiesAboutSETNX(t *testing.T) {
	url := redisPlace().open(t)
	proxy, through := throughProxy(t, url)
	client := redis.NewClient(&redis.Options{Addr: strings.TrimPrefix(through, "redis://")})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.DropNextReply()
	ok, err := client.SetNX(t.Context(), "k", "me", time.Minute).Result()
	if who := client.Get(t.Context(), "k").Val(); ok || err != nil || who != "me" {
		t.Errorf("SETNX: %v, %v, and %q holds the key: no harm, so the test shows nothing", ok, err, who)
	}
}

// lossy is a process whose link loses a reply now and then.
type lossy struct {
	proxy   *servertest.Proxy
	guard   *guard.Guard
	direct  driver.Viewer
	renewed chan error // how renewals went
	busy    chan error // acquires that were refused
}

// lose makes a call whose first request is answered into the void.
func (l *lossy) lose(t *testing.T, call func() error) error {
	t.Helper()
	l.proxy.DropNextReply()
	err := call()
	select {
	case <-l.proxy.Dropped():
	case <-time.After(patience):
		t.Fatal("no reply was lost")
	}
	return err
}

func (l *lossy) acquire(t *testing.T) {
	t.Helper()
	key := newKey("acquire")
	var lease *guard.Lease
	err := l.lose(t, func() (err error) {
		_, lease, err = l.guard.TryLock(t.Context(), key)
		return err
	})
	if err != nil {
		wantOnly(t, err, guard.ErrUnavailable)
		awaitFree(t, l.direct, key, cleanUp)
		return
	}
	if got := holder(t, l.direct, key); got != "test" {
		t.Errorf("TryLock: nil, but the store says that %q holds the key", got)
	}
	if err := lease.Unlock(t.Context()); err != nil {
		t.Errorf("Unlock: %v", err)
	}
	awaitFree(t, l.direct, key, 0)
}

// renew loses the reply to a renewal: the next one finds everything as it was.
func (l *lossy) renew(t *testing.T) {
	t.Helper()
	key := newKey("renew")
	err := l.guard.WithLock(t.Context(), key, func(ctx context.Context) error {
		for len(l.renewed) > 0 {
			<-l.renewed
		}
		_ = l.lose(t, func() error { return <-l.renewed }) // unknown, or repaired by the client
		for range 3 {
			if err := <-l.renewed; err != nil {
				t.Errorf("a renewal after one without reply: %v", err)
			}
		}
		if got := holder(t, l.direct, key); got != "test" || ctx.Err() != nil {
			t.Errorf("after the lost reply %q holds the key, context: %v", got, context.Cause(ctx))
		}
		return nil
	})
	if err != nil {
		t.Errorf("WithLock: %v", err)
	}
	awaitFree(t, l.direct, key, 0)
}

func (l *lossy) release(t *testing.T) {
	t.Helper()
	key := newKey("release")
	_, lease, err := l.guard.TryLock(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	err = l.lose(t, func() error { return lease.Unlock(t.Context()) })
	if err != nil {
		wantOnly(t, err, guard.ErrUnavailable)
	}
	awaitFree(t, l.direct, key, 0)
	if err := l.guard.WithLock(t.Context(), key, nothing); err != nil {
		t.Errorf("the next WithLock: %v", err)
	}
}

// wait loses the reply to the acquire that ends a wait: the call goes on waiting
// and gets the key.
func (l *lossy) wait(t *testing.T) {
	t.Helper()
	key := newKey("wait")
	g, err := rival(t.Context(), l.direct, key, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for len(l.busy) > 0 {
		<-l.busy
	}
	got := make(chan error, 1)
	go func() { got <- l.guard.WithLock(t.Context(), key, l.holding(t, key), guard.Wait(patience)) }()
	<-l.busy
	err = l.lose(t, func() error {
		if err := l.direct.Release(t.Context(), g); err != nil {
			t.Error(err)
		}
		return <-got
	})
	if err != nil {
		t.Errorf("WithLock: %v", err)
	}
	awaitFree(t, l.direct, key, cleanUp)
}

func (l *lossy) holding(t *testing.T, key string) func(context.Context) error {
	return func(context.Context) error {
		if got := holder(t, l.direct, key); got != "test" {
			t.Errorf("fn runs, but the store says that %q holds the key", got)
		}
		return nil
	}
}
