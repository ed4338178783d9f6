package guard

import (
	"context"
	"errors"
	"slices"
	"time"
)

// WithLock runs fn while it holds key. Only the ctx that fn gets is fenced and
// cancelled on loss.
//
// The hold is renewed while fn runs, at most for Profile.MaxHold. When it is
// lost, fn's context ends with the reason as its cause, WithLock waits for fn,
// and returns ErrLost, joined with fn's error, even if fn returned nil. A panic
// of fn gives the key back and goes on. Under a context that holds key already,
// fn runs inside that hold, one nested call at a time. Under a context that
// holds a key which sorts after this one, key is tried and not waited for:
// waiting could be for a holder that waits for us.
//
// Errors: ErrBusy when another holds the key (after Wait), ErrUnavailable when
// the store did not answer, ErrInvalid; fn did not run then. Any other is fn's.
func (g *Guard) WithLock(ctx context.Context, key string, fn func(ctx context.Context) error, opts ...LockOption) error {
	const op = "WithLock"
	if fn == nil {
		return g.fail(op, key, invalid("fn is nil"))
	}
	if err := g.enter(op); err != nil {
		return err
	}
	defer g.active.add(-1)
	c, err := g.newCall(ctx, op, key, opts)
	if err != nil {
		return err
	}
	l, held, err := g.acquire(ctx, c)
	if err != nil {
		return err
	}
	return l.run(ctx, held, fn)
}

// run calls fn and ends l, also when fn panics or exits its goroutine.
func (l *Lease) run(ctx, held context.Context, fn func(context.Context) error) (err error) {
	returned := false
	defer func() {
		ended := l.Unlock(ctx)
		if !returned || !errors.Is(ended, ErrLost) {
			return // unwinding goes on; a key that could not be given back ends by its TTL
		}
		switch {
		case err == nil:
			err = ended
		case !errors.Is(err, ended): // fn may have returned its context's cause
			err = errors.Join(ended, err)
		}
	}()
	err = fn(held)
	returned = true
	return err
}

// WithLocks is WithLock on all keys: sorted, deduplicated, all or none.
func (g *Guard) WithLocks(ctx context.Context, keys []string, fn func(ctx context.Context) error, opts ...LockOption) error {
	const op = "WithLocks"
	if fn == nil {
		return g.fail(op, "", invalid("fn is nil"))
	}
	if len(keys) == 0 {
		return g.fail(op, "", invalid("there are no keys"))
	}
	if err := g.enter(op); err != nil {
		return err
	}
	defer g.active.add(-1)
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	calls := make([]*call, len(keys))
	for i, key := range keys {
		c, err := g.newCall(ctx, op, key, opts)
		if err != nil {
			return err
		}
		calls[i] = c
	}
	for {
		held, inside, err := g.acquireAll(ctx, calls)
		if err == nil {
			return runAll(ctx, inside, held, fn)
		}
		first := calls[0]
		if !errors.Is(err, errNotBegun) || first.wait <= 0 || time.Now().After(first.deadline) {
			return err
		}
	}
}

// errNotBegun says that one of several leases ended before fn began.
var errNotBegun = errors.New("a lease ended before the last one was held")

// acquireAll gets the turn of every call, each inside of the one before, or of
// none.
func (g *Guard) acquireAll(ctx context.Context, calls []*call) (held []*Lease, inside context.Context, err error) {
	all := false
	defer func() { // an error, or a panic of the user's
		for _, l := range slices.Backward(held) {
			if !all {
				_ = l.Unlock(ctx)
			}
		}
	}()
	inside = ctx
	for _, c := range calls {
		var l *Lease
		if l, inside, err = g.acquire(inside, c); err != nil {
			break
		}
		held = append(held, l)
	}
	last := calls[len(calls)-1]
	switch {
	case ctx.Err() != nil && err == nil:
		err = g.fail(last.op, last.key, because(ErrUnavailable, ctx.Err()))
	case ctx.Err() == nil && slices.ContainsFunc(held, func(l *Lease) bool { return !l.live() }):
		err = g.fail(last.op, last.key, because(ErrBusy, errNotBegun)) // also why the next one was not waited for
	}
	all = err == nil
	return held, inside, err
}

// runAll runs fn under held and ends them from the last to the first.
func runAll(ctx, inside context.Context, held []*Lease, fn func(context.Context) error) error {
	if len(held) == 0 {
		return fn(inside)
	}
	return held[0].run(ctx, inside, func(inside context.Context) error { return runAll(ctx, inside, held[1:], fn) })
}

// Lock waits for key. Work under the context it returns: a child of ctx that
// also ends with the lease. The lease itself outlives ctx: it is renewed until
// Unlock, loss or Profile.MaxHold. On error the context is ctx.
func (g *Guard) Lock(ctx context.Context, key string, opts ...LockOption) (context.Context, *Lease, error) {
	return g.lock(ctx, "Lock", key, opts)
}

// TryLock is Lock without waiting.
func (g *Guard) TryLock(ctx context.Context, key string) (context.Context, *Lease, error) {
	return g.lock(ctx, "TryLock", key, []LockOption{waitOption(0)})
}

func (g *Guard) lock(ctx context.Context, op, key string, opts []LockOption) (context.Context, *Lease, error) {
	if err := g.enter(op); err != nil {
		return ctx, nil, err
	}
	c, err := g.newCall(ctx, op, key, opts)
	if err != nil {
		g.active.add(-1)
		return ctx, nil, err
	}
	l, held, err := g.acquire(ctx, c)
	if err != nil {
		g.active.add(-1)
		return ctx, nil, err
	}
	l.count()
	return held, l, nil
}

// count leaves the guard's count of what is active to the end of l.
func (l *Lease) count() {
	l.mu.Lock()
	ended := l.err != nil
	l.counted = !ended
	l.mu.Unlock()
	if ended {
		l.guard.active.add(-1)
	}
}

// Held reports whether ctx holds key through g and has not lost it. It does
// not ask the store.
func (g *Guard) Held(ctx context.Context, key string) bool {
	return g.hub != nil && g.hub.within(ctx, g.prefix+key) != nil
}
