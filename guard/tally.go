package guard

import (
	"context"
	"sync"
)

// tally counts what is under way. Unlike a sync.WaitGroup it may be waited for
// while it grows from zero, and the wait ends with a context.
type tally struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed at zero; nil while nobody waits
}

func (t *tally) add(delta int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n += delta; t.n == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns when the count is zero, or with ctx's error.
func (t *tally) wait(ctx context.Context) error {
	t.mu.Lock()
	if t.n == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
