package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func waitCases() []lockCase {
	return []lockCase{
		{"WaitGetsFreeKeyAtOnce", waitGetsFreeKeyAtOnce},
		{"WaitByLiveOwnerIsTheSameGrant", waitByLiveOwnerIsTheSameGrant},
		{"WaitEndsAtRelease", waitEndsAtRelease},
		{"WaitEndsAtExpiry", waitEndsAtExpiry},
		{"WaitOutlastsRenewals", waitOutlastsRenewals},
		{"WaitsFollowDeadHolders", waitsFollowDeadHolders},
		{"ManyWaitsAllServed", manyWaitsAllServed},
	}
}

// answer is how a wait ended.
type answer struct {
	driver.Grant
	err error
	at  time.Time
}

// wait starts a wait of its own. The result yields exactly one answer.
func (t *lockTest) wait(ctx context.Context, l driver.Locker, r driver.Request) <-chan answer {
	ended := make(chan answer, 1)
	go func() {
		g, err := l.(driver.Waiter).AcquireWait(ctx, r)
		ended <- answer{g, err, time.Now()}
	}()
	return ended
}

// settle gives a wait that was just started the time to arrive at the store,
// which has no way to tell us.
func (t *lockTest) settle() { time.Sleep(t.h.TTL / 10) }

func (t *lockTest) wantServed(ended <-chan answer) driver.Grant {
	t.Helper()
	got := <-ended
	if got.err != nil {
		t.Fatalf("AcquireWait: got %v, want the key", got.err)
	}
	return got.Grant
}

func (t *lockTest) wantWaiting(ended <-chan answer) {
	t.Helper()
	select {
	case got := <-ended:
		t.Fatalf("AcquireWait of a held key: got token %d, %v, want it to wait", got.Token, got.err)
	default:
	}
}

func waitGetsFreeKeyAtOnce(t *lockTest) {
	r := t.request("k")
	g := t.wantServed(t.wait(t.soon(), t.a, r))
	if g.Key != r.Key || g.Owner != r.Owner || g.Token == 0 {
		t.Errorf("AcquireWait: got %+v, want the key, owner and a token of %+v", g, r)
	}
	if !g.Until.After(time.Now()) {
		t.Errorf("AcquireWait: got Until %v ago, want it ahead", time.Since(g.Until))
	}
	t.wantBusy(t.b, "k")
	t.release(t.a, t.renew(t.a, g))
}

func waitByLiveOwnerIsTheSameGrant(t *lockTest) {
	r := t.request("k")
	g := t.acquire(t.a, r)
	if again := t.wantServed(t.wait(t.soon(), t.b, r)); again.Token != g.Token {
		t.Errorf("token of AcquireWait by the live owner: got %d, want %d", again.Token, g.Token)
	}
	t.release(t.a, g)
	t.acquire(t.b, t.request("k"))
}

func waitEndsAtRelease(t *lockTest) {
	for _, waiting := range []driver.Locker{t.a, t.b} {
		g := t.acquire(t.a, t.request("k"))
		ended := t.wait(t.soon(), waiting, t.request("k"))
		t.settle()
		t.wantWaiting(ended)
		freed := time.Now()
		t.release(t.a, g)
		next := t.wantServed(ended)
		if took := time.Since(freed); took > 2*t.h.TTL {
			t.Errorf("AcquireWait after Release: got the key after %v, want it at once", took)
		}
		if next.Token <= g.Token {
			t.Errorf("token of the next holder: got %d, want more than %d", next.Token, g.Token)
		}
		if !next.Until.After(freed) || next.Until.After(time.Now().Add(next.TTL)) {
			t.Errorf("Until of the next holder: got %v after the key was freed, want it ahead and within its TTL", next.Until.Sub(freed))
		}
		t.wantBusy(t.a, "k")
		t.release(waiting, t.renew(waiting, next))
	}
}

func waitEndsAtExpiry(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	ended := t.wait(t.soon(), t.b, t.request("k"))
	if t.h.Expire != nil {
		t.settle()
		t.expire(t.a, g)
	}
	next := <-ended
	if next.err != nil {
		t.Fatalf("AcquireWait behind a holder that died: got %v, want the key", next.err)
	}
	if t.h.Expire == nil && next.at.Before(g.Until) {
		t.Errorf("AcquireWait: got the key %v before the holder's Until, want none", g.Until.Sub(next.at))
	}
	if late := next.at.Sub(g.Until); late > 5*t.h.TTL {
		t.Errorf("AcquireWait: got the key %v after the holder's Until, want about %v at most", late, t.h.TTL)
	}
	if next.Token <= g.Token {
		t.Errorf("token of the next holder: got %d, want more than %d", next.Token, g.Token)
	}
	t.wantLost("Release by the holder that died", t.a.Release(t.Context(), g))
	t.renew(t.b, next.Grant)
}

// A wait that looked at the lease once must look again.
func waitOutlastsRenewals(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	ended := t.wait(t.soon(), t.b, t.request("k"))
	for range 6 {
		time.Sleep(g.TTL / 4)
		g = t.renew(t.a, g)
		select {
		case got := <-ended:
			if got.err != nil || got.at.Before(g.Until) {
				t.Fatalf("AcquireWait of a key that is renewed: got token %d, %v, want it to wait", got.Token, got.err)
			}
		default:
		}
	}
	t.release(t.a, g)
	t.wantServed(ended)
}

// Each holder dies with the lease; the queue moves on by time alone.
func waitsFollowDeadHolders(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	x, y := t.wait(t.soon(), t.a, t.brief("k")), t.wait(t.soon(), t.b, t.brief("k"))
	if t.h.Expire != nil {
		t.settle()
		t.expire(t.a, g)
	}
	t.wantServedInTurn(x, y)
}

// wantServedInTurn expects two waits to get the key, the later one by the
// expiry of the earlier.
func (t *lockTest) wantServedInTurn(x, y <-chan answer) {
	t.Helper()
	var first answer
	for turn := range 2 {
		var got answer
		select {
		case got = <-x:
		case got = <-y:
		}
		switch {
		case got.err != nil:
			t.Fatalf("AcquireWait, served as number %d of 2: got %v, want the key", turn+1, got.err)
		case turn == 0:
			if first = got; t.h.Expire != nil {
				t.expire(t.a, got.Grant)
			}
		case got.Token <= first.Token:
			t.Errorf("token of the next holder: got %d, want more than %d", got.Token, first.Token)
		case t.h.Expire == nil && got.at.Before(first.Until):
			t.Errorf("AcquireWait: got the key %v before the holder's Until, want none", first.Until.Sub(got.at))
		}
	}
}

func manyWaitsAllServed(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	var h history
	var wg sync.WaitGroup
	for i := range 24 {
		l := t.a
		if i%2 == 1 {
			l = t.b
		}
		wg.Go(func() {
			asked := h.clock.Add(1)
			g, err := l.(driver.Waiter).AcquireWait(t.soon(), t.request("k"))
			if err != nil {
				t.Errorf("AcquireWait in a queue of 24: got %v, want the key", err)
				return
			}
			h.enter(asked, g)
			h.leave()
			if err := l.Release(t.Context(), g); err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Release of a live hold: got %v, want nil", err)
			}
		})
	}
	t.settle()
	t.release(t.a, g)
	wg.Wait()
	h.check(t)
}
