package memstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// queue lists the waits for one key in order of arrival.
type queue struct{ head, tail *waiter }

// waiter is one AcquireWait that found the key taken. Everything but wake
// belongs to Store.mu.
type waiter struct {
	request    driver.Request
	prev, next *waiter
	wake       chan struct{} // look again: the key was given to you, or you are the head now
	served     bool          // no longer queued; grant and err say how it ended
	grant      driver.Grant
	err        error
}

// AcquireWait implements [driver.Waiter]. Waits are served in order of arrival.
// Only the head of the queue has a timer, which runs to the end of the lease
// before it and is stopped when the wait ends.
func (s *Store) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	s.observe(sent)
	l := s.lockOf(r.Key)
	g, err := s.acquire(l, r, sent)
	if !errors.Is(err, driver.ErrBusy) {
		s.mu.Unlock()
		return g, err
	}
	w := &waiter{request: r, wake: make(chan struct{}, 1)}
	l.queue.push(w)
	s.mu.Unlock()
	s.wait(ctx, l, w)
	return w.grant, w.err
}

// wait returns when w is served or ctx has ended.
func (s *Store) wait(ctx context.Context, l *lock, w *waiter) {
	expiry := time.NewTimer(time.Hour)
	expiry.Stop()
	defer expiry.Stop()
	for {
		left, done := s.look(ctx, l, w)
		if done {
			return
		}
		if left > 0 {
			expiry.Reset(left)
		}
		select {
		case <-w.wake:
		case <-expiry.C:
		case <-ctx.Done():
		}
	}
}

// look decides, under the mutex and so exactly once, whether w got the key or
// leaves: a wait that was served before its context ended holds the key. If it
// goes on and is the head, left is what remains of the lease before it.
func (s *Store) look(ctx context.Context, l *lock, w *waiter) (left time.Duration, done bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(now)
	if w.served {
		return 0, true
	}
	if err := ctx.Err(); err != nil {
		l.queue.remove(w) // wakes the next, which then keeps the timer
		w.err = fmt.Errorf("%w: %w", driver.ErrBusy, err)
		return 0, true
	}
	s.serve(l, now)
	if l.queue.head == w {
		return l.expires - s.now, false
	}
	return 0, w.served
}

// serve gives l to the head of its queue if nobody holds it. A request that
// cannot be granted (its generation does not fit) leaves with its error, and
// the next one is tried.
func (s *Store) serve(l *lock, now time.Time) {
	for l.queue.head != nil && !s.live(l) {
		w := l.queue.head
		l.queue.remove(w)
		w.grant, w.err = s.give(l, w.request, now)
		w.served = true
		w.poke()
	}
}

func (q *queue) push(w *waiter) {
	w.prev = q.tail
	if q.tail == nil {
		q.head = w
	} else {
		q.tail.next = w
	}
	q.tail = w
}

// remove takes w out. A new head is told, since it has to watch the lease from
// now on.
func (q *queue) remove(w *waiter) {
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		q.tail = w.prev
	}
	if w.prev != nil {
		w.prev.next = w.next
		return
	}
	if q.head = w.next; q.head != nil {
		q.head.poke()
	}
}

// poke never blocks: one pending wake-up is enough to make the waiter look.
func (w *waiter) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}
