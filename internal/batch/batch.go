// Package batch lets calls that are made at the same time share a round trip.
//
// It batches naturally: nothing is held back to make a batch larger. A call
// that finds its lane idle is sent at once; calls that arrive while a batch is
// in flight make up the next one. So one caller pays one round trip, and a
// thousand callers pay about as many round trips as fit into the time they take.
package batch

import (
	"cmp"
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

type flight[Q, A any] struct {
	calls   []*call[Q, A]
	waiting int // calls without an answer whose caller has not left
	cancel  context.CancelFunc
	timer   *time.Timer
}

// Do makes a call. It returns as soon as the answer is known or ctx ends,
// whatever the sender does meanwhile. After ctx's error the outcome is unknown,
// unless the call was still queued: then it is never sent.
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
		if l.leave(c) {
			return none, ctx.Err()
		}
	}
	return c.a, c.err
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

// forget books that nobody waits for c any more, and whether that was the last
// call of its batch.
func (l *Lane[Q, A]) forget(c *call[Q, A]) {
	if l.busy[c.key] == c {
		delete(l.busy, c.key)
	}
	c.flight.waiting--
	if c.flight.waiting == 0 {
		l.age(c.flight)
	}
}

// age lets the next batch go while f is still in flight.
func (l *Lane[Q, A]) age(f *flight[Q, A]) {
	if l.young == f {
		l.young = nil
	}
}

// depart sends what is queued, unless a young batch is in flight.
func (l *Lane[Q, A]) depart() {
	if l.young != nil {
		return
	}
	calls := l.board()
	if len(calls) == 0 {
		return
	}
	slices.SortFunc(calls, func(a, b *call[Q, A]) int { return cmp.Compare(a.key, b.key) })
	limit := l.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(calls[0].ctx), limit)
	f := &flight[Q, A]{calls: calls, waiting: len(calls), cancel: cancel}
	for _, c := range calls {
		c.flight = f
	}
	f.timer = time.AfterFunc(Stale, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.age(f)
		l.depart()
	})
	l.young = f
	go l.fly(ctx, f)
}

// board takes the next batch from the queue: in order of arrival, one call a
// key, and none on a key that is in flight.
func (l *Lane[Q, A]) board() []*call[Q, A] {
	if l.busy == nil {
		l.busy = make(map[string]*call[Q, A])
	}
	var calls []*call[Q, A]
	rest := l.queue[:0]
	for _, c := range l.queue {
		if _, taken := l.busy[c.key]; taken || len(calls) == Max {
			rest = append(rest, c)
			continue
		}
		l.busy[c.key] = c
		calls = append(calls, c)
	}
	clear(l.queue[len(rest):])
	l.queue = rest
	return calls
}

func (l *Lane[Q, A]) fly(ctx context.Context, f *flight[Q, A]) {
	defer f.cancel()
	questions := make([]Q, len(f.calls))
	for i, c := range f.calls {
		questions[i] = c.q
	}
	err := l.Send(ctx, questions, func(i int, a A) { l.settle(f.calls[i], a, nil) })
	if err != nil && len(f.calls) > 1 && l.Definite != nil && l.Definite(err) {
		l.replay(ctx, f)
	}
	if err == nil {
		err = errNoAnswer
	}
	var none A
	for _, c := range f.calls {
		l.settle(c, none, err)
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	f.timer.Stop()
	l.age(f)
	l.depart()
}

// replay sends the calls of f one by one.
func (l *Lane[Q, A]) replay(ctx context.Context, f *flight[Q, A]) {
	for _, c := range f.calls {
		if l.settled(c) {
			continue
		}
		err := l.Send(ctx, []Q{c.q}, func(_ int, a A) { l.settle(c, a, nil) })
		if err != nil {
			var none A
			l.settle(c, none, err)
		}
	}
}

func (l *Lane[Q, A]) settled(c *call[Q, A]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.answered
}

// settle gives c its answer, the first one given. Later ones, and those of
// callers that have left, are dropped.
func (l *Lane[Q, A]) settle(c *call[Q, A], a A, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.answered {
		return
	}
	c.answered, c.a, c.err = true, a, err
	l.forget(c)
	close(c.done)
	l.depart()
}
