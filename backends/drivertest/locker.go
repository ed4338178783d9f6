package drivertest

import (
	"slices"
	"testing"

	"github.com/pawl-go/pawl/backends/driver"
)

// RunLocker runs the cases of [driver.Locker] and, if the store has more, those
// of [driver.Waiter], [driver.Viewer] and [driver.Checker]. It returns when
// all have ended.
func RunLocker(t *testing.T, h Harness[driver.Locker]) {
	t.Run("Locker", func(t *testing.T) {
		store := h.Open(t)()
		cases := slices.Concat(grantCases(), deadlineCases(), holdCases(), expiryCases(), keyCases(), contextCases(), historyCases())
		if _, ok := store.(driver.Waiter); ok {
			cases = slices.Concat(cases, waitCases(), leaveCases())
			if store.Traits().FIFO {
				cases = append(cases, orderCases()...)
			}
		}
		if _, ok := store.(driver.Viewer); ok {
			cases = append(cases, viewCases()...)
		}
		if _, ok := store.(driver.Checker); ok {
			cases = append(cases, lockCase{"CheckNamesWholeHazards", checkNamesWholeHazards})
		}
		for _, c := range cases {
			h.run(t, c.name, func(t *testing.T) { c.run(newLockTest(t, h)) })
		}
	})
}

// lockCase is one promise.
type lockCase struct {
	name string
	run  func(t *lockTest)
}
