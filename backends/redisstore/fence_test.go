package redisstore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/pawl-go/pawl/backends/redisstore"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/servertest"
)

// holder is the ctx of one who holds sku:42 by a lock of the given origin.
func holder(t *testing.T, token fencing.Token, origin string) context.Context {
	t.Helper()
	return fencing.NewContext(t.Context(), fencing.Grant{Resource: "shop:sku:42", Token: token, Origin: origin})
}

const origin = "etcd/shop"

// succession is three holders in their order: the second by a hand-over of the
// first one's hold, the third by a grant of its own.
func succession(t *testing.T) (first, handed, third context.Context) {
	t.Helper()
	token, err := fencing.NewToken(0, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	next, err := token.Next()
	if err != nil {
		t.Fatal(err)
	}
	last, err := fencing.NewToken(0, 1<<40+1)
	if err != nil {
		t.Fatal(err)
	}
	return holder(t, token, origin), holder(t, next, origin), holder(t, last, origin)
}

func fenced(t *testing.T) (*redisstore.Fenced, *redis.Client) {
	t.Helper()
	c := client(t, servertest.Redis(t).Addr)
	return redisstore.Fence(c), c
}

const stock = "{sku:42}:stock"

func sell(ctx context.Context, get, set func(ctx context.Context, cmd ...any) *redis.Cmd, between func()) error {
	n, err := get(ctx, "GET", stock).Int()
	if err != nil {
		return err
	}
	between()
	return set(ctx, "SET", stock, n-1).Err()
}

// A holder is late: it reads and writes after the next one has read, and before
// that one writes. What is left and what was sold must add up.
func TestFenced_LateSaleIsRefusedOnlyIfReadsAreFencedToo(t *testing.T) {
	f, plain := fenced(t)
	first, _, third := succession(t)
	for _, test := range []struct {
		name     string
		get, set func(ctx context.Context, cmd ...any) *redis.Cmd
		addsUp   bool
	}{
		{"Unfenced", plain.Do, plain.Do, false},
		{"WritesOnly", plain.Do, f.Do, false}, // the late write passes: the next holder has not written yet
		{"ReadsAndWrites", f.Do, f.Do, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			plain.FlushAll(t.Context())
			plain.Set(t.Context(), stock, 10, 0)
			var late error
			err := sell(third, test.get, test.set, func() { late = sell(first, test.get, test.set, func() {}) })
			if err != nil {
				t.Fatalf("sale of the live holder: got %v, want nil", err)
			}
			sold := 1
			if late == nil {
				sold++
			} else if !errors.Is(late, fencing.ErrStale) {
				t.Fatalf("late sale: got %v, want nil or %v", late, fencing.ErrStale)
			}
			left, err := plain.Get(t.Context(), stock).Int()
			if err != nil {
				t.Fatal(err)
			}
			if got := left+sold == 10; got != test.addsUp {
				t.Errorf("10 units: got %d sold and %d left, want them to add up: %v", sold, left, test.addsUp)
			}
		})
	}
}

func TestFenced_RefusesStaleReadsAndWrites(t *testing.T) {
	f, plain := fenced(t)
	first, handed, third := succession(t)
	for i, live := range []context.Context{first, handed, third} {
		if err := f.Do(live, "SET", stock, i).Err(); err != nil {
			t.Fatalf("write of holder %d: got %v, want nil", i+1, err)
		}
		if err := f.Do(live, "INCRBY", stock, 10).Err(); err != nil {
			t.Errorf("second write of holder %d: got %v, want nil", i+1, err)
		}
		for j, stale := range []context.Context{first, handed, third}[:i] {
			for _, cmd := range [][]any{{"GET", stock}, {"SET", stock, "late"}, {"DEL", stock}} {
				if err := f.Do(stale, cmd...).Err(); !errors.Is(err, fencing.ErrStale) {
					t.Errorf("%s of holder %d after holder %d: got %v, want %v", cmd[0], j+1, i+1, err, fencing.ErrStale)
				}
			}
		}
	}
	if got := plain.Get(t.Context(), stock).Val(); got != "12" {
		t.Errorf("value: got %q, want that of the last holder", got)
	}
}

// A first read is enough to shut out the holders before.
func TestFenced_AReadRaisesTheRegister(t *testing.T) {
	f, plain := fenced(t)
	first, _, third := succession(t)
	if err := f.Do(third, "GET", stock).Err(); !errors.Is(err, redis.Nil) {
		t.Fatalf("read of nothing: got %v, want redis.Nil", err)
	}
	if err := f.Do(first, "SET", stock, 1).Err(); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("late write: got %v, want %v", err, fencing.ErrStale)
	}
	register := "pawl:fence:{sku:42}:shop:sku:42"
	if got := plain.TTL(t.Context(), register).Val(); got != -1 {
		t.Errorf("expiry of the register: got %v, want none", got)
	}
}

func TestFenced_NeedsAGrant(t *testing.T) {
	f, plain := fenced(t)
	if err := f.Do(t.Context(), "SET", stock, 1).Err(); err == nil {
		t.Error("Do without a grant: got nil, want an error")
	}
	if err := f.Eval(t.Context(), "return redis.call('SET', KEYS[1], 1)", []string{stock}).Err(); err == nil {
		t.Error("Eval without a grant: got nil, want an error")
	}
	first, _, _ := succession(t)
	if err := redisstore.Fence(nil).Do(first, "GET", stock).Err(); err == nil {
		t.Error("Do without a client: got nil, want an error")
	}
	if got := plain.DBSize(t.Context()).Val(); got != 0 {
		t.Errorf("keys: got %d, want none", got)
	}
}

func TestFenced_ComparesTokensOfOneOriginOnly(t *testing.T) {
	f, _ := fenced(t)
	low, _ := fencing.NewToken(1, 5)
	high, _ := fencing.NewToken(1, 7)
	next, _ := fencing.NewToken(2, 3)
	for _, step := range []struct {
		name   string
		token  fencing.Token
		origin string
		want   error
	}{
		{"first", low, origin, nil},
		{"greater, but of another store", high, "redis/shop", fencing.ErrForeign},
		{"the first again", low, origin, nil},
		{"another store of a higher generation", next, "redis/shop", nil},
		{"the first store", high, origin, fencing.ErrForeign},
		{"the other store, earlier generation", high, "redis/shop", fencing.ErrStale},
	} {
		if err := f.Do(holder(t, step.token, step.origin), "SET", stock, 1).Err(); !errors.Is(err, step.want) {
			t.Errorf("%s: got %v, want %v", step.name, err, step.want)
		}
	}
}

func TestFenced_AdoptsARegisterWithoutOrigin(t *testing.T) {
	f, _ := fenced(t)
	low, _ := fencing.NewToken(0, 5)
	high, _ := fencing.NewToken(0, 7)
	for _, step := range []struct {
		token  fencing.Token
		origin string
		want   error
	}{{low, "", redis.Nil}, {high, origin, redis.Nil}, {high, "", fencing.ErrForeign}, {low, origin, fencing.ErrStale}} {
		if err := f.Do(holder(t, step.token, step.origin), "GET", stock).Err(); !errors.Is(err, step.want) {
			t.Errorf("token %d of %q: got %v, want %v", step.token, step.origin, err, step.want)
		}
	}
}

// 63 bits do not fit into a Lua number.
func TestFenced_ComparesEveryBit(t *testing.T) {
	f, _ := fenced(t)
	last := fencing.Token(1<<63 - 1)
	for _, bit := range []int{0, 1, 9, 31, 32, 33, 52, 53, 56} {
		resource := fencing.Grant{Resource: string(rune('a' + bit)), Origin: origin}
		greater, smaller := resource, resource
		greater.Token, smaller.Token = last, last&^(1<<bit)
		for _, step := range []struct {
			g    fencing.Grant
			want error
		}{{smaller, redis.Nil}, {greater, redis.Nil}, {smaller, fencing.ErrStale}, {greater, redis.Nil}} {
			if err := f.Do(fencing.NewContext(t.Context(), step.g), "GET", stock).Err(); !errors.Is(err, step.want) {
				t.Errorf("bit %d, token %d: got %v, want %v", bit, step.g.Token, err, step.want)
			}
		}
	}
}

// All grants of a ctx are checked, and none is raised if one is refused.
func TestFenced_ChecksEveryGrant(t *testing.T) {
	f, plain := fenced(t)
	grant := func(resource string, token fencing.Token) fencing.Grant {
		return fencing.Grant{Resource: resource, Token: token, Origin: origin}
	}
	if err := f.Do(fencing.NewContext(t.Context(), grant("b", 4)), "SET", stock, 1).Err(); err != nil {
		t.Fatal(err)
	}
	both := fencing.NewContext(t.Context(), grant("a", 9), grant("b", 2))
	if err := f.Do(both, "SET", stock, 2).Err(); !errors.Is(err, fencing.ErrStale) {
		t.Errorf("one of two grants is stale: got %v, want %v", err, fencing.ErrStale)
	}
	keys := plain.Keys(t.Context(), "pawl:fence:*").Val()
	if diff := cmp.Diff([]string{"pawl:fence:{sku:42}:b"}, keys); diff != "" {
		t.Errorf("registers (-want +got):\n%s", diff)
	}
}
