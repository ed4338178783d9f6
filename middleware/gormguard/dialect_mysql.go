package gormguard

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/pawl-go/pawl/fencing"
	"github.com/pawl-go/pawl/internal/dberr"
)

// mysql is MySQL and MariaDB. Values stand in the text, bytes as hex literals:
// the driver would otherwise prepare each statement in a round trip of its own.
type mysql struct{}

// raise sets origin first, and assignments see those before them: token is set
// where origin has become the grant's, or was.
func (mysql) raise(g fencing.Grant) query {
	return query{text: fmt.Sprintf(`INSERT INTO pawl_fences (resource, origin, token) VALUES (%s, %s, %d) `+
		`ON DUPLICATE KEY UPDATE origin = IF(`+
		`token < VALUES(token) AND (origin = VALUES(origin) OR token >> 57 < VALUES(token) >> 57) `+
		`OR origin = X'' AND token <= VALUES(token), VALUES(origin), origin), `+
		`token = IF(origin = VALUES(origin) AND token < VALUES(token), VALUES(token), token)`,
		hexLiteral(g.Resource), hexLiteral(g.Origin), g.Token)}
}

func (mysql) peeks() bool { return true }

func (mysql) read(grants []fencing.Grant, m mode, _ time.Duration) query {
	var b strings.Builder
	b.WriteString(`SELECT resource, origin, token FROM pawl_fences WHERE resource IN (`)
	for i, g := range grants {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(hexLiteral(g.Resource))
	}
	b.WriteString(`) ORDER BY resource`)
	if m == shared {
		b.WriteString(` LOCK IN SHARE MODE`)
	}
	return query{text: b.String()}
}

// limits holds the session's own settings in user variables. What stands in the
// comment MariaDB alone executes; MySQL has no limit for idle transactions.
func (mysql) limits(limit time.Duration) (set, restore string) {
	seconds := max(int64((limit+time.Second-1)/time.Second), 1)
	set = fmt.Sprintf(`SET @pawl_wait = @@SESSION.innodb_lock_wait_timeout, `+
		`@@SESSION.innodb_lock_wait_timeout = LEAST(@@SESSION.innodb_lock_wait_timeout, %[1]d)`+
		`/*M! , @pawl_idle = @@SESSION.idle_transaction_timeout, `+
		`@@SESSION.idle_transaction_timeout = IF(@@SESSION.idle_transaction_timeout = 0, %[1]d, LEAST(@@SESSION.idle_transaction_timeout, %[1]d)) */`,
		seconds)
	restore = `SET @@SESSION.innodb_lock_wait_timeout = @pawl_wait /*M! , @@SESSION.idle_transaction_timeout = @pawl_idle */`
	return set, restore
}

func (mysql) immediate() string { return "" }

func (mysql) undo() string { return "" }

func (mysql) row(key string) query {
	return query{text: fmt.Sprintf(`INSERT INTO pawl_fences (resource, origin, token) VALUES (%s, X'', 0) `+
		`ON DUPLICATE KEY UPDATE token = token`, hexLiteral(key))}
}

func (mysql) commits() bool { return true }

func (mysql) syntax() syntax { return syntax{backslash: true, hash: true} }

// ends knows the errors of one statement: bad data, a constraint, bad syntax. A
// deadlock, for one, undoes the whole transaction. So may what is unknown.
func (mysql) ends(err error) bool {
	switch class := stateClass(err); class {
	case "", "21", "22", "23", "42": // "": the connection is gone, or was not used
		return false
	}
	return true
}

func (mysql) refused(err error) bool {
	class := stateClass(err)
	return class == "23" || class == "40"
}

// stateClass is how the SQLSTATE of a server's error begins.
func stateClass(err error) string {
	number, state := dberr.Field(err, "Number"), dberr.Field(err, "SQLState")
	if !number.IsValid() {
		return ""
	}
	if state.Kind() != reflect.Array || state.Len() != 5 {
		return "HY"
	}
	return string([]byte{byte(state.Index(0).Uint()), byte(state.Index(1).Uint())}) //nolint:gosec // bytes
}

func hexLiteral(s string) string { return fmt.Sprintf("X'%x'", s) }
