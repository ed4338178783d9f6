package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

// Bad input is told with the field and the fix before any store is touched.
func TestGuard_BadInputTouchesNoStore(t *testing.T) {
	w := connect(memstore.New())
	w.traits.MinTTL = time.Second
	g := newGuard(t, lockOnly(), w)
	expired, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	lock := func(ctx context.Context, key string, opts ...guard.LockOption) error {
		return g.WithLock(ctx, key, nothing, opts...)
	}
	tests := []struct {
		name string
		call func() error
		want error
		text string
	}{
		{"EmptyKey", func() error { return lock(t.Context(), "") }, guard.ErrInvalid, "the key is empty"},
		{"LongKey", func() error { return lock(t.Context(), strings.Repeat("k", 513)) }, guard.ErrInvalid, "513 bytes"},
		{"NotUTF8", func() error { return lock(t.Context(), "a\xc3") }, guard.ErrInvalid, "not UTF-8"},
		{"NUL", func() error { return lock(t.Context(), "a\x00b") }, guard.ErrInvalid, "NUL"},
		{"BadPart", func() error { return lock(t.Context(), guard.Key("price", 1.5)) }, guard.ErrInvalid, "part 2 is a float64"},
		{"ZeroTTL", func() error { return lock(t.Context(), "k", guard.TTL(0)) }, guard.ErrInvalid, "TTL is 0s"},
		{"NegativeTTL", func() error { return lock(t.Context(), "k", guard.TTL(-1)) }, guard.ErrInvalid, "TTL is -1ns"},
		{"TTLBelowTheStores", func() error { return lock(t.Context(), "k", guard.TTL(time.Millisecond)) }, guard.ErrInvalid, "at least 1s"},
		{"NegativeWait", func() error { return lock(t.Context(), "k", guard.Wait(-1)) }, guard.ErrInvalid, "Wait is -1ns"},
		{"NilOption", func() error { return lock(t.Context(), "k", nil) }, guard.ErrInvalid, "option is nil"},
		{"NilContext", func() error { return lock(nil, "k") }, guard.ErrInvalid, "context is nil"},
		{"NilFn", func() error { return g.WithLock(t.Context(), "k", nil) }, guard.ErrInvalid, "fn is nil"},
		{"NilFnOfLocks", func() error { return g.WithLocks(t.Context(), []string{"k"}, nil) }, guard.ErrInvalid, "fn is nil"},
		{"NoKeys", func() error { return g.WithLocks(t.Context(), nil, nothing) }, guard.ErrInvalid, "no keys"},
		{"OneBadKey", func() error { return g.WithLocks(t.Context(), []string{"a", ""}, nothing) }, guard.ErrInvalid, "empty"},
		{"LockEmptyKey", func() error { _, _, err := g.Lock(t.Context(), ""); return err }, guard.ErrInvalid, "empty"},
		{"TryLockEmptyKey", func() error { _, _, err := g.TryLock(t.Context(), ""); return err }, guard.ErrInvalid, "empty"},
		{"HolderEmptyKey", func() error { _, _, err := g.Holder(t.Context(), ""); return err }, guard.ErrInvalid, "empty"},
		{"ExpiredContext", func() error { return lock(expired, "k") }, guard.ErrUnavailable, "deadline exceeded"},
		{"CancelledContext", func() error { return lock(cancelled, "k") }, guard.ErrUnavailable, "canceled"},
		{"NoTimeLeft", func() error { return lock(late{t.Context()}, "k") }, guard.ErrUnavailable, "deadline exceeded"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.call()
			wantErr(t, err, tt.want)
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %q, want it to say %q", err, tt.text)
			}
		})
	}
	if calls := w.log(); len(calls) != 0 {
		t.Errorf("the store was called: %v", calls)
	}
}

// late has no time left and a timer that has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now(), true }

func TestNew_Refuses(t *testing.T) {
	var typedNil *wire
	local := memstore.New()
	server := connect(memstore.New())
	async := connect(memstore.New())
	async.traits.Name, async.traits.Consistency = "redis", driver.Async
	change := func(f func(*guard.Profile)) guard.Profile { p := lockOnly(); f(&p); return p }
	tests := []struct {
		name    string
		profile guard.Profile
		opts    []guard.Option
		text    string
	}{
		{"NoStores", lockOnly(), nil, "given: none"},
		{"UnsafeStore", lockOnly(), []guard.Option{guard.On(async)}, `profile "stock" needs a lock of consistency consensus (etcdstore, zkstore) or primary (gormstore); given: redis (async)`},
		{"LocalStore", lockOnly(), []guard.Option{guard.On(local)}, "only with SingleProcess"},
		{"NoLedger", guard.Stock(), []guard.Option{guard.On(server)}, "needs a ledger"},
		{"NoLimiter", guard.RateLimit(), []guard.Option{guard.On(server)}, "needs a limiter"},
		{"NilStore", lockOnly(), []guard.Option{guard.On(nil)}, "store 1 is nil"},
		{"TypedNilStore", lockOnly(), []guard.Option{guard.On(server, typedNil)}, "store 2 is a nil *guard_test.wire"},
		{"UncomparableStore", lockOnly(), []guard.Option{guard.On(byValue{server, nil})}, "pass a pointer"},
		{"NilOption", lockOnly(), []guard.Option{nil}, "option 1 is nil"},
		{"NilLogger", lockOnly(), []guard.Option{guard.WithLogger(nil)}, "WithLogger(nil)"},
		{"EmptyNamespace", lockOnly(), []guard.Option{guard.WithNamespace("")}, "WithNamespace"},
		{"NamespaceWithColon", lockOnly(), []guard.Option{guard.WithNamespace("a:b")}, "without ':'"},
		{"EmptyIdentity", lockOnly(), []guard.Option{guard.WithIdentity("")}, "WithIdentity"},
		{"LongIdentity", lockOnly(), []guard.Option{guard.WithIdentity(strings.Repeat("x", 129))}, "WithIdentity"},
		{"Generation", lockOnly(), []guard.Option{guard.WithGeneration(64)}, "at most 63"},
		{"NoName", change(func(p *guard.Profile) { p.Name = "" }), nil, "Profile.Name"},
		{"NoRole", change(func(p *guard.Profile) { p.Lock = nil }), nil, "no role"},
		{"Consistency", change(func(p *guard.Profile) { p.Lock = []driver.Consistency{9} }), nil, "Profile.Lock"},
		{"ZeroTTL", change(func(p *guard.Profile) { p.TTL = 0 }), nil, "Profile.TTL"},
		{"TTLBelowTheStores", change(func(p *guard.Profile) { p.TTL = time.Microsecond }), []guard.Option{guard.On(server)}, "Profile.TTL is 1µs: the wired store keeps at least 1ms"},
		{"TTLBelowTheMargin", change(func(p *guard.Profile) { p.TTL = 10 * time.Millisecond }), []guard.Option{guard.On(server)}, "safety margin"},
		{"NegativeWait", change(func(p *guard.Profile) { p.Wait = -1 }), nil, "Profile.Wait"},
		{"NegativeMaxHold", change(func(p *guard.Profile) { p.MaxHold = -1 }), nil, "Profile.MaxHold"},
		{"Handovers", change(func(p *guard.Profile) { p.Handovers = 251 }), nil, "at most 250"},
		{"Instances", change(func(p *guard.Profile) { p.Instances = -1 }), nil, "Profile.Instances"},
		{"LockOutage", change(func(p *guard.Profile) { p.LockOutage = 0 }), nil, "Profile.LockOutage"},
		{"Retention", func() guard.Profile { p := guard.Stock(); p.Retention = time.Second; return p }(), nil, "Profile.Retention"},
		{"OnError", func() guard.Profile { p := guard.Stock(); p.OnError = 0; return p }(), nil, "Profile.OnError"},
		{"OnDeath", func() guard.Profile { p := guard.Stock(); p.OnDeath = 7; return p }(), nil, "Profile.OnDeath"},
		{"LedgerOutage", func() guard.Profile { p := guard.Stock(); p.LedgerOutage = guard.Degrade; return p }(), nil, "a Hold forbids"},
		{"LimiterOutage", func() guard.Profile { p := guard.RateLimit(); p.LimiterOutage = 0; return p }(), nil, "Profile.LimiterOutage"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := guard.New(tt.profile, tt.opts...)
			wantErr(t, err, guard.ErrInvalid)
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %q, want it to say %q", err, tt.text)
			}
		})
	}
	if calls := append(server.log(), async.log()...); len(calls) != 0 {
		t.Errorf("New used the network: %v", calls)
	}
}

type byValue struct {
	*wire
	_ []int
}

func TestNew_PrefersTheProfilesFirstConsistency(t *testing.T) {
	named := func(name string, c driver.Consistency) *wire {
		w := connect(memstore.New())
		w.traits.Name, w.traits.Consistency = name, c
		return w
	}
	redis, pg, my, etcd := named("redis", driver.Async), named("postgres", driver.Primary), named("mysql", driver.Primary), named("etcd", driver.Consensus)
	for _, tt := range []struct {
		profile guard.Profile
		stores  []driver.Backend
		want    string
	}{
		{lockOnly(), []driver.Backend{redis, pg, etcd}, "etcd"},
		{lockOnly(), []driver.Backend{redis, my, pg}, "mysql"},
		{func() guard.Profile { p := guard.DuplicateSubmit(); p.Ledger, p.Limiter = nil, nil; return p }(), []driver.Backend{etcd, pg, redis}, "redis"},
		{guard.Leadership(), []driver.Backend{redis, pg}, "postgres"},
		{guard.ConfigChange(), []driver.Backend{pg, etcd}, "etcd"},
	} {
		g, err := guard.New(tt.profile, guard.On(tt.stores...))
		if err != nil {
			t.Fatal(err)
		}
		if got := g.Plan().Lock; got != tt.want {
			t.Errorf("%s: got lock on %s, want %s", tt.profile.Name, got, tt.want)
		}
	}
}

func TestNew_BuiltInProfilesAreValid(t *testing.T) {
	for _, p := range []guard.Profile{
		guard.RateLimit(), guard.DuplicateSubmit(), guard.Stock(), guard.Payment(), guard.Leadership(), guard.ConfigChange(),
	} {
		// Without a store each must be refused for its role, and for nothing else.
		if _, err := guard.New(p); err == nil || !strings.Contains(err.Error(), "given: none") {
			t.Errorf("%s: got %v, want the missing store", p.Name, err)
		}
	}
}

func TestError_SaysWhatFailedWhere(t *testing.T) {
	s := memstore.New()
	rival(t, s, "sku:42", time.Hour)
	g := newGuard(t, lockOnly(), s)
	_, _, err := g.TryLock(t.Context(), "sku:42")
	if got, want := err.Error(), `pawl: TryLock "sku:42" (stock on memory): held by another`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	e, ok := errors.AsType[*guard.Error](err)
	if !ok || e.Op != "TryLock" || e.Key != "sku:42" || e.Profile != "stock" || e.Store != "memory" {
		t.Errorf("got %#v", e)
	}
}
