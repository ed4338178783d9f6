package gormstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
)

// liteError is as modernc.org/sqlite makes them, cgoError as mattn/go-sqlite3.
type (
	liteError int
	cgoError  struct{ Code, ExtendedCode int }
)

func (e liteError) Error() string { return fmt.Sprint("sqlite ", int(e)) }
func (e liteError) Code() int     { return int(e) }
func (e cgoError) Error() string  { return fmt.Sprint("sqlite ", e.Code) }

func TestConflict_IsWhatWasCertainlyUndone(t *testing.T) {
	for _, test := range []struct {
		err  error
		want bool
	}{
		{&pgconn.PgError{Code: "40001"}, true},
		{&pgconn.PgError{Code: "40P01"}, true},
		{fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: "40001"}), true},
		{&pgconn.PgError{Code: "57014"}, false}, // cancelled: perhaps after the commit
		{&pgconn.PgError{Code: "23505"}, false},
		{&pgconn.PgError{Code: "08006"}, false},
		{&gomysql.MySQLError{Number: 1213}, true},
		{&gomysql.MySQLError{Number: 1205}, true},
		{fmt.Errorf("wrapped: %w", &gomysql.MySQLError{Number: 1213}), true},
		{errors.Join(&gomysql.MySQLError{Number: 1213}, errors.New("closing")), true},
		{errors.Join(cgoError{Code: 5}), true},
		{errors.Join(liteError(5)), true},
		{errors.Join(&pgconn.PgError{Code: "40001"}), true},
		{&gomysql.MySQLError{Number: 1062}, false},
		{&gomysql.MySQLError{Number: 1317}, false},
		{gomysql.ErrInvalidConn, false},
		{liteError(5), true},
		{liteError(6), true},
		{liteError(5 | 2<<8), true}, // BUSY_SNAPSHOT
		{liteError(13), false},      // FULL
		{liteError(9), false},       // INTERRUPT
		{cgoError{Code: 5}, true},
		{cgoError{Code: 19}, false},
		{errors.New("database is locked"), false},
		{context.DeadlineExceeded, false},
	} {
		if got := conflict(test.err); got != test.want {
			t.Errorf("conflict(%#v): got %v, want %v", test.err, got, test.want)
		}
	}
}

func TestRetry_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	calls := 0
	err := retry(ctx, func() error { calls++; return liteError(5) })
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, liteError(5)) {
		t.Errorf("retry: got %v, want the context's error and the last conflict", err)
	}
	if calls < 2 {
		t.Errorf("calls: got %d, want several", calls)
	}
}

func TestRetry_RepeatsNothingElse(t *testing.T) {
	calls := 0
	lost := errors.New("the answer was lost")
	if err := retry(t.Context(), func() error { calls++; return lost }); !errors.Is(err, lost) || calls != 1 {
		t.Errorf("retry of an unknown outcome: got %v after %d calls, want the error after 1", err, calls)
	}
}

func TestPositional_OrdersArguments(t *testing.T) {
	query, args := positional("a ?2 b ?1 c ?2", []any{"one", "two"})
	if want := "a ? b ? c ?"; query != want {
		t.Errorf("query: got %q, want %q", query, want)
	}
	if got := fmt.Sprint(args...); got != fmt.Sprint("two", "one", "two") {
		t.Errorf("arguments: got %s", got)
	}
}
