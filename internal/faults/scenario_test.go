package faults_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/guard"
)

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
		p.renewals.Add(1)
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
