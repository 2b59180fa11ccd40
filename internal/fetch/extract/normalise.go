package extract

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

var otherEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n\n")

// withLineEnds is a text in which every line ends with "\n".
func withLineEnds(s string) string {
	if !strings.ContainsAny(s, "\r\v\f") {
		return s
	}
	return otherEnds.Replace(s)
}

// normalise brings text into the promised form: valid UTF-8, "\n" line ends, no control characters but "\n" and "\t", nothing that is not seen, no space at line
// ends, no more than one blank line in a row, none at either end. Applied twice it changes nothing more.
func normalise(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	s = withLineEnds(s)
	var b strings.Builder
	b.Grow(len(s))
	blank := false
	for line := range strings.SplitSeq(s, "\n") {
		line = strings.TrimRight(seen(line), " \t")
		if line == "" {
			blank = true
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
			if blank {
				b.WriteByte('\n')
			}
		}
		b.WriteString(line)
		blank = false
	}
	return b.String()
}

// seen is what a reader sees of a line.
func seen(line string) string {
	if plain(line) {
		return line
	}
	if strings.Contains(line, "\x1b") { // of what steers a terminal, nothing stays
		line = plaintext.Unescaped(line)
	}
	return withoutJoiners(strings.Map(visible, line))
}

// plain reports whether all characters of a line are ASCII that is seen: most lines are,
// and stay as they are.
func plain(line string) bool {
	for i := range len(line) {
		if c := line[i]; (c < 0x20 || c >= 0x7f) && c != '\t' {
			return false
		}
	}
	return true
}

// visible drops what visibleRune does. The upper control characters come from windows-1252 taken for Latin-1: they become the punctuation they were.
func visible(r rune) rune {
	switch {
	case r >= 0x20 && r < 0x7f, r == '\t':
		return r
	case r >= 0x80 && r < 0xa0:
		if r = charmap.Windows1252.DecodeByte(byte(r)); r >= 0xa0 && r != utf8.RuneError {
			return r
		}
		return -1
	}
	return visibleRune(r)
}
