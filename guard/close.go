package guard

import "context"

// Close refuses new calls, waits for holds to end until ctx does, then gives
// up what is left. Stores stay open.
//
// What is given up is lost for its holder (ErrLost) and free after its TTL: its
// fn may still be running. The error tells that this happened.
func (g *Guard) Close(ctx context.Context) error {
	g.closed.Store(true)
	err := g.active.wait(ctx)
	if g.hub == nil {
		return nil
	}
	if err != nil {
		g.givenUp.Store(true)
		g.hub.giveUp(g)
		return g.fail("Close", "", because(ErrLost, err))
	}
	if err := g.repairs.wait(ctx); err != nil {
		return g.fail("Close", "", because(ErrUnavailable, err))
	}
	return nil
}

// giveUp ends the waits and holds of g.
func (h *hub) giveUp(g *Guard) {
	h.mu.Lock()
	queues := make([]*queue, 0, len(h.queues))
	for _, q := range h.queues {
		queues = append(queues, q)
	}
	h.mu.Unlock()
	for _, q := range queues {
		q.giveUp(g)
	}
}

func (q *queue) giveUp(g *Guard) {
	q.mu.Lock()
	for w := q.first; w != nil; {
		next := w.next
		if w.c.guard == g {
			q.settle(w, nil, errGuardClosed)
		}
		w = next
	}
	q.withdraw()
	report := func() {}
	if t := q.ten; t != nil {
		report = t.giveUp(g)
	}
	q.mu.Unlock()
	report()
}

// giveUp ends what is g's in the hold, and the hold itself when nobody else is in
// it. The caller holds q.mu.
func (t *tenure) giveUp(g *Guard) (report func()) {
	var lost []*Lease
	others := false
	for _, l := range t.holder.members() {
		switch {
		case l.state != open:
		case l.guard == g:
			l.lose(errClosed)
			lost = append(lost, l)
		default:
			others = true
		}
	}
	if len(lost) > 0 && !others {
		t.finish()
	}
	return reportLoss(t, lost, errClosed)
}

// enter counts a call in, unless the guard is closed. A nil error obliges the
// caller to count it out.
func (g *Guard) enter(op string) error {
	g.active.add(1)
	if g.closed.Load() {
		g.active.add(-1)
		return g.fail(op, "", errGuardClosed)
	}
	return nil
}
