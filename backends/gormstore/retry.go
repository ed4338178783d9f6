package gormstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawl-go/pawl/internal/dberr"
)

const (
	retryFirst = time.Millisecond
	retryMost  = 64 * time.Millisecond
)

// retry runs call until it succeeds or fails otherwise than by a conflict with
// other transactions, or ctx ends. Each statement of the store is a transaction
// of its own, so a conflict has undone all of it; other errors may have come
// after the effect and are the caller's to repair. After ctx's end the error Is
// ctx's: some drivers say "interrupted" instead.
func retry(ctx context.Context, call func() error) error {
	for wait := retryFirst; ; wait = min(2*wait, retryMost) {
		err := call()
		if err != nil && conflict(err) {
			pause(ctx, wait/2+rand.N(wait))
			if ctx.Err() == nil {
				continue
			}
		}
		if over := ctx.Err(); err != nil && over != nil && !errors.Is(err, over) {
			err = fmt.Errorf("%w (%w)", over, err)
		}
		return err
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// conflict reports an error that says that the statement was undone because of
// another transaction. No driver is imported for it, so that a user of one
// database does not link the drivers of the others.
func conflict(err error) bool {
	if pg, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err); ok { // pgx, lib/pq
		switch pg.SQLState() {
		case "40001", "40P01": // serialization failure, deadlock
			return true
		}
		return false
	}
	if lite, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok { // modernc.org/sqlite and its forks
		return sqliteConflict(int64(lite.Code()))
	}
	if n := mysqlNumber(err); n != 0 {
		return n == 1205 || n == 1213 // lock wait timeout, deadlock
	}
	return sqliteConflict(dberr.Int(err, "Code")) // mattn/go-sqlite3
}

// mysqlNumber is the server's error number in an error of go-sql-driver/mysql, or 0.
func mysqlNumber(err error) int64 { return dberr.Int(err, "Number") }

// sqliteConflict knows SQLITE_BUSY and SQLITE_LOCKED with their extended codes.
func sqliteConflict(code int64) bool { return code&0xff == 5 || code&0xff == 6 }
