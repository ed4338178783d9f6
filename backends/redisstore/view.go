package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
)

// Holder implements [driver.Viewer]. TTL is what is left of the lease, and Until
// the earliest time at which it may end.
func (s *Store) Holder(ctx context.Context, key string) (driver.Grant, error) {
	rep, err := s.holder.Do(ctx, call{keys: []string{namesOf(key).lock}})
	if err != nil {
		return driver.Grant{}, fmt.Errorf("redisstore: holder: %w", err)
	}
	got, err := rep.cmd.Slice()
	if err != nil {
		return driver.Grant{}, fmt.Errorf("redisstore: holder: %w", err)
	}
	if len(got) == 0 {
		return driver.Grant{}, nil
	}
	g, err := seen(key, got, rep.sent)
	if err != nil {
		return driver.Grant{}, fmt.Errorf("redisstore: holder: %w", err)
	}
	return g, nil
}

// seen is the grant behind a lock's value and the milliseconds left of it.
func seen(key string, got []any, sent time.Time) (driver.Grant, error) {
	if len(got) != 2 {
		return driver.Grant{}, errReply
	}
	value, isText := got[0].(string)
	left, isNumber := got[1].(int64)
	parts := strings.SplitN(value, " ", 3)
	if !isText || !isNumber || len(parts) != 3 {
		return driver.Grant{}, errReply
	}
	generation, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return driver.Grant{}, errReply
	}
	sequence, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return driver.Grant{}, errReply
	}
	r := driver.Request{Key: key, Owner: parts[2], TTL: time.Duration(left) * time.Millisecond}
	return granted(r, sequence, generation, sent)
}
