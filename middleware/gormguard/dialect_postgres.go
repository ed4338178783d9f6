package gormguard

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl/fencing"
)

type postgres struct{}

// behind is where judge says errBehind, for f, an existing row, and a new one.
const postgresBehind = `(f.token < %[2]s AND (f.origin = %[1]s OR f.token >> 57 < %[2]s >> 57) OR f.origin = '' AND f.token <= %[2]s)`

// raise inserts nothing where the register must stay: then it takes no lock, and
// a hold whose own transaction is open passes.
func (postgres) raise(g fencing.Grant) query {
	text := `INSERT INTO pawl_fences AS f (resource, origin, token) ` +
		`SELECT $1::bytea, $2::text, $3::bigint WHERE NOT EXISTS (` +
		`SELECT 1 FROM pawl_fences f WHERE f.resource = $1::bytea AND NOT ` + fmt.Sprintf(postgresBehind, "$2::text", "$3::bigint") + `) ` +
		`ON CONFLICT (resource) DO UPDATE SET origin = EXCLUDED.origin, token = EXCLUDED.token ` +
		`WHERE ` + fmt.Sprintf(postgresBehind, "EXCLUDED.origin", "EXCLUDED.token")
	return query{text, []any{[]byte(g.Resource), g.Origin, int64(g.Token)}} //nolint:gosec // see valid
}

func (postgres) peeks() bool { return false }

// read sets the limits of the transaction in the statement that takes the lock,
// before it waits for one: the lock is taken on rows that were joined with the
// settings. Where the user's limit is stricter it stays.
func (postgres) read(grants []fencing.Grant, m mode, limit time.Duration) query {
	var b strings.Builder
	if m == shared {
		ms := max(limit.Milliseconds(), 1)
		fmt.Fprintf(&b, `WITH s AS MATERIALIZED (SELECT %s, %s) `,
			postgresLimit("lock_timeout", ms), postgresLimit("idle_in_transaction_session_timeout", ms))
	}
	b.WriteString(`SELECT f.resource, f.origin, f.token FROM pawl_fences f`)
	if m == shared {
		b.WriteString(` CROSS JOIN s`)
	}
	args := make([]any, len(grants))
	b.WriteString(` WHERE f.resource IN (`)
	for i, g := range grants {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i+1)
		args[i] = []byte(g.Resource)
	}
	b.WriteString(`) ORDER BY f.resource`)
	if m == shared {
		b.WriteString(` FOR SHARE OF f`)
	}
	return query{b.String(), args}
}

func postgresLimit(name string, ms int64) string {
	return fmt.Sprintf(`set_config('%[1]s', CASE WHEN current_setting('%[1]s')::interval BETWEEN '1us' AND '%[2]dms' `+
		`THEN current_setting('%[1]s') ELSE '%[2]dms' END, true)`, name, ms)
}

func (postgres) limits(time.Duration) (set, restore string) { return "", "" }

func (postgres) immediate() string { return "" }

func (postgres) undo() string { return "" }

// row relies on the upsert's own lock, which it also takes where it changes
// nothing.
func (postgres) row(key string) query {
	return query{`INSERT INTO pawl_fences AS f (resource, origin, token) VALUES ($1, '', 0) ` +
		`ON CONFLICT (resource) DO UPDATE SET token = f.token`, []any{[]byte(key)}}
}

func (postgres) commits() bool { return false }

func (postgres) syntax() syntax { return syntax{dollars: true} }

// ends is never true: after an error the database refuses everything in the
// transaction until it is rolled back, to a savepoint or whole.
func (postgres) ends(error) bool { return false }

func (postgres) refused(err error) bool {
	switch state := sqlState(err); {
	case state == "40003": // completion unknown
		return false
	case strings.HasPrefix(state, "23"), strings.HasPrefix(state, "25"), strings.HasPrefix(state, "40"):
		return true
	}
	// a statement had failed before: COMMIT is answered by ROLLBACK
	return strings.Contains(err.Error(), "commit unexpectedly resulted in rollback")
}

// sqlState is the code of an error of pgx and lib/pq.
func sqlState(err error) string {
	pg, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok {
		return ""
	}
	return pg.SQLState()
}
