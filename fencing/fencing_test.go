package fencing_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/fencing"
)

func grant(resource string, token fencing.Token) fencing.Grant {
	return fencing.Grant{Resource: resource, Token: token, Origin: "memory/shop"}
}

func wantGrants(t *testing.T, ctx context.Context, want ...fencing.Grant) {
	t.Helper()
	if diff := gocmp.Diff(want, fencing.Grants(ctx)); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
}

func TestNewContext_WithoutGrantsIsTheContext(t *testing.T) {
	ctx := t.Context()
	if got := fencing.NewContext(ctx); got != ctx {
		t.Errorf("NewContext(ctx): got another context, want ctx")
	}
	if got := fencing.Grants(ctx); len(got) != 0 {
		t.Errorf("Grants of a bare context: got %v, want none", got)
	}
}

func TestNewContext_AddsAndSorts(t *testing.T) {
	ctx := fencing.NewContext(t.Context(), grant("shop:b", 5))
	ctx = fencing.NewContext(ctx, grant("shop:c", 1), grant("shop:a", 9))
	wantGrants(t, ctx, grant("shop:a", 9), grant("shop:b", 5), grant("shop:c", 1))
}

func TestNewContext_GreatestTokenCounts(t *testing.T) {
	outer := fencing.NewContext(t.Context(), grant("shop:a", 5))
	wantGrants(t, fencing.NewContext(outer, grant("shop:a", 4)), grant("shop:a", 5))
	wantGrants(t, fencing.NewContext(outer, grant("shop:a", 6)), grant("shop:a", 6))
	wantGrants(t, fencing.NewContext(t.Context(), grant("shop:a", 1), grant("shop:a", 3), grant("shop:a", 2)), grant("shop:a", 3))
	wantGrants(t, outer, grant("shop:a", 5)) // a context never changes
}

// The orders of two stores do not compare: the inner hold is the one in force.
func TestNewContext_OfTwoOriginsTheInnerCounts(t *testing.T) {
	outer := fencing.Grant{Resource: "shop:a", Token: 900, Origin: "redis/shop"}
	inner := fencing.Grant{Resource: "shop:a", Token: 7, Origin: "etcd/shop"}
	ctx := fencing.NewContext(fencing.NewContext(t.Context(), outer), inner)
	if got := fencing.Grants(ctx); len(got) != 1 || got[0] != inner {
		t.Errorf("got %v, want only %v", got, inner)
	}
}

func TestNewContext_PassesThroughOtherContexts(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "value")
	ctx, cancel := context.WithCancelCause(fencing.NewContext(ctx, grant("shop:a", 1)))
	ctx = fencing.NewContext(ctx, grant("shop:b", 2))
	wantGrants(t, context.WithoutCancel(ctx), grant("shop:a", 1), grant("shop:b", 2))
	if got := ctx.Value(key{}); got != "value" {
		t.Errorf("value of the parent: got %v, want %q", got, "value")
	}
	why := errors.New("lost")
	cancel(why)
	if got := context.Cause(ctx); got != why { //nolint:errorlint // the cause itself, not one that wraps it
		t.Errorf("cause: got %v, want %v", got, why)
	}
}

func TestGrants_AreTheCallers(t *testing.T) {
	given := []fencing.Grant{grant("shop:a", 1), grant("shop:b", 2)}
	ctx := fencing.NewContext(t.Context(), given...)
	given[0].Token = 77
	fencing.Grants(ctx)[1].Token = 88
	wantGrants(t, ctx, grant("shop:a", 1), grant("shop:b", 2))
	one := fencing.NewContext(t.Context(), grant("shop:a", 1))
	fencing.Grants(one)[0].Token = 99
	wantGrants(t, one, grant("shop:a", 1))
}

// Whatever is nested how, a context carries the greatest token of each
// resource, in order.
func TestNewContext_IsAMaximum(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nested, want := []context.Context{t.Context()}, map[string]fencing.Token{}
		for range rapid.IntRange(0, 6).Draw(rt, "levels") {
			grants := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) fencing.Grant {
				return grant(rapid.SampledFrom([]string{"a", "A", "b", "b ", "\u00e9", ""}).Draw(rt, "resource"),
					fencing.Token(rapid.Uint64Range(1, 9).Draw(rt, "token")))
			}), 0, 4).Draw(rt, "grants")
			nested = append(nested, fencing.NewContext(nested[len(nested)-1], grants...))
			for _, g := range grants {
				want[g.Resource] = max(want[g.Resource], g.Token)
			}
		}
		got := fencing.Grants(nested[len(nested)-1])
		if len(got) != len(want) {
			rt.Fatalf("grants: got %v, want one for each of %v", got, want)
		}
		for i, resource := range slices.Sorted(maps.Keys(want)) {
			if got[i] != grant(resource, want[resource]) {
				rt.Fatalf("grant %d: got %v, want token %d of %q", i, got[i], want[resource], resource)
			}
		}
	})
}

// gate refuses one resource and notes what comes by.
type gate struct {
	stale string
	seen  []fencing.Grant
}

func (g *gate) Admit(_ context.Context, grant fencing.Grant) error {
	g.seen = append(g.seen, grant)
	if grant.Resource == g.stale {
		return fencing.ErrStale
	}
	return nil
}

func TestAdmit_EntersInOrder(t *testing.T) {
	ctx := fencing.NewContext(t.Context(), grant("shop:c", 1), grant("shop:a", 2), grant("shop:b", 3))
	var g gate
	if err := fencing.Admit(ctx, &g); err != nil {
		t.Fatalf("Admit: got %v, want nil", err)
	}
	if !slices.IsSortedFunc(g.seen, func(a, b fencing.Grant) int { return cmp.Compare(a.Resource, b.Resource) }) || len(g.seen) != 3 {
		t.Errorf("gate saw %v, want all three in order of resource", g.seen)
	}
}

func TestAdmit_StopsAtTheFirstRefusal(t *testing.T) {
	ctx := fencing.NewContext(t.Context(), grant("shop:a", 1), grant("shop:b", 2), grant("shop:c", 3))
	g := gate{stale: "shop:b"}
	if err := fencing.Admit(ctx, &g); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("Admit: got %v, want ErrStale", err)
	}
	if len(g.seen) != 2 {
		t.Errorf("grants shown to the gate: got %d, want 2", len(g.seen))
	}
}

func TestAdmit_PassesWithoutGrants(t *testing.T) {
	g := gate{stale: "shop:a"}
	if err := fencing.Admit(t.Context(), &g); err != nil || len(g.seen) != 0 {
		t.Errorf("Admit of a bare context: got %v and %d grants, want nil and none", err, len(g.seen))
	}
}

func BenchmarkNewContext(b *testing.B) {
	ctx, g := context.Background(), grant("shop:sku:42", 1)
	b.ReportAllocs()
	for b.Loop() {
		fencing.NewContext(ctx, g)
	}
}
