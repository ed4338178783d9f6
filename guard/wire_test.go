package guard_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

var errNet = errors.New("reply lost")

// wire is one process's connection to a shared store, which a test can break.
// Two wires on one store are two processes: their guards share no queue.
type wire struct {
	store  *memstore.Store
	traits driver.Traits

	mu     sync.Mutex
	calls  []string
	before func(ctx context.Context, call string, n int) error // an error: the request is lost
	after  func(ctx context.Context, call string, n int) error // an error: the reply is lost
}

// connect makes a wire to a store that looks like a server's.
func connect(s *memstore.Store) *wire {
	t := s.Traits()
	t.Name, t.Consistency = "wired", driver.Primary
	return &wire{store: s, traits: t}
}

// breaks sets what happens to the next calls.
func (w *wire) breaks(before, after func(ctx context.Context, call string, n int) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before, w.after, w.calls = before, after, nil
}

func (w *wire) log() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.calls...)
}

func (w *wire) count(call string) (n int) {
	for _, c := range w.log() {
		if c == call {
			n++
		}
	}
	return n
}

func through[T any](ctx context.Context, w *wire, call string, do func() (T, error)) (T, error) {
	w.mu.Lock()
	w.calls = append(w.calls, call)
	n, before, after := 0, w.before, w.after
	for _, c := range w.calls {
		if c == call {
			n++
		}
	}
	w.mu.Unlock()
	var zero T
	if before != nil {
		if err := before(ctx, call, n); err != nil {
			return zero, err
		}
	}
	v, err := do()
	if after != nil {
		if lost := after(ctx, call, n); lost != nil {
			return zero, lost
		}
	}
	return v, err
}

func (w *wire) Traits() driver.Traits { return w.traits }

func (w *wire) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return through(ctx, w, "Acquire", func() (driver.Grant, error) { return w.store.Acquire(ctx, r) })
}

func (w *wire) AcquireWait(ctx context.Context, r driver.Request) (driver.Grant, error) {
	return through(ctx, w, "AcquireWait", func() (driver.Grant, error) { return w.store.AcquireWait(ctx, r) })
}

func (w *wire) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	return through(ctx, w, "Renew", func() (driver.Grant, error) { return w.store.Renew(ctx, g) })
}

func (w *wire) Release(ctx context.Context, g driver.Grant) error {
	_, err := through(ctx, w, "Release", func() (struct{}, error) { return struct{}{}, w.store.Release(ctx, g) })
	return err
}

func (w *wire) Holder(ctx context.Context, key string) (driver.Grant, error) {
	return through(ctx, w, "Holder", func() (driver.Grant, error) { return w.store.Holder(ctx, key) })
}

// polled hides the queue of a store.
type polled struct{ driver.Locker }

// lockOnly is Stock without the ledger, which these tests do not need.
func lockOnly() guard.Profile {
	p := guard.Stock()
	p.Ledger = nil
	return p
}

func newGuard(t testing.TB, p guard.Profile, store driver.Backend, opts ...guard.Option) *guard.Guard {
	t.Helper()
	g, err := guard.New(p, append([]guard.Option{
		guard.On(store), guard.SingleProcess(), guard.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // clean-ups end, and nothing is left held
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := g.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

// bubble runs a test in a synctest bubble: its clock jumps, and a goroutine that
// is left behind fails it.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// bothPaths runs a test on a store inside this process, which guard asks
// directly, on one that looks like a server with a queue, and on one that guard
// must poll.
func bothPaths(t *testing.T, f func(t *testing.T, s *memstore.Store, store driver.Backend)) {
	t.Helper()
	t.Run("Local", func(t *testing.T) {
		bubble(t, func(t *testing.T) { s := memstore.New(); f(t, s, s) })
	})
	t.Run("Queued", func(t *testing.T) {
		bubble(t, func(t *testing.T) { s := memstore.New(); f(t, s, connect(s)) })
	})
	t.Run("Polled", func(t *testing.T) {
		bubble(t, func(t *testing.T) { s := memstore.New(); f(t, s, polled{connect(s)}) })
	})
}

// free reports whether nobody holds key at the store.
func free(t *testing.T, s *memstore.Store, key string) bool {
	t.Helper()
	g, err := s.Holder(t.Context(), "pawl:"+key)
	if err != nil {
		t.Fatal(err)
	}
	return g.Owner == ""
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
	var e *guard.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %T, want a *guard.Error in it", err)
	}
	for _, other := range []error{guard.ErrBusy, guard.ErrLost, guard.ErrUnavailable, guard.ErrInvalid} {
		if !errors.Is(want, other) && errors.Is(err, other) {
			t.Fatalf("%v is %v too: exactly one sentinel is allowed", err, other)
		}
	}
}

func nothing(context.Context) error { return nil }

// rival holds a key at the store as another process would.
func rival(t *testing.T, s *memstore.Store, key string, ttl time.Duration) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), driver.Request{Key: "pawl:" + key, Owner: "rival#1", TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	return g
}
