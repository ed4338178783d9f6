package main

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/pawl-go/pawl/guard"
)

// counter is where a process sells: a database, protected or not.
type counter struct {
	setup
	db     *gorm.DB
	guard  *guard.Guard // nil: no lock
	unlink func()       // from the lock store
}

// openCounter connects as row s.Protection wants it.
func openCounter(ctx context.Context, s setup) (*counter, error) {
	db, err := connect(ctx, s.DB, s.Processes)
	if err != nil {
		return nil, err
	}
	c := &counter{setup: s, db: db, unlink: func() {}}
	if s.Protection != noLock {
		err = c.lock()
	}
	if err == nil && s.Protection == lockAndFence {
		err = fence(db)
	}
	if err != nil {
		c.close(ctx)
		return nil, err
	}
	return c, nil
}

func (c *counter) lock() error {
	locks, unlink, err := openLocks(c.Lock, c.db)
	if err != nil {
		return err
	}
	c.unlink = unlink
	c.guard, err = newGuard(locks, fmt.Sprintf("flashsale process %d", c.Process))
	return err
}

func (c *counter) buy(ctx context.Context, buyer int, think func(left int)) (unit int, waited time.Duration, err error) {
	purchase := func(ctx context.Context) error {
		unit, err = sell(ctx, c.db, c.Sale, buyer, think)
		return err
	}
	if c.guard == nil {
		return unit, 0, purchase(ctx)
	}
	waited, err = underLock(ctx, c.guard, c.Sale, purchase)
	return unit, waited, err
}

// close disconnects. The nil counter was never opened.
func (c *counter) close(ctx context.Context) {
	if c == nil {
		return
	}
	if c.guard != nil {
		ctx, cancel := context.WithTimeout(ctx, leaseTTL)
		defer cancel()
		_ = c.guard.Close(ctx) // what is left ends with its lease
	}
	c.unlink()
	_ = disconnect(c.db)
}
