package faults_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
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
			endings, side := r.endings(), 12 // no more at once than a small machine serves in time
			if p.name == "SQLite" {          // one writer at a time, and each waits for the disk
				endings, side = some(endings, servertest.Count(12, len(endings))), 3
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

// some is n of list, by chance.
func some(list []ending, n int) []ending {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
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

// performance is one run of the scenario, as a process of its own.
type performance struct {
	*rehearsal
	ending
	calls   atomic.Int64 // of the store
	steps   int
	renewed chan struct{}
	queued  chan struct{}
	keys    []string
	guard   *guard.Guard
	cancel  context.CancelFunc
	err     error

	mu  sync.Mutex
	log []string // calls that have come back
}

func (p *performance) seen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.log, "; ")
}

func (r *rehearsal) perform(t *testing.T, e ending) *performance {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := &performance{
		rehearsal: r, ending: e, cancel: cancel,
		renewed: make(chan struct{}, 100), queued: make(chan struct{}, 100),
	}
	for range 6 {
		p.keys = append(p.keys, newKey("unwind"))
	}
	g, err := newGuard(profile(unwindTTL, patience), spied(r.store, p.before, p.after), "test")
	if err != nil {
		t.Error(err)
		return p
	}
	p.guard = g
	unwinding(func() { p.err = p.scenario(ctx, t) })
	for _, key := range p.keys {
		if !eventually(unwindTTL/3, func() bool { return holder(t, r.direct, key) == "" }) {
			t.Errorf("%s: %s is still held; calls: %v", e.name, key, p.seen())
		}
	}
	if err := g.Close(t.Context()); err != nil {
		t.Errorf("%s: Close: %v", e.name, err)
	}
	return p
}

func (p *performance) before(string) {
	if int(p.calls.Add(1)) == p.beforeCall {
		p.cancel()
	}
}

func (p *performance) after(call string, g driver.Grant, err error) {
	p.mu.Lock()
	p.log = append(p.log, fmt.Sprintf("%s %s: %v", call, g.Key, err))
	p.mu.Unlock()
	if int(p.calls.Load()) == p.afterCall {
		p.cancel()
	}
	if call == "Renew" {
		p.rehearsal.renewals.Add(1)
		p.renewed <- struct{}{}
	}
	if errors.Is(err, driver.ErrBusy) {
		p.queued <- struct{}{}
	}
}

// step is where the caller's own code runs.
func (p *performance) step() error {
	p.steps++
	if p.steps == p.ending.step {
		p.how(p.cancel)
	}
	return nil
}

const scenarioSteps = 8

// scenario uses guard in every way that asks a store for something.
func (p *performance) scenario(ctx context.Context, t *testing.T) error {
	g, k := p.guard, p.keys
	step := func(context.Context) error { return p.step() }
	err := g.WithLock(ctx, k[0], func(ctx context.Context) error {
		_ = p.step()
		select {
		case <-p.renewed:
		case <-ctx.Done():
		}
		return errors.Join(p.step(), g.WithLock(ctx, k[0], step), g.WithLock(ctx, k[1], step), p.step())
	})
	if err != nil {
		return err
	}
	if err := g.WithLocks(ctx, k[2:4], step); err != nil {
		return err
	}
	if err := p.leased(ctx, k[4]); err != nil {
		return err
	}
	return p.contended(ctx, t, k[5])
}

func (p *performance) leased(ctx context.Context, key string) (err error) {
	_, l, err := p.guard.Lock(ctx, key)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Unlock(ctx)) }()
	return p.step()
}

// contended waits in the store's queue for a key that another has at first.
func (p *performance) contended(ctx context.Context, t *testing.T, key string) error {
	g, err := rival(t.Context(), p.direct, key, time.Minute)
	if err != nil {
		return err
	}
	var freed sync.WaitGroup
	defer freed.Wait()
	freed.Go(func() {
		select {
		case <-p.queued:
		case <-ctx.Done():
		}
		if err := p.direct.Release(t.Context(), g); err != nil {
			t.Errorf("%s: the rival's release: %v", p.name, err)
		}
	})
	return p.guard.WithLock(ctx, key, func(context.Context) error { return p.step() })
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
