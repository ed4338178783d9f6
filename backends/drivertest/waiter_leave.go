package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func leaveCases() []lockCase {
	return []lockCase{
		{"WaitEndsWithContext", waitEndsWithContext},
		{"WaitEndsWithDeadline", waitEndsWithDeadline},
		{"EndedContextWait", endedContextWait},
		{"LeavingHeadBlocksNobody", leavingHeadBlocksNobody},
		{"LeavingMiddleBlocksNobody", leavingMiddleBlocksNobody},
		{"LastToLeaveLeavesNothing", lastToLeaveLeavesNothing},
		{"WaitIsServedOrLeft", waitIsServedOrLeft},
	}
}

// wantLeft checks that a wait gave up when its context ended, not later.
func (t *lockTest) wantLeft(ended <-chan answer, gaveUp time.Time) {
	t.Helper()
	got := <-ended
	if !errors.Is(got.err, driver.ErrBusy) {
		t.Fatalf("AcquireWait of a held key whose context ended: got token %d, %v, want ErrBusy", got.Token, got.err)
	}
	if took := got.at.Sub(gaveUp); took > t.h.TTL {
		t.Fatalf("AcquireWait: got an answer %v after its context ended, want it at once", took)
	}
}

func waitEndsWithContext(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	ctx, cancel := context.WithCancel(t.soon())
	ended := t.wait(ctx, t.b, t.request("k"))
	t.settle()
	t.wantWaiting(ended)
	gaveUp := time.Now()
	cancel()
	t.wantLeft(ended, gaveUp)
	t.renew(t.a, g) // the holder is not concerned
	t.wantBusy(t.b, "k")
}

func waitEndsWithDeadline(t *lockTest) {
	t.acquire(t.a, t.request("k"))
	deadline := time.Now().Add(t.h.TTL / 5)
	ctx, cancel := context.WithDeadline(t.Context(), deadline)
	defer cancel()
	ended := t.wait(ctx, t.b, t.request("k"))
	t.wantLeft(ended, deadline)
}

// As for Acquire; busy is true, too, if it comes together with the end.
func endedContextWait(t *lockTest) {
	r := t.request("k")
	got := <-t.wait(t.ended(), t.a, r)
	if got.err == nil {
		t.renew(t.a, got.Grant)
	}
	t.repair(r)
	g := t.acquire(t.a, t.request("k"))
	if got := <-t.wait(t.ended(), t.b, t.request("k")); got.err == nil {
		t.Errorf("AcquireWait of a held key with an ended context: got token %d, want an error", got.Token)
	}
	t.release(t.a, g)
	t.acquireSoon(t.b, t.request("k"))
}

// The head may be the one that watches the holder: the next must go on.
func leavingHeadBlocksNobody(t *lockTest) {
	t.checkLeaving(0, func(g driver.Grant) {
		if t.h.Expire != nil {
			t.expire(t.a, g)
		}
	})
}

func leavingMiddleBlocksNobody(t *lockTest) {
	t.checkLeaving(1, func(g driver.Grant) { t.release(t.a, g) })
}

// checkLeaving queues three, lets one leave, ends the hold before them and
// expects the others to be served.
func (t *lockTest) checkLeaving(leaver int, end func(driver.Grant)) {
	t.Helper()
	r := t.brief("k")
	r.TTL *= 2 // the queue forms meanwhile
	g := t.acquire(t.a, r)
	var ends [3]<-chan answer
	var cancels [3]context.CancelFunc
	for i := range ends {
		l := t.b
		if i == 1 {
			l = t.a
		}
		ctx, cancel := context.WithCancel(t.soon())
		defer cancel()
		cancels[i] = cancel
		ends[i] = t.wait(ctx, l, t.brief("k"))
		t.settle()
	}
	gaveUp := time.Now()
	cancels[leaver]()
	t.wantLeft(ends[leaver], gaveUp)
	end(g)
	t.wantServedInTurn(ends[(leaver+1)%3], ends[(leaver+2)%3])
}

// A queue that everybody left is no holder, whether the key is freed before or
// after.
func lastToLeaveLeavesNothing(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	for range 3 {
		ctx, cancel := context.WithCancel(t.soon())
		ended := t.wait(ctx, t.b, t.request("k"))
		t.settle()
		g = t.renew(t.a, g)
		cancel()
		<-ended
	}
	t.release(t.a, g)
	g = t.wantDeserted(t.b)
	ctx, cancel := context.WithCancel(t.soon())
	ended := t.wait(ctx, t.a, t.request("k"))
	t.settle()
	cancel()
	<-ended
	t.expire(t.b, g)
	t.wantDeserted(t.a)
}

// wantDeserted acquires a key whose last wait has left. That wait asked for ten
// TTLs: a store that let it hold them would answer ErrBusy for longer.
func (t *lockTest) wantDeserted(l driver.Locker) driver.Grant {
	t.Helper()
	start := time.Now()
	g := t.acquireSoon(l, t.brief("k"))
	if took := time.Since(start); took > 5*t.h.TTL {
		t.Fatalf("Acquire after the last wait has left: got the key after %v, want it at once", took)
	}
	return g
}

// The key is freed while the context ends. nil means held; after an error the
// key is free for others, and nobody has to release it.
func waitIsServedOrLeft(t *lockTest) {
	for round := range 20 {
		g := t.wantDeserted(t.a)
		ctx, cancel := context.WithCancel(t.soon())
		ended := t.wait(ctx, t.b, t.request("k"))
		time.Sleep(time.Millisecond)
		freed := make(chan error, 1)
		release := func() { freed <- t.a.Release(t.Context(), g) }
		if round%2 == 0 {
			go release()
		} else {
			release() // a store in memory has served the wait, which has not run yet
		}
		cancel()
		if err := <-freed; err != nil {
			t.Fatalf("Release of a live hold: got %v, want nil", err)
		}
		if got := <-ended; got.err == nil {
			t.release(t.b, t.renew(t.b, got.Grant))
		}
	}
}
