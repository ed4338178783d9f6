package redisstore

import (
	"net/url"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/fencing"
)

func FuzzNamesOf(f *testing.F) {
	for _, key := range []string{"shop:sku:42", "", "{", "}", "{}", "}{", "a{b}c", "{a}{b}", "%", "%7B", "%7b", "K", "k", "k ", "\x00\xff"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		n := namesOf(key)
		for _, name := range []string{n.lock, n.order, n.freed} {
			if got := hashTag(name); got != tagged(key) {
				t.Errorf("hash tag of %q: got %q, want %q", name, got, tagged(key))
			}
		}
		if n.lock == n.order || n.lock == n.freed {
			t.Errorf("names of %q: got %+v, want three", key, n)
		}
		back := tagged(key) // distinct keys stay distinct: the way back exists
		if back == "%" {
			back = ""
		}
		if got, err := url.PathUnescape(back); err != nil || got != key {
			t.Errorf("way back from %q: got %q, %v, want %q", tagged(key), got, err, key)
		}
	})
}

// The register of a command lies in the slot of its keys, or the command is
// refused.
func FuzzCommonTag(f *testing.F) {
	for _, key := range []string{"sku", "{sku}:a", "a{sku}b", "{{sku}}", "", "{}", "{}a", "a}b", "a{b", "{a}{b}", "{a"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		tag, err := commonTag([]string{key})
		if err != nil {
			if hashTag(key) == key && key != "" && !strings.Contains(key, "}") {
				t.Errorf("tag of %q: got %v, want one", key, err)
			}
			return
		}
		if got := hashTag("pawl:fence:{" + tag + "}:resource"); got != hashTag(key) {
			t.Errorf("tag of the register for %q: got %q, want %q", key, got, hashTag(key))
		}
	})
}

func TestFirstOf_IsTheStartOfTheGeneration(t *testing.T) {
	for generation := range uint8(64) {
		first, err := fencing.NewToken(generation, 1)
		if err != nil {
			t.Fatal(err)
		}
		last, err := fencing.NewToken(generation, 1<<48-1)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []fencing.Token{first, first + 511, last, last + 511} {
			if got := firstOf(token); got != first {
				t.Errorf("first token of the generation of %d: got %d, want %d", token, got, first)
			}
		}
	}
}
