package redisstore_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/internal/servertest"
)

// subscribers are the connections of a server that are subscribed to something.
func subscribers(t *testing.T, c *redis.Client) int {
	t.Helper()
	list, err := c.Do(t.Context(), "CLIENT", "LIST", "TYPE", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n")
}

// listening waits until somebody is subscribed to the release of r's key.
func listening(t *testing.T, c *redis.Client, r driver.Request) {
	t.Helper()
	channel := "pawl:{" + r.Key + "}:freed"
	eventually(t, "subscription", func() bool { return c.PubSubNumSub(t.Context(), channel).Val()[channel] == 1 })
}

// quiet waits until the server has run at least n scripts and runs no more, and
// returns how many it has run: waiters have looked, and wait.
func quiet(t *testing.T, c *redis.Client, n int) int {
	t.Helper()
	last := -1
	eventually(t, "quiet", func() bool {
		now := calls(t, c)["evalsha"]
		still := now == last && now >= n
		last = now
		if !still {
			time.Sleep(100 * time.Millisecond)
		}
		return still
	})
	return last
}

// The lease of the holder would last an hour: only the push can end the wait.
func TestStore_ReleaseWakesAWaiter(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	other := newStore(t, client(t, server.Addr))
	for range servertest.Count(20, 500) {
		g := acquire(t, s, request(t, "k", long))
		ended := wait(soon(t), other, request(t, "k", long))
		listening(t, plain, g.Request)
		release(t, s, g)
		release(t, other, served(t, ended))
	}
}

// The network is slow, so the release falls into each step of the wait in turn:
// before the first look, between it and the subscription, after both.
func TestStore_NoWakeUpIsLostBeforeTheSubscription(t *testing.T) {
	t.Parallel()
	s, server := single(t)
	for i := range servertest.Count(12, 200) {
		far := servertest.NewProxy(t, server.Addr)
		far.Delay(10 * time.Millisecond)
		other := newStore(t, client(t, far.Addr()))
		g := acquire(t, s, request(t, "k", long))
		wantBusy(t, other, request(t, "k", long)) // the next look takes one round trip, the subscription needs a connection
		ended := wait(soon(t), other, request(t, "k", long))
		time.Sleep(time.Duration(i%12) * 15 * time.Millisecond)
		release(t, s, g)
		release(t, other, served(t, ended))
	}
}

// The subscription is gone while the release is told.
func TestStore_ReconnectionWakesAWaiter(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	other := newStore(t, client(t, server.Addr))
	for range servertest.Count(3, 30) {
		g := acquire(t, s, request(t, "k", long))
		looked := calls(t, plain)["evalsha"] + 1
		ended := wait(soon(t), other, request(t, "k", long))
		listening(t, plain, g.Request)
		quiet(t, plain, looked)
		_, err := plain.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Do(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub")
			p.Del(t.Context(), "pawl:{"+g.Key+"}:lock") // freed, and nothing told: as a message to nobody
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		release(t, other, served(t, ended))
	}
}

// A connection that has gone silent is found out and replaced.
func TestStore_SilentSubscriptionIsReplaced(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	s, plain := newStore(t, client(t, server.Addr)), client(t, server.Addr)
	var wires freezer
	other := newStore(t, clientWith(t, &redis.Options{Addr: server.Addr, Dialer: wires.dial}))
	g := acquire(t, s, request(t, "k", long))
	ended := wait(soon(t), other, request(t, "k", long))
	listening(t, plain, g.Request)
	quiet(t, plain, 2)
	wires.freeze()
	release(t, s, g)
	release(t, other, served(t, ended))
}

// Where push is forbidden the end of the lease ends the wait, and a release is
// still a release.
func TestStore_WaitsByTheLeaseAloneWithoutPush(t *testing.T) {
	_, server := single(t)
	plain := client(t, server.Addr)
	rule := []any{"ACL", "SETUSER", "mute", "on", ">secret", "~*", "+@all", "resetchannels"}
	if err := plain.Do(t.Context(), rule...).Err(); err != nil {
		t.Fatal(err)
	}
	mute := func() *redisstore.Store {
		return newStore(t, clientWith(t, &redis.Options{Addr: server.Addr, Username: "mute", Password: "secret"}))
	}
	s, other := mute(), mute()
	g := acquire(t, s, request(t, "k", ttl))
	next := served(t, wait(soon(t), other, request(t, "k", long)))
	if next.Token <= g.Token {
		t.Errorf("token of the next holder: got %d, want more than %d", next.Token, g.Token)
	}
	if time.Now().Before(g.Until) {
		t.Errorf("the next holder came %v before the first one's Until, want none", time.Until(g.Until))
	}
	release(t, other, next)
	acquire(t, s, request(t, "k", long))
}

// However many wait for however many keys, one connection listens, and only while
// they wait.
func TestStore_ListensOnOneConnectionWhileSomebodyWaits(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	other := newStore(t, client(t, server.Addr))
	const keys, each = 20, 3
	grants := make([]driver.Grant, keys)
	var waits []<-chan answer
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range grants {
		grants[i] = acquire(t, s, request(t, strconv.Itoa(i), long))
		for range each {
			waits = append(waits, wait(ctx, other, request(t, strconv.Itoa(i), long)))
		}
	}
	for _, g := range grants {
		listening(t, plain, g.Request)
	}
	if got := subscribers(t, plain); got != 1 {
		t.Errorf("subscribed connections: got %d, want 1", got)
	}
	release(t, s, grants[0]) // one is served and keeps its key; its channel stays wanted by two
	for _, ended := range waits[each:] {
		select {
		case got := <-ended:
			t.Fatalf("AcquireWait of a held key: got token %d, %v, want it to wait", got.Token, got.err)
		default:
		}
	}
	eventually(t, "holder", func() bool {
		holder, err := other.Holder(t.Context(), grants[0].Key)
		return err == nil && holder.Token > grants[0].Token
	})
	cancel()
	for _, ended := range waits {
		if got := <-ended; got.err != nil && (!errors.Is(got.err, driver.ErrBusy) || !errors.Is(got.err, context.Canceled)) {
			t.Errorf("AcquireWait whose context ended: got %v, want ErrBusy with the context's error", got.err)
		}
	}
	eventually(t, "end of the subscription", func() bool { return subscribers(t, plain) == 0 })
}

// One release makes one contender of each process look, not all that wait.
func TestStore_ReleaseMakesNoHerd(t *testing.T) {
	s, server := single(t)
	plain := client(t, server.Addr)
	const processes, each = 3, 10
	g := acquire(t, s, request(t, "k", long))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits []<-chan answer
	all := make(chan answer, processes*each)
	for range processes {
		other := newStore(t, client(t, server.Addr))
		for range each {
			waits = append(waits, wait(ctx, other, request(t, "k", long)))
		}
	}
	for _, ended := range waits {
		go func() { all <- <-ended }()
	}
	before := quiet(t, plain, processes*each)
	release(t, s, g)
	if got := <-all; got.err != nil {
		t.Fatalf("AcquireWait after the release: got %v, want the key", got.err)
	}
	if got := quiet(t, plain, before+1) - before; got < 2 || got > 1+processes {
		t.Errorf("scripts run by one release with %d waiters: got %d, want the release and at most %d looks", processes*each, got, processes)
	}
	cancel()
	for range processes*each - 1 {
		<-all
	}
}

// An unanswered store is not a busy key.
func TestStore_WaitIsNotBusyBeforeTheStoreAnswered(t *testing.T) {
	server := servertest.Redis(t)
	s := newStore(t, client(t, server.Addr))
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	if _, err := s.AcquireWait(ctx, request(t, "k", long)); err == nil || errors.Is(err, driver.ErrBusy) {
		t.Errorf("AcquireWait on a dead server: got %v, want an error that is not ErrBusy", err)
	}
}
