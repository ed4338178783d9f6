package lease_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/internal/lease"
)

func TestUntil_CountsFromSendLessTheMargin(t *testing.T) {
	sent := time.Now()
	for _, c := range []struct{ ttl, want time.Duration }{
		{10 * time.Second, 9495 * time.Millisecond},
		{time.Second, 945 * time.Millisecond},
		{100 * time.Millisecond, 90 * time.Millisecond},
		{time.Millisecond, -4050 * time.Microsecond}, // all margin: over before it begins, never too late
	} {
		if got := lease.Until(sent, c.ttl).Sub(sent); got != c.want {
			t.Errorf("Until of %v: got %v after the send time, want %v", c.ttl, got, c.want)
		}
	}
}

// The monotonic reading must survive, or a wall clock step would move the
// deadline.
func TestUntil_KeepsMonotonicTime(t *testing.T) {
	sent := time.Now()
	until := lease.Until(sent, time.Second)
	if until == until.Round(0) { //nolint:staticcheck // == sees the monotonic reading, Equal does not
		t.Error("Until: got a wall clock time, want a monotonic reading")
	}
}

func TestTicks_AreSixteenMicroseconds(t *testing.T) {
	at := time.UnixMicro(1_700_000_000_000_000)
	if got, want := lease.Ticks(at), uint64(1_700_000_000_000_000/16); got != want {
		t.Errorf("Ticks: got %d, want %d", got, want)
	}
	if got := lease.Ticks(at.Add(lease.Tick)) - lease.Ticks(at); got != 1 {
		t.Errorf("ticks in %v: got %d, want 1", lease.Tick, got)
	}
	if got := lease.Ticks(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)); got >= 1<<48 {
		t.Errorf("Ticks in the year 2100: got %d, want it within 48 bits", got)
	}
}

const (
	far   = 1 << 47
	after = 1 << 20
)

func TestNext_GrowsByOneAtLeast(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		last := rapid.Uint64Range(0, far).Draw(t, "last")
		at := rapid.Uint64Range(0, far).Draw(t, "at")
		now := rapid.Uint64Range(0, far).Draw(t, "now") // also before at: the clock was set back
		got := lease.Next(last, at, now)
		if got <= last {
			t.Errorf("Next: got %d, want more than the last, %d", got, last)
		}
		if got < now {
			t.Errorf("Next: got %d, want at least the clock, %d", got, now)
		}
		if now >= at && got-last < now-at {
			t.Errorf("Next: got %d more, want at least what has passed, %d", got-last, now-at)
		}
	})
}

// state is what a store keeps of a key.
type state struct{ last, at uint64 }

func (s state) grant(now uint64) state { return state{lease.Next(s.last, s.at, now), now} }

// A store that lost its latest grants, or all of them, goes on above them, as
// soon as the clock has passed the last by as many ticks as were shared by two
// grants. (Two scripts lie between two grants of one key: on a server they do
// not share a tick of 16 us.)
func TestNext_OutgrowsWhatWasLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Uint64Range(after, far).Draw(t, "start")
		var s state
		history, shared := []state{s}, uint64(0)
		for _, gap := range rapid.SliceOfN(rapid.Uint64Range(0, 50), 1, 50).Draw(t, "gaps") {
			if gap == 0 && s.last > 0 {
				shared++
			}
			now += gap
			s = s.grant(now)
			history = append(history, s)
		}
		kept := rapid.SampledFrom(history).Draw(t, "kept") // the first is empty: FLUSHALL
		now += shared + 1
		if got := kept.grant(now); got.last <= s.last {
			t.Errorf("first grant after the loss: got %d, want more than %d", got.last, s.last)
		}
	})
}
