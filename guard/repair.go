package guard

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// repairTicks bounds the clean-ups of a store with sessions: ten TTL, a third
// of one apart.
const repairTicks = 30

// repair frees what may be held at the store and nobody counts on: an attempt
// of unknown outcome (g has no token), a lease that was lost, a release that was
// not confirmed. It releases by owner, so a later holder's it does not touch,
// and on a context of its own.
//
// What a lease bounds is left to the lease after one try. On a store with
// sessions a late landing never expires by itself: there the release is repeated
// until it is confirmed.
func (g *Guard) repair(held driver.Grant) {
	g.repairs.add(1)
	go func() {
		defer g.repairs.add(-1)
		for range repairTicks {
			err := g.hub.release(context.Background(), held)
			gone := held.Token != 0 && errors.Is(err, driver.ErrLost)
			if err == nil || gone || !g.hub.traits.Session {
				return
			}
			time.Sleep(held.TTL / 3)
		}
	}()
}

// release is one bounded call of the store that outlives ctx.
func (h *hub) release(ctx context.Context, g driver.Grant) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callBound(g.TTL))
	defer cancel()
	_, err := watch(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, h.store.Release(ctx, g)
	}, nil)
	return err
}

// giveBack releases t at the store and waits for the answer until ctx has ended
// and a grace has passed.
func (g *Guard) giveBack(ctx context.Context, t *tenure) error {
	if g.hub.inline {
		defer t.q.released()
		if ctx.Done() != nil {
			ctx = context.WithoutCancel(ctx)
		}
		return g.hub.store.Release(ctx, t.grant)
	}
	done := make(chan error, 1)
	g.repairs.add(1)
	go func() {
		defer g.repairs.add(-1)
		done <- g.returned(ctx, t.q, t.grant)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return ctx.Err() // unknown; the release goes on
	}
}

// returned releases q's grant. The queue goes on when the store has answered or
// its time is up.
func (g *Guard) returned(ctx context.Context, q *queue, held driver.Grant) error {
	err := g.hub.release(ctx, held)
	q.released()
	if g.hub.traits.Session && err != nil {
		g.repair(held)
	}
	return err
}
