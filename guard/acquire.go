package guard

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/internal/lease"
)

// acquire gets c's turn: the lease, alive by both clocks now, and the context to
// work under.
func (g *Guard) acquire(ctx context.Context, c *call) (*Lease, context.Context, error) {
	for tries := 0; ; tries++ {
		l, err := g.turn(ctx, c)
		if err != nil {
			return g.turnedAway(ctx, c, err)
		}
		held, err := g.begin(ctx, c, l)
		if err == nil {
			return l, held, nil
		}
		// A process that was frozen between the grant and its last look: the call has not
		// begun, so it goes back to waiting.
		c.front = true
		again := tries == 0 || c.wait > 0 && time.Now().Before(c.deadline)
		if !errors.Is(err, errTooLate) || !again {
			return g.turnedAway(ctx, c, err)
		}
	}
}

// begin makes the context to work under l, and looks at everything that may have
// happened since its grant. On an error, and when a tracer or meter of the user
// panics, l has been given back.
func (g *Guard) begin(ctx context.Context, c *call, l *Lease) (held context.Context, err error) {
	begun := false
	defer func() {
		if !begun {
			_ = l.Unlock(ctx)
		}
	}()
	held = l.bind(ctx, &l.first)
	if g.tel.reports() && l.live() {
		g.tel.acquired(ctx, c)
	}
	switch {
	case ctx.Err() != nil: // it came too late for this caller
		return nil, because(ErrUnavailable, ctx.Err())
	case g.givenUp.Load():
		return nil, errGuardClosed
	case !l.live(): // the last look: what stands before it may have taken long
		return nil, because(ErrBusy, errTooLate)
	}
	begun = true
	return held, nil
}

func (g *Guard) turnedAway(ctx context.Context, c *call, err error) (*Lease, context.Context, error) {
	g.tel.failed(ctx, c, err)
	return nil, ctx, g.fail(c.op, c.key, err)
}

// turn enters the hold that ctx is inside of, or waits for the key.
func (g *Guard) turn(ctx context.Context, c *call) (*Lease, error) {
	if outer := g.hub.within(ctx, c.full); outer != nil {
		if crosses(ctx, outer) {
			c.wait = 0
		}
		if l, err := outer.nest(ctx, c); l != nil || err != nil {
			return l, err
		}
	}
	if outOfOrder(ctx, c.full) {
		c.wait = 0
	}
	q := g.hub.enter(c.full)
	defer g.hub.leave(q)
	q.mu.Lock()
	switch {
	case g.givenUp.Load():
		q.mu.Unlock()
		return nil, errGuardClosed
	case !q.open() && c.wait <= 0:
		defer q.mu.Unlock()
		if b := q.bid; b != nil && b.trouble != nil {
			return nil, unanswered(b.trouble)
		}
		return nil, ErrBusy
	}
	if q.free() && q.hub.inline {
		l, err := q.ask(ctx, c) // unlocks
		if c.wait <= 0 || !errors.Is(err, ErrBusy) {
			return l, err
		}
		c.front, c.busy = true, true
		q.mu.Lock()
	}
	w := &waiter{c: c, busy: c.busy, ready: make(chan struct{})}
	q.push(w)
	q.contend(0)
	q.mu.Unlock()
	return q.await(ctx, w)
}

// ask is the short way for a store inside this process: the caller asks it
// itself. It is called with q.mu held and returns without it.
func (q *queue) ask(ctx context.Context, c *call) (*Lease, error) {
	q.asking = true
	q.mu.Unlock()
	req := c.request()
	g, err := q.askHere(ctx, req)
	defer q.mu.Unlock()
	now := time.Now()
	if err == nil && !alive(g.Until, now) {
		err = errTooLate
	}
	if err == nil {
		return q.begin(g, c.ttl, c, now), nil
	}
	q.contend(0) // for those who came meanwhile
	if errors.Is(err, driver.ErrBusy) {
		return nil, ErrBusy
	}
	c.guard.repair(driver.Grant{Request: req})
	return nil, unanswered(err)
}

// askHere calls the store and comes back with q.mu held, also by a panic.
func (q *queue) askHere(ctx context.Context, r driver.Request) (driver.Grant, error) {
	returned := false
	defer func() {
		q.mu.Lock()
		q.asking = false
		if !returned {
			q.contend(0)
			q.mu.Unlock()
		}
	}()
	g, err := q.hub.store.Acquire(ctx, r)
	returned = true
	return g, err
}

// checkTTL refuses what the store cannot keep, or what its margin eats up.
func checkTTL(field string, ttl time.Duration, t driver.Traits) error {
	switch {
	case ttl <= 0:
		return invalid("%s is %v: a lease needs a positive time between renewals, such as 10s", field, ttl)
	case ttl < t.MinTTL:
		return invalid("%s is %v: the %s store keeps at least %v", field, ttl, t.Name, t.MinTTL)
	case ttl <= 2*lease.Margin(ttl):
		return invalid("%s is %v: its safety margin of %v leaves nothing; use 100ms or more", field, ttl, lease.Margin(ttl))
	}
	return nil
}
