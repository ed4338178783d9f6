package guard_test

import (
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawl-go/pawl/backends/memstore"
	"github.com/pawl-go/pawl/guard"
)

type (
	sku    string
	number uint16
)

func TestKey_JoinsAndEscapes(t *testing.T) {
	for _, tt := range []struct {
		want  string
		parts []any
	}{
		{"sku:42", []any{"sku", 42}},
		{"sku:42", []any{sku("sku"), number(42)}},
		{"a%3Ab:c", []any{"a:b", "c"}},
		{"a:b%3Ac", []any{"a", "b:c"}},
		{"100%25:-7", []any{"100%", int64(-7)}},
		{"ip:127.0.0.1", []any{"ip", netip.MustParseAddr("127.0.0.1")}},
		{"user:", []any{"user", ""}},
	} {
		if got := guard.Key(tt.parts...); got != tt.want {
			t.Errorf("Key(%#v): got %q, want %q", tt.parts, got, tt.want)
		}
	}
}

func TestKey_OfWhatIsNoKeyIsRefused(t *testing.T) {
	g := newGuard(t, lockOnly(), memstore.New())
	var nobody *stringer
	for _, parts := range [][]any{{"a", 1.5}, {nil}, {[]byte("x")}, {nobody}, {struct{}{}}, {}, {"\xff"}, {""}, {true}} {
		wantErr(t, g.WithLock(t.Context(), guard.Key(parts...), nothing), guard.ErrInvalid)
	}
}

type stringer struct{ s string }

func (s *stringer) String() string { return s.s }

func FuzzKey_DistinctPartsGiveDistinctKeys(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Add("%3A", "", ":", "")
	f.Add("a%", "3Ab", "a", "%3Ab")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := guard.Key(a, b), guard.Key(c, d)
		if same := a == c && b == d; same != (one == two) {
			t.Errorf("Key(%q, %q) = %q, Key(%q, %q) = %q", a, b, one, c, d, two)
		}
		if strings.Count(one, ":") != 1 {
			t.Errorf("Key(%q, %q) = %q: want one separator", a, b, one)
		}
		if utf8.ValidString(a+b) && !utf8.ValidString(one) {
			t.Errorf("Key(%q, %q) is not UTF-8", a, b)
		}
	})
}
