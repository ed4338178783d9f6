package guard_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

type deduct struct {
	sku   string
	units int
}

func bySKU(r deduct) string { return guard.Key("sku", r.sku) }

func TestLocked_RunsTheFunctionUnderItsKey(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		g := newGuard(t, lockOnly(), s)
		f := guard.Locked(g, bySKU, func(ctx context.Context, r deduct) (int, error) {
			if !g.Held(ctx, "sku:a") {
				t.Error("the key is not held")
			}
			return r.units, errFn
		}, guard.Wait(0))
		if left, err := f(t.Context(), deduct{"a", 7}); left != 7 || !errors.Is(err, errFn) {
			t.Errorf("got %d, %v; want what the function returned", left, err)
		}
		rival(t, s, "sku:a", time.Hour)
		_, err := f(t.Context(), deduct{"a", 7})
		wantErr(t, err, guard.ErrBusy)
		_, err = guard.Locked[deduct, int](g, bySKU, nil)(t.Context(), deduct{})
		wantErr(t, err, guard.ErrInvalid)
	})
}

func ExampleLocked() {
	stock := exampleGuard()
	sell := guard.Locked(stock, bySKU, func(_ context.Context, r deduct) (string, error) {
		return fmt.Sprintf("%d of %s", r.units, r.sku), nil
	})
	fmt.Println(sell(context.Background(), deduct{sku: "lamp", units: 2}))
	// Output: 2 of lamp <nil>
}
