package guard

import "errors"

// Why a lease was lost; the cause of fn's context says which.
var (
	errLapsed  = errors.New("it could not be renewed in time")
	errTaken   = errors.New("the store gave it away or forgot it")
	errMaxHold = errors.New("it was held for Profile.MaxHold")
	errClosed  = errors.New("the guard was closed")
)

// lose ends t and tells its holders, then lets the waiters of this process ask
// the store anew. The caller holds q.mu, and calls report without it when it has
// told everybody else who must know.
func (t *tenure) lose(why error) (report func()) {
	var lost []*Lease
	for _, l := range t.holder.members() {
		if l.state == open {
			l.lose(why)
			lost = append(lost, l)
		}
	}
	t.finish()
	return reportLoss(t, lost, why)
}

// finish ends a tenure that nobody counts on any more. The caller holds q.mu.
func (t *tenure) finish() {
	t.drop()
	t.q.contend(0)
	t.q.hub.leave(t.q)
}

func reportLoss(t *tenure, lost []*Lease, why error) func() {
	return func() {
		for _, l := range lost {
			l.uncount()
		}
		for _, l := range lost {
			l.guard.tel.ended(l.since)
			l.guard.tel.lost(t, why)
		}
	}
}

// lose tells one holder. The caller holds q.mu.
func (l *Lease) lose(why error) {
	l.state = gone
	l.tell(l.guard.fail(l.op, l.key, because(ErrLost, why)))
}

// drop takes t out of the queue and the schedule. The caller holds q.mu, and
// gives t's reference to the queue back when it has done with it.
func (t *tenure) drop() {
	t.over = true
	t.q.ten = nil
	t.q.hub.schedule.drop(t)
}
