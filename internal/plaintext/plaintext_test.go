package plaintext_test

import (
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		" a\n\tb ":           "a b",
		"\x1b[31mred\x1b[0m": "red",
		"\x1b]0;owned\aA":    "A",
		"one\u202etwo":       "onetwo",
		"a\u00a0\u2028b":     "a b",
		"bad \xff byte":      "bad byte",
		"told \ufffd so":     "told so",
		"\ue000 \U0010ffff":  "",
	} {
		if got := plaintext.Fold(in); got != want {
			t.Errorf("Fold(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestClip(t *testing.T) {
	for in, want := range map[string]string{"": "", "ÄÖÜ": "ÄÖÜ", "ÄÖ  ": "ÄÖ …", "\x00\n\t": "\x00\n\t"} {
		if got := plaintext.Clip(in, 3); got != want {
			t.Errorf("Clip(%q) is %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		" a\n\tb ":           "a b",
		"\x1b[31mred\x1b[0m": "[31mred [0…",
		"one\u202etwo":       "one two",
		"abcdefghij":         "abcdefghij",
		"abcdefghijk":        "abcdefghij…",
		"ÄÖÜ and ÄÖÜ":        "ÄÖÜ and ÄÖ…",
		"bad \xff byte":      "bad � byte",
	} {
		if got := plaintext.Line(in, 10); got != want {
			t.Errorf("Line(%q) is %q, want %q", in, got, want)
		}
	}
}
