package gormstore_test

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
)

func TestStore_KeepsTheContractOfLockers(t *testing.T) {
	onEach(t, func(t *testing.T, d database, dsn string) {
		d.migrated(t, dsn)
		drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
			Open: func(t *testing.T) func() driver.Locker { // cases differ by their prefix
				return func() driver.Locker { return d.store(t, dsn) }
			},
			TTL: time.Second,
		})
	})
}
