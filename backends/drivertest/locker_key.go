package drivertest

import (
	"errors"
	"strings"

	"github.com/pawl-go/pawl/backends/driver"
)

func keyCases() []lockCase {
	return []lockCase{
		{"KeysStayDifferent", keysStayDifferent},
		{"LongKeysStayDifferent", longKeysStayDifferent},
		{"KeysAreIndependent", keysAreIndependent},
	}
}

// awkward keys are those that some store is known to fold, cut, escape or match.
func awkward() []string {
	return []string{
		"key", "Key", "KEY", "key ", " key", "key\t", "key\n", "key.", "key/", "key/a", "key:a", "key-", "ke", "keyy",
		"stra\u00dfe", "strasse", "\u00e9", "e\u0301", "\u0130", "\u0131", "i", "I", "\u00c5", "\u212b", "a", "\u00aa", "\uff41",
		"\u200bkey", "ke\u00ady", "\ufeffkey", "\U0001f512", "\U0001f513", "\ufffd", "\u007f", "\u0001",
		"{key}", "{key", "key}", "{}key", "{key}{a}", "*", "?", "k?y", "[k]ey", "k%y", "k_y", "%6bey", "%", "%%", "\\", "\\\\", "\\x6bey",
		"'", "''", "\"", "`", ";", "--", "$1", "@p", "?1", ":a", "..", ".", "../key", "//", "/", "0", "00", "0x0", "1e0", "null", "true",
	}
}

func keysStayDifferent(t *lockTest) { t.checkDifferent(awkward()) }

// A full key has at most 600 bytes.
func longKeysStayDifferent(t *lockTest) {
	room := 600 - len(t.prefix)
	long := strings.Repeat("k", room-1)
	wide := strings.Repeat("\u20ac", room/3-1)
	t.checkDifferent([]string{
		long + "a", long + "b", long, long[:len(long)-1], "a" + long, strings.Repeat(" ", room), strings.Repeat(" ", room-1),
		wide + "\u20ac", wide + "\u20ad", wide, strings.Repeat("/", room), strings.Repeat("%", room), strings.Repeat("'", room),
	})
}

// checkDifferent holds all keys at once, then frees every second one.
func (t *lockTest) checkDifferent(keys []string) {
	t.Helper()
	grants := make([]driver.Grant, len(keys))
	for i, key := range keys {
		r := t.request(key)
		g, err := t.a.Acquire(t.Context(), r)
		if err != nil {
			t.Fatalf("Acquire of %.40q (%d bytes) beside the keys before it: got %v, want nil", r.Key, len(r.Key), err)
		}
		if g.Key != r.Key {
			t.Fatalf("key of the grant: got %q, want %q", g.Key, r.Key)
		}
		grants[i] = g
	}
	for i := 0; i < len(grants); i += 2 {
		t.release(t.a, grants[i])
	}
	for i, g := range grants {
		_, err := t.b.Acquire(t.Context(), t.request(keys[i]))
		if free := i%2 == 0; free && err != nil {
			t.Errorf("Acquire of %.40q, which was released: got %v, want nil", g.Key, err)
		} else if !free && !errors.Is(err, driver.ErrBusy) {
			t.Errorf("Acquire of %.40q, which is held: got %v, want ErrBusy", g.Key, err)
		}
	}
}

func keysAreIndependent(t *lockTest) {
	x, y := t.acquire(t.a, t.request("x")), t.acquire(t.a, t.brief("y"))
	other := y
	other.Key = x.Key
	t.wantLost("Release with another key's grant", t.a.Release(t.Context(), other))
	t.expire(t.a, y)
	t.acquireSoon(t.b, t.request("y"))
	t.renew(t.a, x)
	t.wantBusy(t.b, "x")
	t.release(t.a, x)
	t.wantBusy(t.a, "y")
}
