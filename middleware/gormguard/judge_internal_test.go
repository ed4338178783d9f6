package gormguard

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/pawl-go/pawl/fencing"
)

func TestJudge(t *testing.T) {
	token := func(generation uint8, n uint64) fencing.Token {
		v, err := fencing.NewToken(generation, n)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	next, err := token(0, 5).Next()
	if err != nil {
		t.Fatal(err)
	}
	fallback := token(0, 5) | 1
	tests := []struct {
		name string
		reg  register
		g    fencing.Grant
		want error
	}{
		{"Equal", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 5), Origin: "o"}, nil},
		{"Newer", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 6), Origin: "o"}, errBehind},
		{"Older", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 4), Origin: "o"}, fencing.ErrStale},
		{"HandedOver", register{"r", "o", next}, fencing.Grant{Token: token(0, 5), Origin: "o"}, fencing.ErrStale},
		{"AfterFallback", register{"r", "o", fallback}, fencing.Grant{Token: token(0, 5), Origin: "o"}, fencing.ErrStale},
		{"HandOverAfterFallback", register{"r", "o", fallback}, fencing.Grant{Token: next, Origin: "o"}, errBehind},
		{"Foreign", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 9), Origin: "p"}, fencing.ErrForeign},
		{"ForeignEqual", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 5), Origin: "p"}, fencing.ErrForeign},
		{"Moved", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(1, 1), Origin: "p"}, errBehind},
		{"MovedAway", register{"r", "o", token(1, 5)}, fencing.Grant{Token: token(0, 9), Origin: "p"}, fencing.ErrForeign},
		{"Restored", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(1, 1), Origin: "o"}, errBehind},
		{"NoOrigin", register{"r", "", 1}, fencing.Grant{Token: token(0, 1), Origin: "o"}, errBehind},
		{"NoOriginGreater", register{"r", "", token(0, 5)}, fencing.Grant{Token: token(0, 4), Origin: "o"}, fencing.ErrStale},
		{"NoOriginAtAll", register{"r", "", token(0, 5)}, fencing.Grant{Token: token(0, 5)}, nil},
		{"GrantWithoutOrigin", register{"r", "o", token(0, 5)}, fencing.Grant{Token: token(0, 6)}, fencing.ErrForeign},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := judge(test.reg, test.g); !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestJudgeAll_RefusalGoesBeforeMissing(t *testing.T) {
	found := map[string]register{"b": {"b", "o", 4}}
	grants := []fencing.Grant{{Resource: "a", Token: 2, Origin: "o"}, {Resource: "b", Token: 2, Origin: "o"}}
	if got := judgeAll(found, grants); !errors.Is(got, fencing.ErrStale) {
		t.Errorf("got %v, want %v", got, fencing.ErrStale)
	}
	if got := judgeAll(found, grants[:1]); !errors.Is(got, errBehind) {
		t.Errorf("got %v, want %v", got, errBehind)
	}
}

func TestMemory_IsBounded(t *testing.T) {
	m := newMemory()
	for i := range 3 * remembered {
		g := fencing.Grant{Resource: strconv.Itoa(i), Token: 2}
		m.learn(g)
		if !m.knows(g) {
			t.Fatalf("grant %d: got forgotten, want known", i)
		}
	}
	if len(m.raised) != remembered {
		t.Errorf("got %d resources, want %d", len(m.raised), remembered)
	}
	g := fencing.Grant{Resource: "r", Token: 2}
	m.learn(g)
	m.learn(fencing.Grant{Resource: "r", Token: 4})
	if m.knows(g) {
		t.Error("an older grant: got known, want only the last one of a resource")
	}
}

func TestMySQL_KnowsWhatEndsATransaction(t *testing.T) {
	type serverError struct {
		error
		Number   uint16
		SQLState [5]byte
	}
	state := func(s string) error {
		return fmt.Errorf("wrapped: %w", &serverError{errors.New("x"), 1, [5]byte([]byte(s))})
	}
	for s, want := range map[string]bool{"23000": false, "42000": false, "22003": false, "40001": true, "HY000": true} {
		if got := (mysql{}).ends(state(s)); got != want {
			t.Errorf("%s: got %v, want %v", s, got, want)
		}
	}
	if (mysql{}).ends(errors.New("invalid connection")) {
		t.Error("a client's error: got true, want false")
	}
	if (mysql{}).refused(errors.New("invalid connection")) || !(mysql{}).refused(state("40001")) || (mysql{}).refused(state("HY000")) {
		t.Error("refused: want class 40 and 23 only")
	}
}
