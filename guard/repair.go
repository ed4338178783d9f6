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
func (h *hub) repair(g driver.Grant) {
	h.repairs.add(1)
	go func() {
		defer h.repairs.add(-1)
		for range repairTicks {
			err := h.release(context.Background(), g)
			gone := g.Token != 0 && errors.Is(err, driver.ErrLost)
			if err == nil || gone || !h.traits.Session {
				return
			}
			time.Sleep(g.TTL / 3)
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
// and a grace has passed. The queue goes on when the store has answered or its
// time is up.
func (h *hub) giveBack(ctx context.Context, t *tenure) error {
	if h.inline {
		if ctx.Err() != nil {
			ctx = context.WithoutCancel(ctx)
		}
		err := h.store.Release(ctx, t.grant)
		t.q.released()
		return err
	}
	done := make(chan error, 1)
	h.repairs.add(1)
	go func() {
		defer h.repairs.add(-1)
		err := h.release(ctx, t.grant)
		t.q.released()
		done <- err
		if h.traits.Session && err != nil {
			h.repair(t.grant)
		}
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
