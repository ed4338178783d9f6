package history_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/history"
)

// verdict compares err with whether a history should be legal.
func verdict(t *testing.T, err error, legal bool) {
	t.Helper()
	var broken *history.ViolationError
	switch {
	case legal && err != nil:
		t.Errorf("got %v, want nil", err)
	case !legal && !errors.As(err, &broken):
		t.Errorf("got %v, want a ViolationError", err)
	}
}

func grant(call, ret int64, sequence uint64) history.Grant {
	token, _ := fencing.NewToken(0, sequence) // 0 is no sequence, and no token
	return history.Grant{Key: "k", Call: call, Return: ret, Token: token}
}

// passed is g after hand-overs.
func passed(g history.Grant, times int) history.Grant {
	for range times {
		g.Token, _ = g.Token.Next()
	}
	return g
}

func TestTokens(t *testing.T) {
	tests := []struct {
		name   string
		legal  bool
		grants []history.Grant
	}{
		{"None", true, nil},
		{"Growing", true, []history.Grant{grant(0, 1, 5), grant(2, 3, 6)}},
		{"InAnyOrderOfTheList", true, []history.Grant{grant(2, 3, 6), grant(0, 1, 5)}},
		{"OverlappingCallsInEitherOrder", true, []history.Grant{grant(0, 3, 6), grant(1, 2, 5)}},
		{"OtherKeysDoNotCompare", true, []history.Grant{grant(0, 1, 6), {Key: "other", Call: 2, Return: 3, Token: 512}}},
		{"Falling", false, []history.Grant{grant(0, 1, 6), grant(2, 3, 5)}},
		{"Repeated", false, []history.Grant{grant(0, 1, 5), grant(2, 3, 5)}},
		{"RepeatedByOverlappingCalls", false, []history.Grant{grant(0, 3, 5), grant(1, 2, 5)}},
		{"FallingBelowAnOverlappingOne", false, []history.Grant{grant(0, 1, 7), grant(0, 9, 8), grant(2, 3, 6)}},
		{"PassedOn", true, []history.Grant{grant(0, 1, 5), passed(grant(2, 3, 5), 1), passed(grant(4, 5, 5), 2), grant(6, 7, 6)}},
		{"PassedOnAfterALaterGrant", true, []history.Grant{grant(0, 1, 5), grant(2, 3, 6), passed(grant(4, 5, 5), 1)}},
		{"PassedOnTwice", false, []history.Grant{grant(0, 1, 5), passed(grant(2, 3, 5), 1), passed(grant(4, 5, 5), 1)}},
		{"PassedBack", false, []history.Grant{grant(0, 1, 5), passed(grant(2, 3, 5), 2), passed(grant(4, 5, 5), 1)}},
		{"ZeroIsNoToken", false, []history.Grant{grant(0, 1, 0)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { verdict(t, history.Tokens(tt.grants), tt.legal) })
	}
}

// read and write are accesses of token to the resource "r".
func read(call, ret int64, token fencing.Token, saw int64) history.Access {
	return history.Access{Resource: "r", Call: call, Return: ret, Token: token, Saw: saw, Outcome: history.OK}
}

func write(call, ret int64, token fencing.Token, saw, wrote int64) history.Access {
	a := read(call, ret, token, saw)
	a.Write, a.Wrote = true, wrote
	return a
}

func with(o history.Outcome, a history.Access) history.Access {
	a.Outcome = o
	return a
}

func TestRegister(t *testing.T) {
	const stale, unknown = history.Stale, history.Unknown
	type accesses = []history.Access
	tests := []struct {
		name  string
		legal bool
		list  accesses // before a last read
		last  int64    // its value
	}{
		{"Untouched", true, nil, 0},
		{"ReadAndWrite", true, accesses{read(0, 1, 5, 0), write(2, 3, 5, 0, 1)}, 1},
		{"TwoHolders", true, accesses{read(0, 1, 5, 0), write(2, 3, 5, 0, 1), read(4, 5, 6, 1), write(6, 7, 6, 1, 2)}, 2},
		{"OlderHolderIsRefused", true, accesses{read(0, 1, 5, 0), read(2, 3, 6, 0), with(stale, write(4, 5, 5, 0, 1)), write(6, 7, 6, 0, 2)}, 2},
		{"OverlappingAccessesInEitherOrder", true, accesses{read(0, 9, 6, 1), write(1, 8, 5, 0, 1)}, 1},
		{"AFailedReadMayHaveRaised", true, accesses{with(unknown, read(0, 1, 6, 0)), with(stale, write(2, 3, 5, 0, 1))}, 0},
		{"OrNotYet", true, accesses{with(unknown, read(0, 1, 6, 0)), write(2, 3, 5, 0, 1)}, 1},
		{"ARefusedReadHasRaised", true, accesses{ // 6 raises and is overtaken by 7 before it looks
			with(stale, read(0, 9, 6, 0)), with(stale, read(1, 2, 5, 0)), read(3, 4, 7, 0),
		}, 0},
		{"UnknownWriteHappened", true, accesses{read(0, 1, 5, 0), with(unknown, write(2, 3, 5, 0, 1)), read(4, 5, 6, 1)}, 1},
		{"UnknownWriteHappenedAfterItsCallerLeft", true, accesses{
			read(0, 1, 5, 0), with(unknown, write(2, 3, 5, 0, 1)), read(4, 5, 5, 0), read(6, 7, 5, 1),
		}, 1},
		{"UnknownWriteDidNotHappen", true, accesses{read(0, 1, 5, 0), with(unknown, write(2, 3, 5, 0, 1)), read(4, 5, 6, 0)}, 0},

		{"TokensOfEffectsFall", false, accesses{write(0, 1, 6, 0, 1), write(2, 3, 5, 1, 2)}, 2},
		{"LostUpdate", false, accesses{read(0, 1, 5, 0), read(2, 3, 6, 0), write(4, 5, 6, 0, 1), write(6, 7, 6, 0, 2)}, 2},
		{"StaleAfterARead", false, accesses{ // check-on-write: the register does not know that 6 has read
			read(0, 1, 5, 0), read(2, 3, 6, 0), write(4, 5, 5, 0, 1), write(6, 7, 6, 0, 2),
		}, 2},
		{"StaleAfterAWrite", false, accesses{write(0, 1, 6, 0, 1), read(2, 3, 5, 1)}, 1},
		{"StaleIsFinal", false, accesses{read(0, 1, 6, 0), with(stale, read(2, 3, 5, 0)), read(4, 5, 5, 0)}, 0},
		{"RefusedWithoutALaterHolder", false, accesses{read(0, 1, 5, 0), with(stale, write(2, 3, 5, 0, 1))}, 0},
		{"RefusedWriteHappened", false, accesses{read(0, 1, 5, 0), read(2, 3, 6, 0), with(stale, write(4, 5, 5, 0, 1))}, 1},
		{"AcceptedWriteIsGone", false, accesses{write(0, 1, 5, 0, 1)}, 0},
		{"OldValueAgain", false, accesses{write(0, 1, 5, 0, 1), read(2, 3, 6, 0)}, 1},
		{"UnknownWriteOfAStaleHolderHappens", false, accesses{
			read(0, 1, 5, 0), with(unknown, write(2, 3, 5, 0, 1)), read(4, 5, 6, 0), read(6, 7, 6, 1),
		}, 1},
		{"UnknownWriteAsALostUpdate", false, accesses{
			read(0, 1, 5, 0), with(unknown, write(2, 3, 5, 0, 1)), write(4, 5, 5, 0, 2), read(6, 7, 5, 2),
		}, 1},
		{"ValueOfNobody", false, nil, 7},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			verdict(t, history.Register(0, append(tt.list, read(100, 101, 99, tt.last))), tt.legal)
		})
	}
}

func TestRegister_NeedsALastRead(t *testing.T) {
	for name, list := range map[string][]history.Access{
		"Write":   {write(0, 1, 5, 0, 1)},
		"Unknown": {with(history.Unknown, read(0, 1, 5, 0))},
		"Early":   {write(0, 5, 5, 0, 1), read(4, 6, 6, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if err := history.Register(0, list); err == nil {
				t.Error("got nil, want an error: the history does not end")
			}
		})
	}
}

func TestViolation_Draws(t *testing.T) {
	err := history.Tokens([]history.Grant{grant(0, 1, 6), grant(2, 3, 5)})
	var broken *history.ViolationError
	if !errors.As(err, &broken) {
		t.Fatalf("got %v, want a ViolationError", err)
	}
	page := filepath.Join(t.TempDir(), "page.html")
	if err := broken.Draw(page); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(page); err != nil || info.Size() == 0 {
		t.Errorf("got %v, %v, want a page", info, err)
	}
}

// A real register, driven at random by clients that overlap, is never accused; one
// that is checked on write only is found out.
func TestRegister_JudgesASimulation(t *testing.T) {
	found := 0
	for seed := range uint64(40) {
		verdict(t, history.Register(0, simulate(seed, true)), true)
		if history.Register(0, simulate(seed, false)) != nil {
			found++
		}
	}
	if found < 20 {
		t.Errorf("a register that is checked on write only was found out in %d of 40 runs, want most", found)
	}
}

// simulate runs four clients in one thread: each step is one of them reading or
// writing, so calls of a hold interleave with those of others. An access is given
// a span around its step, and one in eight replies is lost.
func simulate(seed uint64, onRead bool) []history.Access {
	r := rand.New(rand.NewPCG(seed, 1))
	var list []history.Access
	var register fencing.Token
	var value, wrote int64
	type client struct {
		token fencing.Token // 0: holds nothing
		saw   int64
	}
	clients := make([]client, 4)
	for step := range int64(300) {
		i := r.IntN(len(clients))
		c := &clients[i]
		at := step * 10
		a := history.Access{Client: i, Resource: "r", Call: at - r.Int64N(9), Return: at + r.Int64N(9), Outcome: history.OK}
		if c.token == 0 {
			c.token = fencing.Token(step + 1)
			a.Token, a.Saw = c.token, value
			if onRead {
				register = c.token
			}
			c.saw = value
		} else {
			wrote++
			a.Token, a.Write, a.Saw, a.Wrote = c.token, true, c.saw, wrote
			if c.token < register {
				a.Outcome = history.Stale
			} else {
				register, value = c.token, wrote
			}
			*c = client{}
		}
		if r.IntN(8) == 0 {
			a.Outcome = history.Unknown
		}
		list = append(list, a)
	}
	return slices.Concat(list, []history.Access{read(1e6, 1e6+1, 1e6, value)})
}
