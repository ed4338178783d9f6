package drivertest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

func historyCases() []lockCase {
	return []lockCase{
		{"ConcurrentHoldersExcludeAndOrder", concurrentHoldersExcludeAndOrder},
		{"RandomHistoryFollowsModel", randomHistoryFollowsModel},
	}
}

// history collects holds of one key. Moments are counted, not timed, so that
// it works in a bubble, where time stands still.
type history struct {
	clock   atomic.Int64
	inside  atomic.Int64
	mu      sync.Mutex
	holds   []hold
	overlap bool
}

// hold is one acquisition: asked at asked, and granted some time before got.
type hold struct {
	asked, got int64
	token      fencing.Token
}

// enter notes a grant that was asked for at asked; leave comes before Release.
func (h *history) enter(asked int64, g driver.Grant) {
	both := h.inside.Add(1) > 1
	h.mu.Lock()
	defer h.mu.Unlock()
	h.overlap = h.overlap || both
	h.holds = append(h.holds, hold{asked, h.clock.Add(1), g.Token})
}

func (h *history) leave() { h.inside.Add(-1) }

// check holds the history to the order: whoever asked after another had got
// the key has the greater token.
func (h *history) check(t *lockTest) {
	t.Helper()
	if h.overlap {
		t.Error("holders at one time: got 2, want 1")
	}
	slices.SortFunc(h.holds, func(a, b hold) int { return int(a.got - b.got) })
	for i, a := range h.holds {
		for _, b := range h.holds[i+1:] {
			if a.token == b.token {
				t.Fatalf("tokens of two holders: got %d twice, want two", a.token)
			}
			if a.got < b.asked && a.token > b.token {
				t.Fatalf("token of a later holder: got %d, want more than %d", b.token, a.token)
			}
		}
	}
}

// The rivals get the key in turn and give it back at once, from two processes.
func concurrentHoldersExcludeAndOrder(t *lockTest) {
	const rivals, rounds = 6, 8
	var h history
	var wg sync.WaitGroup
	for i := range rivals {
		l := t.a
		if i%2 == 1 {
			l = t.b
		}
		wg.Go(func() {
			for range rounds {
				if !t.hold(&h, l) {
					return
				}
			}
		})
	}
	wg.Wait()
	h.check(t)
	if got := len(h.holds); !t.Failed() && got != rivals*rounds {
		t.Errorf("holds: got %d, want %d", got, rivals*rounds)
	}
}

// hold polls for the key, holds it for a moment, and gives it back.
func (t *lockTest) hold(h *history, l driver.Locker) bool {
	for end := time.Now().Add(patience * t.h.TTL); ; time.Sleep(time.Millisecond) {
		asked := h.clock.Add(1)
		g, err := l.Acquire(t.Context(), t.request("k"))
		switch {
		case err == nil:
			h.enter(asked, g)
			time.Sleep(100 * time.Microsecond)
			h.leave()
			if err := l.Release(t.Context(), g); err != nil {
				t.Errorf("Release of a live hold: got %v, want nil", err)
			}
			return err == nil
		case !errors.Is(err, driver.ErrBusy):
			t.Errorf("Acquire of a contended key: got %v, want nil or ErrBusy", err)
			return false
		case time.Now().After(end):
			t.Errorf("Acquire of a contended key: got ErrBusy for %v, want a turn", patience*t.h.TTL)
			return false
		}
	}
}
