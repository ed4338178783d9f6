package faults_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
)

const staleTTL = 500 * time.Millisecond

// A holder is frozen after it has read, for longer than its lease, and writes when
// it goes on. Before that the next holder has read, or has written already.
func TestStale_AFrozenHolderSellsNothingTwice(t *testing.T) {
	sideBySide(t, markets(), func(t *testing.T, m market) {
		s, w := m.open(t)
		old, young := spawn(t, s.as("old")), spawn(t, s.as("young"))
		lost := map[string]int64{}
		for range servertest.Count(1, 10) {
			freeze(w, m.modes, old, young, lost)
		}
		t.Logf("lost updates: %v", lost)
		for _, harm := range []string{written + unfenced, read + unfenced, read + checkOnWrite} {
			if lost[harm] == 0 {
				t.Errorf("%s: no harm, so the test shows nothing", harm)
			}
			delete(lost, harm)
		}
		for how, n := range lost {
			if n != 0 {
				t.Errorf("%s: got %d lost updates, want none", how, n)
			}
		}
	})
}

// What the next holder has done when the old one goes on.
const (
	written = "after the next holder has written: "
	read    = "after the next holder has read: "
)

func (s setup) as(identity string) setup { s.Identity = identity; return s }

// freeze makes a sale in each way and at each moment, all in one freeze of the
// process old.
func freeze(w *warehouse, modes []string, old, young *child, lost map[string]int64) {
	type encounter struct {
		moment, mode, key string
		late, next        *talk
		sold              int64
	}
	var all []*encounter
	for _, moment := range []string{written, read} {
		for _, mode := range modes {
			e := &encounter{moment: moment, mode: mode, key: w.item("sku")}
			e.late = old.sell(e.key, mode)
			all = append(all, e)
		}
	}
	w.stop(old)
	for _, e := range all {
		e.next = young.sell(e.key, e.mode) // waits for the lease to end, and in a transaction for the other to be ended
		if e.moment == written {
			e.sold += e.next.finish()
		}
		e.late.tell("write")
	}
	old.resume()
	for _, e := range all {
		e.sold += e.late.end()
	}
	for _, e := range all {
		if e.moment == read {
			e.sold += e.next.finish()
		}
		lost[e.moment+e.mode] += e.sold - w.gone(e.key)
	}
}

// sell begins a sale, which goes on when it is told to.
func (c *child) sell(key, mode string) *talk {
	k := c.ask(message{Op: "sell", Key: key, Mode: mode})
	k.expect("read")
	return k
}

// finish lets a sale write.
func (k *talk) finish() (sold int64) {
	k.tell("write")
	return k.end()
}

// end is the outcome of a sale: 1 if a unit was sold.
func (k *talk) end() (sold int64) {
	k.c.t.Helper()
	m := k.next()
	switch m.Op {
	case "sold":
		return 1
	case "refused", "failed":
		return 0
	}
	k.c.t.Fatalf("a child said %q (%s), want the outcome of a sale", m.Op, m.Err)
	return 0
}

// sellOne is a sale in a child. It is tried again when a busy machine did not let
// it begin.
func sellOne(ctx context.Context, s *stage, l *line, m message) {
	begun := false
	for ctx.Err() == nil && !begun {
		err := s.sales[m.Mode](ctx, m.Key, func(int64) {
			begun = true
			l.say(message{Op: "read"})
			l.await(ctx)
		})
		if begun {
			l.say(outcome(err))
		}
	}
}

func outcome(err error) message {
	switch {
	case err == nil:
		return message{Op: "sold"}
	case errors.Is(err, fencing.ErrStale) || errors.Is(err, errLater):
		return message{Op: "refused", Err: err.Error()}
	}
	return message{Op: "failed", Err: err.Error()}
}
