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
	since   time.Time
	cancel  context.CancelFunc
	timer   *time.Timer // nil until it is needed: a timer costs a lone call a good part of its time
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

// depart sends what is queued, unless a young batch is in flight: then it sees to
// it that this one does not stay young for ever.
func (l *Lane[Q, A]) depart() {
	if len(l.queue) == 0 {
		return
	}
	if f := l.young; f != nil {
		l.mature(f)
		return
	}
	calls := l.board()
	if len(calls) == 0 {
		return
	}
	slices.SortFunc(calls, func(a, b *call[Q, A]) int { return cmp.Compare(a.key, b.key) })
	f := &flight[Q, A]{calls: calls, waiting: len(calls), since: time.Now()}
	for _, c := range calls {
		c.flight = f
	}
	ctx := l.bound(f)
	l.young = f
	if len(l.queue) > 0 {
		l.mature(f)
	}
	go l.fly(ctx, f)
}

// mature lets the next batch go when f is Stale.
func (l *Lane[Q, A]) mature(f *flight[Q, A]) {
	if f.timer != nil {
		return
	}
	f.timer = time.AfterFunc(Stale-time.Since(f.since), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.age(f)
		l.depart()
	})
}

// bound makes the context of f. It needs no timer where the callers have
// deadlines within the limit, since it ends when they have left.
func (l *Lane[Q, A]) bound(f *flight[Q, A]) (ctx context.Context) {
	limit := l.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	end := f.since.Add(limit)
	stays := func(c *call[Q, A]) bool { deadline, ok := c.ctx.Deadline(); return !ok || deadline.After(end) }
	ctx = context.WithoutCancel(f.calls[0].ctx)
	if slices.ContainsFunc(f.calls, stays) {
		ctx, f.cancel = context.WithDeadline(ctx, end)
	} else {
		ctx, f.cancel = context.WithCancel(ctx)
	}
	return ctx
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
	if f.timer != nil {
		f.timer.Stop()
	}
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
