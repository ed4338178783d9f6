package redisstore

import (
	"fmt"
	"strings"
)

// names are what one lock uses in Redis. They share a hash tag, so that a
// cluster keeps them in one slot and one script may use them together.
type names struct {
	lock  string // "<generation> <sequence> <owner>" while it is held, with its lease as the key's time to live
	order string // hash: last, at (the clock rule), left, leftat (recent releases); outlives the lock
	freed string // channel on which a release is told
}

func namesOf(key string) names {
	base := "pawl:{" + tagged(key) + "}:"
	return names{lock: base + "lock", order: base + "order", freed: base + "freed"}
}

// tagged makes key fit between the braces of a hash tag: an empty tag, or a
// brace in it, would put the keys of one lock into different slots. Different
// keys stay different, byte for byte.
func tagged(key string) string {
	if key == "" {
		return "%"
	}
	if !strings.ContainsAny(key, "%{}") {
		return key
	}
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; c {
		case '%', '{', '}':
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
