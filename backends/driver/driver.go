// Package driver is what a store implements. Application code uses package guard.
//
// A store is passive: no goroutine or timer outlives the hold or the wait
// that needs it, nothing is logged, and a client is never closed. Keys arrive
// namespaced and valid; time is compared on the store's clock only.
//
// A store implements the capabilities it has ([Locker], [Waiter], [Viewer],
// [Checker], and for idempotency and limits [Ledger], [Transactor], [Limiter])
// on one comparable value, usually a pointer: guards that are given the same
// value share one queue a key. Package drivertest proves the contracts.
package driver

import (
	"context"
	"errors"
	"time"

	"github.com/pawl-go/pawl/fencing"
)

var (
	// ErrBusy says that another holds the key. guard.ErrBusy is this value.
	ErrBusy = errors.New("pawl: held by another")
	// ErrLost says that the hold has ended. guard.ErrLost is this value.
	ErrLost = errors.New("pawl: no longer held")
)

// Any error of a store other than ErrBusy and ErrLost means: the outcome is
// unknown.

// Backend is the part that every store shares.
type Backend interface{ Traits() Traits }

// Traits says what may be relied on. It is constant and needs no network.
type Traits struct {
	Name          string // "etcd", for plans, errors and metrics
	Consistency   Consistency
	Session       bool          // a late Acquire never expires by itself: guard repeats the Release
	FIFO          bool          // AcquireWait serves in arrival order across processes
	Transactional bool          // Begin and Finish commit with the caller's transaction: no lease, nothing to extend
	MinTTL        time.Duration // shorter requests are refused by guard before any call
}

// Request is one attempt to hold a key.
type Request struct {
	Key        string
	Owner      string // unique to the attempt, begins with guard's identity; repeating it must be harmless
	TTL        time.Duration
	Generation uint8 // goes into the token unchanged
}

// Grant is a request that was granted.
type Grant struct {
	Request               // TTL is the one in force; a store may clamp it, guard uses what it is told
	Token   fencing.Token // greater than that of every earlier holder of Key
	Until   time.Time     // local deadline: send time of the request that renewed, plus TTL, less a margin
	Handle  string        // private to the store
}

// Locker hands out leases.
//
// The calls of one hold use one Owner, so that a client library that sends a
// request twice, or a guard that repairs an unknown outcome, changes nothing
// that it should not.
type Locker interface {
	Backend
	// Acquire grants r.Key or fails with ErrBusy; it never waits. Repeated by the live owner it returns the same grant. The
	// predicate on expiry runs on the store's clock, in the same atomic step as the write. A Local store is called
	// without a watchdog: it must return when ctx ends.
	Acquire(ctx context.Context, r Request) (Grant, error)
	// Renew extends g by g.TTL from now, or fails with ErrLost if owner and token are not those of the live hold. The token
	// stays; the result has the new Until.
	Renew(ctx context.Context, g Grant) (Grant, error)
	// Release frees the key if g.Owner holds it, else ErrLost and no change. A grant without a token (of an unknown Acquire)
	// is compared by owner alone. What remembers the last token is never deleted with the hold. A release sent twice by a
	// client library is one release: nil.
	Release(ctx context.Context, g Grant) error
}

// Waiter is a Locker with a native queue or push. Without it guard polls.
// A wrapper must forward it.
type Waiter interface {
	Locker
	// AcquireWait is Acquire that waits until ctx ends. It returns ErrBusy only together with ctx's end. What it enqueued is
	// gone when it returns an error, or expires by itself (Traits.Session says if not).
	AcquireWait(ctx context.Context, r Request) (Grant, error)
}

// Viewer is a Locker that can say who holds a key. A zero Grant means nobody.
type Viewer interface {
	Locker
	Holder(ctx context.Context, key string) (Grant, error)
}

// Checker is a store that can read its deployment.
type Checker interface {
	// Check names the settings that break a promise. The error says what it could not read; hazards found are returned
	// beside it.
	Check(ctx context.Context) ([]Hazard, error)
}

// Hazard is a setting that breaks a promise.
type Hazard struct {
	Store, Setting, Breaks, Fix string
	Grave                       bool // can lose or repeat an effect
}

// String is the hazard in one line.
func (h Hazard) String() string {
	s := h.Store + ": " + h.Setting + " breaks " + h.Breaks + "; " + h.Fix
	if h.Grave {
		return "grave: " + s
	}
	return s
}
