package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/pawl-go/pawl/backends/driver"
	"github.com/pawl-go/pawl/internal/lease"
)

// verdict is the answer to one renewal.
type verdict struct {
	live bool
	sent time.Time
}

// hold is what a renewal compares. Owners are unique, so it names the row too.
type hold struct {
	owner string
	token int64
}

func holdOf(g driver.Grant) hold { return hold{g.Owner, int64(g.Token)} }

// Renew implements [driver.Locker]. Renewals made while one is under way share
// the next statement, so ten thousand holds cost some hundred statements.
// A shorter TTL takes nothing back that was promised.
func (s *Store) Renew(ctx context.Context, g driver.Grant) (driver.Grant, error) {
	if err := checkNames(g.Request); err != nil {
		return driver.Grant{}, err
	}
	v, err := s.renewal.Do(ctx, g)
	switch {
	case err != nil:
		return driver.Grant{}, fmt.Errorf("gormstore: renew: %w", err)
	case !v.live:
		return driver.Grant{}, driver.ErrLost
	}
	g.Until = lease.Until(v.sent, g.TTL)
	return g, nil
}

// renew sends one batch.
func (s *Store) renew(ctx context.Context, grants []driver.Grant, answer func(int, verdict)) error {
	var sent time.Time
	var live map[hold]bool
	err := retry(ctx, func() (err error) {
		sent = time.Now()
		live, err = s.dialect.renew(ctx, s.pool, grants)
		return err
	})
	if err != nil {
		return err
	}
	for i, g := range grants {
		answer(i, verdict{live: live[holdOf(g)], sent: sent})
	}
	return nil
}

// renewArgs are key, owner, token and TTL of each grant, filled up with rows
// that match nothing.
func renewArgs(grants []driver.Grant) []any {
	const columns = 4
	args := make([]any, 0, columns*padded(len(grants)))
	for _, g := range grants {
		args = append(args, []byte(g.Key), g.Owner, holdOf(g).token, g.TTL.Microseconds())
	}
	return args[:cap(args)]
}

// renewed runs a statement that returns owner and token of what it renewed.
func renewed(ctx context.Context, q querier, text string, args ...any) (map[hold]bool, error) {
	live := make(map[hold]bool)
	err := query(ctx, q, func(rows *sql.Rows) error {
		var h hold
		err := rows.Scan(&h.owner, &h.token)
		live[h] = true
		return err
	}, text, args...)
	return live, err
}
