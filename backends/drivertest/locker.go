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
	t.Helper()
	t.Run("Locker", func(t *testing.T) { // a parent, which waits for the parallel ones
		for _, c := range lockerCases(h.Open(t)()) {
			h.run(t, c.name, c.in(h))
		}
	})
}

// lockCase is one promise.
type lockCase struct {
	name string
	run  func(t *lockTest)
}

func (c lockCase) in(h Harness[driver.Locker]) func(t *testing.T) {
	return func(t *testing.T) { c.run(newLockTest(t, h)) } //nolint:thelper // it is the test
}

// lockerCases are those for what store can do.
func lockerCases(store driver.Locker) []lockCase {
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
	return cases
}
