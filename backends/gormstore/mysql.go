package gormstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/backends/driver"
)

// mysqlNow is the time at which the statement began, before any wait for the
// row: then a lease is shorter by the wait, and still longer than its holder
// believes, who counts from before the statement. UTC_TIMESTAMP knows no
// session zone; UNIX_TIMESTAMP(NOW(6)) would be wrong for an hour each autumn.
const mysqlNow = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`

// The conditions hold before and after the assignments to token and owner,
// which precede them: MySQL assigns from left to right, the SQL standard at
// once.
const (
	mysqlBusy  = `owner <> VALUES(owner) AND expires_at > ` + mysqlNow
	mysqlOlder = `token >> 57 > VALUES(token) >> 57`
	mysqlMine  = `owner = VALUES(owner) AND expires_at > ` + mysqlNow
	mysqlNext  = `GREATEST(VALUES(seq_at), seq + GREATEST(1, VALUES(seq_at) - seq_at))`
)

// mysqlAcquire tells its verdict by LAST_INSERT_ID, which the server sends in
// its reply to the statement: MySQL has no RETURNING, and the number of
// affected rows depends on the client's flags. The verdict is evaluated under
// the row's lock. Without autocommit the key is NULL, which fails before
// anything is locked.
const mysqlAcquire = `INSERT INTO pawl_locks (lock_key, owner, released, token, seq, seq_at, expires_at)
VALUES (IF(@@autocommit, ?1, NULL), ?2, '', LAST_INSERT_ID(?3 + ` + mysqlNow + ` DIV 16 * 512),
	` + mysqlNow + ` DIV 16, ` + mysqlNow + ` DIV 16, ` + mysqlNow + ` + ?4)
ON DUPLICATE KEY UPDATE
	token = CASE
		WHEN ` + mysqlBusy + ` THEN IF(LAST_INSERT_ID(0), token, token)
		WHEN ` + mysqlOlder + ` THEN IF(LAST_INSERT_ID(1), token, token)
		WHEN ` + mysqlMine + ` THEN LAST_INSERT_ID(token)
		ELSE LAST_INSERT_ID(VALUES(token) + (` + mysqlNext + ` - VALUES(seq)) * 512) END,
	seq = CASE WHEN ` + mysqlBusy + ` OR ` + mysqlOlder + ` OR ` + mysqlMine + ` THEN seq ELSE ` + mysqlNext + ` END,
	seq_at = CASE WHEN ` + mysqlBusy + ` OR ` + mysqlOlder + ` OR ` + mysqlMine + ` THEN seq_at ELSE VALUES(seq_at) END,
	released = CASE WHEN ` + mysqlBusy + ` OR ` + mysqlOlder + ` OR released <> VALUES(owner) THEN released ELSE '' END,
	owner = CASE WHEN ` + mysqlBusy + ` OR ` + mysqlOlder + ` THEN owner ELSE VALUES(owner) END,
	expires_at = CASE
		WHEN ` + mysqlBusy + ` OR ` + mysqlOlder + ` THEN expires_at
		WHEN ` + mysqlMine + ` THEN GREATEST(expires_at, VALUES(expires_at))
		ELSE VALUES(expires_at) END`

const mysqlRelease = `UPDATE pawl_locks SET
	token = LAST_INSERT_ID(token),
	released = ?2,
	expires_at = CASE WHEN owner = ?2 AND expires_at > 0 THEN -` + mysqlNow + ` ELSE expires_at END
WHERE lock_key = ?1 AND (released = ?2 OR owner = ?2 AND expires_at > ` + mysqlNow + ` AND ?3 IN (0, token))`

func mysqlDialect() dialect {
	return dialect{
		name:    mysql,
		acquire: mysqlAcquire,
		release: mysqlRelease,
		holder: `SELECT owner, token, expires_at - ` + mysqlNow + ` FROM pawl_locks
WHERE lock_key = ? AND expires_at > ` + mysqlNow,
		idle: `SELECT lock_key FROM pawl_locks WHERE lock_key > ? AND ` + idle(mysqlNow) + `
ORDER BY lock_key LIMIT ?`,
		forget: `DELETE FROM pawl_locks WHERE lock_key IN (` + repeat("?", forgetRows) + `) AND ` + idle(mysqlNow),
		value:  mysqlValue,
		renew:  mysqlRenew,
		check:  mysqlCheck,
	}
}

// mysqlValue runs a statement that sets LAST_INSERT_ID.
func mysqlValue(ctx context.Context, pool *sql.DB, text string, args ...any) (int64, error) {
	text, args = positional(text, args)
	result, err := pool.ExecContext(ctx, text, args...)
	if err != nil {
		if mysqlNumber(err) == 1048 {
			return 0, fmt.Errorf("the session has autocommit off, so nothing would be committed: %w", err)
		}
		return 0, err
	}
	return result.LastInsertId()
}

// positional turns ?1 ... ?9 into ? with the arguments in that order.
func positional(text string, args []any) (string, []any) {
	plain := make([]byte, 0, len(text))
	var order []any
	for i := 0; i < len(text); i++ {
		plain = append(plain, text[i])
		if text[i] == '?' {
			i++
			order = append(order, args[text[i]-'1'])
		}
	}
	return string(plain), order
}

// mysqlRenew is two statements on one connection. What the second one finds
// alive was alive before, when the first one extended it: nothing else moves
// the end of a hold but its owner. The join is made from the list to the table,
// so it locks only these rows, in the order of their keys, as every batch does.
func mysqlRenew(ctx context.Context, pool *sql.DB, grants []driver.Grant) (_ map[hold]bool, err error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()

	size := padded(len(grants))
	const row = `SELECT CAST(? AS BINARY), CAST(? AS BINARY), CAST(? AS SIGNED), CAST(? AS SIGNED)`
	const first = `SELECT CAST(? AS BINARY) AS k, CAST(? AS BINARY) AS o, CAST(? AS SIGNED) AS t, CAST(? AS SIGNED) AS ttl`
	update := `UPDATE (` + first + strings.Repeat(` UNION ALL `+row, size-1) + `) w
STRAIGHT_JOIN pawl_locks l FORCE INDEX (PRIMARY) ON l.lock_key = w.k AND l.owner = w.o AND l.token = w.t
SET l.expires_at = GREATEST(l.expires_at, ` + mysqlNow + ` + w.ttl)
WHERE l.expires_at > ` + mysqlNow
	if _, err := conn.ExecContext(ctx, update, renewArgs(grants)...); err != nil {
		return nil, err
	}
	keys := make([]any, size)
	for i, g := range grants {
		keys[i] = []byte(g.Key)
	}
	return renewed(ctx, conn, `SELECT owner, token FROM pawl_locks WHERE lock_key IN (`+repeat("?", size)+`) AND expires_at > `+mysqlNow, keys...)
}
