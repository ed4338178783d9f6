package drivertest

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// BenchmarkLocker measures a free acquire and release, a renewal, a refusal, and
// the hand-over of one key between rivals. Open is called with nil: what it
// needs of a test it takes from b.
func BenchmarkLocker(b *testing.B, h Harness[driver.Locker]) {
	open := h.Open(nil)
	ttl := max(h.TTL, time.Minute)
	b.Run("AcquireRelease", func(b *testing.B) { benchmarkFree(b, open(), ttl) })
	b.Run("Renew", func(b *testing.B) { benchmarkRenew(b, open(), ttl) })
	b.Run("Busy", func(b *testing.B) { benchmarkBusy(b, open(), ttl) })
	b.Run("Contended", func(b *testing.B) { benchmarkContended(b, open, ttl) })
}

func benchmarkFree(b *testing.B, l driver.Locker, ttl time.Duration) {
	b.Helper()
	r := benchRequest("free", "1", ttl)
	loop(b, func(ctx context.Context) error {
		g, err := l.Acquire(ctx, r)
		return errors.Join(err, l.Release(ctx, g))
	})
}

func benchmarkRenew(b *testing.B, l driver.Locker, ttl time.Duration) {
	b.Helper()
	g, err := l.Acquire(b.Context(), benchRequest("renewed", "1", ttl))
	if err != nil {
		b.Fatal(err)
	}
	loop(b, func(ctx context.Context) (err error) {
		g, err = l.Renew(ctx, g)
		return err
	})
	_ = l.Release(context.WithoutCancel(b.Context()), g)
}

func benchmarkBusy(b *testing.B, l driver.Locker, ttl time.Duration) {
	b.Helper()
	g, err := l.Acquire(b.Context(), benchRequest("held", "1", ttl))
	if err != nil {
		b.Fatal(err)
	}
	r := benchRequest("held", "2", ttl)
	loop(b, func(ctx context.Context) error {
		if _, err := l.Acquire(ctx, r); !errors.Is(err, driver.ErrBusy) {
			return errors.Join(errors.New("a held key was not busy"), err)
		}
		return nil
	})
	_ = l.Release(context.WithoutCancel(b.Context()), g)
}

func benchmarkContended(b *testing.B, open func() driver.Locker, ttl time.Duration) {
	b.Helper()
	var owner atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		l, r := open(), benchRequest("contended", strconv.FormatInt(owner.Add(1), 10), ttl)
		for pb.Next() {
			g, err := obtain(b.Context(), l, r)
			if err := errors.Join(err, l.Release(b.Context(), g)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchRequest(key, owner string, ttl time.Duration) driver.Request {
	return driver.Request{Key: "bench:" + key, Owner: "bench#" + owner, TTL: ttl}
}

func loop(b *testing.B, once func(context.Context) error) {
	b.Helper()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := once(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// obtain waits for the key, by the store's queue if it has one.
func obtain(ctx context.Context, l driver.Locker, r driver.Request) (driver.Grant, error) {
	if w, ok := l.(driver.Waiter); ok {
		return w.AcquireWait(ctx, r)
	}
	for {
		if g, err := l.Acquire(ctx, r); !errors.Is(err, driver.ErrBusy) {
			return g, err
		}
		time.Sleep(time.Millisecond)
	}
}
