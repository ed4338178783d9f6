// Package guardtest tests services that use guard, without servers and inside
// testing/synctest bubbles.
//
//	g, sw := guardtest.New(t, guard.Stock())
//	sw.Hold(guard.Key("sku", 42)) // somebody else has it
package guardtest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// New returns a guard of profile p in memory, and the switch that breaks it. In
// a synctest bubble call New inside of the bubble. The guard is closed when the
// test ends.
func New(t testing.TB, p guard.Profile, opts ...guard.Option) (*guard.Guard, *Switch) {
	t.Helper()
	sw := &Switch{t: t, store: memstore.New(), held: map[string]bool{}, now: map[string]driver.Grant{}}
	wired := append([]guard.Option{
		guard.On(sw.backend()), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)
	g, err := guard.New(served(p), wired...)
	if err != nil {
		t.Fatalf("guardtest.New: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("guardtest: a hold outlives the test: %v", err)
		}
	})
	return g, sw
}

// served is p without the roles that the store in memory does not have yet.
func served(p guard.Profile) guard.Profile {
	var store driver.Backend = memstore.New()
	if _, ok := store.(driver.Ledger); !ok {
		p.Ledger = nil
	}
	if _, ok := store.(driver.Limiter); !ok {
		p.Limiter = nil
	}
	return p
}
