package drivertest

import (
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func holdCases() []lockCase {
	return []lockCase{
		{"BusyWhileHeld", busyWhileHeld},
		{"RepeatedAcquireIsTheSameGrant", repeatedAcquireIsTheSameGrant},
		{"ConcurrentRepeatedAcquireIsTheSameGrant", concurrentRepeatedAcquireIsTheSameGrant},
		{"ConcurrentAcquireHasOneWinner", concurrentAcquireHasOneWinner},
		{"RenewOfOtherOwnerIsLost", renewOfOtherOwnerIsLost},
		{"RenewOfOtherTokenIsLost", renewOfOtherTokenIsLost},
		{"RenewOfFreeKeyIsLost", renewOfFreeKeyIsLost},
		{"ReleaseFreesAtOnce", releaseFreesAtOnce},
		{"ReleaseOfOtherOwnerIsLost", releaseOfOtherOwnerIsLost},
		{"ReleaseWithoutTokenFrees", releaseWithoutTokenFrees},
		{"ReleaseOfFreeKeyIsLost", releaseOfFreeKeyIsLost},
		{"RepeatedReleaseFreesNobodyElse", repeatedReleaseFreesNobodyElse},
	}
}

func busyWhileHeld(t *lockTest) {
	t.acquire(t.a, t.request("k"))
	t.wantBusy(t.a, "k") // the same handle, too
	t.wantBusy(t.b, "k")
}

func repeatedAcquireIsTheSameGrant(t *lockTest) {
	r := t.request("k")
	g := t.acquire(t.a, r)
	for _, l := range []driver.Locker{t.a, t.a, t.b} {
		if again := t.acquire(l, r); again.Token != g.Token {
			t.Fatalf("token of a repeated Acquire: got %d, want %d", again.Token, g.Token)
		}
	}
	t.wantBusy(t.b, "k")
	t.release(t.a, g) // one release, however often it was acquired
	t.acquire(t.b, t.request("k"))
}

func concurrentRepeatedAcquireIsTheSameGrant(t *lockTest) {
	r := t.request("k")
	grants := make([]driver.Grant, 16)
	var wg sync.WaitGroup
	for i := range grants {
		wg.Go(func() {
			g, err := t.a.Acquire(t.Context(), r)
			if err != nil {
				t.Errorf("Acquire repeated at the same time: got %v, want nil", err)
			}
			grants[i] = g
		})
	}
	wg.Wait()
	for _, g := range grants {
		if g.Token != grants[0].Token {
			t.Fatalf("tokens of one owner: got %d and %d, want one", g.Token, grants[0].Token)
		}
	}
}

func concurrentAcquireHasOneWinner(t *lockTest) {
	const rivals = 16
	verdicts := make([]error, rivals)
	var wg sync.WaitGroup
	for i := range rivals {
		l, r := t.a, t.request("k")
		if i%2 == 1 {
			l = t.b
		}
		wg.Go(func() { _, verdicts[i] = l.Acquire(t.Context(), r) })
	}
	wg.Wait()
	won := 0
	for _, err := range verdicts {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, driver.ErrBusy):
			t.Errorf("Acquire of a contended key: got %v, want nil or ErrBusy", err)
		}
	}
	if won != 1 {
		t.Errorf("holders after %d concurrent Acquires: got %d, want 1", rivals, won)
	}
}

// A renewal that was refused has changed nothing: it neither freed nor extended
// the hold.
func renewOfOtherOwnerIsLost(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	other := g
	other.Owner, other.TTL = t.owner(), 10*t.h.TTL
	t.checkRefusedRenew(g, other)
}

func renewOfOtherTokenIsLost(t *lockTest) {
	for _, key := range []string{"greater", "smaller"} {
		g := t.acquire(t.a, t.brief(key))
		other := g
		other.TTL = 10 * t.h.TTL
		if other.Token += 512; key == "smaller" {
			other.Token -= 2 * 512
		}
		t.checkRefusedRenew(g, other)
	}
}

func (t *lockTest) checkRefusedRenew(g, other driver.Grant) {
	t.Helper()
	_, err := t.b.Renew(t.Context(), other)
	t.wantLost("Renew of a hold that is not one's own", err)
	t.renew(t.a, g)
	start := time.Now()
	_, err = t.b.Renew(t.Context(), other)
	t.wantLost("Renew of a hold that is not one's own", err)
	t.expire(t.a, g)
	rival := t.acquireSoon(t.b, t.brief("k"))
	if took := time.Since(start); took > 5*g.TTL {
		t.Errorf("key after a refused Renew with 10 TTL: got it free after %v, want about %v", took, g.TTL)
	}
	t.release(t.b, rival)
}

func renewOfFreeKeyIsLost(t *lockTest) {
	_, err := t.a.Renew(t.Context(), driver.Grant{Request: t.request("never"), Token: 512})
	t.wantLost("Renew of a key that nobody held", err)
	g := t.acquire(t.a, t.request("k"))
	t.release(t.a, g)
	_, err = t.a.Renew(t.Context(), g)
	t.wantLost("Renew after Release", err)
	t.acquire(t.b, t.request("k"))
}

func releaseFreesAtOnce(t *lockTest) {
	for range 3 {
		g := t.acquire(t.a, t.request("k"))
		t.release(t.a, g)
		g = t.acquire(t.b, t.request("k"))
		t.release(t.a, g) // by owner, whichever process sends it
	}
}

func releaseOfOtherOwnerIsLost(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	for _, other := range []driver.Grant{g, {Request: g.Request}} {
		other.Owner = t.owner()
		t.wantLost("Release by another owner", t.b.Release(t.Context(), other))
		t.wantBusy(t.b, "k")
	}
	t.renew(t.a, g)
}

// This is how guard repairs an Acquire whose outcome it does not know.
func releaseWithoutTokenFrees(t *lockTest) {
	r := t.request("k")
	t.acquire(t.a, r)
	t.release(t.a, driver.Grant{Request: r})
	t.acquire(t.b, t.request("k"))
}

func releaseOfFreeKeyIsLost(t *lockTest) {
	r := t.request("never")
	t.wantLost("Release of a key that nobody held", t.a.Release(t.Context(), driver.Grant{Request: r}))
	t.acquire(t.a, r)
}

// A second release may be a client library's retry (nil) or a mistake
// (ErrLost). It never ends somebody else's hold.
func repeatedReleaseFreesNobodyElse(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	t.release(t.a, g)
	again := func() {
		t.Helper()
		if err := t.a.Release(t.Context(), g); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Errorf("Release repeated: got %v, want nil or ErrLost", err)
		}
	}
	again()
	next := t.acquire(t.b, t.request("k"))
	again()
	t.wantBusy(t.a, "k")
	t.renew(t.b, next)
}
