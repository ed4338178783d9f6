// Package guard makes a business operation happen once.
//
// A [Guard] serves one scenario, told by a [Profile], on the stores that
// [New] finds fit for it:
//
//	stock, err := guard.New(guard.Stock(), guard.On(db), guard.WithNamespace("shop"))
//	...
//	err = stock.WithLock(ctx, guard.Key("sku", 42), func(ctx context.Context) error {
//		return sell(ctx) // under this ctx: it ends when the lock is lost
//	})
//
// # What a lock promises
//
// While fn runs and the lock is not lost, nobody else's fn runs under that key.
// A lock is lost when it could not be renewed in time: fn's context is cancelled
// before the store may give the key away, with the reason as its cause, and the
// call returns [ErrLost] even if fn returned nil. A process that is frozen at
// that moment notices nothing; what it does late is refused only where the
// grant in fn's context is compared, by package gormguard for a database and by
// the Fence of a store. See package fencing.
//
// # Errors
//
// A nil error means that it happened. [ErrBusy] means that another holds the
// key, [ErrUnavailable] that nobody knows: the store did not answer, and what it
// may have granted is being cleaned up. Each is a sentinel inside of one
// [*Error].
package guard
