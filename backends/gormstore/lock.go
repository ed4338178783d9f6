package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/dberr"
	"github.com/pawl-go/pawl/internal/lease"
)

var (
	_ driver.Viewer  = (*Store)(nil)
	_ driver.Checker = (*Store)(nil)
)

// Widths of the columns. A database that is not strict would cut what is
// longer, and then two keys would be one.
const (
	maxKey   = 640
	maxOwner = 255
)

// Acquire implements [driver.Locker]. Repeated by the live owner it also renews.
// Besides ErrBusy it refuses, with another error, a generation lower than that
// of an earlier holder: its token would not be greater.
func (s *Store) Acquire(ctx context.Context, r driver.Request) (driver.Grant, error) {
	zero, err := checkRequest(r)
	if err != nil {
		return driver.Grant{}, err
	}
	args := []any{[]byte(r.Key), r.Owner, zero, r.TTL.Microseconds()}
	var sent time.Time
	var token int64
	err = retry(ctx, func() (err error) {
		sent = time.Now()
		if token, err = s.dialect.value(ctx, s.pool, s.dialect.acquire, args...); err != nil || token != refused || s.dialect.outdated == "" {
			return err
		}
		token, err = s.dialect.value(ctx, s.pool, s.dialect.outdated, args[0], args[2])
		return err
	})
	switch {
	case err != nil:
		return driver.Grant{}, fmt.Errorf("gormstore: acquire: %w", dberr.Hint(err))
	case token == refused:
		return driver.Grant{}, driver.ErrBusy
	case token == outdated:
		return driver.Grant{}, fmt.Errorf("gormstore: acquire: generation %d is lower than that of an earlier holder: raise it everywhere", r.Generation)
	case token>>generationBit != zero>>generationBit:
		return driver.Grant{}, fmt.Errorf("gormstore: acquire: the sequence of the key does not fit into a token (%d)", token)
	}
	return driver.Grant{Request: r, Token: fencing.Token(token), Until: lease.Until(sent, r.TTL)}, nil
}

// Release implements [driver.Locker]. The release that freed the key may be
// repeated: the row remembers its owner until the next one.
func (s *Store) Release(ctx context.Context, g driver.Grant) error {
	if err := checkNames(g.Request); err != nil {
		return err
	}
	var token int64
	err := retry(ctx, func() (err error) {
		token, err = s.dialect.value(ctx, s.pool, s.dialect.release, []byte(g.Key), g.Owner, int64(g.Token))
		return err
	})
	switch {
	case err != nil:
		return fmt.Errorf("gormstore: release: %w", err)
	case token == refused:
		return driver.ErrLost
	}
	return nil
}

// Holder implements [driver.Viewer]. TTL and Until say how long the hold lasts
// if it is not renewed.
func (s *Store) Holder(ctx context.Context, key string) (driver.Grant, error) {
	var g driver.Grant
	sent := time.Now()
	err := query(ctx, s.pool, func(rows *sql.Rows) error {
		var token, left int64
		err := rows.Scan(&g.Owner, &token, &left)
		g.Key, g.Token, g.TTL = key, fencing.Token(token), time.Duration(left)*time.Microsecond
		g.Generation = uint8(token >> generationBit)
		g.Until = sent.Add(g.TTL)
		return err
	}, s.dialect.holder, []byte(key))
	if err != nil {
		return driver.Grant{}, fmt.Errorf("gormstore: holder: %w", dberr.Hint(err))
	}
	return g, nil
}

// The SQL computes tokens: generation << 57 | sequence << 9.
const (
	generationBit = 57
	sequenceBit   = 9
)

// checkRequest returns the token of r's generation at sequence 0.
func checkRequest(r driver.Request) (int64, error) {
	if err := checkNames(r); err != nil {
		return 0, err
	}
	if r.TTL < minTTL {
		return 0, fmt.Errorf("gormstore: TTL %v is below %v", r.TTL, minTTL)
	}
	first, err := fencing.NewToken(r.Generation, 1)
	if err != nil {
		return 0, err
	}
	return int64(first - 1<<sequenceBit), nil
}

// checkNames refuses what the columns do not hold as it is. One such name would
// also make a statement fail that renews others.
func checkNames(r driver.Request) error {
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		return fmt.Errorf("gormstore: key of %d bytes (want 1 to %d)", len(r.Key), maxKey)
	case r.Owner == "" || len(r.Owner) > maxOwner:
		return fmt.Errorf("gormstore: owner of %d bytes (want 1 to %d)", len(r.Owner), maxOwner)
	case !utf8.ValidString(r.Owner) || strings.ContainsRune(r.Owner, 0):
		return errors.New("gormstore: owner is not UTF-8 text")
	}
	return nil
}
