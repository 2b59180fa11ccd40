package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// Clean makes text from outside safe to write to a terminal. It keeps newlines,
// tabs and printable characters and drops the rest:
//
//	escape sequences   whole, not only their ESC: see plaintext.Unescaped
//	other controls     C0, DEL, C1, carriage return and backspace among them
//	invisible text     zero-width, bidirectional and tag characters, fillers,
//	                   variation selectors above the first sixteen
//	private use        code points without an agreed look
//
// Bytes that are no UTF-8 and unassigned code points become U+FFFD; the line and
// paragraph separators become newlines.
//
// Clean(Clean(s)) equals Clean(s).
func Clean(s string) string { return strings.Map(visible, plaintext.Unescaped(s)) }

// CleanLine is Clean for text that must stay on one line: a run of newlines and
// tabs, with the spaces around it, becomes one space, and none stays at the ends.
func CleanLine(s string) string {
	return strings.Trim(breaks.ReplaceAllString(Clean(s), " "), " ")
}

var breaks = regexp.MustCompile(` *[\n\t][\n\t ]*`)

// visible is what is written for r: itself, a stand-in, or -1 for nothing.
func visible(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r >= ' ' && r <= '~':
		return r
	case r == '\u2028' || r == '\u2029':
		return '\n'
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), r >= 0xE0100 && r <= 0xE01EF:
		return -1
	case unicode.IsGraphic(r):
		return r
	}
	return utf8.RuneError
}

// JSON passes JSON on to a terminal: what Clean would take out is written as the escape
// that JSON has for it, so that nothing is lost and nothing acts. It holds back the
// beginning of a character until the rest comes.
func JSON(w io.Writer) io.Writer { return &jsonWriter{to: w} }

type jsonWriter struct {
	to   io.Writer
	held []byte
}

// Write takes text of JSON, in which a character beyond ASCII is always part of a string.
func (j *jsonWriter) Write(p []byte) (int, error) {
	b := append(j.held, p...)
	out := make([]byte, 0, len(b))
	for len(b) > 0 && utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case r == '\r':
			out = append(out, ' ')
		case visible(r) == r:
			out = append(out, b[:n]...)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		b = b[n:]
	}
	j.held = append([]byte(nil), b...)
	if _, err := j.to.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}
