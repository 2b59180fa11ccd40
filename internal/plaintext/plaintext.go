// Package plaintext is foreign text as a result or an error may carry it: on one
// line, without control characters, bounded. It owns that form; what is said in it,
// and the markup of where it comes from, is not its affair.
package plaintext

import (
	"strings"
	"unicode"
)

// Line is a text on one line, without control characters, of at most so many
// characters and an ellipsis. What cannot be shown leaves a space, and bytes that
// are no UTF-8 a replacement character: what was there is not hidden.
func Line(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return Clip(strings.Join(strings.FieldsFunc(s, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsGraphic(c) }), " "), most)
}

// Fold is a text on one line as it was meant to be read: white space and control
// characters become single spaces, and what has no shape of its own, such as a mark
// of direction, an escape sequence or a byte that is no UTF-8, is gone without a trace.
func Fold(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return ' '
		case !unicode.IsPrint(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, Unescaped(s))
	return strings.Join(strings.Fields(s), " ")
}

// Clip is at most so many characters of a text, with an ellipsis after them if there
// are more. Nothing is cleaned.
func Clip(s string, most int) string {
	if c := []rune(s); len(c) > most {
		return string(c[:most]) + "…"
	}
	return s
}

// Brief is a line of at most so many characters, cut between words if it is
// longer: half an address would be another one.
func Brief(line string, most int) string {
	r := []rune(line)
	if len(r) <= most {
		return line
	}
	line = string(r[:most-1])
	if i := strings.LastIndex(line, " "); i > 0 && r[most-1] != ' ' {
		line = line[:i]
	}
	return strings.TrimRight(line, " :;,") + "…"
}
