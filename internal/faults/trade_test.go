package faults_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/servertest"
)

// The same without a script: two processes sell for a while, and now and then one
// of them is frozen, for about a lease.
func TestStale_ProcessesFrozenAtRandomSellNothingTwice(t *testing.T) {
	var list []frozenMarket
	for _, m := range markets() {
		if m.name == "RedisAndPostgreSQL" || m.name == "Redis" {
			list = append(list,
				frozenMarket{m, "LongerThanTheLease", staleTTL + 150*time.Millisecond, staleTTL + 151*time.Millisecond, 120 * time.Millisecond, false},
				frozenMarket{m, "AboutTheLease", staleTTL - 60*time.Millisecond, staleTTL + 100*time.Millisecond, 400 * time.Millisecond, true})
		}
	}
	sideBySide(t, list, func(t *testing.T, m frozenMarket) {
		var total ledger
		for n := range servertest.Count(6, 3) {
			if !soak() && n > 0 && total.lost[unfenced] > 0 {
				break // the harm has shown
			}
			s, w := m.open(t)
			r := &random{w: w, a: spawn(t, s.as("a")), b: spawn(t, s.as("b")), lasts: time.Duration(servertest.Count(4, 30)) * time.Second}
			r.trade(m, &total)
		}
		t.Logf("%+v", total)
		total.check(t, m.checkIsBlind)
	})
}

type frozenMarket struct {
	market
	freeze       string
	least, most  time.Duration // of a freeze
	think        time.Duration // at most, between read and write
	checkIsBlind bool          // a check on write alone lets lost updates through
}

func (m frozenMarket) String() string { return m.name + "/" + m.freeze }

// soak is whether the counts are full: a harm that is rare shows in them only.
func soak() bool { return servertest.Count(0, 1) == 1 }

func (l *ledger) check(t *testing.T, checkIsBlind bool) {
	t.Helper()
	if l.lost[unfenced] <= 0 {
		t.Error("no harm without a fence: the test shows nothing")
	}
	if soak() && checkIsBlind && l.lost[checkOnWrite] <= 0 {
		t.Error("no harm with a check on write only: the test shows nothing")
	}
	for _, mode := range []string{statements, transaction, withLock} {
		if lost := l.lost[mode]; lost > 0 || -lost > l.unsure[mode] {
			t.Errorf("%s: got %d lost updates and %d sales of unknown outcome, want none lost", mode, lost, l.unsure[mode])
		}
	}
}

// ledger is what came of many sales, by mode.
type ledger struct {
	stops              int
	sold, lost, unsure map[string]int64
}

type random struct {
	w     *warehouse
	a, b  *child
	lasts time.Duration
}

// trade lets both processes sell in every mode, each mode on an item of its own,
// and freezes them in turn.
func (r *random) trade(m frozenMarket, total *ledger) {
	if total.sold == nil {
		*total = ledger{sold: map[string]int64{}, lost: map[string]int64{}, unsure: map[string]int64{}}
	}
	items := map[string]string{}
	talks := map[string][]*talk{}
	for _, mode := range m.modes {
		items[mode] = r.w.item("sku")
		for _, c := range []*child{r.a, r.b} {
			talks[mode] = append(talks[mode], c.ask(message{Op: "trade", Key: items[mode], Mode: mode, For: r.lasts, Think: m.think}))
		}
	}
	for end, c := time.Now().Add(r.lasts), r.a; time.Now().Before(end); total.stops++ {
		time.Sleep(rand.N(staleTTL))
		c.stop()
		time.Sleep(m.least + rand.N(m.most-m.least))
		c.resume()
		if c == r.a {
			c = r.b
		} else {
			c = r.a
		}
	}
	for _, mode := range m.modes {
		sold := int64(0)
		for _, k := range talks[mode] {
			said := k.expect("traded")
			sold += said.N
			total.unsure[mode] += said.Unsure
		}
		total.sold[mode] += sold
		total.lost[mode] += sold - r.w.gone(items[mode])
	}
}

// trade sells in a child for a while. What failed without a verdict may have
// happened.
func trade(ctx context.Context, s *stage, l *line, m message) {
	r := message{Op: "traded"}
	for end := time.Now().Add(m.For); time.Now().Before(end) && ctx.Err() == nil; {
		switch outcome(s.sales[m.Mode](ctx, m.Key, func(int64) { time.Sleep(rand.N(m.Think)) })).Op {
		case "sold":
			r.N++
		case "failed":
			r.Unsure++
		}
	}
	l.say(r)
}
