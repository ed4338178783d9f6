package guard

import (
	"context"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/hold"
)

// bound is a context that works under a lease. It answers with itself, so that
// calls below find the holds that they are inside of, and with the TTL.
type bound struct {
	context.Context //nolint:containedctx // it is a context
	lease           *Lease
	outer           *bound // the hold around this one, nil for the outermost
	cancel          context.CancelCauseFunc
}

type boundKey struct{}

func (b *bound) Value(key any) any {
	switch key {
	case boundKey{}:
		return b
	case hold.TTLKey():
		return b.ttl()
	}
	return b.Context.Value(key)
}

func (b *bound) ttl() time.Duration { return b.lease.ten.asked }

// holdsOf returns the innermost hold of ctx.
func holdsOf(ctx context.Context) *bound {
	b, _ := ctx.Value(boundKey{}).(*bound)
	return b
}

// Bind returns a child of another ctx that works under this lease: for a hold
// that spans requests. When the lease has ended, so has the child. A ctx that
// never ends is remembered until the lease does.
func (l *Lease) Bind(ctx context.Context) context.Context {
	b := &bound{}
	child := l.bind(ctx, b)
	if ctx.Done() != nil { // the request ends before the lease: forget it then
		context.AfterFunc(child, func() { l.unbind(b) })
	}
	return child
}

// bind fills b with a child of ctx that carries l's grant and ends with l.
func (l *Lease) bind(ctx context.Context, b *bound) context.Context {
	child, cancel := context.WithCancelCause(ctx)
	outer := holdsOf(ctx)
	l.mu.Lock()
	*b = bound{Context: child, lease: l, outer: outer, cancel: cancel}
	ended := l.err
	if ended == nil && b != &l.first {
		if l.bounds == nil {
			l.bounds = map[*bound]struct{}{}
		}
		l.bounds[b] = struct{}{}
	}
	l.mu.Unlock()
	if ended != nil {
		cancel(ended)
	}
	return fencing.NewContext(b, l.guard.grantOf(l))
}

func (l *Lease) unbind(b *bound) {
	l.mu.Lock()
	delete(l.bounds, b)
	l.mu.Unlock()
	b.cancel(context.Canceled)
}
