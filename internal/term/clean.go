package term

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Clean makes text from outside safe to write to a terminal. It keeps newlines,
// tabs and printable characters and drops the rest:
//
//	escape sequences   whole, not only their ESC: CSI, OSC, DCS, SOS, PM, APC, in
//	                   their two-character form and as C1 controls
//	other controls     C0, DEL, C1, carriage return and backspace among them
//	invisible text     zero-width, bidirectional and tag characters, fillers,
//	                   variation selectors above the first sixteen
//	private use        code points without an agreed look
//
// Bytes that are no UTF-8 and unassigned code points become U+FFFD; the line and
// paragraph separators become newlines. A control string (OSC, DCS…) that is not
// ended before the next control character loses its introducer only, so that a
// source cannot hide the text behind it.
//
// Clean(Clean(s)) equals Clean(s).
func Clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b':
			n = escapeLen(s[i:])
		case r == '\u009b': // CSI as one character
			n += csiLen(s[i+n:])
		case r == '\u009d' || r == '\u0090' || r == '\u0098' || r == '\u009e' || r == '\u009f': // OSC, DCS, SOS, PM, APC
			n += controlStringLen(s[i+n:])
		default:
			if k := visible(r); k >= 0 {
				b.WriteRune(k)
			}
		}
		i += n
	}
	return b.String()
}

// CleanLine is Clean for text that must stay on one line: a run of newlines and
// tabs, with the spaces around it, becomes one space, and none stays at the ends.
func CleanLine(s string) string {
	return strings.Trim(oneLine(Clean(s)), " ")
}

var breaks = regexp.MustCompile(` *[\n\t][\n\t ]*`)

func oneLine(s string) string {
	return breaks.ReplaceAllString(s, " ")
}

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

// escapeLen is the length of the escape sequence at the start of s.
func escapeLen(s string) int {
	if len(s) == 1 {
		return 1
	}
	switch c := s[1]; {
	case c == '[':
		return 2 + csiLen(s[2:])
	case strings.IndexByte("]PX^_k", c) >= 0: // OSC, DCS, SOS, PM, APC, and the title of screen
		return 2 + controlStringLen(s[2:])
	case c >= 0x20 && c <= 0x2f: // intermediates, then one final byte
		n := 2
		for n < len(s) && s[n] >= 0x20 && s[n] <= 0x2f {
			n++
		}
		if n < len(s) && s[n] >= 0x30 && s[n] <= 0x7e {
			n++
		}
		return n
	case c >= 0x30 && c <= 0x7e:
		return 2
	}
	return 1
}

// csiLen is how much of s belongs to a control sequence: parameters, intermediates and one final byte.
func csiLen(s string) int {
	n := 0
	for n < len(s) && s[n] >= 0x20 && s[n] <= 0x3f {
		n++
	}
	if n < len(s) && s[n] >= 0x40 && s[n] <= 0x7e {
		n++
	}
	return n
}

// controlStringLen is how much of s belongs to a control string, its end included, or 0 if it is not ended.
func controlStringLen(s string) int {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\a' || c == 0x18 || c == 0x1a: // BEL, CAN, SUB
			return i + 1
		case c == 0x1b && i+1 < len(s) && s[i+1] == '\\': // ST
			return i + 2
		case c == 0xc2 && i+1 < len(s) && s[i+1] == 0x9c: // ST as one character
			return i + 2
		case c < 0x20 && c != '\t' || c == 0x7f || c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0:
			return 0
		}
	}
	return 0
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
