package batch_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/internal/batch"
)

func TestLane_CallerLeavesWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		lane := &batch.Lane[string, string]{Key: key, Send: func(context.Context, []string, func(int, string)) error {
			<-stuck // a client that hears no context
			return errors.New("late")
		}}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := lane.Do(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if got := time.Since(start); got != 10*time.Millisecond {
			t.Errorf("returned after %v, want 10ms", got)
		}
		close(stuck)
	})
}

func TestLane_StaysForAnAnswerThatIsNear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: 10 * time.Millisecond}
		lane := l.lane()
		lane.Grace = 5 * time.Millisecond
		for _, test := range []struct {
			gaveUp, returned time.Duration
			want             error
		}{
			{6 * time.Millisecond, 10 * time.Millisecond, nil},
			{4 * time.Millisecond, 9 * time.Millisecond, context.DeadlineExceeded},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), test.gaveUp)
			start := time.Now()
			if _, err := lane.Do(ctx, "a"); !errors.Is(err, test.want) {
				t.Errorf("context ended after %v: got %v, want %v", test.gaveUp, err, test.want)
			}
			if got := time.Since(start); got != test.returned {
				t.Errorf("context ended after %v: returned after %v, want %v", test.gaveUp, got, test.returned)
			}
			cancel()
		}
	})
}

func TestLane_NeverSendsACallWhoseCallerLeftTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: 10 * time.Millisecond}
		lane := l.lane()
		first := do(t.Context(), t, lane, "a")
		ctx, cancel := context.WithCancel(t.Context())
		second := do(ctx, t, lane, "b")
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		expect(t, "first", first)
		synctest.Wait()
		if diff := cmp.Diff([][]string{{"a"}}, l.sent()); diff != "" {
			t.Errorf("batches (-want +got):\n%s", diff)
		}
		if _, err := lane.Do(ctx, "c"); !errors.Is(err, context.Canceled) || len(l.sent()) != 1 {
			t.Errorf("a call with an ended context: got %v and %d batches, want %v and 1", err, len(l.sent()), context.Canceled)
		}
	})
}

func TestLane_OneCallersEndDisturbsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: 10 * time.Millisecond}
		lane := l.lane()
		lead := do(t.Context(), t, lane, "lead")
		ctx, cancel := context.WithCancel(t.Context())
		a, b := do(ctx, t, lane, "a"), do(t.Context(), t, lane, "b")
		expect(t, "lead", lead)
		synctest.Wait() // a and b are in flight
		cancel()
		if err := <-a; !errors.Is(err, context.Canceled) {
			t.Errorf("a: got %v, want %v", err, context.Canceled)
		}
		expect(t, "b", b)
	})
}

func TestLane_EndsABatchThatNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		lane := &batch.Lane[string, string]{Key: key, Send: func(ctx context.Context, _ []string, _ func(int, string)) error {
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		}}
		ctx, cancel := context.WithCancel(t.Context())
		done := do(ctx, t, lane, "a")
		cancel()
		<-done
		synctest.Wait()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want %v", err, context.Canceled)
			}
		default:
			t.Error("the batch goes on though every caller has left")
		}
	})
}

func TestLane_BoundsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: time.Hour}
		lane := l.lane()
		lane.Limit = time.Second
		start := time.Now()
		if _, err := lane.Do(context.Background(), "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want %v", err, context.DeadlineExceeded)
		}
		if got := time.Since(start); got != time.Second {
			t.Errorf("ended after %v, want %v", got, time.Second)
		}
	})
}

func TestLane_StaleBatchHoldsUpItsOwnKeysOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: 200 * time.Millisecond}
		lane := l.lane()
		start := time.Now()
		slow := do(t.Context(), t, lane, "slow.1")
		same, other := do(t.Context(), t, lane, "slow.2"), do(t.Context(), t, lane, "other")
		expect(t, "other", other)
		if got, want := time.Since(start), batch.Stale+l.rtt; got != want {
			t.Errorf("another key waited %v, want %v", got, want)
		}
		expect(t, "slow", slow)
		expect(t, "same", same)
		if got, want := time.Since(start), 2*l.rtt; got != want {
			t.Errorf("the same key waited %v, want %v", got, want)
		}
	})
}

func TestLane_StaleBatchDoesNotHoldUpACallThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &line{rtt: 200 * time.Millisecond}
		lane := l.lane()
		slow := do(t.Context(), t, lane, "slow")
		time.Sleep(2 * batch.Stale)
		start := time.Now()
		expect(t, "other", do(t.Context(), t, lane, "other"))
		if got := time.Since(start); got != l.rtt {
			t.Errorf("another key waited %v, want one round trip: %v", got, l.rtt)
		}
		expect(t, "slow", slow)
	})
}

// A renewal whose link is half-open must be repeatable at once, else the lease
// ends while its repetition waits behind it.
func TestLane_LeavingFreesTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		var calls atomic.Int32
		lane := &batch.Lane[string, string]{Key: key, Send: func(_ context.Context, qs []string, answer func(int, string)) error {
			if calls.Add(1) == 1 {
				<-block
			}
			answer(0, strings.ToUpper(qs[0]))
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := lane.Do(ctx, "a"); err == nil {
			t.Fatal("the first call must not be answered")
		}
		if got, err := lane.Do(t.Context(), "a"); got != "A" || err != nil {
			t.Errorf("got %q, %v, want A", got, err)
		}
		close(block)
	})
}

func TestLane_AnswersAsSoonAsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		lane := &batch.Lane[string, string]{Key: key, Send: func(_ context.Context, qs []string, answer func(int, string)) error {
			for i, q := range slices.Backward(qs) {
				if q == "lost" {
					continue
				}
				answer(i, strings.ToUpper(q))
			}
			if len(qs) > 1 {
				<-block
			}
			return nil
		}}
		gate := make(chan struct{})
		inner := lane.Send
		lane.Send = func(ctx context.Context, qs []string, answer func(int, string)) error {
			<-gate
			return inner(ctx, qs, answer)
		}
		lead := do(t.Context(), t, lane, "lead")
		known, lost := do(t.Context(), t, lane, "known"), do(t.Context(), t, lane, "lost")
		close(gate)
		expect(t, "lead", lead)
		expect(t, "known", known)
		close(block)
		if err := <-lost; err == nil {
			t.Error("a call without an answer: got nil, want an error")
		}
	})
}
