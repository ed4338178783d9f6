package redisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

const (
	firstLook = 10 * time.Millisecond  // how long a wait waits for its subscription before it looks without
	unleased  = 250 * time.Millisecond // between looks at a key that somebody else keeps without a time to live
	spread    = 10 * time.Millisecond  // the most that a look at the end of a lease is late, so that processes do not look at once
)

// AcquireWait implements [driver.Waiter]. It looks for the key when a release is
// told, and when the lease that it waits for runs out, should nothing be told.
func (s *Store) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	channel := namesOf(r.Key).freed
	w := s.bell.join(channel) //nolint:contextcheck // the subscription is that of all waiters, and ends with the last
	g, err := s.await(ctx, r, w)
	s.bell.leave(channel, w, err == nil)
	return g, err
}

func (s *Store) await(ctx context.Context, r driver.Request, w *waiter) (driver.Grant, error) {
	look := time.NewTimer(firstLook)
	defer look.Stop()
	var busy error // nil until the store has answered: before that nobody may say that another holds the key
	for {
		select {
		case <-w.ring:
		case <-look.C:
		case <-ctx.Done():
			return driver.Grant{}, errors.Join(busy, ctx.Err())
		}
		g, left, err := s.try(ctx, r)
		if !errors.Is(err, driver.ErrBusy) {
			return g, err
		}
		busy = driver.ErrBusy
		if left < 0 {
			left = unleased
		}
		look.Reset(left + time.Millisecond + rand.N(spread)) //nolint:gosec // spreads load, hides nothing
	}
}
