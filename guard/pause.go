package guard

import (
	"math/rand/v2"
	"time"
)

const (
	firstPoll = 10 * time.Millisecond
	lastPoll  = 250 * time.Millisecond
)

// backoff is the next pause between two questions: 10 ms doubling to 250 ms, jittered.
func (b *bid) backoff() time.Duration {
	d := min(firstPoll<<min(b.polls, 5), lastPoll)
	b.polls++
	return jitter(d)
}

// jitter is d give or take a quarter.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1) //nolint:gosec // spreads load, hides nothing
}

// released lets the waiters of this process ask the store again. On a store
// without arrival order they sit out one poll first, so that another process
// gets a chance.
func (q *queue) released() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.releasing = false
	q.contend(q.rest())
	q.hub.leave(q)
}

// rest is that poll. A store that pushes wakes the others at once. One that is
// polled is looked at every 250 ms by those who have waited for long: they get
// a pause of that length when this process has had the key for a quarter of
// Wait, its chains and the short pauses between them together. Longer pauses
// each time would cost a process that is alone most of its turns; and where
// Wait is short nobody polls so seldom.
func (q *queue) rest() time.Duration {
	queued := q.hub.waiter != nil
	if q.first == nil || queued && q.hub.traits.FIFO {
		return 0
	}
	c := q.first.c
	if queued || c.wait < 4*lastPoll || time.Since(q.running) <= c.wait/4 {
		return jitter(firstPoll)
	}
	q.running = time.Time{}
	return min(lastPoll*5/4, time.Until(c.deadline)/2)
}
