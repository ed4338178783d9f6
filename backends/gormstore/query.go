package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// querier is a pool or one of its connections.
type querier interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// query gives each row to scan. It reads to the end, which comes after the
// commit: a statement may return its row first and then fail to commit it.
func query(ctx context.Context, q querier, scan func(*sql.Rows) error, text string, args ...any) (err error) {
	rows, err := q.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// returned runs a statement that returns one integer, or no row: then it is 0.
func returned(ctx context.Context, pool *sql.DB, text string, args ...any) (v int64, err error) {
	err = query(ctx, pool, func(rows *sql.Rows) error { return rows.Scan(&v) }, text, args...)
	return v, err
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
