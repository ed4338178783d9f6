package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// bell tells waiters when their key may be free. All waiters of a store share one
// subscription connection, which exists while somebody waits.
//
// A ring is a hint: the message may be late, lost or for a key that was taken
// again. Whoever waits looks anyway when the lease that it waits for runs out.
type bell struct {
	client redis.UniversalClient

	mu      sync.Mutex
	waiters map[string][]*waiter // by channel, in order of arrival
	line    *line                // nil while nobody waits
}

// waiter is one wait. It has room for one ring, so that none is lost while it
// looks after the one before.
type waiter struct{ ring chan struct{} }

// line is one life of the subscription.
type line struct {
	changed chan struct{} // the set of channels is another one
	hangUp  context.CancelFunc
}

func newBell(client redis.UniversalClient) *bell {
	return &bell{client: client, waiters: make(map[string][]*waiter)}
}

// join adds a waiter. It is rung when a subscription is confirmed, but there is
// none to come if the channel has one already, or if the server refuses it: so
// the waiter must look once by itself.
func (b *bell) join(channel string) *waiter {
	w := &waiter{ring: make(chan struct{}, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiters[channel] = append(b.waiters[channel], w)
	if b.line == nil {
		ctx, hangUp := context.WithCancel(context.Background())
		b.line = &line{changed: make(chan struct{}, 1), hangUp: hangUp}
		go b.run(ctx, b.line.changed)
	}
	b.line.change()
	return w
}

// leave takes w away; the last one to leave ends the line. A waiter that leaves
// without the lock passes its ring on, or that would be lost with it.
func (b *bell) leave(channel string, w *waiter, got bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := slices.DeleteFunc(b.waiters[channel], func(o *waiter) bool { return o == w })
	if len(rest) > 0 {
		b.waiters[channel] = rest
		if !got {
			rest[0].wake()
		}
		return
	}
	delete(b.waiters, channel)
	if len(b.waiters) > 0 {
		b.line.change()
		return
	}
	b.line.hangUp()
	b.line = nil
}

// freed rings one waiter: who loses the race for the key has others' rings to
// wait for.
func (b *bell) freed(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if waiters := b.waiters[channel]; len(waiters) > 0 {
		waiters[0].wake()
	}
}

// confirmed rings everybody on a channel: what was told before the subscription,
// or while it was away, was not heard.
func (b *bell) confirmed(channel string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiters[channel] {
		w.wake()
	}
}

// diff compares the channels that are subscribed with those that are wanted.
func (b *bell) diff(have map[string]bool) (add, drop []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for channel := range b.waiters {
		if !have[channel] {
			add = append(add, channel)
		}
	}
	for channel := range have {
		if _, wanted := b.waiters[channel]; !wanted {
			drop = append(drop, channel)
		}
	}
	return add, drop
}

func (w *waiter) wake() {
	select {
	case w.ring <- struct{}{}:
	default: // a ring is waiting already
	}
}

func (l *line) change() {
	select {
	case l.changed <- struct{}{}:
	default: // the change will be seen
	}
}
