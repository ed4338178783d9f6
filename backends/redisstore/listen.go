package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	pulse  = 3 * time.Second        // a line that was silent for two of them is given up
	redial = 100 * time.Millisecond // pause after a failure
)

// run keeps a subscription until ctx ends.
func (b *bell) run(ctx context.Context, changed <-chan struct{}) {
	for ctx.Err() == nil {
		b.session(ctx, changed)
		pause(ctx, redial)
	}
}

// session runs one subscription of the client until ctx ends or the line is
// silent: the client itself replaces a connection that breaks, but does not
// notice one that is half-open.
func (b *bell) session(ctx context.Context, changed <-chan struct{}) {
	ctx, cancel := context.WithCancel(ctx)
	sub := b.client.Subscribe(ctx) // names no channel and so does not dial
	var reader sync.WaitGroup
	defer func() {
		cancel()
		_ = sub.Close() // ends a read that is under way
		reader.Wait()
	}()

	have := make(map[string]bool)
	b.tune(ctx, sub, have) // dials
	var heard atomic.Bool
	reader.Go(func() { b.listen(ctx, sub, &heard) })
	beat := time.NewTicker(pulse)
	defer beat.Stop()
	heard.Store(true)
	for {
		var retry <-chan time.Time
		if !b.tune(ctx, sub, have) {
			retry = time.After(redial)
		}
		select {
		case <-changed:
		case <-retry:
		case <-beat.C:
			if !heard.Swap(false) {
				return
			}
			_ = sub.Ping(ctx) // the answer counts as heard; a failure is seen by the reader
		case <-ctx.Done():
			return
		}
	}
}

// tune subscribes to what is wanted and not had, and the reverse. False means
// that it must be tried again.
func (b *bell) tune(ctx context.Context, sub *redis.PubSub, have map[string]bool) bool {
	add, drop := b.diff(have)
	if len(drop) > 0 {
		for _, channel := range drop {
			delete(have, channel)
		}
		_ = sub.Unsubscribe(ctx, drop...) // on failure the connection is gone, and the subscription with it
	}
	if len(add) == 0 {
		return true
	}
	if err := sub.Subscribe(ctx, add...); err != nil {
		return false
	}
	for _, channel := range add {
		have[channel] = true
	}
	return true
}

// listen reads until ctx ends.
func (b *bell) listen(ctx context.Context, sub *redis.PubSub, heard *atomic.Bool) {
	for ctx.Err() == nil {
		msg, err := sub.Receive(ctx)
		if err != nil {
			pause(ctx, redial) // the next Receive dials again and subscribes to the same channels
			continue
		}
		heard.Store(true)
		switch msg := msg.(type) {
		case *redis.Message:
			b.freed(msg.Channel)
		case *redis.Subscription:
			if msg.Kind == "subscribe" {
				b.confirmed(msg.Channel)
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
