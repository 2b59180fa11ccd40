package run_test

import (
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"# Peat\n\nIs *soil* [1][2]. And":   "Peat Is soil. And",
		"- one\n- two\n> said\n1. three":    "one two said 1. three",
		"[3] and [0] and [x] [1]":           "[3] and [0] and [x]",
		`\[1\] \*as it is\* C:\dir`:         `[1] *as it is* C:\dir`,
		"[a link](https://x.example/a_(b))": "a link",
		"![alt](http://x/p.png \"t\")!":     "alt!",
		"[open](http://x\n) [open":          "[open](http://x ) [open",
		"`code` ~~gone~~ a~b #no":           "code gone a~b #no",
		"\x1b[31mred\u202e\xff":             "red",
		"snake_case stays":                  "snake_case stays",
		"end\\":                             "end\\",
	} {
		if got := run.Plain(in, 2); got != want {
			t.Errorf("run.Plain(%q) is %q, want %q", in, got, want)
		}
	}
}

// Whatever is in an answer, reading it takes work in proportion to its length.
func TestPlainHostile(t *testing.T) {
	const most = 256 << 10 // bytes of an answer that are read
	work := func(text string) (bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := run.Plain(text, 9); len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%.20q: %d bytes", text, len(got))
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, piece := range []string{"[", "[a](", "![", "[a](b", "((", "\\", "\n#", "[1", "[1] ", "*", "*a", "\\*", "\xff"} {
		work(piece) // which makes what is made once
		part, whole := work(strings.Repeat(piece, most/4/len(piece))), work(strings.Repeat(piece, 2*most/len(piece)))
		if whole > 6*part+most {
			t.Errorf("%q: four times the length takes %d bytes of memory, and the length %d", piece, whole, part)
		}
	}
}
