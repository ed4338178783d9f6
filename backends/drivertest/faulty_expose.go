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
	switch checks := f.checker != nil; {
	case f.waiter != nil:
		return f.exposeWaiter(f.viewer != nil, checks)
	case f.locker != nil:
		return f.exposeLocker(f.viewer != nil, checks)
	case checks:
		return struct {
			driver.Backend
			driver.Checker
		}{f, f}
	}
	return struct{ driver.Backend }{f}
}

func (f *faulty) exposeLocker(views, checks bool) driver.Backend {
	switch {
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

func (f *faulty) exposeWaiter(views, checks bool) driver.Backend {
	switch {
	case views && checks:
		return struct {
			driver.Waiter
			viewing
			driver.Checker
		}{f, f, f}
	case views:
		return struct {
			driver.Waiter
			viewing
		}{f, f}
	case checks:
		return struct {
			driver.Waiter
			driver.Checker
		}{f, f}
	}
	return struct{ driver.Waiter }{f}
}
