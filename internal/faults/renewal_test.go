package faults_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

const renewalTTL = 600 * time.Millisecond

func allPlaces() []place { return append(networked(), sqlitePlace()) }

// Work that takes longer than three leases keeps its key, since the lease is
// renewed. Without renewal another would have had it after one.
func TestRenewal_WorkLongerThanItsLeaseKeepsTheKey(t *testing.T) {
	sideBySide(t, allPlaces(), func(t *testing.T, p place) {
		url := p.open(t)
		mine, other := openStore(t, url), openStore(t, url)
		g := openGuard(t, profile(renewalTTL, 0), mine)

		key := newKey("forgotten")
		_, err := mine.Acquire(t.Context(), driver.Request{Key: full(key), Owner: "forgetful#1", TTL: renewalTTL})
		if err != nil {
			t.Fatal(err)
		}
		if !granted(t.Context(), other, key, 3*renewalTTL) {
			t.Error("no harm without renewal: the test shows nothing")
		}
		for range servertest.Count(1, 10) {
			key := newKey("long")
			err := g.WithLock(t.Context(), key, func(ctx context.Context) error {
				if granted(ctx, other, key, 3*renewalTTL+renewalTTL/2) {
					t.Error("another was granted the key while fn ran")
				}
				if ctx.Err() != nil {
					t.Errorf("fn's context has ended: %v", context.Cause(ctx))
				}
				return nil
			})
			if err != nil {
				t.Errorf("WithLock: got %v, want nil", err)
			}
		}
	})
}

// granted reports whether a rival gets key within d.
func granted(ctx context.Context, s driver.Locker, key string, d time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	_, err := rival(ctx, s, key, renewalTTL)
	return err == nil
}

// The store gives the key away while fn runs: fn's context ends, and whatever fn
// returns the caller learns that the lease was lost.
func TestRenewal_WorkWhoseLeaseIsLostIsToldSo(t *testing.T) {
	failed := errors.New("fn failed")
	sideBySide(t, allPlaces(), func(t *testing.T, p place) {
		url := p.open(t)
		other := openStore(t, url)
		g := openGuard(t, profile(renewalTTL, 0), openStore(t, url))
		for name, result := range map[string]error{"Nil": nil, "Error": failed} {
			key := newKey("lost")
			err := g.WithLock(t.Context(), key, func(ctx context.Context) error {
				takeAway(t, url, other, key)
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, guard.ErrLost) {
					t.Errorf("%s: got cause %v, want ErrLost", name, cause)
				}
				return result
			})
			wantOnly(t, err, guard.ErrLost)
			if result != nil && !errors.Is(err, result) {
				t.Errorf("%s: got %v, want fn's error joined", name, err)
			}
		}
		key := newKey("unnoticed")
		err := g.WithLock(t.Context(), key, func(context.Context) error { takeAway(t, url, other, key); return nil })
		wantOnly(t, err, guard.ErrLost) // fn was done before a renewal could tell: the release does
	})
}

// takeAway gives key to somebody else, whoever holds it.
func takeAway(t *testing.T, url string, s driver.Locker, key string) {
	t.Helper()
	expire(t, url, key)
	if _, err := rival(t.Context(), s, key, time.Minute); err != nil {
		t.Fatal(err)
	}
}

// expire ends the lease on key at the store, as a step of the store's clock
// would.
func expire(t *testing.T, url, key string) {
	t.Helper()
	if addr, ok := strings.CutPrefix(url, "redis://"); ok {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		if n, err := client.Del(t.Context(), "pawl:{"+full(key)+"}:lock").Result(); n != 1 || err != nil {
			t.Fatalf("expire: %d locks, %v", n, err)
		}
		return
	}
	r := openDB(t, url).Exec("UPDATE pawl_locks SET expires_at = 1 WHERE lock_key = ?", []byte(full(key)))
	if r.RowsAffected != 1 || r.Error != nil {
		t.Fatalf("expire: %d locks, %v", r.RowsAffected, r.Error)
	}
}
