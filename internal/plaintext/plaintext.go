// Package plaintext is foreign text as a result or an error may carry it: on one
// line, without control characters, bounded. It owns that form; what is said in it,
// and the markup of where it comes from, is not its affair.
package plaintext

import (
	"regexp"
	"strings"
	"time"
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

// escapes are the sequences that steer terminals, in their two-character form and as C1 controls:
// CSI with its parameters, control strings (OSC, DCS, SOS, PM, APC, and the title of screen) with
// their end, ESC with intermediates, and ESC with one character or none.
var escapes = regexp.MustCompile(`(?:\x1b\[|\x{9b})[\x20-\x3f]*[\x40-\x7e]?` +
	`|(?:\x1b[\]PX^_k]|[\x{90}\x{98}\x{9d}-\x{9f}])(?:[^\x00-\x08\x0a-\x1f\x7f-\x{9f}]*(?:[\x07\x18\x1a\x{9c}]|\x1b\\))?` +
	`|\x1b[\x20-\x2f]+[\x30-\x7e]?` +
	`|\x1b[\x30-\x7e]?`)

// Unescaped is a text without escape sequences, whole and not only their ESC. A control string that is
// not ended before the next control character loses its introducer only, so that a source cannot hide
// the text behind it. Other control characters stay.
func Unescaped(s string) string {
	if !strings.ContainsAny(s, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		return s
	}
	return escapes.ReplaceAllString(s, "")
}

var (
	isoDate     = regexp.MustCompile(`^\d{4}-\d\d-\d\d`)
	dateLayouts = []string{"2006-1-2", "2006/1/2", "2006.1.2", "20060102", "2.1.2006", "January 2, 2006", "Jan 2, 2006", "2 January 2006", "2 Jan 2006",
		time.RFC1123, time.RFC1123Z, time.RFC850, time.RFC822, time.RFC822Z, time.ANSIC, time.UnixDate, "Monday, January 2, 2006", "Mon, 2 Jan 2006",
		"2006/1/2 15:04", "2006/1/2 15:04:05", "January 2, 2006 15:04", "Jan 2, 2006 15:04", "January 2, 2006 3:04 PM", "2.1.2006 15:04"}
)

// Date reads a date in the forms that documents and services use and gives it as "2006-01-02", or "" when it is none. The day is the one written down: no time
// zone is applied. A month without a day is not a date.
func Date(s string) string {
	s = strings.TrimPrefix(strings.TrimSpace(s), "D:") // PDF writes D:20060102150405+01'00'
	if len(s) > 64 {
		return ""
	}
	if isoDate.MatchString(s) {
		s = s[:10]
	} else if len(s) > 8 && strings.Trim(s[:8], "0123456789") == "" && (len(s) == 14 || strings.Trim(s, "0123456789") != "") { // else they are seconds
		s = s[:8]
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil && t.Year() > 0 {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}
