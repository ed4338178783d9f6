package bench_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

const (
	crowd = 64 // goroutines on one key
	phase = 500 * time.Millisecond
	least = 20 // times as many acquisitions with hand-over as without
)

// BenchmarkHandover_OneKeyOnRedis measures 64 goroutines on one key with hand-over
// and without, in turn: an operation is half a second of each.
func BenchmarkHandover_OneKeyOnRedis(b *testing.B) {
	store, _, _ := openRedis(b)
	var with, without float64
	for b.Loop() {
		with += rate(b, store, 0)
		without += rate(b, store, -1)
	}
	b.ReportMetric(with/float64(b.N), "with/s")
	b.ReportMetric(without/float64(b.N), "without/s")
	b.ReportMetric(with/without, "ratio")
	if with < least*without {
		b.Errorf("hand-over: got %.1f times the acquisitions, want at least %d", with/without, least)
	}
}

func TestHandover_IsTwentyTimesAsFast(t *testing.T) {
	store, _, _ := openRedis(t)
	with, without := rate(t, store, 0), rate(t, store, -1)
	t.Logf("%.0f acquisitions a second with hand-over, %.0f without: %.1f times", with, without, with/without)
	if with < least*without {
		t.Errorf("got %.1f times the acquisitions with hand-over, want at least %d", with/without, least)
	}
}

// rate is how often a second a crowd gets one key.
func rate(tb testing.TB, store driver.Locker, handovers int) float64 {
	tb.Helper()
	g := openGuard(tb, profile(handovers), store)
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	holds := 0
	began := time.Now()
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			for ctx.Err() == nil {
				err := g.WithLock(context.WithoutCancel(ctx), "key", func(context.Context) error { holds++; return nil })
				if err != nil {
					tb.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(phase)
	cancel()
	all.Wait()
	return float64(holds) / time.Since(began).Seconds()
}
