package guard_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestGuard_ForgetsQueues(t *testing.T) {
	bothPaths(t, func(t *testing.T, s *memstore.Store, store driver.Backend) {
		g := newGuard(t, lockOnly(), store)
		for i := range 100 {
			key := fmt.Sprint("k", i)
			if err := g.WithLock(t.Context(), key, nothing); err != nil {
				t.Fatal(err)
			}
			if _, _, err := g.Lock(t.Context(), key, guard.TTL(time.Second), guard.Wait(0)); err != nil {
				t.Fatal(err)
			}
			h, err := s.Holder(t.Context(), "pawl:"+key)
			if err != nil {
				t.Fatal(err)
			}
			_ = s.Release(t.Context(), driver.Grant{Request: driver.Request{Key: "pawl:" + key, Owner: h.Owner}})
		}
		time.Sleep(time.Minute) // all leases are lost
		if got := guard.Queues(g); got != 0 {
			t.Errorf("%d queues are left", got)
		}
	})
}

func TestGuard_TheRegistryForgetsStores(t *testing.T) {
	p := lockOnly()
	p.TTL = 200 * time.Millisecond // a timer of the schedule may know a store for a third of it
	before := guard.Hubs()
	for range 20 {
		g, err := guard.New(p, guard.On(memstore.New()), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.WithLock(t.Context(), "k", nothing); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 {
		runtime.GC()
		if guard.Hubs() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond) // clean-ups run on a goroutine of the runtime
	}
	t.Errorf("got %d stores in the registry, want %d: no guard uses them", guard.Hubs(), before)
}
