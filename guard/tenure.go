package guard

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

// tenure is one grant of the store and the chain of local holders that it
// serves. The grant's owner and token stay as the store gave them; each holder
// after the first has the token of a hand-over. All fields are guarded by the
// queue's mu, index and due also by the schedule's.
type tenure struct {
	q      *queue
	grant  driver.Grant
	asked  time.Duration // the TTL that was asked for; the one in force may be shorter
	since  time.Time     // when the store granted it
	handed int           // hand-overs so far
	token  fencing.Token // of the current holder
	holder *Lease

	renewAt  time.Time
	renewing bool
	over     bool // lost, or given back

	due   time.Time // the next thing to do, for the schedule
	index int       // in the schedule; -1: not there
}

// turn is a tenure and its first holder.
type turn struct {
	tenure tenure
	lease  Lease
}

// alive reports whether a lease that ends at until can still be relied on:
// by the monotonic clock, which stands still while a machine is suspended, and
// by the wall clock, which does not.
func alive(until, now time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}

func (t *tenure) alive(now time.Time) bool { return !t.over && alive(t.grant.Until, now) }

// begin makes g this process's hold of q, with c as its first holder. The caller
// holds q.mu.
func (q *queue) begin(g driver.Grant, asked time.Duration, c *call, now time.Time) *Lease {
	q.proofs++
	x := c.room()
	t := &x.tenure
	*t = tenure{q: q, grant: g, asked: asked, since: now, token: g.Token, index: -1}
	q.hub.again(q) // until the tenure is over
	if q.running.IsZero() {
		q.running = now
	}
	t.renewAt = renewalOf(g)
	q.ten = t
	return t.give(&x.lease, c, now)
}

// install gives b's grant to the waiter at the head. It is given back if nobody
// waits any more, or if the head asks for a longer lease or another generation
// than the call that b was made for, which has left.
func (q *queue) install(b *bid, g driver.Grant, now time.Time) {
	w := q.first
	if w != nil && w.c.ttl <= b.req.TTL && w.c.guard.generation == g.Generation {
		q.settle(w, q.begin(g, b.req.TTL, w.c, now), nil)
		return
	}
	q.releasing = true
	q.hub.again(q)
	b.guard.repairs.add(1)
	go func() {
		defer b.guard.repairs.add(-1)
		_ = b.guard.returned(context.Background(), q, g) // unknown: the lease, or the clean-up of a session, ends it
	}()
}

// give makes l the current holder of t, for call c.
func (t *tenure) give(l *Lease, c *call, now time.Time) *Lease {
	l.init(t, c, now)
	t.holder = l
	t.plan()
	return l
}

// plan schedules the next event of t: the renewal, the end of the lease, or the
// end of the holder's MaxHold.
func (t *tenure) plan() {
	at := t.grant.Until
	if !t.renewing && t.renewAt.Before(at) {
		at = t.renewAt
	}
	if end := t.holder.maxUntil; !end.IsZero() && end.Before(at) {
		at = end
	}
	t.q.hub.schedule.set(t, at)
}

// handOver gives the hold to the next waiter of this process without a call of
// the store: the same lease, the same end, a greater token. It refuses when the
// lease is nearly over, the chain has lasted its share, or the waiter needs
// another lease; then the key goes back to the store.
func (t *tenure) handOver(now time.Time) bool {
	w := t.q.first
	if w == nil || t.handed >= min(t.holder.guard.handovers, w.c.guard.handovers) ||
		t.grant.Until.Sub(now) <= t.grant.TTL/2 || !t.alive(now) ||
		w.c.ttl > t.asked || w.c.guard.generation != t.grant.Generation ||
		now.Sub(t.since) > w.c.wait/4 {
		return false
	}
	next, err := t.token.Next()
	if err != nil {
		return false
	}
	t.token = next
	t.handed++
	t.q.settle(w, t.give(&w.c.room().lease, w.c, now), nil)
	return true
}

// renewalOf is when g is to be renewed: TTL/3 after the request that renewed it,
// which may be longer ago than the grant. It is rounded down to one of 64 points
// of that time, so that the renewals of many locks are asked for together and
// share the store's round trips.
func renewalOf(g driver.Grant) time.Time {
	at := g.Until.Add(-g.TTL * 2 / 3)
	slot := max(g.TTL/(3*64), time.Millisecond)
	return at.Add(-time.Duration(at.UnixNano()) % slot) // not Truncate: it drops the monotonic clock
}

// tick is called by the schedule when something is due for t.
func (h *hub) tick(t *tenure) (report func()) {
	q := t.q
	q.mu.Lock()
	now := time.Now()
	switch {
	case t.over:
	case !t.alive(now):
		report = t.lose(errLapsed)
	case !t.holder.maxUntil.IsZero() && !now.Before(t.holder.maxUntil):
		report = t.lose(errMaxHold)
	default:
		if !t.renewing && !now.Before(t.renewAt) {
			t.renewing = true
			h.renewals.do(func() { h.renew(t) })
		}
		t.plan()
	}
	q.mu.Unlock()
	return report
}

// renew asks the store to extend t. A failure is retried until the lease ends;
// only ErrLost is final.
func (h *hub) renew(t *tenure) {
	q := t.q
	q.mu.Lock()
	g, over, by := t.grant, t.over, t.holder.guard
	if !over {
		by.repairs.add(1) // Close waits for the call
		defer by.repairs.add(-1)
	}
	q.mu.Unlock()
	if over {
		return
	}
	sent := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), callBound(g.TTL))
	renewed, err := h.callRenew(ctx, g)
	cancel()

	q.mu.Lock()
	t.renewing = false
	tel := t.holder.guard.tel
	switch {
	case t.over:
		q.mu.Unlock()
	case errors.Is(err, driver.ErrLost):
		report := t.lose(errTaken)
		q.mu.Unlock()
		report()
	case err != nil:
		t.renewAt = time.Now().Add(jitter(g.TTL / 12))
		t.plan()
		q.mu.Unlock()
		tel.renewFailed(t, err)
	default:
		t.extend(renewed, sent)
		q.mu.Unlock()
		tel.renewed(time.Since(sent))
	}
}

// extend notes what a renewal that was sent then came to. The caller holds q.mu.
func (t *tenure) extend(g driver.Grant, sent time.Time) {
	t.grant.Until, t.grant.TTL, t.grant.Handle = g.Until, g.TTL, g.Handle
	t.renewAt = renewalOf(g)
	if soonest := sent.Add(max(g.TTL/12, firstPoll)); t.renewAt.Before(soonest) {
		t.renewAt = soonest // a store that does not extend must not be called in a loop
	}
	t.plan()
}

func (h *hub) callRenew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	if h.inline {
		return h.store.Renew(ctx, g)
	}
	return watch(ctx, func(ctx context.Context) (driver.Grant, error) { return h.store.Renew(ctx, g) }, nil)
}
