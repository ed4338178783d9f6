package guard

import (
	"context"
	"slices"
	"time"
)

// within finds the live hold of key that ctx is inside of. It looks at the
// leases of this process, never at fencing grants: a token that came in a header
// is somebody else's hold.
func (h *hub) within(ctx context.Context, key string) *Lease {
	for b := holdsOf(ctx); b != nil; b = b.outer {
		if l := b.lease; l.ten.q.hub == h && l.ten.q.key == key && l.live() {
			return l
		}
	}
	return nil
}

// outOfOrder reports whether ctx is inside of a live hold that sorts after key.
// Waiting for key could then wait for a holder that waits for us.
func outOfOrder(ctx context.Context, key string) bool {
	for b := holdsOf(ctx); b != nil; b = b.outer {
		if b.lease.ten.q.key >= key && b.lease.live() {
			return true
		}
	}
	return false
}

// crosses reports whether ctx is inside of a nested hold that sorts after outer's
// key and lies within outer. A sibling may be inside of outer's gate and wait
// for that one's.
func crosses(ctx context.Context, outer *Lease) bool {
	for b := holdsOf(ctx); b != nil && b.lease != outer; b = b.outer {
		if b.lease.parent != nil && b.lease.ten.q.key > outer.ten.q.key && b.lease.live() {
			return true
		}
	}
	return false
}

// live reports whether l is held now, by both clocks.
func (l *Lease) live() bool {
	q := l.ten.q
	q.mu.Lock()
	defer q.mu.Unlock()
	return l.state == open && l.ten.alive(time.Now())
}

// nest enters l again: no call of the store, but one nested call at a time, so
// that goroutines which share a hold still exclude each other. It returns nil
// without an error if l ended meanwhile: then the key is to be acquired afresh.
func (l *Lease) nest(ctx context.Context, c *call) (*Lease, error) {
	if err := l.enterGate(ctx, c); err != nil {
		return nil, err
	}
	q := l.ten.q
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if l.state != open || !l.ten.alive(now) {
		l.leaveGate()
		return nil, nil
	}
	n := &Lease{parent: l}
	n.init(l.ten, c, now)
	n.token = l.token
	root := l.root()
	root.opened++
	root.nested = append(root.nested, n)
	return n, nil
}

func (l *Lease) enterGate(ctx context.Context, c *call) error {
	l.mu.Lock()
	if l.gate == nil {
		l.gate = make(chan struct{}, 1)
	}
	l.mu.Unlock()
	select {
	case l.gate <- struct{}{}:
		return nil
	default:
		if c.wait <= 0 {
			return ErrBusy
		}
	}
	timer := time.NewTimer(time.Until(c.deadline))
	defer timer.Stop()
	select {
	case l.gate <- struct{}{}:
		return nil
	case <-ctx.Done():
		return because(ErrBusy, ctx.Err())
	case <-timer.C:
		return ErrBusy
	}
}

func (l *Lease) leaveGate() { <-l.gate }

// root is the hold that l is nested in, at whatever depth.
func (l *Lease) root() *Lease {
	for l.parent != nil {
		l = l.parent
	}
	return l
}

// depart takes l out of its hold and reports whether it was the last one in it.
// The hold is neither released nor handed over before. The caller holds q.mu.
func (l *Lease) depart() (last bool) {
	root := l.root()
	root.opened--
	if l != root {
		i := slices.Index(root.nested, l)
		root.nested = slices.Delete(root.nested, i, i+1)
		l.parent.leaveGate()
	}
	return root.opened == 0
}
