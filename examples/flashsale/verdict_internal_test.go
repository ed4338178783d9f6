package main

import (
	"strings"
	"testing"
	"time"
)

// exact is a protected row as it must be: three units, five buyers.
func exact() result {
	return result{
		options: options{units: 3, buyers: 5, processes: 2},
		row:     lockAndFence,
		tally:   tally{sold: 3, soldOut: 2, refused: 1, victimIs: refused},
		audit:   audit{Orders: 3, Different: 3, Buyers: 3, Till: 3 * price, Cents: 3 * price},
	}
}

// harmed is an unprotected row as it must be.
func harmed(row protection) result {
	r := exact()
	r.row = row
	r.tally = tally{sold: 4, soldOut: 1, victimIs: sold}
	r.audit = audit{Orders: 4, Different: 3, DoubleSold: 1, Buyers: 4, Till: 3 * price, Cents: 4 * price}
	return r
}

func asExpected() []result { return []result{harmed(noLock), harmed(lockOnly), exact()} }

func TestConclude_AcceptsHarmWithoutAFenceAndNoneWithIt(t *testing.T) {
	text, code := conclude("caption", asExpected(), time.Second, false)
	if code != exitAsExpected || !strings.Contains(text, "As expected: only the fenced sale is exact. It took 1.0 s.") {
		t.Errorf("got exit status %d, want 0\n%s", code, text)
	}
	if n := strings.Count(text, "HARM, as expected"); n != 2 {
		t.Errorf("got harm in %d rows, want 2\n%s", n, text)
	}
}

func TestConclude_FailsWhenAProtectedRowIsWrong(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*result)
		want  string
	}{
		{"AnOrderTooMany", func(r *result) { r.Orders, r.sold = 4, 4 }, "4 orders for 3 units"},
		{"AnOrderTooFew", func(r *result) { r.Orders, r.sold = 2, 2 }, "2 orders for 3 units"},
		{"AUnitSoldTwice", func(r *result) { r.DoubleSold = 1 }, "1 units sold more than once"},
		{"AUnitNotSold", func(r *result) { r.Different = 2 }, "2 different units sold, of 3"},
		{"StockLeft", func(r *result) { r.Left = 1 }, "1 units left in stock"},
		{"StockBelowZero", func(r *result) { r.Left = -1 }, "-1 units left in stock"},
		{"TheTillShort", func(r *result) { r.Till -= price }, "99.98 in the till, 149.97 by the orders"},
		{"AnotherPrice", func(r *result) { r.Till, r.Cents = 3, 3 }, "149.97 by the price list"},
		{"AnOrderNobodyKnowsOf", func(r *result) { r.sold = 2 }, "2 buyers were told that they have a unit, with 3 orders"},
		{"ABuyerWithTwo", func(r *result) { r.Buyers = 2 }, "2 buyers have the 3 orders"},
		{"ABuyerWithoutAnswer", func(r *result) { r.soldOut = 1 }, "1 of 5 buyers were told that the units are sold out"},
		{"TheLateWriteAccepted", func(r *result) { r.victimIs = sold }, "late write was not refused"},
		{"NothingRefused", func(r *result) { r.refused = 0 }, "no stale access was refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := asExpected()
			c.spoil(&results[2])
			text, code := conclude("caption", results, time.Second, false)
			if code != exitUnexpected || !strings.Contains(text, "FAILED") || !strings.Contains(text, "WRONG") || !strings.Contains(text, c.want) {
				t.Errorf("got exit status %d, want 1 because of %q\n%s", code, c.want, text)
			}
		})
	}
}

func TestConclude_FailsWhenAnUnprotectedRowShowsNoHarm(t *testing.T) {
	for _, c := range []struct {
		name string
		row  int
		mend func(*result)
		want string
	}{
		{"NothingOversoldWithoutALock", 0, func(r *result) { r.Orders = 3 }, "(a) Not as expected: nothing was oversold"},
		{"NothingSoldTwiceWithoutALock", 0, func(r *result) { r.DoubleSold = 0 }, "(a) Not as expected: no unit was sold twice"},
		{"NothingOversoldWithALock", 1, func(r *result) { r.Orders = 3 }, "(b) Not as expected: nothing was oversold"},
		{"NothingSoldTwiceWithALock", 1, func(r *result) { r.DoubleSold = 0 }, "(b) Not as expected: no unit was sold twice"},
		{"NoLateWrite", 1, func(r *result) { r.victimIs = refused }, "(b) Not as expected: the frozen holder's late write did not arrive"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := asExpected()
			c.mend(&results[c.row])
			text, code := conclude("caption", results, time.Second, false)
			if code != exitUnexpected || !strings.Contains(text, "NO HARM SHOWN") || !strings.Contains(text, c.want) {
				t.Errorf("got exit status %d, want 1 because of %q\n%s", code, c.want, text)
			}
		})
	}
}

func TestConclude_KeepsToTheWidthOfItsTable(t *testing.T) {
	results := asExpected()
	for i := range results {
		results[i].units, results[i].buyers, results[i].Orders = 9999, 10000, 10000
		results[i].waits = 10000
		results[i].began, results[i].lastSale = time.Unix(0, 0), time.Unix(1, 0)
		results[i].sold = 10000
	}
	text, _ := conclude("caption", results, time.Second, false)
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > tableWidth {
			t.Errorf("got a line of %d columns, want at most 98: %s", n, line)
		}
	}
}
