package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"time"
)

const (
	// orderKept is how long a free key's row is kept: what waits that long with an
	// old token, or with an old generation, is gone.
	orderKept = 7 * 24 * time.Hour
	// forgetRows is how many rows one statement deletes.
	forgetRows = 64
)

// Sweep deletes up to max rows of keys that have been free for 7 days, and
// returns how many it deleted; also together with an error. It is for a nightly
// job. It never deletes what an order depends on: a row whose sequence is ahead
// of the clock stays, since the key would start again from the clock, and so do
// fences. It reads the table in pieces and locks only what it deletes.
func (s *Store) Sweep(ctx context.Context, max int) (int, error) { //nolint:revive // max is the name that says it
	deleted := 0
	last := []byte{}
	for deleted < max {
		keys, err := s.idle(ctx, last, min(forgetRows, max-deleted))
		if err != nil || len(keys) == 0 {
			return deleted, wrapSweep(err)
		}
		last = keys[len(keys)-1]
		args := make([]any, forgetRows) // nil matches nothing
		for i, k := range keys {
			args[i] = k
		}
		err = retry(ctx, func() error {
			result, err := s.pool.ExecContext(ctx, s.dialect.forget, args...)
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			deleted += int(n)
			return err
		})
		if err != nil {
			return deleted, wrapSweep(err)
		}
	}
	return deleted, nil
}

func wrapSweep(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("gormstore: sweep: %w", err)
}

func (s *Store) idle(ctx context.Context, after []byte, n int) (keys [][]byte, err error) {
	err = query(ctx, s.pool, func(rows *sql.Rows) error {
		var key []byte
		err := rows.Scan(&key)
		keys = append(keys, key)
		return err
	}, s.dialect.idle, after, n)
	return keys, err
}

// idle is the condition on a row that may be forgotten: expires_at tells since
// when the key is free, whether it was given back or ran out.
func idle(now string) string {
	kept := strconv.FormatInt(orderKept.Microseconds(), 10)
	return `abs(expires_at) < ` + now + ` - ` + kept + ` AND seq < ` + now + ` / 16`
}
