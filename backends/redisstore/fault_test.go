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
	"github.com/pawl-go/pawl/internal/servertest"
)

// behindProxy is a store behind a proxy, and one that is not.
func behindProxy(t *testing.T, o redis.Options) (s *redisstore.Store, p *servertest.Proxy, other *redisstore.Store) {
	t.Helper()
	server := servertest.Redis(t)
	p = servertest.NewProxy(t, server.Addr)
	o.Addr = p.Addr()
	other = newStore(t, client(t, server.Addr))
	s = newStore(t, clientWith(t, &o))
	warm := acquire(t, s, request(t, "warm", long)) // connections are made and scripts known: the next request is the lock's own
	if _, err := s.Renew(t.Context(), warm); err != nil {
		t.Fatal(err)
	}
	release(t, s, warm)
	return s, p, other
}

// retries are the two ways to run go-redis: with its default retries, which send
// a script again whose reply was lost, and without any.
func retries(t *testing.T, test func(t *testing.T, o redis.Options, retried bool)) {
	t.Helper()
	t.Run("DefaultRetries", func(t *testing.T) { test(t, redis.Options{}, true) })
	t.Run("NoRetries", func(t *testing.T) { test(t, redis.Options{MaxRetries: -1}, false) })
}

// lostReply loses the reply to the request that do makes, and checks that its
// error is nil if the client sent it again, and no verdict if it did not.
func lostReply(t *testing.T, p *servertest.Proxy, key string, retried bool, do func() error) {
	t.Helper()
	p.DropReplyAfter([]byte(key))
	err := do()
	select {
	case <-p.Dropped():
	default:
		t.Fatal("the proxy has lost no reply")
	}
	switch {
	case retried && err != nil:
		t.Fatalf("call whose reply was lost once: got %v, want nil: it happened", err)
	case !retried && (err == nil || errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrLost)):
		t.Fatalf("call whose reply was lost: got %v, want an error that is no verdict", err)
	}
}

func TestStore_LostReplyOfAcquire(t *testing.T) {
	retries(t, func(t *testing.T, o redis.Options, retried bool) {
		t.Helper()
		s, p, other := behindProxy(t, o)
		r := request(t, "k", long)
		var g driver.Grant
		lostReply(t, p, r.Key, retried, func() (err error) {
			g, err = s.Acquire(t.Context(), r)
			return err
		})
		wantBusy(t, other, request(t, "k", long)) // it is held, whatever the caller knows
		if again := acquire(t, s, r); retried && again.Token != g.Token {
			t.Errorf("token of the owner's own repetition: got %d, want %d", again.Token, g.Token)
		}
		release(t, s, driver.Grant{Request: r}) // by owner, as the repair of an unknown outcome does
		acquire(t, other, request(t, "k", long))
	})
}

func TestStore_LostReplyOfRenew(t *testing.T) {
	retries(t, func(t *testing.T, o redis.Options, retried bool) {
		t.Helper()
		s, p, other := behindProxy(t, o)
		g := acquire(t, s, request(t, "k", long))
		lostReply(t, p, g.Key, retried, func() error {
			_, err := s.Renew(t.Context(), g)
			return err
		})
		if _, err := s.Renew(t.Context(), g); err != nil {
			t.Errorf("the next renewal: got %v, want nil", err)
		}
		release(t, s, g)
		acquire(t, other, request(t, "k", long))
	})
}

func TestStore_LostReplyOfRelease(t *testing.T) {
	retries(t, func(t *testing.T, o redis.Options, retried bool) {
		t.Helper()
		s, p, other := behindProxy(t, o)
		g := acquire(t, s, request(t, "k", long))
		lostReply(t, p, g.Key, retried, func() error { return s.Release(t.Context(), g) })
		next := acquire(t, other, request(t, "k", long))
		if err := s.Release(t.Context(), g); err != nil {
			t.Errorf("Release repeated by the caller: got %v, want nil: it happened", err)
		}
		wantBusy(t, s, request(t, "k", long))
		release(t, other, next)
	})
}

// Between a release and its repetition a busy key has other holders.
func TestStore_RepeatedReleaseHearsThatItHappened(t *testing.T) {
	s, server := single(t)
	other := newStore(t, client(t, server.Addr))
	g := acquire(t, s, request(t, "k", long))
	release(t, s, g)
	for range 10 {
		release(t, other, acquire(t, other, request(t, "k", long)))
	}
	if err := s.Release(t.Context(), g); err != nil {
		t.Errorf("the same release again: got %v, want nil", err)
	}
	lapsed := g
	lapsed.Owner = "test#never"
	if err := s.Release(t.Context(), lapsed); !errors.Is(err, driver.ErrLost) {
		t.Errorf("release by an owner that never held: got %v, want ErrLost", err)
	}
}

// On a half-open link every call returns when its context ends, though the client
// does not hear of it.
func TestStore_ReturnsWhenTheContextEndsOnAHalfOpenLink(t *testing.T) {
	s, p, other := behindProxy(t, redis.Options{})
	g, waited := acquire(t, s, request(t, "k", long)), acquire(t, other, request(t, "waited", long))
	p.Hold()
	for name, do := range map[string]func(ctx context.Context) error{
		"Acquire":     func(ctx context.Context) error { _, err := s.Acquire(ctx, request(t, "free", long)); return err },
		"AcquireWait": func(ctx context.Context) error { _, err := s.AcquireWait(ctx, request(t, "waited", long)); return err },
		"Renew":       func(ctx context.Context) error { _, err := s.Renew(ctx, g); return err },
		"Release":     func(ctx context.Context) error { return s.Release(ctx, g) },
		"Holder":      func(ctx context.Context) error { _, err := s.Holder(ctx, g.Key); return err },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var ended time.Time
		time.AfterFunc(20*time.Millisecond, func() { ended = time.Now(); cancel() })
		err := do(ctx)
		if took := time.Since(ended); took > 100*time.Millisecond {
			t.Errorf("%s: returned %v after its context ended, want at most 100 ms", name, took)
		}
		if !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrLost) {
			t.Errorf("%s: got %v, want the context's error and no verdict: the store has not answered", name, err)
		}
	}
	p.Heal()
	release(t, other, waited)
}

// A renewal that a half-open link has swallowed can be repeated while the client
// is still busy with it: else the lease would end meanwhile.
func TestStore_RenewalIsRepeatableBehindAStuckOne(t *testing.T) {
	server := servertest.Redis(t)
	var wires freezer
	s := newStore(t, clientWith(t, &redis.Options{Addr: server.Addr, Dialer: wires.dial}))
	g := acquire(t, s, request(t, "k", long))
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	wires.freeze() // the connections that are open; new ones are fine
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := s.Renew(ctx, g); err == nil {
		t.Fatal("Renew on a half-open link: got nil, want an error")
	}
	start := time.Now()
	if _, err := s.Renew(soon(t), g); err != nil {
		t.Errorf("the next renewal: got %v, want nil", err)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("the next renewal: got it after %v, want it before the first one times out (3 s)", took)
	}
}

func TestStore_FindsItsScriptsGone(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	for _, forget := range []func(){
		func() { plain.ScriptFlush(t.Context()) },
		func() { server.Kill(); server.Restart(t) },
	} {
		g := acquire(t, s, request(t, "k", long))
		release(t, s, g)
		forget()
		g = acquire(t, s, request(t, "k", long))
		plain.ScriptFlush(t.Context())
		if _, err := s.Renew(t.Context(), g); err != nil {
			t.Errorf("Renew: got %v, want nil", err)
		}
		plain.ScriptFlush(t.Context())
		if holder, err := s.Holder(t.Context(), g.Key); err != nil || holder.Owner != g.Owner {
			t.Errorf("Holder: got %q, %v, want %q", holder.Owner, err, g.Owner)
		}
		plain.ScriptFlush(t.Context())
		release(t, s, g)
	}
}

// Every command of a pipeline may find the script gone.
func TestStore_FindsItsScriptsGoneInABatch(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	for range 5 {
		plain.ScriptFlush(t.Context())
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				g, err := s.Acquire(t.Context(), request(t, strconv.Itoa(i), long))
				if err == nil {
					err = s.Release(t.Context(), g)
				}
				if err != nil {
					t.Errorf("lock %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
}
