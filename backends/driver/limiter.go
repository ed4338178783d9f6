package driver

import (
	"context"
	"time"
)

// Limit is Events per Per, with Burst at once (zero: Events).
type Limit struct {
	Events int
	Per    time.Duration
	Burst  int
}

// TakeRequest asks for Cost events under every limit at once: all or none.
type TakeRequest struct {
	Key, ID string
	Cost    int // zero only looks
	Limits  []Limit
}

// Decision is the answer of the tightest limit.
type Decision struct {
	Allowed    bool
	Limit      Limit
	Remaining  int
	Reset      time.Duration // until the full burst is back
	RetryAfter time.Duration // zero when allowed
}

// Limiter decides rates.
type Limiter interface {
	Backend
	Take(ctx context.Context, r TakeRequest) (Decision, error) // repeating r.ID takes nothing twice
}
