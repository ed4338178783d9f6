package drivertest

import (
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func expiryCases() []lockCase {
	return []lockCase{
		{"AcquireAfterExpiry", acquireAfterExpiry},
		{"TokenGrowsOverExpiry", tokenGrowsOverExpiry},
		{"RenewAfterExpiryIsLost", renewAfterExpiryIsLost},
		{"ExpiredHolderFreesNobodyElse", expiredHolderFreesNobodyElse},
	}
}

func acquireAfterExpiry(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	t.expire(t.a, g)
	t.acquireSoon(t.b, t.request("k"))
	_, err := t.a.Renew(t.Context(), g)
	t.wantLost("Renew after another came", err)
	t.wantBusy(t.a, "k")
}

// The order of holders outlives holds that nobody gave back.
func tokenGrowsOverExpiry(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	t.release(t.a, g)
	for range 2 {
		last := g.Token
		g = t.acquireSoon(t.a, t.brief("k"))
		if g.Token <= last {
			t.Fatalf("token of the next holder: got %d, want more than %d", g.Token, last)
		}
		t.expire(t.a, g)
	}
}

// An expired hold is over, even if nobody came: its holder may have been told
// so by its own clock.
func renewAfterExpiryIsLost(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	t.expire(t.a, g)
	if t.h.Bubble == nil {
		time.Sleep(g.TTL / 2) // the store's clock decides
	}
	_, err := t.a.Renew(t.Context(), g)
	t.wantLost("Renew after expiry", err)
	t.acquireSoon(t.b, t.request("k"))
}

func expiredHolderFreesNobodyElse(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	t.expire(t.a, g)
	next := t.acquireSoon(t.b, t.request("k"))
	t.wantLost("Release after another came", t.a.Release(t.Context(), g))
	t.wantLost("Release by owner alone after another came", t.a.Release(t.Context(), driver.Grant{Request: g.Request}))
	if _, err := t.a.Acquire(t.Context(), g.Request); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("Acquire by the expired owner after another came: got %v, want ErrBusy", err)
	}
	t.wantBusy(t.a, "k")
	t.renew(t.b, next)
}
