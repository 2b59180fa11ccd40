package term

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// cleanCases are hostile texts and what is left of them.
var cleanCases = []struct{ name, in, want string }{
	{"plain", "a b\tc\nd é 漢 🌽", "a b\tc\nd é 漢 🌽"},
	{"colour", "a\x1b[31;1mred\x1b[0mb", "aredb"},
	{"clear screen", "\x1b[2J\x1b[Hx", "x"},
	{"private parameter", "\x1b[?1049hx\x1b[>4;2m\x1b[!py", "xy"},
	{"cut sequence", "x\x1b[31", "x"},
	{"broken sequence", "\x1b[31\nx", "\nx"},
	{"window title", "\x1b]0;owned\ax", "x"},
	{"title by ST", "\x1b]2;owned\x1b\\x", "x"},
	{"link", "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\ me", "click me"},
	{"clipboard", "\x1b]52;c;ZXZpbA==\ax", "x"},
	{"open string hides nothing", "\x1b]0;the rest\nnext", "0;the rest\nnext"},
	{"string cancelled", "\x1b]0;t\x18x", "x"},
	{"device control", "\x1bP+q544e\x1b\\x", "x"},
	{"other strings", "\x1b_apc\x1b\\\x1b^pm\x1b\\\x1bXsos\x1b\\\x1bktitle\x1b\\x", "x"},
	{"reset and charset", "\x1bc\x1b(0x\x1b#8\x1b7y", "xy"},
	{"lone escape", "a\x1b", "a"},
	{"escape before text of another script", "\x1bé", "é"},
	{"doubled escape", "\x1b\x1b[31mx", "x"},
	{"sequence rebuilt by removal", "\x1b\x1b[0m[31mx", "[31mx"},
	{"C1 sequence", "\u009b31mx\u009b2J", "x"},
	{"C1 string", "\u009d0;t\u009cx\u0090q\u009cy", "xy"},
	{"C1 string broken off", "\u009d0;t\u0085x\u009c", "0;tx"},
	{"C1 others", "a\u0085b\u008dc\u0084", "abc"},
	{"raw C1 byte", "a\x9b31m", "a\ufffd31m"},
	{"carriage return", "safe\rfake", "safefake"},
	{"line end of another system", "a\r\nb", "a\nb"},
	{"backspace, bell, delete, null", "a\b\a\x7f\x00\v\fb", "ab"},
	{"bidirectional", "a\u202eb\u2066c\u2069\u200f\u061cd", "abcd"},
	{"zero width", "a\u200bb\u200dc\ufeffd\u2060e\u00adf", "abcdef"},
	{"tags", "a\U000e0001\U000e0041\U000e007fb", "ab"},
	{"hidden in variation selectors", "a\U000e0100\U000e01efb\ufe0f", "ab\ufe0f"},
	{"fillers", "a\u3164\u115f\u034fb", "ab"},
	{"private use", "a\ue000\U000f0000\U0010fffdb", "ab"},
	{"surrogate bytes", "a\xed\xa0\x80b", "a\ufffd\ufffd\ufffdb"},
	{"invalid", "a\xff\xc3(b", "a\ufffd\ufffd(b"},
	{"unassigned", "a\U0001fbffb\uffff", "a\ufffdb\ufffd"},
	{"separators", "a\u2028b\u2029c", "a\nb\nc"},
}

// firstControl is where text has something that must not reach a terminal, or
// -1. It states the rule apart from the code that enforces it.
func firstControl(s string) int {
	for i, r := range s {
		bad := unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Co, r) || unicode.Is(unicode.Cs, r) ||
			unicode.IsControl(r) && r != '\n' && r != '\t'
		if bad || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return i
		}
	}
	return -1
}

func TestClean(t *testing.T) {
	for _, tc := range cleanCases {
		t.Run(tc.name, func(t *testing.T) {
			if got := Clean(tc.in); got != tc.want {
				t.Errorf("Clean(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestCleanLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                          "",
		" \n\t ":                    "",
		"a  b":                      "a  b", // a path may hold two spaces
		"a \n\n\t b\tc\n":           "a b c",
		"a\u2028b":                  "a b",
		"a\x1b]0;t\nmarchwarden: x": "a0;t marchwarden: x",
	} {
		if got := CleanLine(in); got != want {
			t.Errorf("CleanLine(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, c := range cleanCases {
		f.Add(c.in)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if at := firstControl(got); at >= 0 {
			t.Fatalf("Clean(%q) = %q: control character at %d", s, got, at)
		}
		if again := Clean(got); again != got {
			t.Fatalf("Clean(%q) = %q, then %q", s, got, again)
		}
		line := CleanLine(s)
		if firstControl(line) >= 0 || strings.ContainsAny(line, "\n\t") || CleanLine(line) != line {
			t.Fatalf("CleanLine(%q) = %q", s, line)
		}
	})
}

// JSON on a terminal says the same and does nothing.
func TestJSONOnATerminal(t *testing.T) {
	text := "a\u009b31mb\u202ec\U000e0041d\x7f é 日本 👍 <&> \t"
	line, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		t.Fatal(err)
	}
	for size := 1; size <= len(line); size++ { // however it is cut into writes
		var out strings.Builder
		w := JSON(&out)
		for rest := line; len(rest) > 0; {
			n := min(size, len(rest))
			if written, err := w.Write(rest[:n]); err != nil || written != n {
				t.Fatal(written, err)
			}
			rest = rest[n:]
		}
		if got := out.String(); got != Clean(got) || !strings.Contains(got, `\u009b`) || !strings.Contains(got, "日本 👍") {
			t.Fatalf("%d at a time: %q", size, got)
		}
		var back map[string]string
		if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back["text"] != text {
			t.Fatalf("%d at a time: %q, %v", size, back["text"], err)
		}
	}
}
