package fencing_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-go/pawl/fencing"
)

const maxSequence = 1<<48 - 1

func newToken(t rapid.TB, generation uint8, sequence uint64) fencing.Token {
	t.Helper()
	token, err := fencing.NewToken(generation, sequence)
	if err != nil {
		t.Fatalf("NewToken(%d, %d): got %v, want nil", generation, sequence, err)
	}
	return token
}

func TestNewToken_RefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		name       string
		generation uint8
		sequence   uint64
		want       bool // fits
	}{
		{"First", 0, 1, true},
		{"Greatest", 63, maxSequence, true},
		{"GenerationOf7Bits", 64, 1, false},
		{"GenerationOf8Bits", math.MaxUint8, 1, false},
		{"NoSequence", 0, 0, false},
		{"SequenceOf49Bits", 0, maxSequence + 1, false},
		{"SequenceOf64Bits", 0, math.MaxUint64, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			token, err := fencing.NewToken(c.generation, c.sequence)
			if fits := err == nil; fits != c.want {
				t.Errorf("NewToken(%d, %d): got %v, want it to fit: %v", c.generation, c.sequence, err, c.want)
			}
			if err != nil && token != 0 {
				t.Errorf("NewToken(%d, %d): got token %d beside an error, want none", c.generation, c.sequence, token)
			}
		})
	}
}

// A SQL BIGINT is signed: a token with the sign bit would sort first.
func TestNewToken_LeavesTheSignBit(t *testing.T) {
	token := newToken(t, 63, maxSequence)
	for range 255 {
		next, err := token.Next()
		if err != nil {
			t.Fatal(err)
		}
		token = next
	}
	if token > math.MaxInt64 {
		t.Errorf("greatest token: got %#x, want it below the sign bit", uint64(token))
	}
}

func TestNewToken_OrdersByGenerationThenSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) (uint8, uint64, fencing.Token) {
			g := rapid.Uint8Range(0, 63).Draw(t, label+" generation")
			s := rapid.Uint64Range(1, maxSequence).Draw(t, label+" sequence")
			return g, s, newToken(t, g, s)
		}
		g1, s1, t1 := draw("first")
		g2, s2, t2 := draw("second")
		want := g1 < g2 || g1 == g2 && s1 < s2
		if got := t1 < t2; got != want {
			t.Errorf("(%d, %d) before (%d, %d): got %v, want %v", g1, s1, g2, s2, got, want)
		}
	})
}

func TestNext_StaysBelowTheNextSequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.Uint8Range(0, 63).Draw(t, "generation")
		s := rapid.Uint64Range(1, maxSequence-1).Draw(t, "sequence")
		token, above := newToken(t, g, s), newToken(t, g, s+1)
		for i := range 255 {
			next, err := token.Next()
			if err != nil || next <= token || next >= above {
				t.Fatalf("hand-over %d of (%d, %d): got %d, %v, want one between %d and %d", i+1, g, s, next, err, token, above)
			}
			token = next
		}
	})
}

// The bit of the fallback is not the hand-over's: a token of a lock never has it.
func TestNext_LeavesTheFallbackBit(t *testing.T) {
	token := newToken(t, 1, 7)
	next, err := token.Next()
	if err != nil || token&1 != 0 || next&1 != 0 {
		t.Errorf("lowest bits: got %d and %d, %v, want 0 and 0", token&1, next&1, err)
	}
	marked, err := (token | 1).Next()
	if err != nil || marked != next|1 {
		t.Errorf("Next of a marked token: got %#x, %v, want %#x", uint64(marked), err, uint64(next|1))
	}
}

func TestNext_FailsInsteadOfWrapping(t *testing.T) {
	token := newToken(t, 3, 9)
	for range 255 {
		token, _ = token.Next()
	}
	if got, err := token.Next(); err == nil || got != 0 {
		t.Errorf("hand-over 256: got %d, %v, want 0 and an error", got, err)
	}
}

func FuzzNewToken(f *testing.F) {
	f.Add(uint8(0), uint64(1))
	f.Add(uint8(63), uint64(maxSequence))
	f.Add(uint8(64), uint64(0))
	f.Fuzz(func(t *testing.T, generation uint8, sequence uint64) {
		token, err := fencing.NewToken(generation, sequence)
		if fits := generation <= 63 && sequence >= 1 && sequence <= maxSequence; fits != (err == nil) {
			t.Fatalf("NewToken(%d, %d): got %v, want it to fit: %v", generation, sequence, err, fits)
		}
		if err != nil {
			return
		}
		if g, s, low := uint8(token>>57), uint64(token>>9)&maxSequence, token&511; g != generation || s != sequence || low != 0 {
			t.Errorf("NewToken(%d, %d): got generation %d, sequence %d, low bits %d", generation, sequence, g, s, low)
		}
	})
}
