package guard

import (
	"context"
	"errors"
	"time"
)

// errAbandoned says that a store did not come back after its context had
// ended. What it was asked for may still happen.
var errAbandoned = errors.New("the store ignored the end of its context")

// result is what a store call came to.
type result[T any] struct {
	value T
	err   error
}

// watch runs one store call and comes back at the latest a grace after ctx has
// ended, whatever the client library does (go-redis ignores a cancel on a
// half-open link for its whole read timeout). late is told the outcome of a
// call that came back after it was abandoned; it may be nil.
func watch[T any](ctx context.Context, call func(context.Context) (T, error), late func(T, error)) (T, error) {
	done := make(chan result[T], 1)
	go func() {
		v, err := call(ctx)
		done <- result[T]{v, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case r := <-done:
		return r.value, r.err
	case <-patience.C:
	}
	if late != nil {
		go func() {
			r := <-done
			late(r.value, r.err)
		}()
	}
	var zero T
	return zero, because(errAbandoned, ctx.Err()) // not its cause, which may be a loss of ours
}
