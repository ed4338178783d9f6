package batch_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl/internal/batch"
)

var (
	errRefused = errors.New("refused")
	errVague   = errors.New("no idea")
)

// picky refuses every batch that holds the bad call, as a multi-row statement
// does.
func picky(t *testing.T, failure error) (lead, good, bad <-chan error) {
	t.Helper()
	lane := &batch.Lane[string, string]{
		Key:      key,
		Definite: func(err error) bool { return errors.Is(err, errRefused) },
		Send: func(_ context.Context, qs []string, answer func(int, string)) error {
			time.Sleep(time.Millisecond)
			if slices.Contains(qs, "bad") {
				return failure
			}
			for i, q := range qs {
				answer(i, strings.ToUpper(q))
			}
			return nil
		},
	}
	return do(t.Context(), t, lane, "lead"), do(t.Context(), t, lane, "good"), do(t.Context(), t, lane, "bad")
}

func TestLane_ReplaysADefiniteFailureOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lead, good, bad := picky(t, errRefused)
		expect(t, "lead", lead)
		expect(t, "good", good)
		if err := <-bad; !errors.Is(err, errRefused) {
			t.Errorf("bad: got %v, want %v", err, errRefused)
		}
	})
}

func TestLane_NeverReplaysAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lead, good, bad := picky(t, errVague)
		expect(t, "lead", lead)
		for _, done := range []<-chan error{good, bad} {
			if err := <-done; !errors.Is(err, errVague) {
				t.Errorf("got %v, want %v", err, errVague)
			}
		}
	})
}

// Every caller gets the answer to its own question, in real time and under the
// race detector, while others leave.
func TestLane_MatchesAnswersUnderLoad(t *testing.T) {
	lane := &batch.Lane[string, string]{Key: key}
	lane.Send = func(ctx context.Context, qs []string, answer func(int, string)) error {
		if len(qs) > batch.Max {
			t.Errorf("got a batch of %d, want at most %d", len(qs), batch.Max)
		}
		for i, q := range qs {
			if i > 0 && key(qs[i-1]) >= key(q) {
				t.Errorf("got %q before %q, want one call a key, sorted", qs[i-1], q)
			}
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
		if rand.IntN(10) == 0 {
			return ctx.Err()
		}
		for _, i := range rand.Perm(len(qs)) {
			answer(i, strings.ToUpper(qs[i]))
		}
		return nil
	}
	var wg sync.WaitGroup
	for worker := range 64 {
		wg.Go(func() {
			for i := range 50 {
				q := string(rune('a'+rand.IntN(26))) + "." + string(rune('a'+worker%26)) + string(rune('a'+i%26))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
				if got, err := lane.Do(ctx, q); err == nil && got != strings.ToUpper(q) {
					t.Errorf("got %q, want %q", got, strings.ToUpper(q))
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

func BenchmarkLane_LoneCall(b *testing.B) {
	lane := &batch.Lane[string, string]{Key: key, Send: func(_ context.Context, qs []string, answer func(int, string)) error {
		answer(0, qs[0])
		return nil
	}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := lane.Do(b.Context(), "a"); err != nil {
			b.Fatal(err)
		}
	}
}
