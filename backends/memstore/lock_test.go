package memstore_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/fencing"
)

func TestStore_EndedContextComesFirst(t *testing.T) {
	s := memstore.New()
	g := acquire(t, s, request("a#1"))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	calls := []struct {
		name string
		call func() error
	}{
		{"Acquire", func() error {
			_, err := s.Acquire(ended, driver.Request{Key: "test:free", Owner: "b#1", TTL: time.Minute})
			return err
		}},
		{"AcquireWait", func() error {
			_, err := s.AcquireWait(ended, driver.Request{Key: "test:free", Owner: "b#1", TTL: time.Minute})
			return err
		}},
		{"Renew", func() error { _, err := s.Renew(ended, g); return err }},
		{"Release", func() error { return s.Release(ended, g) }},
		{"Holder", func() error { _, err := s.Holder(ended, g.Key); return err }},
	}
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			if err := c.call(); !errors.Is(err, context.Canceled) || errors.Is(err, driver.ErrBusy) || errors.Is(err, driver.ErrLost) {
				t.Errorf("%s: got %v, want the context's error alone", c.name, err)
			}
		})
	}
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Errorf("Renew afterwards: got %v, want nil: nothing has happened", err)
	}
	if h, err := s.Holder(t.Context(), "test:free"); err != nil || h != (driver.Grant{}) {
		t.Errorf("Holder of the free key: got %+v, %v, want nobody", h, err)
	}
}

func TestStore_RepeatedReleaseIsLost(t *testing.T) {
	s := memstore.New()
	g := acquire(t, s, request("a#1"))
	if err := s.Release(t.Context(), g); err != nil {
		t.Fatalf("Release: got %v, want nil", err)
	}
	if err := s.Release(t.Context(), g); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Release repeated: got %v, want ErrLost", err)
	}
}

func TestStore_ReleaseComparesTokenIfThereIsOne(t *testing.T) {
	s := memstore.New()
	g := acquire(t, s, request("a#1"))
	other := g
	other.Token += 512
	if err := s.Release(t.Context(), other); !errors.Is(err, driver.ErrLost) {
		t.Errorf("Release with another token: got %v, want ErrLost", err)
	}
	if err := s.Release(t.Context(), g); err != nil {
		t.Errorf("Release: got %v, want nil", err)
	}
}

// What was promised is kept: a shorter renewal does not end the hold earlier.
func TestStore_RenewNeverShortens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		g := acquire(t, s, request("a#1"))
		shorter := g
		shorter.TTL = time.Second
		renewed, err := s.Renew(t.Context(), shorter)
		if err != nil || renewed.Until != g.Until || renewed.TTL != g.TTL {
			t.Errorf("Renew with 1s: got TTL %v, Until %v, %v, want those of Acquire: %v, %v", renewed.TTL, renewed.Until, err, g.TTL, g.Until)
		}
		time.Sleep(30 * time.Second)
		if _, err := s.Acquire(t.Context(), request("b#1")); !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Acquire before the first lease ends: got %v, want ErrBusy", err)
		}
	})
}

func TestStore_LeaseMayBeEndless(t *testing.T) {
	s := memstore.New()
	r := request("a#1")
	r.TTL = math.MaxInt64
	g := acquire(t, s, r)
	if _, err := s.Renew(t.Context(), g); err != nil {
		t.Errorf("Renew: got %v, want nil", err)
	}
	if _, err := s.Acquire(t.Context(), request("b#1")); !errors.Is(err, driver.ErrBusy) {
		t.Errorf("Acquire beside an endless lease: got %v, want ErrBusy", err)
	}
}

func TestStore_UntilLeavesTheMargin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := acquire(t, memstore.New(), request("a#1"))
		if got, want := time.Until(g.Until), time.Minute-3*time.Second-5*time.Millisecond; got != want {
			t.Errorf("Until of a minute: got %v from now, want %v", got, want)
		}
	})
}

// Locks come, are forgotten and come again, from many goroutines. The token of
// each key is compared by who holds the key.
func TestStore_TokensGrowUnderLoad(t *testing.T) {
	s := memstore.New()
	var last [8]fencing.Token // each belongs to the holder of its key
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 5000 {
				k := (worker + i) % len(last)
				owner := "w#" + strconv.Itoa(worker) + "-" + strconv.Itoa(i)
				g, err := s.AcquireWait(t.Context(), driver.Request{Key: "test:" + strconv.Itoa(k), Owner: owner, TTL: time.Minute})
				if err != nil {
					t.Errorf("AcquireWait: got %v, want nil", err)
					return
				}
				if g.Token <= last[k] {
					t.Errorf("token: got %d, want more than %d", g.Token, last[k])
				}
				last[k] = g.Token
				if err := s.Release(t.Context(), g); err != nil {
					t.Errorf("Release: got %v, want nil", err)
					return
				}
				_, _ = s.Acquire(t.Context(), driver.Request{Key: "test:" + owner, Owner: owner, TTL: time.Nanosecond}) // makes sweep run
			}
		})
	}
	wg.Wait()
}
