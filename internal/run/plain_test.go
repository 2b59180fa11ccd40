package run_test

import (
	"strings"
	"testing"
	"time"
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
		"\x1b[31mred\u202e\xff":             "[31mred",
		"snake_case stays":                  "snake_case stays",
		"end\\":                             "end\\",
	} {
		if got := run.Plain(in, 2); got != want {
			t.Errorf("run.Plain(%q) is %q, want %q", in, got, want)
		}
	}
}

// Whatever is in an answer, reading it takes time in proportion to its length.
func TestPlainHostile(t *testing.T) {
	t.Parallel()
	const most = 256 << 10 // bytes of an answer that are read
	for _, piece := range []string{"[", "[a](", "![", "[a](b", "((", "\\", "\n#", "[1", "[1] ", "*", "\xff", "[a]("} {
		text := strings.Repeat(piece, 2*most/len(piece))
		began := time.Now()
		if got := run.Plain(text, 9); len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%q: %d bytes", piece, len(got))
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q took %v", piece, took)
		}
	}
}
