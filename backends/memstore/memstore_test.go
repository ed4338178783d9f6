package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/drivertest"
	"github.com/pawl-go/pawl/backends/memstore"
)

func harness() drivertest.Harness[driver.Locker] {
	return drivertest.Harness[driver.Locker]{
		Open: func(*testing.T) func() driver.Locker {
			s := memstore.New()
			return func() driver.Locker { return s }
		},
		TTL:    time.Second,
		Bubble: synctest.Test,
	}
}

func TestStore_Locker(t *testing.T) { drivertest.RunLocker(t, harness()) }

func TestStore_LockerInRealTime(t *testing.T) {
	h := harness()
	h.TTL, h.Bubble = 300*time.Millisecond, nil
	drivertest.RunLocker(t, h)
}

func BenchmarkStore(b *testing.B) { drivertest.BenchmarkLocker(b, harness()) }
