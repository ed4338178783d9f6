package faults_test

import (
	"context"

	"github.com/pawl-go/pawl/backends/driver"
)

// spy is a store whose calls are seen, before they are made and after. Either
// hook may be nil.
type spy struct {
	store  driver.Viewer
	before func(call string)
	after  func(call string, g driver.Grant, err error)
}

// spied has exactly the capabilities of s that guard uses.
func spied(s driver.Viewer, before func(call string), after func(call string, g driver.Grant, err error)) driver.Viewer {
	watched := &spy{s, before, after}
	if w, ok := s.(driver.Waiter); ok {
		return &waitingSpy{watched, w}
	}
	return watched
}

type waitingSpy struct {
	*spy
	waiter driver.Waiter
}

func (s *spy) see(call string, do func() (driver.Grant, error)) (driver.Grant, error) {
	if s.before != nil {
		s.before(call)
	}
	g, err := do()
	if s.after != nil {
		s.after(call, g, err)
	}
	return g, err
}

func (s *spy) Traits() driver.Traits { return s.store.Traits() }

func (s *spy) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return s.see("Acquire", func() (driver.Grant, error) { return s.store.Acquire(ctx, r) })
}

func (s *waitingSpy) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return s.see("AcquireWait", func() (driver.Grant, error) { return s.waiter.AcquireWait(ctx, r) })
}

func (s *spy) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	return s.see("Renew", func() (driver.Grant, error) { return s.store.Renew(ctx, g) })
}

func (s *spy) Release(ctx context.Context, g driver.Grant) error {
	_, err := s.see("Release", func() (driver.Grant, error) { return g, s.store.Release(ctx, g) })
	return err
}

func (s *spy) Holder(ctx context.Context, key string) (driver.Grant, error) {
	return s.see("Holder", func() (driver.Grant, error) { return s.store.Holder(ctx, key) })
}
