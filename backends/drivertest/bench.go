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
	request := func(key, owner string) driver.Request {
		return driver.Request{Key: "bench:" + key, Owner: "bench#" + owner, TTL: max(h.TTL, time.Minute)}
	}
	b.Run("AcquireRelease", func(b *testing.B) {
		benchmark(b, open(), request("free", "1"), func(ctx context.Context, l driver.Locker, r driver.Request) error {
			g, err := l.Acquire(ctx, r)
			return errors.Join(err, l.Release(ctx, g))
		})
	})
	b.Run("Renew", func(b *testing.B) {
		l, r := open(), request("renewed", "1")
		g, err := l.Acquire(b.Context(), r)
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, l, r, func(ctx context.Context, l driver.Locker, _ driver.Request) (err error) {
			g, err = l.Renew(ctx, g)
			return err
		})
		_ = l.Release(context.WithoutCancel(b.Context()), g)
	})
	b.Run("Busy", func(b *testing.B) {
		l, held := open(), request("held", "1")
		g, err := l.Acquire(b.Context(), held)
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, l, request("held", "2"), func(ctx context.Context, l driver.Locker, r driver.Request) error {
			if _, err := l.Acquire(ctx, r); !errors.Is(err, driver.ErrBusy) {
				return errors.Join(errors.New("a held key was not busy"), err)
			}
			return nil
		})
		_ = l.Release(context.WithoutCancel(b.Context()), g)
	})
	b.Run("Contended", func(b *testing.B) {
		var owner atomic.Int64
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			l, r := open(), request("contended", strconv.FormatInt(owner.Add(1), 10))
			for pb.Next() {
				g, err := obtain(b.Context(), l, r)
				if err := errors.Join(err, l.Release(b.Context(), g)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

func benchmark(b *testing.B, l driver.Locker, r driver.Request, once func(context.Context, driver.Locker, driver.Request) error) {
	b.Helper()
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := once(ctx, l, r); err != nil {
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
