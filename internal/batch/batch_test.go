package batch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/batch"
)

// line is a sender under the test's control: every batch waits for its round
// trip, then answers each question with itself in upper case.
type line struct {
	rtt time.Duration

	mu      sync.Mutex
	batches [][]string
}

func (l *line) send(ctx context.Context, calls []string, answer func(int, string)) error {
	l.mu.Lock()
	l.batches = append(l.batches, slices.Clone(calls))
	l.mu.Unlock()
	select {
	case <-time.After(l.rtt):
	case <-ctx.Done():
		return ctx.Err()
	}
	for i, c := range calls {
		answer(i, strings.ToUpper(c))
	}
	return nil
}

func (l *line) sent() [][]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.batches)
}

// key is what stands before the dot, so "a.1" and "a.2" are two calls on one key.
func key(q string) string {
	k, _, _ := strings.Cut(q, ".")
	return k
}

func (l *line) lane() *batch.Lane[string, string] {
	return &batch.Lane[string, string]{Key: key, Send: l.send}
}

// do makes a call in a goroutine of its own and reports it on the result.
func do(ctx context.Context, t *testing.T, lane *batch.Lane[string, string], q string) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		got, err := lane.Do(ctx, q)
		if want := strings.ToUpper(q); err == nil && got != want {
			err = fmt.Errorf("got answer %q, want %q", got, want)
		}
		done <- err
	}()
	synctest.Wait()
	return done
}

func expect(t *testing.T, what string, done <-chan error) {
	t.Helper()
	if err := <-done; err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func TestLane_SendsALoneCallAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: time.Millisecond}
		lane := l.lane()
		start := time.Now()
		for range 3 {
			if got, err := lane.Do(t.Context(), "a"); got != "A" || err != nil {
				t.Fatalf("got %q, %v, want A", got, err)
			}
		}
		if got, want := time.Since(start), 3*time.Millisecond; got != want {
			t.Errorf("three calls took %v, want three round trips: %v", got, want)
		}
	})
}

func TestLane_SharesTheNextRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: time.Millisecond}
		lane := l.lane()
		var all []<-chan error
		for _, q := range []string{"m", "z", "a", "k"} {
			all = append(all, do(t.Context(), t, lane, q))
		}
		for _, done := range all {
			expect(t, "call", done)
		}
		want := [][]string{{"m"}, {"a", "k", "z"}}
		if diff := cmp.Diff(want, l.sent()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestLane_NeverSendsAKeyTwiceInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: time.Millisecond}
		lane := l.lane()
		var all []<-chan error
		for _, q := range []string{"x", "a.1", "b", "a.2", "a.3"} {
			all = append(all, do(t.Context(), t, lane, q))
		}
		for _, done := range all {
			expect(t, "call", done)
		}
		want := [][]string{{"x"}, {"a.1", "b"}, {"a.2"}, {"a.3"}}
		if diff := cmp.Diff(want, l.sent()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
	})
}

func TestLane_SendsAtMost100(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: time.Millisecond}
		lane := l.lane()
		var all []<-chan error
		for i := range 251 {
			all = append(all, do(t.Context(), t, lane, fmt.Sprint("k", i)))
		}
		for _, done := range all {
			expect(t, "call", done)
		}
		var sizes []int
		for _, b := range l.sent() {
			sizes = append(sizes, len(b))
		}
		if diff := cmp.Diff([]int{1, 100, 100, 50}, sizes); diff != "" {
			t.Errorf("sizes (-want +got):\n%s", diff)
		}
	})
}
