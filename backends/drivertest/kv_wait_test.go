package drivertest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

var (
	_ driver.Waiter  = (*kv)(nil)
	_ driver.Viewer  = (*kv)(nil)
	_ driver.Checker = (*kv)(nil)
)

func (s *kv) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	if s.is("wait ignores context") {
		ctx = context.WithoutCancel(ctx)
	}
	g, err := s.Acquire(ctx, r)
	if !errors.Is(err, driver.ErrBusy) {
		return g, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.row(r.Key)
	w := &kvWait{Request: r, wake: make(chan struct{}, 1)}
	if s.is("queue is a stack") {
		row.queue = slices.Insert(row.queue, 0, w)
	} else {
		row.queue = append(row.queue, w)
	}
	first := row.expires
	for ctx.Err() == nil {
		switch {
		case s.is("wait looks at the lease once") && !time.Now().Before(first):
			row.Grant = driver.Grant{}
			s.serve(row)
		case !s.live(row) && !s.is("wait misses expiry"):
			s.serve(row)
		}
		if w.done {
			return w.grant, nil
		}
		s.pause(ctx, row, w)
	}
	if w.done && !s.is("served wait says busy") {
		return w.grant, nil
	}
	s.leave(row, w)
	if s.is("wait hides busy") {
		return driver.Grant{}, ctx.Err()
	}
	return driver.Grant{}, errors.Join(driver.ErrBusy, ctx.Err())
}

// pause waits for a wake-up or, at the head of the queue, for expiry.
func (s *kv) pause(ctx context.Context, row *kvRow, w *kvWait) {
	var expiry <-chan time.Time
	if row.queue[0] == w && row.Token != 0 && !s.is("wait misses expiry") {
		left := time.Until(row.expires)
		if s.is("expired hold stays") {
			left = time.Hour
		}
		timer := time.NewTimer(left)
		defer timer.Stop()
		expiry = timer.C
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-w.wake:
	case <-expiry:
	case <-ctx.Done():
	}
}

func (s *kv) serve(row *kvRow) {
	if s.is("Release wakes nobody") && row.Token == 0 {
		return
	}
	for len(row.queue) > 0 && !s.live(row) {
		w := row.queue[0]
		if row.queue = row.queue[1:]; s.is("wait gets an old token") {
			row.seq--
		}
		w.grant, _ = s.give(row, w.Request, time.Now())
		w.done = true
		s.wakeHead(w.wake)
		if len(row.queue) > 0 {
			s.wakeHead(row.queue[0].wake)
		}
	}
}

func (s *kv) leave(row *kvRow, w *kvWait) {
	i := slices.Index(row.queue, w)
	if i < 0 || s.is("wait leaves its place behind") {
		return
	}
	row.queue = slices.Delete(row.queue, i, i+1)
	if i == 0 && len(row.queue) > 0 && !s.is("head takes the timer along") {
		s.wakeHead(row.queue[0].wake)
	}
}

func (*kv) wakeHead(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
