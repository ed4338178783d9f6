package memstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
)

func BenchmarkStore_AcquireRelease(b *testing.B) {
	s := memstore.New()
	r := driver.Request{Key: "shop:sku:42", Owner: "host#1", TTL: time.Second}
	b.ReportAllocs()
	for b.Loop() {
		g, err := s.Acquire(context.Background(), r)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Release(context.Background(), g); err != nil {
			b.Fatal(err)
		}
	}
}
