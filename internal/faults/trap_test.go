package faults_test

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
)

// trap freezes its process when it is sprung for the first time after it was set.
type trap struct {
	set    atomic.Bool
	frozen func()
}

func (t *trap) spring() {
	if !t.set.CompareAndSwap(true, false) {
		return
	}
	t.frozen()
	before := time.Now()
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP); err != nil {
		panic(err)
	}
	for { // this thread may run on for a moment
		now := time.Now()
		if now.Sub(before) > freezeTTL/2 {
			return
		}
		before = now
	}
}

// trappedContext springs when guard looks whether its caller is still there: after
// the wait, and before fn.
type trappedContext struct {
	*watchedContext
	trap *trap
}

func (c *trappedContext) Err() error {
	c.trap.spring()
	return c.watchedContext.Err()
}

// springs is a meter whose counters spring a trap: it freezes the process inside of
// guard.
type springs struct {
	noop.MeterProvider
	trap *trap // may be nil
}

func (s *springs) Meter(string, ...metric.MeterOption) metric.Meter { return springMeter{trap: s.trap} }

type springMeter struct {
	noop.Meter
	trap *trap
}

func (m springMeter) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name != "pawl.lock.verdicts" || m.trap == nil {
		return noop.Int64Counter{}, nil
	}
	return springCounter{trap: m.trap}, nil
}

type springCounter struct {
	noop.Int64Counter
	trap *trap
}

func (c springCounter) Add(context.Context, int64, ...metric.AddOption) { c.trap.spring() }
