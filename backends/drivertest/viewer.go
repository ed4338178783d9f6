package drivertest

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func viewCases() []lockCase {
	return []lockCase{
		{"HolderIsNamed", holderIsNamed},
		{"HolderOfFreeKeyIsNobody", holderOfFreeKeyIsNobody},
	}
}

func (t *lockTest) wantHolder(key string, want driver.Grant) {
	t.Helper()
	for _, l := range []driver.Locker{t.a, t.b} {
		got, err := l.(driver.Viewer).Holder(t.Context(), t.prefix+key)
		if err != nil {
			t.Fatalf("Holder: got %v, want nil", err)
		}
		if got.Key != want.Key || got.Owner != want.Owner || got.Token != want.Token {
			t.Fatalf("Holder: got %q, owner %q, token %d, want %q, owner %q, token %d",
				got.Key, got.Owner, got.Token, want.Key, want.Owner, want.Token)
		}
	}
}

func holderIsNamed(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	t.wantHolder("k", g)
	t.wantBusy(t.b, "k")
	t.wantHolder("k", t.renew(t.a, g))
	t.release(t.a, g)
	t.wantHolder("k", t.acquire(t.b, t.request("k")))
	if _, ok := t.a.(driver.Waiter); !ok {
		return
	}
	g = t.acquire(t.a, t.request("queue"))
	ctx, cancel := context.WithCancel(t.soon())
	ended := t.wait(ctx, t.b, t.request("queue"))
	t.settle()
	t.wantHolder("queue", g) // not who waits
	cancel()
	<-ended
}

func holderOfFreeKeyIsNobody(t *lockTest) {
	t.wantHolder("never", driver.Grant{})
	g := t.acquire(t.a, t.brief("k"))
	t.release(t.a, g)
	t.wantHolder("k", driver.Grant{})
	g = t.acquire(t.a, t.brief("k"))
	t.expire(t.a, g)
	for end := time.Now().Add(patience * t.h.TTL); ; time.Sleep(t.h.TTL / 50) { // the store may see it a little later
		got, err := t.b.(driver.Viewer).Holder(t.Context(), g.Key)
		if err != nil {
			t.Fatalf("Holder: got %v, want nil", err)
		}
		if got == (driver.Grant{}) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("Holder after expiry: got owner %q, want nobody", got.Owner)
		}
	}
}
