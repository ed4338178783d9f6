package main

import "time"

// waitOver is the wait for the lock above which a buyer has waited: a free lock
// costs less.
const waitOver = 5 * time.Millisecond

// tally is what the processes reported of one sale.
type tally struct {
	sold, soldOut, refused int
	waits                  int
	longest                time.Duration

	began, lastSale time.Time
	idle            time.Duration // while the lease of the frozen holder ran out

	victim        report    // the frozen buyer: what it had read
	victimIs      fact      // sold or refused, when it had woken up; empty: not yet, or nobody was frozen
	frozenAt      time.Time // zero: nobody was frozen
	soldMeanwhile int       // by others, until it had woken up
}

func (t *tally) answered() int { return t.sold + t.soldOut }

// count takes the report of a buyer. frozen tells that the victim has been
// frozen before.
func (t *tally) count(r report, frozen bool) {
	if r.Waited > waitOver {
		t.waits++
	}
	t.longest = max(t.longest, r.Waited)
	if frozen && r.Buyer == t.victim.Buyer && t.victimIs == "" {
		t.victimIs = r.Is
	}
	switch r.Is {
	case soldOut:
		t.soldOut++
	case refused:
		t.refused++
	case sold:
		t.sold++
		t.lastSale = time.Now()
		if frozen && t.victimIs == "" {
			if t.soldMeanwhile == 0 {
				t.idle = time.Since(t.frozenAt)
			}
			t.soldMeanwhile++
		}
	default: // not of a buyer
	}
}

// rate is orders a second, without the idle time.
func (t *tally) rate() float64 {
	if t.sold == 0 {
		return 0
	}
	return float64(t.sold) / (t.lastSale.Sub(t.began) - t.idle).Seconds()
}
