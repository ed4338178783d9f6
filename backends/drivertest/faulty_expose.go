package drivertest

import (
	"context"

	"github.com/pawl-go/pawl/backends/driver"
)

// viewing is what a Viewer has beyond a Locker. Embedded beside a Locker it
// makes a Viewer, without two Acquires at one depth.
type viewing interface {
	Holder(ctx context.Context, key string) (driver.Grant, error)
}

// expose returns f with no more methods than the store has. Type assertions see
// method sets, so each combination needs a type; a struct that embeds interfaces
// is one. All are comparable, as a Backend has to be.
func (f *faulty) expose() driver.Backend {
	checks := f.checker != nil
	switch views := f.viewer != nil; {
	case f.locker == nil && checks:
		return struct {
			driver.Backend
			driver.Checker
		}{f, f}
	case f.locker == nil:
		return struct{ driver.Backend }{f}
	case f.waiter != nil && views && checks:
		return struct {
			driver.Waiter
			viewing
			driver.Checker
		}{f, f, f}
	case f.waiter != nil && views:
		return struct {
			driver.Waiter
			viewing
		}{f, f}
	case f.waiter != nil && checks:
		return struct {
			driver.Waiter
			driver.Checker
		}{f, f}
	case f.waiter != nil:
		return struct{ driver.Waiter }{f}
	case views && checks:
		return struct {
			driver.Locker
			viewing
			driver.Checker
		}{f, f, f}
	case views:
		return struct {
			driver.Locker
			viewing
		}{f, f}
	case checks:
		return struct {
			driver.Locker
			driver.Checker
		}{f, f}
	}
	return struct{ driver.Locker }{f}
}
