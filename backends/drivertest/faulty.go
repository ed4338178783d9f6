package drivertest

import (
	"context"
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Faulty wraps a store with failures by plan: the n-th call of a name may be
// delayed, fail before it, lose its reply after it, or be applied twice. The
// result has exactly b's capabilities.
//
// Names are those of the methods: "Acquire", "AcquireWait", "Renew", "Release",
// "Holder", "Check". Counting begins at 1 for each name. plan is called for
// one call at a time and before the call is made, so it may keep state; the
// zero Fault leaves the call alone. Traits never fails.
func Faulty(b driver.Backend, plan func(call string, n int) Fault) driver.Backend {
	f := &faulty{Backend: b, plan: plan, calls: map[string]int{}}
	f.locker, _ = b.(driver.Locker)
	f.waiter, _ = b.(driver.Waiter)
	f.viewer, _ = b.(driver.Viewer)
	f.checker, _ = b.(driver.Checker)
	return f.expose()
}

// Fault is what happens to one call. The zero Fault is none.
type Fault struct {
	kind  kind
	delay time.Duration
	err   error
}

type kind uint8

const (
	none kind = iota
	late
	failing
	mute
	twice
)

// Delay is a request that is on its way for d. A caller whose context ends
// before is told so, and the call arrives all the same, except AcquireWait,
// which arrives with its context. The call is made by a goroutine that lives
// for d.
func Delay(d time.Duration) Fault { return Fault{kind: late, delay: d} }

// Fail is a request that does not arrive: err, and no call.
func Fail(err error) Fault { return Fault{kind: failing, err: err} }

// LoseReply is a request that arrives and whose reply does not: the call is
// made and the caller gets err.
func LoseReply(err error) Fault { return Fault{kind: mute, err: err} }

// Twice is a request that a client library sends again since it missed the
// reply: two calls, one after the other, of which the caller gets the second
// result.
func Twice() Fault { return Fault{kind: twice} }

// faulty has every capability; expose hides those that the store has not.
type faulty struct {
	driver.Backend
	locker  driver.Locker
	waiter  driver.Waiter
	viewer  driver.Viewer
	checker driver.Checker

	mu    sync.Mutex
	plan  func(call string, n int) Fault
	calls map[string]int
}

func (f *faulty) next(call string) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[call]++
	return f.plan(call, f.calls[call])
}

// inject makes a call with the fault that is its turn.
func inject[T any](ctx context.Context, f *faulty, call string, do func(context.Context) (T, error)) (T, error) {
	var zero T
	switch fault := f.next(call); fault.kind {
	case late:
		return delayed(ctx, fault.delay, call != "AcquireWait", do)
	case failing:
		return zero, fault.err
	case mute:
		_, _ = do(ctx) // nobody hears what came of it
		return zero, fault.err
	case twice:
		_, _ = do(ctx) // the reply that was missed
		return do(ctx)
	case none:
	}
	return do(ctx)
}

// delayed makes the call after d, in the background, and returns with its
// result or when ctx ends. A detached call does not notice that its caller
// has left.
func delayed[T any](ctx context.Context, d time.Duration, detached bool, do func(context.Context) (T, error)) (T, error) {
	type reply struct {
		value T
		err   error
	}
	arrived := make(chan reply, 1)
	callCtx := ctx
	if detached {
		callCtx = context.WithoutCancel(ctx)
	}
	go func() {
		time.Sleep(d)
		value, err := do(callCtx)
		arrived <- reply{value, err}
	}()
	select {
	case r := <-arrived:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, ctx.Err()
	}
}

func (f *faulty) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return inject(ctx, f, "Acquire", func(ctx context.Context) (driver.Grant, error) { return f.locker.Acquire(ctx, r) })
}

func (f *faulty) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return inject(ctx, f, "AcquireWait", func(ctx context.Context) (driver.Grant, error) { return f.waiter.AcquireWait(ctx, r) })
}

func (f *faulty) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	return inject(ctx, f, "Renew", func(ctx context.Context) (driver.Grant, error) { return f.locker.Renew(ctx, g) })
}

func (f *faulty) Release(ctx context.Context, g driver.Grant) error {
	_, err := inject(ctx, f, "Release", func(ctx context.Context) (struct{}, error) { return struct{}{}, f.locker.Release(ctx, g) })
	return err
}

func (f *faulty) Holder(ctx context.Context, key string) (driver.Grant, error) {
	return inject(ctx, f, "Holder", func(ctx context.Context) (driver.Grant, error) { return f.viewer.Holder(ctx, key) })
}

func (f *faulty) Check(ctx context.Context) ([]driver.Hazard, error) {
	return inject(ctx, f, "Check", f.checker.Check)
}
