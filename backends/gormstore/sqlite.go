package gormstore

import (
	"context"
	"database/sql"

	"github.com/pawl-go/pawl/backends/driver"
)

// sqliteNow is one value within a statement, read after the statement got the
// write lock. It counts milliseconds.
const sqliteNow = `(CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000)`

const (
	sqliteMine = `l.owner = ?2 AND l.expires_at > ` + sqliteNow
	sqliteNext = `max(` + sqliteNow + ` / 16, l.seq + max(1, ` + sqliteNow + ` / 16 - l.seq_at))`

	sqliteAcquire = `INSERT INTO pawl_locks AS l (lock_key, owner, released, token, seq, seq_at, expires_at)
VALUES (?1, ?2, '', ?3 + ` + sqliteNow + ` / 16 * 512, ` + sqliteNow + ` / 16, ` + sqliteNow + ` / 16, ` + sqliteNow + ` + ?4)
ON CONFLICT (lock_key) DO UPDATE SET
	owner = ?2,
	released = CASE l.released WHEN ?2 THEN '' ELSE l.released END,
	token = CASE WHEN ` + sqliteMine + ` THEN l.token ELSE ?3 + ` + sqliteNext + ` * 512 END,
	seq = CASE WHEN ` + sqliteMine + ` THEN l.seq ELSE ` + sqliteNext + ` END,
	seq_at = CASE WHEN ` + sqliteMine + ` THEN l.seq_at ELSE ` + sqliteNow + ` / 16 END,
	expires_at = CASE WHEN ` + sqliteMine + ` THEN max(l.expires_at, ` + sqliteNow + ` + ?4) ELSE ` + sqliteNow + ` + ?4 END
WHERE (l.owner = ?2 OR l.expires_at <= ` + sqliteNow + `) AND l.token >> 57 <= ?3 >> 57
RETURNING token`

	sqliteRelease = `UPDATE pawl_locks SET
	released = ?2,
	expires_at = CASE WHEN owner = ?2 AND expires_at > 0 THEN -` + sqliteNow + ` ELSE expires_at END
WHERE lock_key = ?1 AND (released = ?2 OR owner = ?2 AND expires_at > ` + sqliteNow + ` AND ?3 IN (0, token))
RETURNING token`
)

func sqliteDialect() dialect {
	return dialect{
		name:     sqlite,
		acquire:  sqliteAcquire,
		outdated: `SELECT 1 FROM pawl_locks WHERE lock_key = ?1 AND token >> 57 > ?2 >> 57`,
		release:  sqliteRelease,
		holder: `SELECT owner, token, expires_at - ` + sqliteNow + ` FROM pawl_locks
WHERE lock_key = ?1 AND expires_at > ` + sqliteNow,
		idle: `SELECT lock_key FROM pawl_locks WHERE lock_key > ?1 AND ` + idle(sqliteNow) + `
ORDER BY lock_key LIMIT ?2`,
		forget: `DELETE FROM pawl_locks WHERE lock_key IN (` + repeat("?", forgetRows) + `) AND ` + idle(sqliteNow),
		value:  returned,
		renew:  sqliteRenew,
		check:  sqliteCheck,
	}
}

func sqliteRenew(ctx context.Context, pool *sql.DB, grants []driver.Grant) (map[hold]bool, error) {
	text := `WITH wanted (k, o, t, ttl) AS (VALUES ` + repeat("(?, ?, ?, ?)", padded(len(grants))) + `)
UPDATE pawl_locks SET expires_at = max(expires_at, ` + sqliteNow + ` + ttl)
FROM wanted WHERE lock_key = k AND owner = o AND token = t AND expires_at > ` + sqliteNow + `
RETURNING owner, token`
	return renewed(ctx, pool, text, renewArgs(grants)...)
}
