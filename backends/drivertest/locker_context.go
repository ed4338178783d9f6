package drivertest

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func contextCases() []lockCase {
	return []lockCase{
		{"EndedContextAcquire", endedContextAcquire},
		{"EndedContextRenew", endedContextRenew},
		{"EndedContextRelease", endedContextRelease},
		{"AbandonedAcquireLeavesNothing", abandonedAcquireLeavesNothing},
	}
}

func (t *lockTest) ended() context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// repair does what guard does after an Acquire whose outcome is unknown. On a
// session store a late landing is not ended by time, so the release is repeated.
func (t *lockTest) repair(r driver.Request) {
	t.Helper()
	for end := time.Now().Add(patience * t.h.TTL); ; time.Sleep(t.h.TTL / 50) {
		_ = t.a.Release(t.Context(), driver.Grant{Request: r})
		other := t.request("")
		other.Key = r.Key
		g, err := t.b.Acquire(t.Context(), other)
		switch {
		case err == nil:
			t.release(t.b, g)
			return
		case !errors.Is(err, driver.ErrBusy):
			t.Fatalf("Acquire after an abandoned one: got %v, want nil or ErrBusy", err)
		case time.Now().After(end):
			t.Fatalf("Acquire after an abandoned one: got ErrBusy for %v, want the key free", patience*t.h.TTL)
		}
	}
}

// An ended context may be ignored (a valid grant) or honoured (an error that is
// no verdict on the key).
func endedContextAcquire(t *lockTest) {
	r := t.request("k")
	g, err := t.a.Acquire(t.ended(), r)
	switch {
	case err == nil:
		t.renew(t.a, g)
	case errors.Is(err, driver.ErrBusy), errors.Is(err, driver.ErrLost):
		t.Errorf("Acquire of a free key with an ended context: got %v, want nil or another error", err)
	}
	t.repair(r)
}

func endedContextRenew(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	renewed, err := t.a.Renew(t.ended(), g)
	switch {
	case err == nil:
		g = renewed
	case errors.Is(err, driver.ErrBusy), errors.Is(err, driver.ErrLost):
		t.Errorf("Renew of a live hold with an ended context: got %v, want nil or another error", err)
	}
	t.renew(t.a, g)
	t.wantBusy(t.b, "k")
}

func endedContextRelease(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	err := t.a.Release(t.ended(), g)
	if errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrLost) {
		t.Errorf("Release of a live hold with an ended context: got %v, want nil or another error", err)
	}
	if err != nil {
		if err := t.a.Release(t.Context(), g); err != nil && !errors.Is(err, driver.ErrLost) {
			t.Fatalf("Release repeated: got %v, want nil or ErrLost", err)
		}
	}
	t.acquire(t.b, t.request("k"))
}

// The context ends at any moment of the call. nil means held; after any error
// a release by owner leaves the key free.
func abandonedAcquireLeavesNothing(t *lockTest) {
	for i := range 24 {
		r := t.request("k" + strconv.Itoa(i)) // a late landing must not meet the next round
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*20*time.Microsecond)
		g, err := t.a.Acquire(ctx, r)
		cancel()
		if err == nil {
			t.renew(t.a, g)
			t.release(t.a, g)
			continue
		}
		if errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrLost) {
			t.Errorf("Acquire of a free key, context ended meanwhile: got %v, want nil or another error", err)
		}
		t.repair(r)
	}
}
