package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// returned runs a statement that returns one integer, or no row: then it is 0.
func returned(ctx context.Context, pool *sql.DB, query string, args ...any) (int64, error) {
	rows, err := pool.QueryContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	var v int64
	err = each(rows, func() error { return rows.Scan(&v) })
	return v, err
}

// each reads rows to their end, which comes after the commit: a statement may
// return its row first and then fail to commit it.
func each(rows *sql.Rows, row func() error) (err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(); err != nil {
			return err
		}
	}
	return rows.Err()
}

// repeat is item n times, separated by commas.
func repeat(item string, n int) string {
	return strings.TrimSuffix(strings.Repeat(item+", ", n), ", ")
}

// padded is the size of a list of n in a statement, with few values for all n:
// drivers keep a prepared statement for each text.
func padded(n int) int {
	size := 1
	for size < n {
		size *= 2
	}
	return size
}
