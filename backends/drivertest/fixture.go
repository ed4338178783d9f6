package drivertest

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// patience is how many TTLs a case waits for what must come to pass, before it
// gives up. It is no bound that a store has to meet.
const patience = 20

// lockTest is one case: a key space of its own with two processes on it.
type lockTest struct {
	*testing.T
	h      Harness[driver.Locker]
	open   func() driver.Locker
	a, b   driver.Locker // handles of two processes
	prefix string
	owners atomic.Int64
}

func newLockTest(t *testing.T, h Harness[driver.Locker]) *lockTest {
	t.Helper()
	open := h.Open(t)
	return &lockTest{T: t, h: h, open: open, a: open(), b: open(), prefix: "drivertest-" + rand.Text()[:8] + ":"}
}

// soon is the case's context, ended after a while so that nothing hangs.
func (t *lockTest) soon() context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience*t.h.TTL)
	t.Cleanup(cancel)
	return ctx
}

// request is an attempt of a new owner, with a TTL that no case outlives.
func (t *lockTest) request(key string) driver.Request {
	return driver.Request{Key: t.prefix + key, Owner: t.owner(), TTL: 10 * t.h.TTL}
}

// brief is a request whose lease is meant to end within the case.
func (t *lockTest) brief(key string) driver.Request {
	r := t.request(key)
	r.TTL = t.h.TTL
	return r
}

func (t *lockTest) owner() string {
	return "drivertest#" + strconv.FormatInt(t.owners.Add(1), 10) + "-" + rand.Text()[:6]
}

// expire ends the hold of g by time. In real time the store may see it end a
// little later than we do: what must happen then is awaited.
func (t *lockTest) expire(l driver.Locker, g driver.Grant) {
	t.Helper()
	if t.h.Expire != nil {
		t.h.Expire(t.T, l, g)
		return
	}
	time.Sleep(g.TTL + time.Millisecond)
}

func (t *lockTest) acquire(l driver.Locker, r driver.Request) driver.Grant {
	t.Helper()
	g, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire of a free key: got %v, want nil", err)
	}
	return g
}

// acquireSoon acquires a key that is about to become free.
func (t *lockTest) acquireSoon(l driver.Locker, r driver.Request) driver.Grant {
	t.Helper()
	for end := time.Now().Add(patience * t.h.TTL); ; time.Sleep(t.h.TTL / 50) {
		g, err := l.Acquire(t.Context(), r)
		switch {
		case err == nil:
			return g
		case !errors.Is(err, driver.ErrBusy):
			t.Fatalf("Acquire: got %v, want nil or ErrBusy", err)
		case time.Now().After(end):
			t.Fatalf("Acquire of a key that must become free: got ErrBusy for %v", patience*t.h.TTL)
		}
	}
}

func (t *lockTest) renew(l driver.Locker, g driver.Grant) driver.Grant {
	t.Helper()
	got, err := l.Renew(t.Context(), g)
	if err != nil {
		t.Fatalf("Renew of a live hold: got %v, want nil", err)
	}
	return got
}

func (t *lockTest) release(l driver.Locker, g driver.Grant) {
	t.Helper()
	if err := l.Release(t.Context(), g); err != nil {
		t.Fatalf("Release of a live hold: got %v, want nil", err)
	}
}

// wantBusy checks that a newcomer does not get key, and is told at once.
func (t *lockTest) wantBusy(l driver.Locker, key string) {
	t.Helper()
	r := t.request(key)
	start := time.Now()
	if _, err := l.Acquire(t.Context(), r); !errors.Is(err, driver.ErrBusy) {
		t.Fatalf("Acquire of a key that another holds: got %v, want ErrBusy", err)
	}
	if waited := time.Since(start); waited >= t.h.TTL {
		t.Fatalf("Acquire of a key that another holds: got an answer after %v, want one at once", waited)
	}
}

func (t *lockTest) wantLost(what string, err error) {
	t.Helper()
	if !errors.Is(err, driver.ErrLost) {
		t.Fatalf("%s: got %v, want ErrLost", what, err)
	}
}
