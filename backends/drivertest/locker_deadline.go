package drivertest

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func deadlineCases() []lockCase {
	return []lockCase{
		{"UntilCountsFromSend", untilCountsFromSend},
		{"UntilCountsFromSendUnderLoad", untilCountsFromSendUnderLoad},
		{"RenewMovesUntil", renewMovesUntil},
		{"NobodyElseBeforeUntil", nobodyElseBeforeUntil},
		{"RepeatedAcquirePromisesNoMore", repeatedAcquirePromisesNoMore},
		{"RenewExtends", renewExtends},
	}
}

// checkUntil holds a grant to its deadline: the request was sent after sent.
func (t *lockTest) checkUntil(call string, sent time.Time, g driver.Grant) {
	t.Helper()
	if latest := sent.Add(g.TTL); g.Until.After(latest) {
		t.Errorf("%s: got Until %v after its send time + TTL (a slow reply outlives the lease), want none", call, g.Until.Sub(latest))
	}
}

func untilCountsFromSend(t *lockTest) {
	r := t.request("k")
	sent := time.Now()
	g := t.acquire(t.a, r)
	t.checkUntil("Acquire", sent, g)
	if !g.Until.After(time.Now()) {
		t.Errorf("Acquire: got Until %v ago, want it ahead", time.Since(g.Until))
	}
	sent = time.Now()
	g = t.renew(t.a, g)
	t.checkUntil("Renew", sent, g)
	if !g.Until.After(time.Now()) {
		t.Errorf("Renew: got Until %v ago, want it ahead", time.Since(g.Until))
	}
}

// Calls that queue inside a client are slow, and show a deadline that counts
// from the reply.
func untilCountsFromSendUnderLoad(t *lockTest) {
	var wg sync.WaitGroup
	for i := range 64 {
		r := t.request("k" + strconv.Itoa(i))
		wg.Go(func() {
			sent := time.Now()
			g, err := t.a.Acquire(t.Context(), r)
			if err != nil {
				t.Errorf("Acquire of a free key: got %v, want nil", err)
				return
			}
			t.checkUntil("Acquire", sent, g)
			sent = time.Now()
			if g, err = t.a.Renew(t.Context(), g); err != nil {
				t.Errorf("Renew of a live hold: got %v, want nil", err)
				return
			}
			t.checkUntil("Renew", sent, g)
		})
	}
	wg.Wait()
}

func renewMovesUntil(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	time.Sleep(t.h.TTL / 10)
	if renewed := t.renew(t.a, g); !renewed.Until.After(g.Until) {
		t.Errorf("Until after Renew: got %v later than before, want it to move on", renewed.Until.Sub(g.Until))
	}
}

// rivalGets tries for the key until it gets it.
func (t *lockTest) rivalGets(key string) time.Time {
	t.Helper()
	t.acquireSoon(t.b, t.brief(key))
	return time.Now()
}

// The promise that all others serve: while the holder may believe that it
// holds, nobody else does.
func nobodyElseBeforeUntil(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	if at := t.rivalGets("k"); at.Before(g.Until) {
		t.Errorf("after Acquire: got another holder %v before Until, want none", g.Until.Sub(at))
	}
	g = t.acquire(t.a, t.brief("renewed"))
	time.Sleep(g.TTL / 4)
	g = t.renew(t.a, g)
	if at := t.rivalGets("renewed"); at.Before(g.Until) {
		t.Errorf("after Renew: got another holder %v before Until, want none", g.Until.Sub(at))
	}
}

func repeatedAcquirePromisesNoMore(t *lockTest) {
	r := t.brief("k")
	t.acquire(t.a, r)
	time.Sleep(r.TTL / 2)
	g := t.acquire(t.a, r)
	if at := t.rivalGets("k"); at.Before(g.Until) {
		t.Errorf("after a repeated Acquire: got another holder %v before Until, want none", g.Until.Sub(at))
	}
}

// The hold is carried over more than two TTLs. Only answers that came before
// Until count, so that a slow machine proves nothing wrong.
func renewExtends(t *lockTest) {
	g := t.acquire(t.a, t.brief("k"))
	for end := time.Now().Add(2 * g.TTL); time.Now().Before(end); {
		time.Sleep(g.TTL / 4)
		g = t.renew(t.a, g)
		_, err := t.b.Acquire(t.Context(), t.brief("k"))
		if time.Now().Before(g.Until) && !errors.Is(err, driver.ErrBusy) {
			t.Fatalf("Acquire of a key that is renewed: got %v, want ErrBusy", err)
		}
	}
}
