package guard

import (
	"container/heap"
	"sync"
	"time"
)

// schedule calls back for each tenure when something is due. It keeps one timer
// for all of them and no goroutine. due runs on the timer's goroutine and must
// not block; what it returns is called after all that are due have been, so that
// a slow logger delays nobody's loss.
type schedule struct {
	due func(*tenure) (report func())

	mu    sync.Mutex
	heap  tenures
	timer *time.Timer
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
	if s.heap[0] == t {
		s.arm()
	}
}

// drop forgets t. The caller holds t's queue.
func (s *schedule) drop(t *tenure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.index < 0 {
		return
	}
	heap.Remove(&s.heap, t.index)
	if len(s.heap) == 0 {
		s.timer.Stop()
	}
}

// arm sets the timer to the first due time. A timer that fires early, since its
// tenure was dropped, finds nothing due and arms itself anew.
func (s *schedule) arm() {
	wait := time.Until(s.heap[0].due)
	if s.timer == nil {
		s.timer = time.AfterFunc(wait, s.tick)
		return
	}
	s.timer.Reset(wait)
}

func (s *schedule) tick() {
	var ready []*tenure
	s.mu.Lock()
	now := time.Now()
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

// workers runs tasks on at most maxWorkers goroutines, which end when there is
// nothing left to do.
type workers struct {
	mu      sync.Mutex
	running int
	tasks   []func()
}

const maxWorkers = 128

func (w *workers) do(task func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, task)
	if w.running < maxWorkers {
		w.running++
		go w.work()
	}
}

func (w *workers) work() {
	for {
		w.mu.Lock()
		if len(w.tasks) == 0 {
			w.running--
			w.tasks = nil
			w.mu.Unlock()
			return
		}
		task := w.tasks[0]
		w.tasks = w.tasks[1:]
		w.mu.Unlock()
		task()
	}
}
