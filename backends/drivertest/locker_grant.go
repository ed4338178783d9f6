package drivertest

import (
	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
)

func grantCases() []lockCase {
	return []lockCase{
		{"TraitsAreConstant", traitsAreConstant},
		{"GrantEchoesRequest", grantEchoesRequest},
		{"TokenGrowsOverHolders", tokenGrowsOverHolders},
		{"TokenLeavesRoomForHandover", tokenLeavesRoomForHandover},
		{"TokenStaysThroughRenew", tokenStaysThroughRenew},
		{"GenerationReachesToken", generationReachesToken},
		{"GenerationTooLargeIsRefused", generationTooLargeIsRefused},
	}
}

func traitsAreConstant(t *lockTest) {
	got := t.a.Traits()
	if got.Name == "" {
		t.Error("Traits.Name: got none, want the store's name")
	}
	if _, err := got.Consistency.MarshalText(); err != nil {
		t.Errorf("Traits.Consistency: got %v, want a valid value", got.Consistency)
	}
	if got.MinTTL <= 0 || got.MinTTL > t.h.TTL {
		t.Errorf("Traits.MinTTL: got %v, want more than 0 and at most the harness's TTL (%v)", got.MinTTL, t.h.TTL)
	}
	if other := t.b.Traits(); other != got {
		t.Errorf("Traits of a second handle: got %+v, want %+v", other, got)
	}
}

func grantEchoesRequest(t *lockTest) {
	r := t.request("k")
	r.Generation = 3
	check := func(call string, g driver.Grant) {
		t.Helper()
		if g.Key != r.Key || g.Owner != r.Owner || g.Generation != r.Generation {
			t.Errorf("%s: got %+v, want key, owner and generation of %+v", call, g, r)
		}
		if g.TTL <= 0 {
			t.Errorf("%s: got TTL %v, want the one in force", call, g.TTL)
		}
		if g.Token == 0 {
			t.Errorf("%s: got the zero token, want a holder's", call)
		}
	}
	g := t.acquire(t.a, r)
	check("Acquire", g)
	check("Acquire repeated", t.acquire(t.a, r))
	check("Renew", t.renew(t.a, g))
}

func tokenGrowsOverHolders(t *lockTest) {
	var last fencing.Token
	for i := range 12 {
		l := t.a
		if i%2 == 1 {
			l = t.b
		}
		g := t.acquire(l, t.request("k"))
		if g.Token <= last {
			t.Fatalf("token of holder %d: got %d, want more than %d", i+1, g.Token, last)
		}
		last = g.Token
		t.release(l, g)
	}
}

// A guard hands a hold over inside the process, each time with the next token.
func tokenLeavesRoomForHandover(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	token := g.Token
	for i := range 250 {
		next, err := token.Next()
		if err != nil {
			t.Fatalf("hand-over %d: got %v, want room for 250", i+1, err)
		}
		token = next
	}
	t.release(t.a, g)
	if next := t.acquire(t.b, t.request("k")); next.Token <= token {
		t.Errorf("token of the next holder: got %d, want more than %d, the last that was handed over", next.Token, token)
	}
}

func tokenStaysThroughRenew(t *lockTest) {
	g := t.acquire(t.a, t.request("k"))
	for range 3 {
		renewed := t.renew(t.a, g)
		if renewed.Token != g.Token {
			t.Fatalf("token after Renew: got %d, want %d", renewed.Token, g.Token)
		}
		g = renewed
	}
}

func generationReachesToken(t *lockTest) {
	for generation := range uint8(3) {
		r := t.request("k")
		r.Generation = generation
		g := t.acquire(t.a, r)
		low, _ := fencing.NewToken(generation, 1)
		high, _ := fencing.NewToken(generation+1, 1)
		if g.Token < low || g.Token >= high {
			t.Fatalf("token of generation %d: got %d, want one in [%d, %d)", generation, g.Token, low, high)
		}
		t.release(t.a, g)
	}
}

func generationTooLargeIsRefused(t *lockTest) {
	r := t.request("k")
	r.Generation = 64
	if g, err := t.a.Acquire(t.Context(), r); err == nil {
		t.Fatalf("Acquire with a generation of 7 bits: got token %d, want an error", g.Token)
	}
	_ = t.a.Release(t.Context(), driver.Grant{Request: r}) // as guard does after an error
	t.acquire(t.b, t.request("k"))
}
