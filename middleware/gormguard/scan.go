package gormguard

import "strings"

// internal is the prefix of Pawl's own tables, which are never fenced.
const internal = "pawl_"

// access is what a text of SQL does, as far as its words tell.
type access struct {
	writes   bool // changes rows
	locks    bool // locks rows
	defines  bool // is about tables, rights or settings, not about rows
	commits  bool // MySQL commits before it
	controls bool // begins or ends a transaction
	rewinds  bool // goes back to a savepoint
	tables   []table
}

// table is a name that stands where a table can stand.
type table struct {
	name   string // in lower case, without schema
	target bool   // of a write
}

// own reports that only Pawl's own tables are touched.
func (a access) own() bool {
	for _, t := range a.tables {
		if !strings.HasPrefix(t.name, internal) {
			return false
		}
	}
	return len(a.tables) > 0
}

// hits is a table of names that is written, or read with a lock.
func (a access) hits(names map[string]struct{}) (string, bool) {
	if !a.writes && !a.locks {
		return "", false
	}
	for _, t := range a.tables {
		if _, ok := names[t.name]; ok && (t.target || a.locks) {
			return t.name, true
		}
	}
	return "", false
}

// level is one pair of parentheses.
type level struct {
	begun  bool // something was seen
	open   bool // a verb may come at any word: after WITH, EXPLAIN and what is unknown
	list   bool // a comma leads to another table
	expect bool // a table comes next
	target bool // it is written
}

// scanner reads one statement.
type scanner struct {
	access
	level
	outer        []level
	before, last string // the last two words in capitals, "" for what is no word
	skip         bool   // to the end of the statement
	rolling      bool   // ROLLBACK was said, and TO may follow
	chained      bool   // the last token was a table, and a dot continues its name
}

// scan reads text word by word. It is no parser: it knows where a table can
// stand, and takes a doubtful place for one.
func scan(s syntax, text string) access {
	l := lexer{syntax: s, text: text}
	var x scanner
	for {
		t := l.next()
		switch t.kind {
		case kindEnd:
			return x.finish()
		case kindSign:
			x.sign(t.text)
		case kindName:
			x.named(t.text)
			x.shift("")
		case kindWord:
			x.word(t.text)
		}
	}
}

// finish is what is known at the end of a statement.
func (x *scanner) finish() access {
	x.controls = x.controls || x.rolling
	return x.access
}

func (x *scanner) shift(w string) {
	x.begun = true
	x.before, x.last = x.last, w
}

func (x *scanner) sign(s string) {
	if s == ";" {
		*x = scanner{access: x.finish()}
		return
	}
	chained := x.chained
	x.chained = false
	switch s {
	case "(":
		x.enter()
		return
	case ")":
		if n := len(x.outer); n > 0 {
			x.level, x.outer = x.outer[n-1], x.outer[:n-1]
		}
	case ",":
		x.expect = x.list
	case ".":
		if chained {
			x.tables = x.tables[:len(x.tables)-1]
			x.expect = true
		}
	default:
		x.expect = false
	}
	x.shift("")
}

// enter begins a pair of parentheses: a table list goes on in it, a CTE begins a
// statement, anything else holds values or columns.
func (x *scanner) enter() {
	inner := level{begun: true}
	switch x.last {
	case "AS", "MATERIALIZED", "COPY":
		inner = level{open: true}
	case "USING":
	default:
		inner.expect, inner.list, inner.target = x.expect, x.expect, x.expect && x.target
	}
	x.expect = false
	x.begun = true
	x.outer = append(x.outer, x.level)
	x.level = inner
	x.before, x.last = x.last, ""
}

// named takes a name where a table is expected.
func (x *scanner) named(s string) {
	x.chained = false
	if x.skip || !x.expect {
		return
	}
	x.expect = false
	x.chained = true
	x.tables = append(x.tables, table{strings.ToLower(s), x.target})
}

func (x *scanner) word(s string) {
	w := strings.ToUpper(s)
	switch {
	case x.skip:
		x.commits = x.commits && w != "TEMPORARY"
	case !x.begun && len(x.outer) == 0:
		x.first(w)
	case x.keyword(w):
		x.chained = false
	default:
		x.named(s)
	}
	x.shift(w)
}
