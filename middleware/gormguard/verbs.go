package gormguard

// first takes the word that a statement begins with.
func (x *scanner) first(w string) {
	switch w {
	case "ROLLBACK", "ABORT":
		x.rolling = true
	case "COMMIT", "END", "BEGIN", "START", "XA":
		x.controls = true
		x.open = true
	case "SAVEPOINT", "RELEASE":
		x.skip = true
	case "CREATE", "ALTER", "DROP", "RENAME", "GRANT", "REVOKE", "ANALYZE", "OPTIMIZE", "REPAIR", "FLUSH", "UNLOCK", "INSTALL":
		x.commits = true
		fallthrough
	case "COMMENT", "VACUUM", "REINDEX", "CLUSTER", "REFRESH", "PRAGMA", "ATTACH", "DETACH", "SET", "RESET", "SHOW", "USE",
		"DESCRIBE", "DESC":
		x.defines = true
		x.skip = true
	case "SELECT", "VALUES", "TABLE":
	default:
		x.open = !x.verb(w)
	}
}

// verb takes a word that changes or locks rows, where a statement can begin.
func (x *scanner) verb(w string) bool {
	switch w {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "TRUNCATE", "COPY", "LOAD":
		x.writes = true
	case "LOCK":
		x.locks = true
	default:
		return false
	}
	x.commits = x.commits || w == "LOCK" || w == "TRUNCATE"
	x.open = false
	x.expect, x.list, x.target = w != "LOAD", true, true
	return true
}

// keyword takes a word that is no name. Where a table is expected, words that
// may stand before it are passed.
func (x *scanner) keyword(w string) bool {
	switch w {
	case "FROM", "JOIN", "USING", "INTO":
		x.expect, x.list = true, true
	case "SELECT", "SET", "RETURNING":
		x.open, x.expect, x.list, x.target = false, false, false, false
	case "VALUES", "VALUE", "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "WINDOW", "UNION", "EXCEPT", "INTERSECT":
		x.expect, x.list = false, false
	case "TO":
		x.rewinds = x.rewinds || x.rolling
		x.rolling = false
		x.expect = false
	case "ROLLBACK": // INSERT OR ROLLBACK of SQLite
		x.controls = x.controls || x.last == "OR"
		return x.expect
	case "TABLE", "TABLES", "ONLY", "LATERAL", "IGNORE", "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "QUICK", "CONCURRENT",
		"OR", "ABORT", "FAIL":
		return x.expect
	case "REPLACE":
		return x.expect || x.opening(w)
	default:
		return x.suffix(w) || x.opening(w)
	}
	return true
}

// opening takes a verb that begins a CTE, or follows WITH or EXPLAIN.
func (x *scanner) opening(w string) bool { return x.open && x.verb(w) }

// suffix takes what locks the rows of a SELECT, and ON DUPLICATE KEY UPDATE and
// DO UPDATE, where columns follow.
func (x *scanner) suffix(w string) bool {
	if w != "UPDATE" && w != "SHARE" {
		return false
	}
	switch {
	case x.last == "FOR", x.last == "KEY" && (x.before == "NO" || x.before == "FOR"), w == "SHARE" && x.last == "IN":
		x.locks = true
	case x.last == "KEY", x.last == "DO":
		x.target = false
	default:
		return false
	}
	x.expect, x.list = false, false
	return true
}
