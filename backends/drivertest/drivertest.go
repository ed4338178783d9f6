// Package drivertest proves that a store keeps the contracts of package driver.
//
// A store's test opens it through a [Harness] and calls one Run function for
// each capability of the store; what the store can do beyond that ([driver.Waiter],
// [driver.Viewer], [driver.Checker]) is found out and tested too:
//
//	drivertest.RunLocker(t, drivertest.Harness[driver.Locker]{
//		Open:   func(t *testing.T) func() driver.Locker { s := kv.New(); return func() driver.Locker { return s } },
//		TTL:    time.Second,
//		Bubble: synctest.Test,
//	})
//
// The suite holds a store to what an application may rely on, not to how a
// store does it. Where the contract leaves a choice both answers pass.
package drivertest

import (
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Harness opens the store under test. A store that never blocks may ignore ctx.
//
// Cases that run in real time run in parallel with each other.
type Harness[B driver.Backend] struct {
	Open   func(t *testing.T) func() B             // one key space; each call of the result is another process's handle on it
	TTL    time.Duration                           // shortest that the store honours
	Bubble func(*testing.T, func(*testing.T))      // nil: real time; memstore passes synctest.Test
	Expire func(t *testing.T, b B, g driver.Grant) // nil: wait for TTL
}

// run runs one case as a subtest.
func (h Harness[B]) run(t *testing.T, name string, body func(t *testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		if h.Bubble != nil {
			h.Bubble(t, body)
			return
		}
		t.Parallel()
		body(t)
	})
}
