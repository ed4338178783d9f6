package guard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

// Lease is one hold of a key. It is safe for concurrent use.
//
// It ends by Unlock, or by loss: when it could not be renewed in time, when the
// store no longer knows it, or after Profile.MaxHold. Work under a context that
// Lock or Bind returned: it ends with the lease, and its cause says why.
type Lease struct {
	guard  *Guard
	ten    *tenure
	token  fencing.Token
	key    string // as the caller named it
	op     string
	parent *Lease // the hold that this one is nested in; nil for the hold itself

	since    time.Time
	maxUntil time.Time // zero: no MaxHold

	// guarded by ten.q.mu
	state  state
	opened int      // on the hold itself: it and the nested holds that have not ended
	nested []*Lease // likewise

	mu     sync.Mutex
	gate   chan struct{} // lets the nested calls under this lease in, one at a time
	err    error         // nil while held
	done   chan struct{} // made when asked for
	bounds map[*bound]struct{}
	first  bound // the one that nearly every lease has

	unlock    sync.Once
	unlockErr error
	counted   bool // by guard.active, until it ends
}

type state uint8

const (
	open   state = iota
	closed       // by Unlock
	gone         // by loss
)

func (l *Lease) init(t *tenure, c *call, now time.Time) {
	l.guard, l.ten, l.token, l.key, l.op = c.guard, t, t.token, c.key, c.op
	l.since = now
	l.opened = 1
	if hold := c.guard.profile.MaxHold; hold > 0 {
		l.maxUntil = l.since.Add(hold)
	}
}

// Key is the key as it was given to Lock.
func (l *Lease) Key() string { return l.key }

// Token orders this hold among all holds of the key.
func (l *Lease) Token() fencing.Token { return l.token }

// Done is closed when the lease has ended, by Unlock or by loss.
func (l *Lease) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err is nil while the lease is held, ErrLost after a loss, context.Canceled
// after Unlock.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Unlock gives the key back. It works after ctx has ended, and twice:
// the second call returns what the first did.
//
// ErrLost says that the lease had been lost before, ErrUnavailable that the
// store's answer did not come: the key is free when the answer was lost only,
// else after the TTL.
func (l *Lease) Unlock(ctx context.Context) error {
	l.unlock.Do(func() { l.unlockErr = l.close(ctx) })
	return l.unlockErr
}

// tell ends l for everybody who works under it. It is called once, when it is
// decided how the lease ended, with q.mu held: nobody else may get the key
// before. It runs no code of a user.
func (l *Lease) tell(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
	if l.done != nil {
		close(l.done)
	}
	if l.first.cancel != nil {
		l.first.cancel(err)
	}
	for b := range l.bounds {
		b.cancel(err)
	}
	l.bounds = nil
}

// uncount ends l for the guard's Close, once.
func (l *Lease) uncount() {
	l.mu.Lock()
	counted := l.counted
	l.counted = false
	l.mu.Unlock()
	if counted {
		l.guard.active.add(-1)
	}
}

// members are the hold itself and the nested ones that are open. The caller
// holds q.mu.
func (l *Lease) members() []*Lease {
	return append([]*Lease{l}, l.nested...)
}

// close ends l: it is handed over, given back, or left to the nested holds that
// are still open.
func (l *Lease) close(ctx context.Context) error {
	defer l.uncount()
	e := l.leave()
	switch {
	case e.report != nil:
		e.report()
	case !e.lost:
		l.guard.tel.ended(l.since)
	}
	if e.passed {
		l.guard.tel.handedOver()
	}
	if e.orphan {
		l.guard.repair(l.ten.grant)
	}
	var err error
	if e.back {
		err = l.released(l.guard.giveBack(ctx, l.ten))
	}
	if e.lost {
		return l.Err()
	}
	return err
}

// ending is what the end of a lease leaves to do, without any lock.
type ending struct {
	lost   bool   // it had ended before
	passed bool   // another of this process has the hold now
	back   bool   // the hold is to be given back
	orphan bool   // the hold was lost, and the store may still have it for us
	report func() // of a loss that was found here
}

// leave decides how l ends, and tells those who work under it.
func (l *Lease) leave() (e ending) {
	t, q := l.ten, l.ten.q
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if l.state == open && !t.alive(now) { // the clock says so, the timer has not yet
		e.report = t.lose(errLapsed)
	}
	last := l.depart()
	if e.lost = l.state == gone; !e.lost {
		l.state = closed
		l.tell(context.Canceled)
	}
	switch {
	case t.over:
		e.orphan = last
	case last:
		if e.passed = t.handOver(now); !e.passed {
			e.back = true
			t.drop()
			q.releasing = true
		}
	}
	return e
}

// released is what Unlock says of the store's answer.
func (l *Lease) released(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrLost):
		l.guard.tel.lost(l.ten, errTaken)
		return l.guard.fail(l.op, l.key, because(ErrLost, errTaken))
	}
	l.guard.tel.releaseFailed(l.ten, err)
	return l.guard.fail(l.op, l.key, because(ErrUnavailable, err))
}
