package gormstore_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
)

func TestStore_KeepsTheContractOfLockers(t *testing.T) {
	for _, d := range databases() {
		t.Run(d.name, func(t *testing.T) {
			dsn := d.empty(t)
			d.migrated(t, dsn)
			drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
				Open: func(t *testing.T) func() driver.Locker {
					t.Helper()
					dsn := dsn // cases share a server, and differ by their prefix
					if d.name == "SQLite" {
						dsn = d.empty(t) // one file would make them queue
						d.migrated(t, dsn)
					}
					return func() driver.Locker { return d.store(t, dsn) }
				},
				TTL: time.Second,
			})
		})
	}
}
