// Package hold is what guard tells this module's middleware about the hold in
// a context, beyond the fencing grants that everybody may read.
package hold

import (
	"context"
	"time"
)

type ttlKey struct{}

// TTLKey is the key under which a guard's context answers with the TTL of its
// innermost hold, a time.Duration.
func TTLKey() any { return ttlKey{} }

// TTL is the lease time of the innermost hold of ctx, or otherwise when ctx
// holds nothing: how long a frozen holder can be waited for.
func TTL(ctx context.Context, otherwise time.Duration) time.Duration {
	if d, ok := ctx.Value(ttlKey{}).(time.Duration); ok {
		return d
	}
	return otherwise
}
