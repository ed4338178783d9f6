package guard

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

var (
	errWaitOver = errors.New("no answer within Wait")
	errTooLate  = errors.New("the answer came after the lease had run out")
)

// bid is this process's contender for a key at the store. It belongs to the
// queue and lives while any call waits, so that a caller who leaves does not
// cost the others their place.
type bid struct {
	q      *queue
	guard  *Guard // of the call that it was made for
	req    driver.Request
	cancel context.CancelFunc
	ctx    context.Context //nolint:containedctx // the life of the bid: ends when the last waiter leaves
	polls  int
	asked  time.Time // when it asked last

	// guarded by q.mu
	acquiring bool  // an Acquire is under way: it is not cancelled, since a server may go on with what its client gave up
	withdrawn bool  // nobody waits any more
	busy      bool  // the store has answered: another holds the key
	trouble   error // the last failure to get an answer since
}

// contend asks the store for the key in the name of the waiters, after a delay,
// if nobody does and the key is not here. The caller holds q.mu.
func (q *queue) contend(delay time.Duration) {
	w := q.first
	if w == nil || q.ten != nil || q.bid != nil || q.asking || q.releasing {
		return
	}
	b := &bid{q: q, guard: w.c.guard, req: w.c.request()}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	q.bid = b
	q.hub.again(q)
	go b.run(delay)
}

// request is a new attempt on the call's key.
func (c *call) request() driver.Request {
	return driver.Request{Key: c.full, Owner: newOwner(c.guard.identity), TTL: c.ttl, Generation: c.guard.generation}
}

// newOwner is the name of one attempt. Random for each, not counted: a virtual
// machine that was cloned must not repeat its twin's.
func newOwner(identity string) string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	b := make([]byte, 0, maxIdentity+1+2*len(random))
	b = append(append(b, identity...), '#')
	return string(hex.AppendEncode(b, random[:]))
}

// run asks until the key is granted, nobody waits any more, or the store's first
// answer is no answer. A failure after that is retried as a new attempt: the
// calls know that the key is busy and wait for it until their own end.
func (b *bid) run(delay time.Duration) {
	defer b.end()
	for b.pause(delay) {
		queue, wanted := b.next()
		if !wanted {
			return
		}
		g, err := b.ask(queue)
		again, done := b.q.answer(b, g, err)
		if !queue {
			b.guard.repairs.add(-1)
		}
		if done {
			return
		}
		delay = again
	}
}

func (b *bid) end() {
	b.cancel()
	q := b.q
	q.mu.Lock()
	withdrawn := b.withdrawn
	q.mu.Unlock()
	if withdrawn {
		b.guard.repairs.add(-1)
	}
	q.hub.leave(q)
}

// next decides how to ask: first without waiting, since ErrBusy proves that the
// store answers, then in its own queue if it has one. An Acquire outlives the
// calls that it is made for, so Close waits for it.
func (b *bid) next() (queue, wanted bool) {
	q := b.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.bid != b {
		return false, false
	}
	queue = q.hub.waiter != nil && b.busy && b.trouble == nil
	if !queue {
		b.acquiring = true
		b.guard.repairs.add(1)
	}
	return queue, true
}

// pause waits for d and reports whether the bid is still wanted.
func (b *bid) pause(d time.Duration) bool {
	if d <= 0 {
		return b.ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-b.ctx.Done():
		return false
	}
}

// ask is one call of the store. A wait in its queue ends with the bid, an
// Acquire only with its own bound: when everybody has left, its grant is given
// back, or serves who came since.
func (b *bid) ask(queue bool) (driver.Grant, error) {
	h, req := b.q.hub, b.req
	late := func(_ driver.Grant, err error) {
		if !errors.Is(err, driver.ErrBusy) {
			b.guard.repair(driver.Grant{Request: req})
		}
	}
	b.asked = time.Now()
	if queue {
		ctx := b.ctx
		if !h.traits.FIFO { // no place to lose: a wake-up that the store has missed costs no more than this
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, max(2*req.TTL, maxCall))
			defer cancel()
		}
		return watch(ctx, func(ctx context.Context) (driver.Grant, error) { return h.waiter.AcquireWait(ctx, req) }, late)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callBound(req.TTL))
	defer cancel()
	return watch(ctx, func(ctx context.Context) (driver.Grant, error) { return h.store.Acquire(ctx, req) }, late)
}

// answer acts on what the store said to b. It returns how long to wait before
// asking again, or that b has done its work.
func (q *queue) answer(b *bid, g driver.Grant, err error) (delay time.Duration, done bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	wanted, now := q.bid == b, time.Now()
	b.acquiring = false
	if err == nil && !alive(g.Until, now) {
		err = errTooLate
	}
	switch {
	case err == nil && wanted:
		q.bid = nil
		q.install(b, g, now)
		return 0, true
	case errors.Is(err, driver.ErrBusy) && wanted:
		b.busy, b.trouble = true, nil
		q.proofs++
		q.running = time.Time{} // another process has its turn
		return q.turnedDown(b)
	case errors.Is(err, driver.ErrBusy):
		return 0, true
	}
	b.guard.repair(driver.Grant{Request: b.req}) // unknown, or granted to nobody
	if !wanted {
		return 0, true
	}
	return q.noVerdict(b, err)
}

// turnedDown is ErrBusy: calls that do not wait are told, the others go on.
func (q *queue) turnedDown(b *bid) (delay time.Duration, done bool) {
	for w := q.first; w != nil; {
		next := w.next
		if w.c.wait <= 0 {
			q.settle(w, nil, ErrBusy)
		}
		w = next
	}
	if q.first == nil {
		q.bid = nil
		return 0, true
	}
	if q.hub.waiter != nil && (b.polls == 0 || time.Since(b.asked) > lastPoll) {
		b.polls++
		return 0, false // in the store's own queue now, or again
	}
	return b.backoff(), false
}

// noVerdict is an unknown outcome. It is told to the calls that have never heard
// that the key is busy: an attempt is not repeated inside the call. The others
// wait on, for a new attempt, until their own end.
func (q *queue) noVerdict(b *bid, err error) (delay time.Duration, done bool) {
	for w := q.first; w != nil; {
		next := w.next
		if w.c.wait <= 0 || !q.proven(w) {
			q.settle(w, nil, unanswered(err))
		}
		w = next
	}
	if q.first == nil {
		q.bid = nil
		return 0, true
	}
	b.trouble = errors.New(err.Error())      // for the reader: another sentinel must not be found in it
	b.req.Owner = newOwner(b.guard.identity) // the old one is being cleaned up
	return b.backoff(), false
}
