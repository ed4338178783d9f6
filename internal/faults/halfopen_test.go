package faults_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

const (
	// ends is how long after the link has died the contexts of its calls end.
	ends = 200 * time.Millisecond
	// promptly is how much later a call is back. guard gives a store its grace to come
	// back by itself; the rest is for the scheduler.
	promptly = 100 * time.Millisecond
	grace    = 50 * time.Millisecond
)

// On a link that stays open and swallows requests or replies, a call of guard
// returns when its context ends.
func TestHalfOpen_CallsReturnWhenTheirContextEnds(t *testing.T) {
	links := map[string]func(*servertest.Proxy){
		"Silent":      (*servertest.Proxy).Hold,
		"RepliesHeld": (*servertest.Proxy).HoldReplies,
	}
	for _, p := range networked() {
		t.Run(p.name, func(t *testing.T) {
			url := p.open(t)
			for name, fault := range links {
				t.Run(name, func(t *testing.T) {
					for range servertest.Count(2, 10) {
						newHalfOpen(t, url).run(t, fault)
					}
				})
			}
		})
	}
}

// The client alone does not: it waits for its own timeout. (The drivers of the
// databases do.)
func TestHalfOpen_TheRedisClientIgnoresItsContext(t *testing.T) {
	proxy, through := throughProxy(t, redisPlace().open(t))
	client := redis.NewClient(&redis.Options{
		Addr: strings.TrimPrefix(through, "redis://"), ReadTimeout: time.Second, MaxRetries: -1,
	})
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	proxy.Hold()
	defer proxy.Heal()
	ctx, cancel := context.WithTimeout(t.Context(), ends)
	defer cancel()
	began := time.Now()
	err := client.Ping(ctx).Err()
	if took := time.Since(began); err == nil || took < ends+promptly {
		t.Errorf("Ping: %v after %v: no harm from a client on a half-open link, so the test shows nothing", err, took)
	}
}

// halfOpen is a process whose link is about to die.
type halfOpen struct {
	proxy *servertest.Proxy
	guard *guard.Guard
	taken string // a key that somebody else has
	busy  chan struct{}
	held  *guard.Lease
}

func newHalfOpen(t *testing.T, url string) *halfOpen {
	t.Helper()
	proxy, through := throughProxy(t, url)
	h := &halfOpen{proxy: proxy, taken: newKey("taken"), busy: make(chan struct{}, 100)}
	direct := openStore(t, url)
	g, err := rival(t.Context(), direct, h.taken, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = direct.Release(context.Background(), g) })

	s := spied(openStore(t, through), nil, func(_ string, _ driver.Grant, err error) {
		if errors.Is(err, driver.ErrBusy) {
			h.busy <- struct{}{}
		}
	})
	h.guard = openGuard(t, profile(10*time.Second, 5*time.Second), s)
	if _, h.held, err = h.guard.Lock(t.Context(), newKey("held")); err != nil {
		t.Fatal(err)
	}
	return h
}

// deadCall is a call that is under way when the link dies, or made after that.
type deadCall struct {
	name string
	want error // nil: fn ran under the lock, which is what counts
	do   func(ctx context.Context, underWay func()) error
}

func (h *halfOpen) calls() []deadCall {
	after := func(name string, do func(context.Context) error) deadCall {
		return deadCall{name, guard.ErrUnavailable, func(ctx context.Context, underWay func()) error {
			underWay()
			return do(ctx)
		}}
	}
	return []deadCall{
		after("Lock", func(ctx context.Context) error { _, _, err := h.guard.Lock(ctx, newKey("new")); return err }),
		after("TryLock", func(ctx context.Context) error { _, _, err := h.guard.TryLock(ctx, newKey("new")); return err }),
		after("WithLock", func(ctx context.Context) error { return h.guard.WithLock(ctx, newKey("new"), nothing) }),
		after("Holder", func(ctx context.Context) error { _, _, err := h.guard.Holder(ctx, h.taken); return err }),
		after("Unlock", func(ctx context.Context) error { return h.held.Unlock(ctx) }),
		{"the end of WithLock", nil, func(ctx context.Context, underWay func()) error {
			return h.guard.WithLock(ctx, newKey("new"), func(ctx context.Context) error { underWay(); <-ctx.Done(); return nil })
		}},
		{"Lock in the queue", guard.ErrBusy, func(ctx context.Context, underWay func()) error {
			go func() { <-h.busy; underWay() }()
			_, _, err := h.guard.Lock(ctx, h.taken)
			return err
		}},
	}
}

// run lets the link die under the calls and ends their contexts after that. Those
// that are made on the dead link itself come once with a deadline as well.
func (h *halfOpen) run(t *testing.T, fault func(*servertest.Proxy)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var ready, all sync.WaitGroup
	dead := make(chan struct{})
	var deadline time.Time
	for _, c := range h.calls() {
		ready.Add(1)
		all.Go(func() {
			b := standBy(ctx)
			err := c.do(ctx, func() { ready.Done(); <-dead })
			b.compare(t, c.name+", cancelled", err, c.want)
		})
		if c.want == guard.ErrUnavailable && c.name != "Unlock" { //nolint:errorlint // a table
			all.Go(func() {
				<-dead
				ctx, cancel := context.WithDeadline(context.Background(), deadline)
				defer cancel()
				b := standBy(ctx)
				err := c.do(ctx, func() {})
				b.compare(t, c.name+" with a deadline", err, c.want)
			})
		}
	}
	ready.Wait()
	fault(h.proxy)
	deadline = time.Now().Add(ends)
	close(dead)
	time.Sleep(ends) // the network is real
	cancel()
	all.Wait()
	h.proxy.Heal()
}

// bystander does what a call on a dead link has to do, and nothing else: it waits
// for the end of ctx, and guard's grace after that. What it is late by, the
// machine is late by.
type bystander struct {
	ended, after time.Time
	done         chan struct{}
}

func standBy(ctx context.Context) *bystander {
	b := &bystander{done: make(chan struct{})}
	go func() {
		defer close(b.done)
		<-ctx.Done()
		b.ended = time.Now()
		time.Sleep(grace)
		b.after = time.Now()
	}()
	return b
}

// compare is called when a call has returned. On a machine that is in time, the
// bystander goes on one grace after ctx's end.
func (b *bystander) compare(t *testing.T, call string, err, want error) {
	t.Helper()
	returned := time.Now()
	<-b.done
	if late := returned.Sub(b.after); late > promptly-grace {
		t.Errorf("%s: returned %v after its context's end, a bystander with the same wait %v; want at most %v more",
			call, returned.Sub(b.ended), b.after.Sub(b.ended), promptly-grace)
	}
	if want == nil && err != nil {
		t.Errorf("%s: got %v, want nil", call, err)
	}
	if want != nil {
		wantOnly(t, err, want)
	}
}
