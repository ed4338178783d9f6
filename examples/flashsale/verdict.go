package main

import (
	"fmt"
	"strings"
	"time"
)

// verdict is what a row is judged to be. Unprotected rows must show harm and
// protected ones none, else the program has not shown what it promises.
type verdict struct {
	expected bool
	text     string   // for the table
	why      []string // if it is not expected
}

func (r result) oversold() int { return max(0, r.Orders-r.units) }

func (r result) judge() verdict {
	if r.row == lockAndFence {
		if wrong := r.wrong(); len(wrong) > 0 {
			return verdict{text: "WRONG", why: wrong}
		}
		return verdict{expected: true, text: "OK, exact"}
	}
	if missing := r.harmless(); len(missing) > 0 {
		return verdict{text: "NO HARM SHOWN", why: missing}
	}
	return verdict{expected: true, text: "HARM, as expected"}
}

// wrong lists what a protected row must not show.
func (r result) wrong() (why []string) {
	must := func(ok bool, format string, args ...any) {
		if !ok {
			why = append(why, fmt.Sprintf(format, args...))
		}
	}
	must(r.Orders == r.units, "%d orders for %d units", r.Orders, r.units)
	must(r.Different == r.units, "%d different units sold, of %d", r.Different, r.units)
	must(r.DoubleSold == 0, "%d units sold more than once", r.DoubleSold)
	must(r.Left == 0, "%d units left in stock", r.Left)
	must(r.Till == r.Cents && r.Cents == int64(r.units)*price, "%s in the till, %s by the orders, %s by the price list",
		money(r.Till), money(r.Cents), money(int64(r.units)*price))
	must(r.sold == r.Orders, "%d buyers were told that they have a unit, with %d orders", r.sold, r.Orders)
	must(r.Buyers == r.Orders, "%d buyers have the %d orders", r.Buyers, r.Orders)
	must(r.soldOut == r.buyers-r.units, "%d of %d buyers were told that the units are sold out", r.soldOut, r.buyers)
	must(r.victimIs == refused, "the frozen holder's late write was not refused")
	must(r.refused > 0, "no stale access was refused")
	return why
}

// harmless lists what an unprotected row should have shown and has not.
func (r result) harmless() (why []string) {
	if r.oversold() == 0 {
		why = append(why, "nothing was oversold")
	}
	if r.DoubleSold == 0 {
		why = append(why, "no unit was sold twice")
	}
	if r.row == lockOnly && r.victimIs != sold {
		why = append(why, "the frozen holder's late write did not arrive")
	}
	return why
}

// story says in a sentence or two what the row shows.
func (r result) story() string {
	if v := r.judge(); !v.expected {
		return "Not as expected: " + strings.Join(v.why, "; ") + "."
	}
	switch r.row {
	case noLock:
		return fmt.Sprintf("Buyers decided at the same time by the same count: %s, but for %s only. The till is %s short.",
			plural(r.Orders, "order"), plural(r.Different, "different unit"), money(r.Cents-r.Till))
	case lockOnly:
		return fmt.Sprintf("A holder read %q and was frozen. Its lease ran out, others sold %s; then it woke up and wrote %q: what they had sold was for sale again.",
			fmt.Sprint(r.victim.Unit, " left"), plural(r.soldMeanwhile, "unit"), fmt.Sprint(r.victim.Unit-1, " left"))
	default:
		return fmt.Sprintf("The same freeze. The database refused the late write, since a later holder had come; that buyer came again. All %s sold once, %d buyers told \"sold out\", the till is right (%s).",
			plural(r.units, "unit"), r.soldOut, money(r.Till))
	}
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
