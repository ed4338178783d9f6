package guard

import (
	"sync"
	"time"
)

const (
	maxWorkers = 128
	maxStuck   = 2048
	stuckAfter = 250 * time.Millisecond
)

// workers runs tasks on at most maxWorkers goroutines, which end when there is
// nothing left to do. Those whose task hangs do not count, up to maxStuck of
// them: a part of the store that is gone must not keep the renewals of the rest.
type workers struct {
	mu      sync.Mutex
	running int
	stuck   int
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
	gone, done := false, false
	late := time.AfterFunc(stuckAfter, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !done && w.stuck < maxStuck {
			gone = true
			w.stuck++
			w.running--
			w.hire()
		}
	})
	task()
	late.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	done = true
	if gone {
		w.stuck--
	}
	return !gone
}
