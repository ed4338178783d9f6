package guard

import (
	"container/heap"
	"sync"
	"time"
)

// schedule calls back for each tenure when something is due. It has one timer for
// all of them and no goroutine. due runs on the timer's goroutine and must
// not block; what it returns is called after all that are due have been, so that
// a slow logger delays nobody's loss.
type schedule struct {
	due func(*tenure) (report func())

	mu    sync.Mutex
	heap  tenures
	timer *time.Timer
	armed time.Time // when the timer fires; zero: it does not
}

// set makes due run for t at the given time, instead of an earlier setting. The
// caller holds t's queue.
func (s *schedule) set(t *tenure, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.due = at
	if t.index >= 0 {
		heap.Fix(&s.heap, t.index)
	} else {
		heap.Push(&s.heap, t)
	}
	s.arm()
}

// drop forgets t. The caller holds t's queue. The timer stays: setting and
// stopping it for each short hold costs more than its firing once for nothing.
func (s *schedule) drop(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index >= 0 {
		heap.Remove(&s.heap, t.index)
	}
}

// arm sees to it that the timer fires when the first tenure is due, or before. It
// looks at the clock itself: a caller's look may be older than a freeze.
func (s *schedule) arm() {
	first := s.heap[0].due
	if !s.armed.IsZero() && !first.Before(s.armed) {
		return
	}
	s.armed = first
	if s.timer == nil {
		s.timer = time.AfterFunc(time.Until(first), s.tick)
		return
	}
	s.timer.Reset(time.Until(first))
}

func (s *schedule) tick() {
	var ready []*tenure
	s.mu.Lock()
	now := time.Now()
	s.armed = time.Time{}
	for len(s.heap) > 0 && !s.heap[0].due.After(now) {
		ready = append(ready, heap.Pop(&s.heap).(*tenure))
	}
	if len(s.heap) > 0 {
		s.arm()
	}
	s.mu.Unlock()
	var reports []func()
	for _, t := range ready {
		if report := s.due(t); report != nil {
			reports = append(reports, report)
		}
	}
	for _, report := range reports {
		report()
	}
}

// tenures is a heap by due time.
type tenures []*tenure

func (h tenures) Len() int           { return len(h) }
func (h tenures) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h tenures) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *tenures) Push(x any) {
	t := x.(*tenure)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *tenures) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	t.index = -1
	return t
}
