package gormstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/backends/driver"
)

// postgresNow moves within a statement: after a wait for the row it is the time
// after the wait.
const postgresNow = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// durable makes the transaction that reads it commit synchronously, as SET
// LOCAL does, but in the same statement: the server looks at the setting when
// it commits, and takes it back after that.
const durable = `durable AS (
	SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
		WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true))`

// A key that is seen to be held is refused by the first SELECT, which writes
// nothing. Otherwise the row decides, under its lock.
const postgresAcquire = `WITH ` + durable + `,
start AS (SELECT ` + postgresNow + ` AS us FROM durable),
granted AS (
	INSERT INTO pawl_locks AS l (lock_key, owner, released, token, seq, seq_at, expires_at)
	SELECT $1::bytea, $2::text, '', $3::bigint + us / 16 * 512, us / 16, us / 16, us + $4::bigint FROM start
	WHERE NOT EXISTS (SELECT FROM pawl_locks h WHERE h.lock_key = $1 AND h.owner <> $2 AND h.expires_at > us)
	ON CONFLICT (lock_key) DO UPDATE SET
		(owner, released, token, seq, seq_at, expires_at) = (
			SELECT $2, CASE l.released WHEN $2 THEN '' ELSE l.released END,
				CASE WHEN mine THEN l.token ELSE $3 + next * 512 END,
				CASE WHEN mine THEN l.seq ELSE next END,
				CASE WHEN mine THEN l.seq_at ELSE us / 16 END,
				CASE WHEN mine THEN greatest(l.expires_at, us + $4) ELSE us + $4 END
			FROM (SELECT ` + postgresNow + ` AS us) clock,
				LATERAL (SELECT l.owner = $2 AND l.expires_at > us AS mine,
					greatest(us / 16, l.seq + greatest(1, us / 16 - l.seq_at)) AS next) rule)
	WHERE (l.owner = $2 OR l.expires_at <= ` + postgresNow + `) AND l.token >> 57 <= $3 >> 57
	RETURNING token)
SELECT coalesce((SELECT token FROM granted),
	(SELECT 1 FROM pawl_locks WHERE lock_key = $1 AND token >> 57 > $3 >> 57), 0)`

const postgresRelease = `WITH ` + durable + `
UPDATE pawl_locks l SET
	released = $2,
	expires_at = CASE WHEN l.owner = $2 AND l.expires_at > 0 THEN -` + postgresNow + ` ELSE l.expires_at END
FROM durable
WHERE l.lock_key = $1::bytea AND (l.released = $2::text
	OR l.owner = $2 AND l.expires_at > ` + postgresNow + ` AND $3::bigint IN (0, l.token))
RETURNING l.token`

func postgresDialect() dialect {
	return dialect{
		name:    postgres,
		acquire: postgresAcquire,
		release: postgresRelease,
		holder: `SELECT owner, token, expires_at - ` + postgresNow + ` FROM pawl_locks
WHERE lock_key = $1::bytea AND expires_at > ` + postgresNow,
		idle: `SELECT lock_key FROM pawl_locks WHERE lock_key > $1::bytea AND ` + idle(postgresNow) + `
ORDER BY lock_key LIMIT $2::bigint`,
		forget: `DELETE FROM pawl_locks WHERE lock_key IN (` + numbered(forgetRows, "$%d::bytea") + `) AND ` + idle(postgresNow),
		value:  returned,
		renew:  postgresRenew,
		check:  postgresCheck,
	}
}

// postgresRenew locks the rows in the order of their keys, as every batch does:
// two batches never wait for each other.
func postgresRenew(ctx context.Context, pool *sql.DB, grants []driver.Grant) (map[hold]bool, error) {
	text := `WITH ` + durable + `,
wanted (lock_key, owner, token, ttl) AS (VALUES ` + numbered(padded(len(grants)), "($%d::bytea, $%d::text, $%d::bigint, $%d::bigint)") + `),
mine AS (
	SELECT l.lock_key, w.owner, w.token, w.ttl
	FROM pawl_locks l JOIN wanted w ON l.lock_key = w.lock_key AND l.owner = w.owner AND l.token = w.token
	ORDER BY l.lock_key FOR UPDATE OF l)
UPDATE pawl_locks l SET expires_at = greatest(l.expires_at, ` + postgresNow + ` + mine.ttl)
FROM mine, durable
WHERE l.lock_key = mine.lock_key AND l.owner = mine.owner AND l.token = mine.token AND l.expires_at > ` + postgresNow + `
RETURNING l.owner, l.token`
	return renewed(ctx, pool, text, renewArgs(grants)...)
}

// numbered is a list of n items with as many numbered placeholders as their
// format has verbs.
func numbered(n int, format string) string {
	verbs := strings.Count(format, "%d")
	items := make([]string, n)
	for i := range items {
		numbers := make([]any, verbs)
		for j := range numbers {
			numbers[j] = i*verbs + j + 1
		}
		items[i] = fmt.Sprintf(format, numbers...)
	}
	return strings.Join(items, ", ")
}
