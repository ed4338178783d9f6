// Package memstore keeps locks in memory, for one process: the reference that
// the other stores are measured by, and the store that tests use.
package memstore

import (
	"sync"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/internal/lease"
)

// Store holds everything under one mutex. Two guards share a key space by
// sharing the Store. All methods are safe for concurrent use; the zero value is
// not usable, call [New].
//
// An ended context is reported before anything happens. Memory follows the
// number of keys that are held or waited for, not that of keys ever used.
type Store struct {
	base time.Time // wall clock at New; from there only monotonic time counts, so a wall clock step changes no order

	mu    sync.Mutex
	now   time.Duration // server time since base: the latest reading that anybody brought
	locks map[string]*lock
	ring  []*lock // the same locks, for sweep
	hand  int     // where sweep goes on in ring
}

// New returns an empty store.
func New() *Store {
	return &Store{base: time.Now(), locks: map[string]*lock{}}
}

// Traits implements [driver.Backend].
func (s *Store) Traits() driver.Traits {
	if s.locks == nil {
		return driver.Traits{} // not made by New: guard refuses it
	}
	return driver.Traits{Name: "memory", Consistency: driver.Local, FIFO: true, MinTTL: time.Millisecond}
}

// observe moves server time up to a reading of the local clock. Calls read the
// clock before they take the mutex, hence may bring an older reading than a
// call before them; server time never goes back.
func (s *Store) observe(t time.Time) {
	s.now = max(s.now, t.Sub(s.base))
}

// tick is server time in the unit of the clock rule.
func (s *Store) tick() uint64 { return lease.Ticks(s.base.Add(s.now)) }
