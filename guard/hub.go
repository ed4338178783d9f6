package guard

import (
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/pawl-go/pawl/backends/driver"
)

// hub is what all guards of this process share about one store: one local queue
// a key, so that two guards never stand in each other's way, and one schedule
// of renewals.
type hub struct {
	store  driver.Locker
	waiter driver.Waiter // nil: the store cannot wait, poll it
	traits driver.Traits
	inline bool // a Local store answers at once: no watchdog, no goroutine

	schedule schedule
	renewals workers

	mu     sync.Mutex
	queues map[string]*queue // by full key, while somebody holds or waits
}

// hubs finds the hub of a store. It is the one global of this package, since
// guards that know nothing of each other must share a queue. Hubs are held
// weakly: a store that no guard uses any more is forgotten.
var hubs struct { //nolint:gochecknoglobals // see above
	sync.Mutex
	byStore map[driver.Locker]weak.Pointer[hub]
}

func hubOf(store driver.Locker) *hub {
	hubs.Lock()
	defer hubs.Unlock()
	if h := hubs.byStore[store].Value(); h != nil {
		return h
	}
	h := &hub{store: store, traits: store.Traits(), queues: map[string]*queue{}}
	h.waiter, _ = store.(driver.Waiter)
	h.inline = h.traits.Consistency == driver.Local
	h.schedule.due = h.tick
	if hubs.byStore == nil {
		hubs.byStore = map[driver.Locker]weak.Pointer[hub]{}
	}
	hubs.byStore[store] = weak.Make(h)
	runtime.AddCleanup(h, forgetHub, store)
	return h
}

func forgetHub(store driver.Locker) {
	hubs.Lock()
	defer hubs.Unlock()
	if hubs.byStore[store].Value() == nil { // nobody asked for it again meanwhile
		delete(hubs.byStore, store)
	}
}

// enter returns the queue of key with one more reference to it.
func (h *hub) enter(key string) *queue {
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queues[key]
	if q == nil {
		q = &queue{hub: h, key: key}
		h.queues[key] = q
	}
	q.refs++
	return q
}

// again adds a reference to a queue that the caller has one of already.
func (h *hub) again(q *queue) {
	h.mu.Lock()
	q.refs++
	h.mu.Unlock()
}

// leave gives one reference back; the last one forgets the queue.
func (h *hub) leave(q *queue) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if q.refs--; q.refs == 0 {
		delete(h.queues, q.key)
	}
}

const (
	minCall = 100 * time.Millisecond
	maxCall = 5 * time.Second
	grace   = 50 * time.Millisecond // for a store to come back with a verdict after its context ended
)

// callBound is how long one store call for a lease of ttl may take.
func callBound(ttl time.Duration) time.Duration { return min(max(ttl/3, minCall), maxCall) }
