package gormguard

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/dberr"
)

type sqlite struct{}

func (sqlite) raise(g fencing.Grant) query {
	return query{
		`INSERT INTO pawl_fences (resource, origin, token) VALUES (?, ?, ?) ` +
			`ON CONFLICT (resource) DO UPDATE SET origin = excluded.origin, token = excluded.token ` +
			`WHERE token < excluded.token AND (origin = excluded.origin OR token >> 57 < excluded.token >> 57) ` +
			`OR origin = '' AND token <= excluded.token`,
		[]any{[]byte(g.Resource), g.Origin, int64(g.Token)},
	} //nolint:gosec // see valid
}

func (sqlite) peeks() bool { return true }

func (sqlite) read(grants []fencing.Grant, _ mode, _ time.Duration) query {
	args := make([]any, len(grants))
	for i, g := range grants {
		args[i] = []byte(g.Resource)
	}
	return query{`SELECT resource, origin, token FROM pawl_fences WHERE resource IN (?` +
		strings.Repeat(", ?", len(grants)-1) + `)`, args}
}

func (sqlite) limits(time.Duration) (set, restore string) { return "", "" }

// undo is for a COMMIT that found readers (SQLITE_BUSY, without WAL): it leaves
// the transaction open, and database/sql puts the connection back into the pool.
func (sqlite) undo() string { return `ROLLBACK` }

// immediate takes the file's write lock, as BEGIN IMMEDIATE does: in a
// transaction that has read nothing, a statement that writes begins with it, and
// waits for it under busy_timeout. It writes no row. So it works whatever
// _txlock the file was opened with.
func (sqlite) immediate() string { return `UPDATE pawl_fences SET token = token WHERE FALSE` }

// row takes the write lock first. In a transaction that has read an older state
// of the file this fails at once (SQLITE_BUSY_SNAPSHOT).
func (sqlite) row(key string) query {
	return query{`INSERT INTO pawl_fences (resource, origin, token) VALUES (?, '', 0) ` +
		`ON CONFLICT (resource) DO UPDATE SET token = token`, []any{[]byte(key)}}
}

func (sqlite) commits() bool { return false }

func (sqlite) syntax() syntax { return syntax{brackets: true} }

// ends knows the errors of one statement: SQLITE_ERROR, TOOBIG, CONSTRAINT,
// MISMATCH, RANGE. Others (a full disk) may have undone the transaction, and the
// end of a context interrupts a write, which undoes it always.
func (sqlite) ends(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch resultCode(err) {
	case 0, 1, 18, 19, 20, 25:
		return false
	}
	return true
}

// refused knows a COMMIT that found readers (BUSY), or a deferred constraint. The
// transaction is then undone.
func (sqlite) refused(err error) bool {
	code := resultCode(err)
	return code == 5 || code == 19
}

// resultCode is the primary code of SQLite's errors; 0: none.
func resultCode(err error) int64 {
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok { // modernc.org/sqlite and its forks
		return int64(coded.Code()) & 0xff
	}
	return dberr.Int(err, "Code") & 0xff // mattn/go-sqlite3
}
