package guard

import (
	"context"
	"time"
)

// LockOption changes one lock call.
type LockOption interface{ applyLock(*call) }

// OnceOption changes one Once call.
type OnceOption interface{ applyOnce(*call) }

// CallOption fits both.
type CallOption interface {
	LockOption
	OnceOption
}

// TTL and Wait override the profile for one call.
func TTL(d time.Duration) CallOption { return ttlOption(d) }

// Wait overrides the profile's Wait for one call; zero does not wait.
func Wait(d time.Duration) CallOption { return waitOption(d) }

type ttlOption time.Duration

func (o ttlOption) applyLock(c *call) { c.ttl = time.Duration(o) }
func (o ttlOption) applyOnce(c *call) { c.ttl = time.Duration(o) }

type waitOption time.Duration

func (o waitOption) applyLock(c *call) { c.wait = time.Duration(o) }
func (o waitOption) applyOnce(c *call) { c.wait = time.Duration(o) }

// call is one lock call: what it asks for.
type call struct {
	guard    *Guard
	op       string
	key      string // as the caller named it
	full     string // namespace and key
	ttl      time.Duration
	wait     time.Duration
	began    time.Time
	deadline time.Time // of the wait; zero when there is none
	front    bool      // its turn had come before: it goes to the head of the queue
	busy     bool      // the store told this call that another holds the key

	turn turn // room for the hold, so that a call is one allocation
	used bool // turn is taken
}

// room is memory for a hold of this call. A call that has to begin twice gets
// new memory: the schedule may still know the old.
func (c *call) room() *turn {
	if c.used {
		return &turn{}
	}
	c.used = true
	return &c.turn
}

// newCall checks everything about a call that can be checked before a store is
// touched.
func (g *Guard) newCall(ctx context.Context, op, key string, opts []LockOption) (*call, error) {
	switch {
	case g.hub == nil:
		return nil, g.fail(op, key, invalid("profile %q has no Lock role", g.profile.Name))
	case ctx == nil:
		return nil, g.fail(op, key, invalid("the context is nil"))
	}
	if err := checkKey(key); err != nil {
		return nil, g.fail(op, key, because(ErrInvalid, err))
	}
	c := &call{guard: g, op: op, key: key, full: g.prefix + key, ttl: g.profile.TTL, wait: g.profile.Wait}
	for _, o := range opts {
		if o == nil {
			return nil, g.fail(op, key, invalid("an option is nil"))
		}
		o.applyLock(c)
	}
	if c.wait < 0 {
		return nil, g.fail(op, key, invalid("Wait is %v: use zero not to wait", c.wait))
	}
	if err := checkTTL("TTL", c.ttl, g.hub.traits); err != nil {
		return nil, g.fail(op, key, err)
	}
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return nil, g.fail(op, key, because(ErrUnavailable, err))
	}
	if d, ok := ctx.Deadline(); ok && time.Until(d) <= 0 { // its timer has not fired yet
		return nil, g.fail(op, key, because(ErrUnavailable, context.DeadlineExceeded))
	}
	c.began = now
	if c.wait > 0 {
		c.deadline = now.Add(c.wait)
	}
	return c, nil
}
