package guard

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxKey = 512 // bytes; every store keeps them whole

// refused begins a key that [Key] could not build. The byte is not UTF-8, so no
// key that a caller writes by hand passes for it.
const refused = "\xff"

// Key joins parts with ':' and escapes, so that ("a:b", "c") and ("a", "b:c")
// differ. Parts are strings, integers or fmt.Stringers; anything else gives a
// key that every method refuses with ErrInvalid.
func Key(parts ...any) string {
	var b strings.Builder
	for i, part := range parts {
		s, err := keyPart(part)
		if err != nil {
			return refused + fmt.Sprintf("guard.Key: part %d %s", i+1, err)
		}
		if i > 0 {
			b.WriteByte(':')
		}
		writeEscaped(&b, s)
	}
	return b.String()
}

func keyPart(part any) (s string, err error) {
	switch v := part.(type) {
	case string:
		return v, nil
	case int:
		return strconv.Itoa(v), nil
	case fmt.Stringer:
		defer func() { // a nil pointer behind the interface
			if recover() != nil {
				err = fmt.Errorf("is a %T whose String method panics", part)
			}
		}()
		return v.String(), nil
	}
	switch v := reflect.ValueOf(part); v.Kind() {
	case reflect.String:
		return v.String(), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return strconv.FormatUint(v.Uint(), 10), nil
	default:
		return "", fmt.Errorf("is a %T: use a string, an integer or a fmt.Stringer", part)
	}
}

func writeEscaped(b *strings.Builder, s string) {
	if !strings.ContainsAny(s, ":%") {
		b.WriteString(s)
		return
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case ':':
			b.WriteString("%3A")
		case '%':
			b.WriteString("%25")
		default:
			b.WriteByte(c)
		}
	}
}

// checkKey refuses what not every store keeps byte for byte.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("the key is empty: name what is locked, for instance guard.Key(\"sku\", 42)")
	case strings.HasPrefix(key, refused):
		return errors.New(strings.ToValidUTF8(key[len(refused):], "?"))
	case len(key) > maxKey:
		return fmt.Errorf("the key has %d bytes: at most %d; hash what is longer", len(key), maxKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not UTF-8: encode it, for instance as hex")
	case strings.IndexByte(key, 0) >= 0:
		return errors.New("the key has a NUL byte, which not every store keeps: encode it, for instance as hex")
	}
	return nil
}
