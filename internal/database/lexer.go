package database

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

type tokenKind int

const (
	tokenWord   tokenKind = iota // a key word or a bare name
	tokenQuoted                  // a name in quotes
	tokenString
	tokenNumber
	tokenMark // an operator or a mark
)

type token struct {
	kind       tokenKind
	start, end int
	value      string // as written, a quoted name without its quotes
}

func (t token) is(mark string) bool { return t.kind == tokenMark && t.value == mark }

// word is a bare word in lower case, or "".
func (t token) word() string {
	if t.kind != tokenWord {
		return ""
	}
	return strings.ToLower(t.value)
}

// name reports whether the token may name something.
func (t token) name() bool { return t.kind == tokenWord || t.kind == tokenQuoted }

// lexer cuts a statement into tokens. Where dialects, or settings of a server,
// read a text differently, it is refused: strings have no backslash escapes but in
// PostgreSQL's E'…', and every connection of this package is told so.
type lexer struct {
	text    string
	dialect Dialect
	at      int
}

func (l *lexer) tokens() ([]token, error) {
	if !utf8.ValidString(l.text) || strings.ContainsRune(l.text, 0) {
		return nil, refuse("it is no valid text")
	}
	var out []token
	for {
		if err := l.space(); err != nil {
			return nil, err
		}
		if l.at >= len(l.text) {
			return out, nil
		}
		t, err := l.next()
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
}

func (l *lexer) space() error {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.ContainsRune(" \t\r\n\f\v", rune(rest[0])):
			l.at++
		case strings.HasPrefix(rest, "--"):
			if l.dialect == MySQL && len(rest) > 2 && !strings.ContainsRune(" \t\r\n", rune(rest[2])) {
				return refuse("-- is followed by no space")
			}
			if err := l.line(rest); err != nil {
				return err
			}
		case rest[0] == '#' && l.dialect == MySQL:
			if err := l.line(rest); err != nil {
				return err
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 || strings.Contains(rest[2:2+end], "/*") || strings.HasPrefix(rest[2:], "!") || strings.HasPrefix(rest[2:], "+") || strings.HasPrefix(rest[2:], "M!") {
				return refuse("it has a comment that servers read in different ways")
			}
			l.at += end + 4
		default:
			return nil
		}
	}
	return nil
}

// line skips the rest of a line. Servers differ on whether a carriage return ends it, so none may stand before the end.
func (l *lexer) line(rest string) error {
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	l.at += len(rest)
	if strings.Contains(strings.TrimSuffix(rest, "\r"), "\r") {
		return refuse("it has a comment that servers read in different ways")
	}
	return nil
}

func (l *lexer) next() (token, error) {
	c := l.text[l.at]
	two := ""
	if l.at+1 < len(l.text) {
		two = l.text[l.at : l.at+2]
	}
	switch {
	case c == '\'':
		return l.quoted('\'', tokenString, false)
	case c == '"':
		return l.quoted('"', tokenQuoted, false)
	case c == '`' && l.dialect != Postgres:
		return l.quoted('`', tokenQuoted, false)
	case c == '[' && l.dialect == SQLite:
		return l.bracketed()
	case c == '$' && l.dialect == Postgres:
		return token{}, refuse("it quotes with $")
	case c == '\\':
		return token{}, refuse("it has a backslash outside a string")
	case c >= '0' && c <= '9', c == '.' && len(two) == 2 && two[1] >= '0' && two[1] <= '9':
		return l.cut(tokenNumber, len(figure.FindString(l.text[l.at:]))), nil
	case letter(c):
		return l.word()
	}
	for _, mark := range []string{":=", "::", "||", "<=", ">=", "<>", "!=", "->"} {
		if two == mark {
			return l.cut(tokenMark, 2), nil
		}
	}
	return l.cut(tokenMark, 1), nil
}

// cut makes a token of the next n bytes.
func (l *lexer) cut(kind tokenKind, n int) token {
	t := token{kind: kind, start: l.at, end: l.at + n, value: l.text[l.at : l.at+n]}
	l.at += n
	return t
}

// letter reports a byte that a name may begin with; all beyond ASCII may.
func letter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// word reads a bare word, or a string with a letter before it.
func (l *lexer) word() (token, error) {
	start := l.at
	for l.at < len(l.text) && (letter(l.text[l.at]) || l.text[l.at] >= '0' && l.text[l.at] <= '9' || l.text[l.at] == '$') {
		l.at++
	}
	w := l.text[start:l.at]
	rest := l.text[l.at:]
	if strings.EqualFold(w, "u") && (strings.HasPrefix(rest, `&"`) || strings.HasPrefix(rest, `&'`)) {
		return token{}, refuse("it has an escaped name or string")
	}
	if strings.HasPrefix(rest, "'") && len(w) <= 8 {
		switch low := strings.ToLower(w); {
		case low == "e" && l.dialect == Postgres, low == "x", low == "b", low == "n", strings.HasPrefix(low, "_") && l.dialect == MySQL:
			t, err := l.quoted('\'', tokenString, low == "e")
			t.start = start
			return t, err
		}
	}
	return token{kind: tokenWord, start: start, end: l.at, value: w}, nil
}

// quoted reads a string or a name in quotes; the quote is doubled inside it.
func (l *lexer) quoted(q byte, kind tokenKind, escapes bool) (token, error) {
	start := l.at
	l.at++
	var value strings.Builder
	for l.at < len(l.text) {
		c := l.text[l.at]
		switch {
		case escapes && c == '\\' && l.at+1 < len(l.text):
			l.at += 2
		case c == q && l.at+1 < len(l.text) && l.text[l.at+1] == q:
			value.WriteByte(q)
			l.at += 2
		case c == q:
			l.at++
			return token{kind: kind, start: start, end: l.at, value: value.String()}, nil
		default:
			value.WriteByte(c)
			l.at++
		}
	}
	return token{}, refuse("a quote is not closed")
}

// bracketed reads SQLite's [name].
func (l *lexer) bracketed() (token, error) {
	end := strings.IndexByte(l.text[l.at:], ']')
	if end < 0 {
		return token{}, refuse("a bracket is not closed")
	}
	t := l.cut(tokenQuoted, end+1)
	t.value = t.value[1:end]
	return t, nil
}

// figure is digits with what may follow them. Letters but for an exponent end it, so that no name can hide in it.
var figure = regexp.MustCompile(`^[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]+)?`)
