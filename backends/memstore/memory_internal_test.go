package memstore

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

func numbered(i int, ttl time.Duration) driver.Request {
	n := strconv.Itoa(i)
	return driver.Request{Key: "test:" + n, Owner: "test#" + n, TTL: ttl}
}

func TestStore_ForgetsReleasedKeys(t *testing.T) {
	s := New()
	for i := range 50_000 {
		g, err := s.Acquire(t.Context(), numbered(i, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), g); err != nil {
			t.Fatal(err)
		}
	}
	// Those of the last tick stay, and as many again that sweep has not come to.
	if got := len(s.locks); got > 2000 {
		t.Errorf("locks known after 50,000 keys: got %d, want at most 2000", got)
	}
	if got, want := len(s.ring), len(s.locks); got != want {
		t.Errorf("locks in the ring: got %d, want %d", got, want)
	}
}

func TestStore_ForgetsExpiredKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		const live = 1000 // ten a millisecond, for 100 ms each
		for i := range 50 * live {
			if _, err := s.Acquire(t.Context(), numbered(i, 100*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if i%10 == 9 {
				time.Sleep(time.Millisecond)
			}
		}
		if got := len(s.locks); got > 2*live+20 {
			t.Errorf("locks known beside %d live ones: got %d, want at most about twice as many", live, got)
		}
	})
}

func TestStore_KeepsWhatIsAheadOfTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		var last driver.Grant
		for range 1000 { // in no time: the sequence runs ahead
			g, err := s.Acquire(t.Context(), numbered(0, time.Minute))
			if err != nil || g.Token <= last.Token {
				t.Fatalf("Acquire: got token %d, %v, want one more than %d", g.Token, err, last.Token)
			}
			last = g
			if err := s.Release(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			s.sweep()
		}
		if len(s.locks) != 1 {
			t.Fatalf("locks known: got %d, want 1: its order is ahead of the clock", len(s.locks))
		}
		time.Sleep(time.Second) // the clock comes past
		s.observe(time.Now())
		s.sweep()
		if len(s.locks) != 0 {
			t.Errorf("locks known a second later: got %d, want 0", len(s.locks))
		}
		if g, err := s.Acquire(t.Context(), numbered(0, time.Minute)); err != nil || g.Token <= last.Token {
			t.Errorf("Acquire of a forgotten key: got token %d, %v, want one more than %d", g.Token, err, last.Token)
		}
	})
}

// A call that read the clock before others and comes to the mutex after them
// meets a lock that was forgotten meanwhile.
func TestStore_OldReadingDoesNotTurnTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		old := time.Now()
		time.Sleep(time.Second)
		g, err := s.Acquire(t.Context(), numbered(0, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := s.Release(t.Context(), g); err != nil || len(s.locks) != 0 {
			t.Fatalf("Release: got %v and %d locks known, want nil and 0", err, len(s.locks))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.observe(old)
		late, err := s.acquire(s.lockOf(g.Key), numbered(0, time.Minute), old)
		if err != nil || late.Token <= g.Token {
			t.Errorf("Acquire with an old reading: got token %d, %v, want one more than %d", late.Token, err, g.Token)
		}
		if !late.Until.Before(old.Add(time.Minute)) {
			t.Errorf("Until: got %v after the reading, want less than its TTL", late.Until.Sub(old))
		}
	})
}

func TestStore_KeepsAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		g, err := s.Acquire(t.Context(), numbered(0, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() { _, _ = s.AcquireWait(ctx, numbered(0, time.Minute)) }() // the holder itself: not queued
			go func() {
				r := numbered(0, time.Minute)
				r.Owner = "other#1"
				_, _ = s.AcquireWait(ctx, r)
			}()
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if l := s.locks[g.Key]; l == nil || l.queue != (queue{}) {
			t.Errorf("queue after all have left: got %+v, want an empty one", l)
		}
	})
}

func TestStore_Allocations(t *testing.T) {
	s, ctx := New(), context.Background()
	r := numbered(0, time.Minute)
	if got := testing.AllocsPerRun(1000, func() {
		g, _ := s.Acquire(ctx, r)
		_, _ = s.Renew(ctx, g)
		_ = s.Release(ctx, g)
	}); got > 1 {
		t.Errorf("allocations of Acquire, Renew and Release: got %v, want at most 1", got)
	}
}
