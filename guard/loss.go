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
	q := t.q
	t.drop()
	var lost []*Lease
	for _, l := range t.holder.members() {
		if l.state == open {
			l.lose(why)
			lost = append(lost, l)
		}
	}
	q.contend(0)
	q.hub.leave(q)
	return func() {
		t.holder.guard.tel.lost(t, why)
		for _, l := range lost {
			l.uncount()
			l.guard.tel.ended(l.since)
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
