package llm

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Tags around what some models write while they think.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
	fence      = "```"
)

// maxNesting is how deep a repaired value may nest.
const maxNesting = 200

// Object finds the JSON object or array in a model's text. Text that is one as it stands comes back
// byte for byte. Otherwise Object passes over <think> blocks, code fences and words around it, drops
// trailing commas, escapes bare control characters in strings, and closes a value that the end of the
// text cut off. Of such a value every container from the root down to the first array keeps its whole
// items; what is not whole is dropped, and nothing is made up. Single quotes, bare words and comments
// make a value broken, and no piece of a broken object is taken for the answer. Of several values the
// longest counts, the first among equals.
//
// The result is valid JSON, duplicate keys left as they are, and the same for the same text. A repair
// looks at no more than 200 levels, and its work is linear in the text.
func Object(text string) (json.RawMessage, bool) { return Begun(text, 0) }

// Begun is Object of a text that is still being written, in which what is looked for stands so many arrays below the
// first: containers keep their whole items down to there.
func Begun(text string, deep int) (json.RawMessage, bool) {
	if isObject(text) {
		return json.RawMessage(text), true
	}
	f := finder{text: text, deep: deep, work: 16*len(text) + 4096}
	f.find()
	if f.best == nil || !json.Valid(f.best) {
		return nil, false
	}
	return f.best, true
}

// WithoutThinking is a model's text without its <think> blocks, whole or cut off at either end. Tags inside JSON are
// quoted words, and stay. Its work is linear in the text.
func WithoutThinking(text string) string {
	if isObject(text) || !strings.Contains(text, thinkOpen) && !strings.Contains(text, thinkClose) {
		return text
	}
	var out []byte
	work := 16*len(text) + 4096
	for i := 0; i < len(text); {
		rest, n := text[i:], 1
		switch {
		case strings.HasPrefix(rest, thinkOpen):
			end := strings.Index(rest, thinkClose)
			if end < 0 {
				return strings.TrimSpace(string(out))
			}
			i += end + len(thinkClose)
			continue
		case strings.HasPrefix(rest, thinkClose):
			out = out[:0]
			i += len(thinkClose)
			continue
		case (rest[0] == '{' || rest[0] == '[') && work > 0:
			p := repairer{s: text, pos: i}
			how := p.value(0, 0)
			work -= p.pos - i
			if how == whole || (how == cut || p.sure) && !strings.Contains(text[i:p.pos], thinkClose) {
				n = max(1, p.pos-i)
			}
		}
		out = append(out, rest[:n]...)
		i += n
	}
	return strings.TrimSpace(string(out))
}

// isObject tells whether text is a JSON object or array and nothing else.
func isObject(text string) bool {
	t := strings.TrimLeft(text, " \t\r\n")
	return t != "" && (t[0] == '{' || t[0] == '[') && json.Valid([]byte(text))
}

type finder struct {
	text string
	deep int // arrays below the first in which a cut value keeps its whole items
	work int // bytes that may still be looked at
	debt int // brackets of a broken object that are still to close: inside it no pieces are taken
	best []byte
}

// find goes through the text once and tries a value at each opening bracket.
func (f *finder) find() {
	for i := 0; i < len(f.text) && f.work > 0; {
		f.work--
		switch rest := f.text[i:]; {
		case strings.HasPrefix(rest, thinkOpen):
			end := strings.Index(rest, thinkClose)
			if end < 0 {
				return
			}
			i += end + len(thinkClose)
		case strings.HasPrefix(rest, thinkClose): // what came before was thinking
			f.best, f.debt = nil, 0
			i += len(thinkClose)
		case strings.HasPrefix(rest, fence):
			f.debt = 0
			i += len(fence)
		case rest[0] == '}' || rest[0] == ']':
			f.debt = max(0, f.debt-1)
			i++
		case rest[0] == '{' || rest[0] == '[':
			i = f.try(i)
		default:
			i++
		}
	}
}

// try reads a value at i and returns where to go on.
func (f *finder) try(i int) (next int) {
	p := repairer{s: f.text, pos: i, deep: f.deep}
	how := p.value(0, 0)
	f.work -= p.pos - i
	switch {
	case how == whole:
		found := []byte(f.text[i:p.pos])
		if !json.Valid(found) {
			found = p.out
		}
		f.offer(found)
		return p.pos
	case how == cut && p.keep > 0:
		slices.Reverse(p.open[:p.around])
		f.offer(append(p.out[:p.keep], p.open[:p.around]...))
		return p.pos
	case how == cut:
		return p.pos
	case !p.sure:
		return i + 1
	}
	if n := strings.Index(f.text[i:p.pos], thinkClose); n >= 0 {
		return i + n
	}
	f.debt += p.depth
	return p.pos
}

func (f *finder) offer(found []byte) {
	if f.debt == 0 && len(found) > len(f.best) {
		f.best = found
	}
}

// outcome is how the reading of a value ended.
type outcome int

const (
	whole  outcome = iota // the value is complete
	cut                   // the text ended inside it
	broken                // it is no JSON
)

// repairer reads one value at pos and writes it clean to out. Of a value that is cut, out[:keep] is whole, and the
// brackets of so many containers around it are missing; keep is 0 when nothing is whole.
type repairer struct {
	s      string
	pos    int
	out    []byte
	deep   int    // arrays below the first in which items are kept
	open   []byte // the closing brackets of the containers around pos, the innermost last
	keep   int
	around int
	depth  int  // containers open where a broken value broke
	sure   bool // that this is meant as JSON, not as words in brackets
}

// value reads any value. level counts the containers around it, arrays those of them that are arrays.
func (p *repairer) value(level, arrays int) outcome {
	if p.ended() {
		return cut
	}
	p.depth = level
	switch c := p.s[p.pos]; {
	case (c == '{' || c == '[') && level >= maxNesting:
		p.sure = true
		return broken
	case c == '{':
		return p.list(level, arrays, '}')
	case c == '[':
		return p.list(level, arrays, ']')
	case c == '"':
		return p.quoted()
	}
	return p.word()
}

// list reads an object or an array, told by its closing bracket.
func (p *repairer) list(level, arrays int, closer byte) outcome {
	p.out = append(p.out, p.s[p.pos])
	p.pos++
	p.open = append(p.open[:level], closer)
	inside := arrays
	if closer == ']' {
		inside++
	}
	for n := 0; ; n++ {
		if p.ended() {
			return cut
		}
		if p.s[p.pos] == closer {
			p.pos++
			p.out = append(p.out, closer)
			return whole
		}
		if n > 0 {
			p.out = append(p.out, ',')
		}
		if closer == '}' {
			if how := p.key(level); how != whole {
				return how
			}
		}
		if how := p.value(level+1, inside); how != whole {
			return how
		}
		if arrays <= p.deep {
			p.keep, p.around = len(p.out), level+1
		}
		if p.ended() {
			return cut
		}
		switch p.s[p.pos] {
		case ',':
			p.pos++
		case closer:
		default:
			p.depth = level + 1
			return broken
		}
	}
}

// key reads the name of a field, and the colon.
func (p *repairer) key(level int) outcome {
	p.depth = level + 1
	if p.s[p.pos] != '"' {
		return broken
	}
	if how := p.quoted(); how != whole {
		return how
	}
	if p.ended() {
		return cut
	}
	if p.s[p.pos] != ':' {
		return broken
	}
	p.pos++
	p.sure = true
	p.out = append(p.out, ':')
	return whole
}

// quoted reads a string, and escapes what is bare in it.
func (p *repairer) quoted() outcome {
	p.out = append(p.out, '"')
	for p.pos++; p.pos < len(p.s); p.pos++ {
		switch c := p.s[p.pos]; {
		case c == '"':
			p.pos++
			p.out = append(p.out, '"')
			return whole
		case c == '\\':
			n := escapeLen(p.s[p.pos:])
			if n == 0 {
				return cut
			}
			if n < 0 {
				return broken
			}
			p.out = append(p.out, p.s[p.pos:p.pos+n]...)
			p.pos += n - 1
		case c < ' ':
			p.out = fmt.Appendf(p.out, "\\u%04x", c)
		default:
			p.out = append(p.out, c)
		}
	}
	return cut
}

// escapeLen is the length of the escape that s begins with: 0 when s ends inside it, -1 when it is none.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	if strings.IndexByte(`"\/bfnrt`, s[1]) >= 0 {
		return 2
	}
	if s[1] != 'u' {
		return -1
	}
	for i := 2; i < 6; i++ {
		if i >= len(s) {
			return 0
		}
		if c := s[i] | 0x20; (s[i] < '0' || s[i] > '9') && (c < 'a' || c > 'f') {
			return -1
		}
	}
	return 6
}

var wordBegun = regexp.MustCompile(`^[-+.\w]*`)

// word reads a number, true, false or null. One that touches the end of the text may go on.
func (p *repairer) word() outcome {
	said := wordBegun.FindString(p.s[p.pos:])
	goesOn := func(w string) bool { return said != w && strings.HasPrefix(w, said) }
	if p.pos+len(said) == len(p.s) && (strings.Trim(said, "+-.eE0123456789") == "" || slices.ContainsFunc([]string{"true", "false", "null"}, goesOn)) {
		p.pos = len(p.s)
		return cut
	}
	if !json.Valid([]byte(said)) {
		return broken
	}
	p.pos += len(said)
	p.out = append(p.out, said...)
	return whole
}

// ended passes over white space, and tells whether the text, or the code fence around the value, ends then.
func (p *repairer) ended() bool {
	p.pos = len(p.s) - len(strings.TrimLeft(p.s[p.pos:], " \t\r\n"))
	return p.pos == len(p.s) || strings.HasPrefix(p.s[p.pos:], fence)
}
