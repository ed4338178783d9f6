// Package batch lets calls that are made at the same time share a round trip.
//
// It batches naturally: nothing is held back to make a batch larger. A call
// that finds its lane idle is sent at once; calls that arrive while a batch is
// in flight make up the next one. So one caller pays one round trip, and a
// thousand callers pay about as many round trips as fit into the time they take.
package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// Max is the largest number of calls in a batch.
	Max = 100
	// Stale is how long a batch in flight holds up the next one. A batch that takes
	// longer (its server is slow, its link half-open) delays only calls on the
	// keys that it carries.
	Stale = 50 * time.Millisecond

	defaultLimit = 5 * time.Second
)

var errNoAnswer = errors.New("batch: the sender gave no answer")

// Lane is a stream of calls of one kind, with questions Q and answers A. Set the
// fields before the first call of Do; do not copy a Lane after it.
//
// Calls whose order matters or that must not delay each other belong into
// different lanes: a release should not wait behind a thousand acquires.
type Lane[Q, A any] struct {
	// Key says what a call is about. A batch carries one call a key, sorted by key: a store may evaluate all conditions of a
	// batch before its first write, refuse a row named twice, or deadlock with a batch sorted otherwise.
	Key func(Q) string

	// Send sends one batch and gives each answer by the position of its question, as soon as it is known and from any
	// goroutine. Calls left without an answer when it returns fail with its error. ctx is the batch's own: it carries the
	// values of one caller, ends after Limit, and ends early when every caller has left.
	Send func(ctx context.Context, calls []Q, answer func(i int, a A)) error

	// Definite, if set, says of an error of Send that no call of the batch took effect. The calls are then sent again one by
	// one, so that one bad call fails alone.
	Definite func(error) bool

	// Limit bounds one batch; zero is 5 s.
	Limit time.Duration

	// Grace is how long a caller whose context has ended stays for the answer of a call in flight: a verdict that comes a
	// moment late is worth more than an unknown outcome. Zero: not at all.
	Grace time.Duration

	mu    sync.Mutex
	queue []*call[Q, A]
	busy  map[string]*call[Q, A] // in flight, and its caller waits
	young *flight[Q, A]          // in flight for less than Stale: the next batch waits for it
}

// call is one Do. Its fields below done are guarded by the lane's mutex until
// done is closed.
type call[Q, A any] struct {
	ctx  context.Context //nolint:containedctx // the caller's, for the values of its batch's context
	key  string
	q    Q
	done chan struct{}

	flight   *flight[Q, A] // nil while queued
	answered bool
	a        A
	err      error
}

// Do makes a call. It returns as soon as the answer is known, or when ctx has
// ended and Grace is over, whatever the sender does meanwhile. After ctx's error
// the outcome is unknown, unless the call was still queued: then it is never
// sent.
func (l *Lane[Q, A]) Do(ctx context.Context, q Q) (A, error) {
	var none A
	if err := ctx.Err(); err != nil {
		return none, err
	}
	c := &call[Q, A]{ctx: ctx, key: l.Key(q), q: q, done: make(chan struct{})}
	l.mu.Lock()
	l.queue = append(l.queue, c)
	l.depart()
	l.mu.Unlock()

	select {
	case <-c.done:
	case <-ctx.Done():
		l.stay(c)
		if l.leave(c) {
			return none, ctx.Err()
		}
	}
	return c.a, c.err
}

// stay waits for the answer of a call in flight, for Grace.
func (l *Lane[Q, A]) stay(c *call[Q, A]) {
	l.mu.Lock()
	sent := c.flight != nil
	l.mu.Unlock()
	if !sent || l.Grace <= 0 {
		return
	}
	timer := time.NewTimer(l.Grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	}
}

// leave takes the caller of c away, unless the answer came first. The key is
// free for the next call at once: a link that swallows one call must not hold up
// its repetition.
func (l *Lane[Q, A]) leave(c *call[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.answered {
		return false
	}
	c.answered = true
	f := c.flight
	if f == nil {
		l.queue = slices.DeleteFunc(l.queue, func(o *call[Q, A]) bool { return o == c })
		return true
	}
	l.forget(c)
	if f.waiting == 0 {
		f.cancel()
	}
	l.depart()
	return true
}
