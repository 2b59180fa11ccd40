package plaintext

import (
	"regexp"
	"strings"
)

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
