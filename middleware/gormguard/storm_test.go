package gormguard_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/internal/servertest"
)

// storm lets holders come one after another and work at the same time, as if
// every lease had been lost: nothing but the fence keeps them apart. It returns
// how many sales were accepted.
func storm(t *testing.T, open func() *gorm.DB, under func(ctx context.Context, n uint64) context.Context) int {
	t.Helper()
	var token atomic.Uint64
	var sold atomic.Int64
	var all sync.WaitGroup
	for process := range 4 {
		db := open()
		all.Go(func() {
			for range servertest.Count(12, 200) {
				h := db.WithContext(under(soon(t), token.Add(1)))
				var err error
				if process%2 == 0 { // in one transaction, or statement by statement
					err = h.Transaction(func(tx *gorm.DB) error { return takeOne(tx.Statement.Context, tx) })
				} else {
					err = takeOne(h.Statement.Context, h)
				}
				if err == nil {
					sold.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(sold.Load())
}

func TestPlugin_HoldersAtTheSameTimeLoseNoUpdate(t *testing.T) {
	atEachIsolation(t, func(t *testing.T, w world) {
		const stock = 1000
		harmed := false
		for range 5 { // who meets whom is chance
			w.put(t, "a", stock)
			sold := storm(t, func() *gorm.DB { return w.unfenced(t) }, func(ctx context.Context, _ uint64) context.Context { return ctx })
			if harmed = stock-w.units(t, "a") < sold; harmed {
				break
			}
		}
		if !harmed {
			t.Fatal("without the fence: got as many units gone as sold, want the harm: fewer")
		}
		w.put(t, "a", stock)
		sold := storm(t, func() *gorm.DB { return w.fenced(t) }, func(ctx context.Context, n uint64) context.Context { return held(ctx, "a", n) })
		if left := w.units(t, "a"); stock-left != sold || sold == 0 {
			t.Errorf("with the fence: got %d sold and %d gone, want as many, and some", sold, stock-left)
		}
	})
}
