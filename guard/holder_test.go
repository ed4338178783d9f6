package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

func TestHolder_IsOneSentinelUnderALostHold(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := connect(memstore.New())
		g := newGuard(t, lockOnly(), w)
		w.breaks(func(_ context.Context, call string, _ int) error {
			if call == "Holder" {
				time.Sleep(time.Minute)
			}
			if call == "Renew" {
				return driver.ErrLost
			}
			return nil
		}, nil)
		ctx, l, err := g.Lock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the loss comes while Holder is under way
		_, _, err = g.Holder(ctx, "k")
		wantErr(t, err, guard.ErrUnavailable)
		_ = l.Unlock(t.Context())
		time.Sleep(2 * time.Minute)
	})
}
