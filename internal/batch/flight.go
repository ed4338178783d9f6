package batch

import (
	"cmp"
	"context"
	"slices"
	"time"
)

// flight is one batch under way. Its fields are guarded by the lane's mutex, which
// the methods below hold when they are called; fly, replay, settled and settle
// take it themselves.
type flight[Q, A any] struct {
	calls   []*call[Q, A]
	waiting int // calls without an answer whose caller has not left
	cancel  context.CancelFunc
	timer   *time.Timer
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
