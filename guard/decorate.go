package guard

import "context"

// Locked returns fn under the lock that key names: a service function that is
// safe to call from anywhere. Errors are those of [Guard.WithLock]; with ErrLost
// comes what fn returned.
func Locked[Req, Resp any](g *Guard, key func(Req) string, fn func(context.Context, Req) (Resp, error), opts ...LockOption) func(context.Context, Req) (Resp, error) {
	return func(ctx context.Context, req Req) (resp Resp, err error) {
		if g == nil || key == nil || fn == nil {
			return resp, &Error{Op: "Locked", Err: invalid("the guard, key or fn is nil")}
		}
		err = g.WithLock(ctx, key(req), func(ctx context.Context) (err error) {
			resp, err = fn(ctx, req)
			return err
		}, opts...)
		return resp, err
	}
}
