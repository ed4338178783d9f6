package memstore

import (
	"context"
	"math"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/lease"
)

var (
	_ driver.Waiter = (*Store)(nil)
	_ driver.Viewer = (*Store)(nil)
)

// lock is what the store knows of one key.
type lock struct {
	key      string
	grant    driver.Grant  // of the last holder; a zero token: given back
	expires  time.Duration // server time at which grant ends by itself
	last, at uint64        // sequence and tick of the last grant
	queue    queue
	slot     int // index in Store.ring
}

// Acquire implements [driver.Locker]. While others queue for the key it is
// busy, also between two holders.
func (s *Store) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(sent)
	return s.acquire(s.lockOf(r.Key), r, sent)
}

// Renew implements [driver.Locker].
func (s *Store) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(sent)
	l := s.locks[g.Key]
	if l == nil || !s.live(l) || l.grant.Owner != g.Owner || l.grant.Token != g.Token {
		return driver.Grant{}, driver.ErrLost
	}
	// A shorter TTL, or a reading older than that of a concurrent renewal, never takes back time that was promised.
	if until := lease.Until(sent, g.TTL); until.After(l.grant.Until) {
		l.grant.TTL, l.grant.Until = g.TTL, until
		l.expires = max(l.expires, s.end(g.TTL))
	}
	return l.grant, nil
}

// Release implements [driver.Locker]. The key goes to the head of the queue at
// once. A second release by the same owner is ErrLost: no client library sits
// in between that could have sent the first one twice.
func (s *Store) Release(ctx context.Context, g driver.Grant) error {
	sent := time.Now()
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(sent)
	l := s.locks[g.Key]
	if l == nil || !s.live(l) || l.grant.Owner != g.Owner || (g.Token != 0 && l.grant.Token != g.Token) {
		return driver.ErrLost
	}
	l.grant = driver.Grant{}
	s.serve(l, sent)
	if s.forgettable(l) {
		s.drop(l)
	}
	return nil
}

// Holder implements [driver.Viewer].
func (s *Store) Holder(ctx context.Context, key string) (driver.Grant, error) {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return driver.Grant{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(now)
	if l := s.locks[key]; l != nil && s.live(l) {
		return l.grant, nil
	}
	return driver.Grant{}, nil
}

// end is when a lease of ttl from now ends. A sum that overflowed would end it
// at once.
func (s *Store) end(ttl time.Duration) time.Duration {
	return s.now + min(ttl, math.MaxInt64-s.now)
}

func (s *Store) live(l *lock) bool { return l.grant.Token != 0 && s.now < l.expires }

// acquire decides under the mutex. Whoever queues comes first.
func (s *Store) acquire(l *lock, r driver.Request, sent time.Time) (driver.Grant, error) {
	s.serve(l, sent)
	switch {
	case !s.live(l):
		return s.give(l, r, sent)
	case l.grant.Owner == r.Owner:
		return l.grant, nil
	}
	return driver.Grant{}, driver.ErrBusy
}

// give makes r the holder of l. The lease counts from server time, which is
// not before sent, so Until is never later than the lease.
func (s *Store) give(l *lock, r driver.Request, sent time.Time) (driver.Grant, error) {
	tick := s.tick()
	seq := lease.Next(l.last, l.at, tick)
	token, err := fencing.NewToken(r.Generation, seq)
	if err != nil {
		return driver.Grant{}, err
	}
	l.last, l.at = seq, tick
	l.expires = s.end(r.TTL)
	l.grant = driver.Grant{Request: r, Token: token, Until: lease.Until(sent, r.TTL)}
	return l.grant, nil
}
