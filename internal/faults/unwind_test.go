package faults_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
	"github.com/pawl-go/pawl/internal/servertest"
)

// unwindTTL is much longer than a clean-up takes, so a key that is free was given
// back.
const unwindTTL = 3 * time.Second

// A caller is cancelled before or after any call of the store, or is cancelled,
// panics or exits at any step of its own code: its keys are free after one
// clean-up, no goroutine is left, and nothing is renewed.
func TestUnwind_LeavesNothingBehind(t *testing.T) {
	for _, p := range allPlaces() {
		t.Run(p.name, func(t *testing.T) {
			url := p.open(t)
			before := goleak.IgnoreCurrent()
			r := newRehearsal(t, url)
			r.rehearse(t)
			endings, side := some(r.endings(), 30), 15 // no more at once than a small machine serves in time
			if p.name == "SQLite" {                    // one writer at a time, and each waits for the disk
				endings, side = some(endings, 9), 3
			}
			var all errgroup.Group
			all.SetLimit(side)
			for _, e := range endings {
				all.Go(func() error { r.perform(t, e); return nil })
			}
			_ = all.Wait()
			r.expectSilence(t)
			r.closeStores()
			if err := goleak.Find(before); err != nil {
				t.Error(err)
			}
		})
	}
}

// What happens otherwise: the key of a caller that panics stays held, and renewed.
func TestUnwind_WithoutCleanUpTheKeyIsLeft(t *testing.T) {
	url := redisPlace().open(t)
	s := openStore(t, url)
	g := openGuard(t, profile(300*time.Millisecond, 0), s)
	key := newKey("left")
	var l *guard.Lease
	unwinding(func() {
		_, l, _ = g.Lock(t.Context(), key)
		panic("no deferred Unlock")
	})
	time.Sleep(time.Second)
	if holder(t, s, key) == "" {
		t.Error("no harm from a panic: the test shows nothing")
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

// unwinding runs f on a goroutine of its own to its end, whatever that is.
func unwinding(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

// rehearsal knows the calls and steps of the scenario.
type rehearsal struct {
	url           string
	calls, steps  int
	store, direct driver.Viewer
	closeStores   func()
	renewals      atomic.Int64
}

func newRehearsal(t *testing.T, url string) *rehearsal {
	t.Helper()
	store, closeStore, err := connectStore(url)
	if err != nil {
		t.Fatal(err)
	}
	direct, closeDirect, err := connectStore(url)
	if err != nil {
		t.Fatal(err)
	}
	return &rehearsal{url: url, store: store, direct: direct, closeStores: func() { closeStore(); closeDirect() }}
}

// ending is how a performance ends early.
type ending struct {
	name string
	// at most one of them is not zero
	beforeCall, afterCall, step int
	how                         func(cancel func()) // at a step
}

func (r *rehearsal) endings() []ending {
	var list []ending
	for k := 1; k <= r.calls; k++ {
		list = append(list,
			ending{name: fmt.Sprintf("cancelled before call %d", k), beforeCall: k},
			ending{name: fmt.Sprintf("cancelled after call %d", k), afterCall: k})
	}
	for k := 1; k <= r.steps; k++ {
		list = append(list,
			ending{name: fmt.Sprintf("cancelled at step %d", k), step: k, how: func(cancel func()) { cancel() }},
			ending{name: fmt.Sprintf("panic at step %d", k), step: k, how: func(func()) { panic("at a step") }},
			ending{name: fmt.Sprintf("exit at step %d", k), step: k, how: func(func()) { runtime.Goexit() }})
	}
	return list
}

// some is n of list, by chance, or all of it in a soak.
func some(list []ending, n int) []ending {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:servertest.Count(min(n, len(list)), len(list))]
}

// rehearse plays the scenario to its end and counts.
func (r *rehearsal) rehearse(t *testing.T) {
	t.Helper()
	p := r.perform(t, ending{name: "undisturbed"})
	if p.err != nil {
		t.Fatalf("undisturbed: %v", p.err)
	}
	r.calls, r.steps = int(p.calls.Load()), p.steps
	if r.steps != scenarioSteps {
		t.Fatalf("got %d steps, want %d", r.steps, scenarioSteps)
	}
}

// expectSilence checks that nothing is renewed or released any more.
func (r *rehearsal) expectSilence(t *testing.T) {
	t.Helper()
	scripts := func() string { return "" }
	if addr, ok := strings.CutPrefix(r.url, "redis://"); ok {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer client.Close()
		scripts = func() string { return scriptCalls(t, client) }
	}
	calls, wire := r.renewals.Load(), scripts()
	time.Sleep(unwindTTL/3 + unwindTTL/10) // a renewal would be due
	if got := r.renewals.Load(); got != calls {
		t.Errorf("%d renewals after the end", got-calls)
	}
	if got := scripts(); got != wire {
		t.Errorf("calls on the wire after the end: %s, before %s", got, wire)
	}
}

// scriptCalls is how often the server was asked to run a script.
func scriptCalls(t *testing.T, client *redis.Client) string {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	calls, _, _ := strings.Cut(line, ",")
	return calls
}
