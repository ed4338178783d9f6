package guard

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Why a lease was lost; the cause of fn's context says which.
var (
	errLapsed  = errors.New("it could not be renewed in time")
	errTaken   = errors.New("the store gave it away or forgot it")
	errMaxHold = errors.New("it was held for Profile.MaxHold")
	errClosed  = errors.New("the guard was closed")
)

// lose ends t, tells its holders first and then lets the waiters of this process
// ask the store anew. It is called with q.mu held and returns without it.
func (t *tenure) lose(why error) {
	q := t.q
	t.drop()
	var lost []*Lease
	for _, l := range t.holder.members() {
		if l.state == open {
			l.state = gone
			lost = append(lost, l)
		}
	}
	q.mu.Unlock()

	t.holder.guard.tel.lost(t, why)
	for _, l := range lost {
		l.end(l.guard.fail(l.op, l.key, because(ErrLost, why)))
	}
	q.mu.Lock()
	q.contend(0)
	q.mu.Unlock()
	q.hub.leave(q)
}

// drop takes t out of the queue and the schedule. The caller holds q.mu, and
// gives t's reference to the queue back when it has done with it.
func (t *tenure) drop() {
	t.over = true
	t.q.ten = nil
	t.q.hub.schedule.drop(t)
}

// giveBack releases t at the store on a context that outlives ctx, and waits for
// the answer until ctx has ended and a grace has passed. The queue goes on when
// the store has answered or its time is up.
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
		dctx, cancel := detached(ctx, callBound(t.grant.TTL))
		defer cancel()
		_, err := watch(dctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.store.Release(ctx, t.grant)
		}, nil)
		t.q.released()
		done <- err
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

// released lets the waiters of this process ask the store again. On a store
// without arrival order they sit out one poll first, so that another process
// gets a chance.
func (q *queue) released() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releasing = false
	rest := time.Duration(0)
	if !q.hub.traits.FIFO {
		rest = jitter(firstPoll)
	}
	q.contend(rest)
	q.hub.leave(q)
}

// freeLost is the single release of a lease that was lost: the store may still
// hold it for us, and a later holder's it does not touch.
func (h *hub) freeLost(g driver.Grant) {
	h.repairs.add(1)
	go func() {
		defer h.repairs.add(-1)
		ctx, cancel := context.WithTimeout(context.Background(), callBound(g.TTL))
		defer cancel()
		_, _ = watch(ctx, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, h.store.Release(ctx, g)
		}, nil)
	}()
}
