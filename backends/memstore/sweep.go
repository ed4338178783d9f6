package memstore

// lockOf returns what is known of key, made if need be.
func (s *Store) lockOf(key string) *lock {
	l := s.locks[key]
	if l == nil {
		s.sweep()
		l = &lock{key: key, slot: len(s.ring)}
		s.locks[key] = l
		s.ring = append(s.ring, l)
	}
	return l
}

// forgettable reports whether l may be dropped without an order going back:
// nobody holds it, nobody waits, and its last sequence lies behind the clock.
//
// Proof: a lock that was dropped starts again at Next(0, 0, tick) = tick for
// the tick of its next grant. Server time never goes back, so that tick is not
// smaller than the one compared here, which is greater than last.
func (s *Store) forgettable(l *lock) bool {
	return l.queue.head == nil && !s.live(l) && l.last < s.tick()
}

// sweep looks at the next two locks of the ring and drops those that may go.
// It runs whenever a lock is added, hence drops faster than locks are added as
// soon as more than half of the ring may go: there are never more than about
// twice as many locks as are in use.
func (s *Store) sweep() {
	for range min(2, len(s.ring)) {
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		if l := s.ring[s.hand]; s.forgettable(l) {
			s.drop(l) // the last of the ring comes here and is looked at next
		} else {
			s.hand++
		}
	}
}

// drop forgets l.
func (s *Store) drop(l *lock) {
	end := len(s.ring) - 1
	last := s.ring[end]
	s.ring[l.slot], last.slot = last, l.slot
	s.ring[end] = nil
	s.ring = s.ring[:end]
	delete(s.locks, l.key)
}
