package gormguard

import "strings"

// syntax is what differs between databases in reading SQL.
type syntax struct {
	backslash bool // escapes in strings
	hash      bool // # begins a comment
	dollars   bool // $tag$ ... $tag$ is a string
	brackets  bool // [name] is a quoted name
}

type kind uint8

const (
	kindEnd  kind = iota
	kindWord      // a keyword or a name
	kindName      // a quoted name
	kindSign      // one byte
)

type token struct {
	kind kind
	text string
}

// lexer splits a statement into words, names and signs. Strings, comments and
// white space it leaves out. It never fails: what is not closed ends with the
// text.
type lexer struct {
	syntax
	text string
	at   int
	code int // comments of MySQL that are open and executed
}

func (l *lexer) next() token {
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case c <= ' ':
			l.at++
		case l.comment():
		case isWord(c):
			return token{kindWord, l.word()}
		default:
			return l.other(c)
		}
	}
	return token{}
}

func (l *lexer) word() string {
	start := l.at
	for l.at < len(l.text) && (isWord(l.text[l.at]) || l.text[l.at] == '$') {
		l.at++
	}
	return l.text[start:l.at]
}

// other takes what begins with c: a string, which may stand for a value and never
// for a name, a quoted name, or a sign.
func (l *lexer) other(c byte) token {
	switch {
	case c == '\'':
		l.quoted(c, l.backslash || l.escapes())
		return token{kindSign, "'"}
	case c == '$' && l.dollars && l.dollar():
		return token{kindSign, "'"}
	case c == '"', c == '`':
		return token{kindName, l.quoted(c, l.backslash && c == '"')}
	case c == '[' && l.brackets:
		return token{kindName, l.quoted(']', false)}
	}
	l.at++
	return token{kindSign, string(c)}
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// escapes reports that the string at l.at has the prefix E of PostgreSQL.
func (l *lexer) escapes() bool {
	return l.dollars && l.at > 0 && l.text[l.at-1]|0x20 == 'e' && (l.at == 1 || !isWord(l.text[l.at-2]))
}

// quoted passes what begins at l.at and ends with q, which stands for itself
// when doubled.
func (l *lexer) quoted(q byte, backslash bool) string {
	start := l.at + 1
	for l.at++; l.at < len(l.text); l.at++ {
		switch c := l.text[l.at]; {
		case c == '\\' && backslash:
			l.at++
		case c == q && l.at+1 < len(l.text) && l.text[l.at+1] == q:
			l.at++
		case c == q:
			l.at++
			return l.text[start : l.at-1]
		}
	}
	l.at = len(l.text)
	return l.text[min(start, l.at):]
}

// dollar passes a string in dollar quotes. A parameter ($1) is none.
func (l *lexer) dollar() bool {
	rest := l.text[l.at+1:]
	i := strings.IndexByte(rest, '$')
	if i < 0 {
		return false
	}
	tag := rest[:i]
	for j := range len(tag) {
		if !isWord(tag[j]) || j == 0 && tag[j] >= '0' && tag[j] <= '9' {
			return false
		}
	}
	body := rest[i+1:]
	if j := strings.Index(body, "$"+tag+"$"); j >= 0 {
		l.at += 1 + i + 1 + j + len(tag) + 2
	} else {
		l.at = len(l.text)
	}
	return true
}

// comment passes a comment. What MySQL executes inside one is code.
func (l *lexer) comment() bool {
	rest := l.text[l.at:]
	switch {
	case l.line(rest):
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			l.at += i + 1
		} else {
			l.at = len(l.text)
		}
	case l.hash && (strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")):
		l.code++
		l.at += strings.IndexByte(rest, '!') + 1
		for l.at < len(l.text) && l.text[l.at] >= '0' && l.text[l.at] <= '9' {
			l.at++
		}
	case l.code > 0 && strings.HasPrefix(rest, "*/"):
		l.code--
		l.at += 2
	case strings.HasPrefix(rest, "/*"):
		l.block()
	default:
		return false
	}
	return true
}

// line reports a comment that ends with the line. MySQL wants a space after --,
// elsewhere it reads 5--3 as a sum.
func (l *lexer) line(rest string) bool {
	if l.hash {
		return rest[0] == '#' || strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ')
	}
	return strings.HasPrefix(rest, "--")
}

// block passes a comment that, on PostgreSQL, may have comments in it.
func (l *lexer) block() {
	depth := 1
	for l.at += 2; l.at < len(l.text) && depth > 0; {
		switch rest := l.text[l.at:]; {
		case strings.HasPrefix(rest, "*/"):
			depth--
			l.at += 2
		case l.dollars && strings.HasPrefix(rest, "/*"):
			depth++
			l.at += 2
		default:
			l.at++
		}
	}
}
