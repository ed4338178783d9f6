package faults_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/guard"
)

const namespace = "faults"

// profile locks and does nothing else, on any server.
func profile(ttl, wait time.Duration) guard.Profile {
	return guard.Profile{
		Name:       "faults",
		Lock:       []driver.Consistency{driver.Primary, driver.Async},
		TTL:        ttl,
		Wait:       wait,
		LockOutage: guard.Refuse,
	}
}

func newGuard(p guard.Profile, store driver.Backend, identity string, more ...guard.Option) (*guard.Guard, error) {
	return guard.New(p, append([]guard.Option{
		guard.On(store), guard.WithNamespace(namespace), guard.WithIdentity(identity), guard.WithLogger(slog.New(slog.DiscardHandler)),
	}, more...)...)
}

// openGuard is a guard of this process that is closed, with all that it still
// cleans up, before its store is.
func openGuard(t *testing.T, p guard.Profile, store driver.Backend) *guard.Guard {
	t.Helper()
	g, err := newGuard(p, store, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

var keys atomic.Int64

// newKey is a key that no other try has.
func newKey(what string) string { return guard.Key(what, keys.Add(1)) }

// full is the key as the store knows it.
func full(key string) string { return namespace + ":" + key }

// rival asks the store for key as another process would, every few milliseconds
// and so before any guard that waits could, until it gets it or ctx ends.
func rival(ctx context.Context, s driver.Locker, key string, ttl time.Duration) (driver.Grant, error) {
	r := driver.Request{Key: full(key), Owner: fmt.Sprintf("rival#%d", keys.Add(1)), TTL: ttl}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		g, err := s.Acquire(ctx, r)
		if err == nil || ctx.Err() != nil {
			return g, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return driver.Grant{}, ctx.Err()
		}
	}
}

// holder is who has key at the store: guard's identity, "" for nobody.
func holder(t *testing.T, s driver.Viewer, key string) string {
	t.Helper()
	g, err := s.Holder(context.Background(), full(key))
	if err != nil {
		t.Errorf("who holds %s: %v", key, err)
	}
	identity, _, _ := strings.Cut(g.Owner, "#")
	return identity
}

// awaitFree waits for the clean-up that runs detached from its caller.
func awaitFree(t *testing.T, s driver.Viewer, key string, within time.Duration) {
	t.Helper()
	if !eventually(within, func() bool { return holder(t, s, key) == "" }) {
		t.Errorf("%s is still held %v after its holder has left", key, within)
	}
}

// eventually polls what no event tells.
func eventually(within time.Duration, done func() bool) bool {
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if done() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// wantOnly checks that err is want, and none of the other sentinels.
func wantOnly(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
		return
	}
	for _, other := range []error{guard.ErrBusy, guard.ErrLost, guard.ErrUnavailable, guard.ErrInvalid} {
		if other != want && errors.Is(err, other) { //nolint:errorlint // want is one of them
			t.Errorf("got %v, which is %v as well as %v", err, other, want)
		}
	}
}

func nothing(context.Context) error { return nil }

// carrying is ctx under a hold that the store granted, without a guard.
func carrying(ctx context.Context, g driver.Grant) context.Context {
	return fencing.NewContext(ctx, fencing.Grant{Resource: g.Key, Token: g.Token, Origin: "careless"})
}
