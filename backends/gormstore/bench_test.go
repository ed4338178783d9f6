package gormstore_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
)

func BenchmarkStore(b *testing.B) {
	for _, d := range databases() {
		b.Run(d.name, func(b *testing.B) {
			dsn := d.empty(b)
			d.migrated(b, dsn)
			drivertest.BenchmarkLocker(b, drivertest.Harness[driver.Locker]{
				Open: func(*testing.T) func() driver.Locker {
					return func() driver.Locker { return d.store(b, dsn) }
				},
				TTL: time.Second,
			})
		})
	}
}
