package guard

import (
	"sync"
	"time"
)

const (
	maxWorkers = 128
	stuckAfter = 50 * time.Millisecond // a batch of a store waits as long for one that is under way
)

// workers runs tasks on at most maxWorkers goroutines, which end when there is
// nothing left to do. One whose task hangs does not count: a part of the store
// that is gone must not keep the renewals of the rest.
type workers struct {
	mu      sync.Mutex
	running int
	tasks   []func()
}

func (w *workers) do(task func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks = append(w.tasks, task)
	w.hire()
}

// hire starts a worker if there is something to do. The caller holds w.mu.
func (w *workers) hire() {
	if len(w.tasks) > 0 && w.running < maxWorkers {
		w.running++
		go w.work()
	}
}

func (w *workers) work() {
	for task := w.next(); task != nil; task = w.next() {
		if !w.run(task) {
			return // its place is another's now
		}
	}
}

// next returns the next task, or nil when this worker is to end.
func (w *workers) next() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.tasks) == 0 {
		w.running--
		w.tasks = nil
		return nil
	}
	task := w.tasks[0]
	w.tasks = w.tasks[1:]
	return task
}

// run runs task and reports whether this worker still has its place.
func (w *workers) run(task func()) bool {
	stuck := time.AfterFunc(stuckAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.running--
		w.hire()
	})
	task()
	return stuck.Stop()
}
