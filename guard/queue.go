package guard

import (
	"context"
	"sync"
	"time"
)

// queue is everything that this process knows about one key: who has it, who
// waits for it in arrival order, and whether the store is being asked for it.
// At most one of ten, bid, asking and releasing is set. No lock is held across a call
// of the store.
type queue struct {
	hub  *hub
	key  string
	refs int // guarded by hub.mu

	mu          sync.Mutex
	first, last *waiter
	ten         *tenure // the store's grant, while this process has it
	bid         *bid    // asks the store for it
	asking      bool    // a caller asks a store inside this process itself
	proofs      uint64  // how often it was seen that somebody had the key
	releasing   bool    // it was given back and the store has not answered yet

	// running is since when this process has given the key back only for short pauses; zero: it has not, or another process
	// had its turn since.
	running time.Time
}

// waiter is one call that waits for its turn.
type waiter struct {
	c          *call
	next, prev *waiter

	// guarded by the queue's mu
	settled bool
	busy    bool   // another held the key when it came
	seen    uint64 // the queue's proofs then
	lease   *Lease
	err     error

	ready chan struct{} // closed when settled
}

// await waits for w's turn until the call's deadline or ctx ends. There is one
// point of decision, under the queue's lock: a nil error means held.
func (q *queue) await(ctx context.Context, w *waiter) (*Lease, error) {
	var expired <-chan time.Time
	if w.c.wait > 0 {
		t := time.NewTimer(time.Until(w.c.deadline))
		defer t.Stop()
		expired = t.C
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
	case <-expired:
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.settled {
		return w.lease, w.err
	}
	q.remove(w)
	return nil, q.gaveUp(ctx, w)
}

// gaveUp is the error of a call that ended before its turn came. Busy needs
// proof: an answer of the store, or a hold of this process.
func (q *queue) gaveUp(ctx context.Context, w *waiter) error {
	b, proven := q.bid, q.proven(w)
	q.withdraw()
	cause := ctx.Err()
	if proven {
		if cause == nil && b != nil {
			cause = b.trouble
		}
		return because(ErrBusy, cause)
	}
	if cause == nil {
		cause = errWaitOver
	}
	return because(ErrUnavailable, cause)
}

// proven reports whether another held the key while w waited, by the store's word
// or since it was held in this process.
func (q *queue) proven(w *waiter) bool {
	return w.busy || w.seen != q.proofs || q.ten != nil || q.releasing
}

// withdraw ends the bid when nobody is left to ask for. An Acquire that is under
// way stays: its answer is acted on, and whoever comes meanwhile joins it.
func (q *queue) withdraw() {
	if b := q.bid; b != nil && q.first == nil && !b.acquiring {
		b.withdrawn = true
		b.guard.repairs.add(1) // until it has come back
		b.cancel()
		q.bid = nil
	}
}

// push puts a call at the end of the queue.
func (q *queue) push(w *waiter) {
	b := q.bid
	inLine := b != nil && b.busy && b.trouble == nil && !b.acquiring // it joins a place that the store keeps
	w.busy = w.busy || q.ten != nil || q.releasing || inLine
	w.seen = q.proofs
	if w.c.front {
		q.unshift(w)
		return
	}
	w.prev, w.next = q.last, nil
	if q.last != nil {
		q.last.next = w
	} else {
		q.first = w
	}
	q.last = w
}

// unshift puts a call back at the head: its turn had come, and the lease was
// dead before it could begin.
func (q *queue) unshift(w *waiter) {
	w.next, w.prev = q.first, nil
	if q.first != nil {
		q.first.prev = w
	} else {
		q.last = w
	}
	q.first = w
}

func (q *queue) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		q.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.last = w.prev
	}
	w.next, w.prev = nil, nil
}

// settle takes w out of the queue and tells it how its wait ended.
func (q *queue) settle(w *waiter, l *Lease, err error) {
	q.remove(w)
	w.settled, w.lease, w.err = true, l, err
	close(w.ready)
}

// free reports whether nobody in this process has the key, asks or waits for it.
func (q *queue) free() bool { return q.open() && q.bid == nil }

// open reports whether a call that does not wait may ask: the key is not known to
// be held or wanted by another.
func (q *queue) open() bool {
	asked := q.bid != nil && !q.bid.acquiring
	return q.ten == nil && !asked && !q.asking && !q.releasing && q.first == nil
}
