package faults_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

const freezeTTL = 500 * time.Millisecond

// Moments at which a process is frozen: fn is about to begin, and when the process
// goes on its lease is another's.
const (
	afterHandOver = "after a hand-over"
	afterGrant    = "after the store's grant"
	afterVerdict  = "after the call was counted as held"
	withoutLook   = "after a hand-over that does not look at the clock"
)

// A process is frozen between the release of one local holder and the start of
// the next, or between the store's grant and the start of its holder, until
// another process has the key: fn begins after that one only.
func TestFreeze_NoWorkBeginsOnADeadLease(t *testing.T) {
	sideBySide(t, networked(), func(t *testing.T, p place) {
		url := p.open(t)
		other := openStore(t, url)
		c := spawn(t, setup{Identity: "frozen", Lock: url, TTL: freezeTTL, Wait: patience})
		for range servertest.Count(2, 20) {
			for _, moment := range []string{afterHandOver, afterGrant, afterVerdict} {
				if beginsOnADeadLease(t, c, other, moment) {
					t.Errorf("%s: fn began on a lease that had run out", moment)
				}
			}
		}
		if !beginsOnADeadLease(t, c, other, withoutLook) {
			t.Error("no harm without a look at the clock: the test shows nothing")
		}
	})
}

// beginsOnADeadLease reports whether the child's fn began with the token from
// before its freeze.
func beginsOnADeadLease(t *testing.T, c *child, other driver.Locker, moment string) bool {
	t.Helper()
	key := newKey("freeze")
	k := c.ask(message{Op: "freeze", Key: key, Mode: moment})
	k.expect("frozen")
	g, err := rival(t.Context(), other, key, patience)
	if err != nil {
		t.Fatal(err)
	}
	c.resume()
	time.Sleep(50 * time.Millisecond) // the child runs, and the key is not its
	if err := other.Release(t.Context(), g); err != nil {
		t.Error(err)
	}
	m := k.next()
	if m.Op == "failed" { // it did not begin at all: the store's answer was too late
		return false
	}
	return m.Token < uint64(g.Token)
}

// freezeInside runs fn under the lock in a child that freezes itself before that.
func freezeInside(ctx context.Context, s *stage, l *line, m message) {
	tr := &trap{frozen: func() { l.say(message{Op: "frozen"}) }}
	began := func(ctx context.Context) error {
		l.say(message{Op: "began", Token: uint64(tokenOf(ctx))})
		return nil
	}
	springs := &springs{}
	if m.Mode == afterVerdict {
		springs.trap = tr
	}
	store := spied(s.store, nil, func(call string, _ driver.Grant, err error) {
		if m.Mode == afterGrant && err == nil && (call == "Acquire" || call == "AcquireWait") {
			tr.spring()
		}
	})
	g, err := newGuard(profile(s.TTL, s.Wait), store, s.Identity, guard.WithTelemetry(nil, springs))
	if err == nil {
		switch m.Mode {
		case afterHandOver:
			err = handOverInto(ctx, g, m.Key, tr, began)
		case withoutLook:
			err = carelessHandOver(ctx, s, m.Key, tr, began)
		default:
			tr.set.Store(true)
			err = g.WithLock(ctx, m.Key, began)
		}
	}
	if err != nil {
		l.say(message{Op: "failed", Err: err.Error()})
	}
}

// handOverInto lets fn wait for a hold of this process, sets the trap, and ends
// the hold.
func handOverInto(ctx context.Context, g *guard.Guard, key string, tr *trap, fn func(context.Context) error) error {
	_, first, err := g.Lock(ctx, key)
	if err != nil {
		return err
	}
	second := make(chan error, 1)
	watched := &watchedContext{Context: ctx, waits: make(chan struct{})}
	go func() { second <- g.WithLock(&trappedContext{watched, tr}, key, fn) }()
	<-watched.waits
	tr.set.Store(true)
	if err := first.Unlock(ctx); err != nil {
		return err
	}
	return <-second
}

// carelessHandOver is a local queue on top of a lease as it is written at first:
// whoever gets the mutex has the lease.
func carelessHandOver(ctx context.Context, s *stage, key string, tr *trap, fn func(context.Context) error) error {
	g, err := s.store.Acquire(ctx, driver.Request{Key: full(key), Owner: s.Identity + "#careless", TTL: s.TTL})
	if err != nil {
		return err
	}
	var local sync.Mutex
	local.Lock()
	second := make(chan error, 1)
	go func() {
		local.Lock()
		second <- fn(carrying(ctx, g))
	}()
	tr.set.Store(true)
	tr.spring()
	local.Unlock()
	return <-second
}

// The same at any moment: a process in which local holders follow each other is
// frozen by chance.
func TestFreeze_AtAnyMomentNoWorkBeginsOnADeadLease(t *testing.T) {
	sideBySide(t, networked(), func(t *testing.T, p place) {
		url := p.open(t)
		other := openStore(t, url)
		c := spawn(t, setup{Identity: "frozen", Lock: url, TTL: freezeTTL, Wait: patience})
		key := newKey("churn")
		k := c.ask(message{Op: "churn", Key: key})
		var holds []span
		for range servertest.Count(4, 60) {
			if !eventually(patience, func() bool { return holder(t, other, key) == "frozen" }) {
				t.Fatal("the child does not get the key again")
			}
			time.Sleep(rand.N(20 * time.Millisecond))
			c.stop()
			g, err := rival(t.Context(), other, key, patience)
			if err != nil {
				t.Fatal(err)
			}
			hold := span{from: monotonic()}
			c.resume()
			time.Sleep(30 * time.Millisecond) // the child runs, and the key is not its
			hold.to = monotonic()
			holds = append(holds, hold)
			if err := other.Release(t.Context(), g); err != nil {
				t.Error(err)
			}
		}
		k.tell("stop")
		judge(t, k.expect("churned").Starts, holds)
	})
}

type span struct{ from, to int64 }

// start is one beginning of fn: when guard looked at the caller's context for the
// last time, and when fn's first line ran.
type start struct{ Looked, Began int64 }

// judge looks for an fn that began while another had the key, though guard was
// still at work when it had it already. A process that is frozen between guard's
// last look and fn's first line cannot be helped, but by the fence.
func judge(t *testing.T, starts []start, others []span) {
	t.Helper()
	dead, helpless := 0, 0
	for _, s := range starts {
		for _, o := range others {
			switch {
			case s.Began < o.from || s.Began > o.to:
			case s.Looked > o.from:
				dead++
			default:
				helpless++
			}
		}
	}
	t.Logf("%d starts, %d freezes, %d of them between the last look and fn", len(starts), len(others), helpless)
	if dead > 0 || len(starts) <= len(others) {
		t.Errorf("%d of %d began on a lease that had run out, want none", dead, len(starts))
	}
}

// churn lets four local holders follow each other until it is told to stop.
func churn(ctx context.Context, s *stage, l *line, m message) {
	ctx, cancel := context.WithCancel(ctx)
	go func() { l.await(ctx); cancel() }()
	var mu sync.Mutex
	said := message{Op: "churned"}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			looks := &lookedAt{Context: context.WithoutCancel(ctx)}
			for ctx.Err() == nil {
				_ = s.guard.WithLock(looks, m.Key, func(context.Context) error { // a lease that is lost is what it is about
					began := start{looks.last.Load(), monotonic()}
					mu.Lock()
					said.Starts = append(said.Starts, began)
					mu.Unlock()
					time.Sleep(200 * time.Microsecond)
					return nil
				})
			}
		})
	}
	all.Wait()
	l.say(said)
}

// lookedAt notes when it was asked whether it has ended.
type lookedAt struct {
	context.Context
	last atomic.Int64
}

func (c *lookedAt) Err() error {
	c.last.Store(monotonic())
	return c.Context.Err()
}
