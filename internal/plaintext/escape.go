package plaintext

import (
	"strings"
	"unicode/utf8"
)

// Unescaped is a text without the escape sequences that steer terminals, whole and not only their
// ESC: CSI, OSC, DCS, SOS, PM, APC, in their two-character form and as C1 controls. A control string
// (OSC, DCS…) that is not ended before the next control character loses its introducer only, so
// that a source cannot hide the text behind it. Other control characters stay.
func Unescaped(s string) string {
	if !strings.ContainsAny(s, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch r {
		case '\x1b':
			n = escapeLen(s[i:])
		case '\u009b': // CSI as one character
			n += csiLen(s[i+n:])
		case '\u009d', '\u0090', '\u0098', '\u009e', '\u009f': // OSC, DCS, SOS, PM, APC
			n += controlStringLen(s[i+n:])
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
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
