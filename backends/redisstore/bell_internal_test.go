package redisstore

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// deaf is a bell whose subscription never comes to be.
func deaf(t *testing.T) *bell {
	t.Helper()
	c := redis.NewClient(&redis.Options{
		Addr:       "nowhere",
		MaxRetries: -1,
		Dialer:     func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network here") },
	})
	t.Cleanup(func() { _ = c.Close() })
	return newBell(c)
}

func rung(w *waiter) bool {
	select {
	case <-w.ring:
		return true
	default:
		return false
	}
}

// A waiter may be rung and give up at the same moment.
func TestBell_LeaverPassesItsRingOn(t *testing.T) {
	b := deaf(t)
	first, second, other := b.join("k"), b.join("k"), b.join("o")
	b.freed("k")
	b.leave("k", first, false)
	if !rung(second) {
		t.Error("the next waiter: got no ring, want that of the one that left")
	}
	b.freed("k")
	b.leave("k", second, true)
	if rung(other) {
		t.Error("a waiter for another key: got a ring, want none")
	}
	b.leave("o", other, false)
}

func TestBell_ServedWaiterRingsNobody(t *testing.T) {
	b := deaf(t)
	first, second := b.join("k"), b.join("k")
	b.freed("k")
	b.leave("k", first, true)
	if rung(second) {
		t.Error("got a ring, want none: the key is taken")
	}
	b.confirmed("k")
	b.freed("k") // one ring waits already
	if !rung(second) || rung(second) {
		t.Error("got no ring or two, want one")
	}
	b.leave("k", second, false)
}
