package guard_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// A WithLock of a free key costs at most 8 allocations, the store's included.
func TestGuard_WithLockAllocatesLittle(t *testing.T) {
	g := newGuard(t, lockOnly(), memstore.New())
	got := testing.AllocsPerRun(1000, func() {
		if err := g.WithLock(t.Context(), "sku:42", nothing); err != nil {
			t.Fatal(err)
		}
	})
	if got > withLockAllocs {
		t.Errorf("got %v allocations, want at most %d", got, withLockAllocs)
	}
}

// BenchmarkGuard_WithLock is guard's own cost: a free key on a store in memory.
func BenchmarkGuard_WithLock(b *testing.B) {
	p := guard.Stock()
	p.Ledger = nil
	g, err := guard.New(p, guard.On(memstore.New()), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	fn := func(context.Context) error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		if err := g.WithLock(ctx, "sku:42", fn); err != nil {
			b.Fatal(err)
		}
	}
}
