package extract

import (
	"strings"
	"unicode"
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
	return tidied(withLineEnds(strings.ToValidUTF8(s, "\uFFFD")), nil)
}

// tidied is normalise for valid text with its own line ends. It moves marks, which come in order, to where it leaves what they mark.
func tidied(s string, marks []mark) string {
	same, began, blank := 0, false, false // so many bytes stay as they are; most texts stay whole, and are not copied
	var b strings.Builder
	add := func(part string) {
		if !began && strings.HasPrefix(s[same:], part) {
			same += len(part)
			return
		}
		if !began {
			began = true
			b.Grow(len(s))
			b.WriteString(s[:same])
		}
		b.WriteString(part)
	}
	from := 0
	for line := range strings.SplitSeq(s, "\n") {
		kept := strings.TrimRight(seen(line), " \t")
		switch {
		case kept == "" || same == 0 && !began:
		case blank:
			add("\n\n")
		default:
			add("\n")
		}
		at := max(same, b.Len())
		for done, width := 0, 0; len(marks) > 0 && marks[0].at <= from+len(line); marks = marks[1:] {
			part := line[done : marks[0].at-from]
			done += len(part)
			width += len(seen(part))
			marks[0].at = at + min(len(kept), width)
		}
		add(kept)
		blank = kept == ""
		from += len(line) + 1
	}
	if !began {
		return s[:same]
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

const zeroWidthNonJoiner, zeroWidthJoiner = '\u200c', '\u200d'

// visible drops control characters but the tab, which could steer a terminal, and characters that show nothing and can carry words that no reader sees: marks of direction,
// spaces of no width, fillers and tags. It gives -1 for them, as strings.Map wants it, and any other character as it is, but that the upper control characters, which come from windows-1252
// taken for Latin-1, become the punctuation they were. WithoutJoiners decides about zero-width joiners and variation selectors, which depend on what stands beside them.
func visible(r rune) rune {
	if r >= 0x80 && r < 0xa0 {
		if r = charmap.Windows1252.DecodeByte(byte(r)); r == utf8.RuneError {
			return -1
		}
	}
	switch {
	case r >= 0x20 && r < 0x7f, r == '\t', r == zeroWidthJoiner, r == zeroWidthNonJoiner:
		return r
	case r < 0xa0:
		return -1
	case unicode.Is(unicode.Cf, r) && !unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return -1
	case r == 0x34f, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r == 0x3164, r == 0xffa0, r == 0x2065, r >= 0xe0000 && r <= 0xe0fff:
		return -1
	}
	return r
}

// withoutJoiners drops zero-width joiners that join nothing and all but the first of several variation selectors: between letters of a script that writes them, and inside an
// emoji, they belong to the word; anywhere else they only hide something.
func withoutJoiners(line string) string {
	if !strings.ContainsFunc(line, modifies) {
		return line
	}
	runes := []rune(line)
	out := make([]rune, 0, len(runes))
	for i, r := range runes {
		if modifies(r) {
			if len(out) == 0 {
				continue
			}
			prev := out[len(out)-1]
			if unicode.Is(unicode.Variation_Selector, r) {
				if modifies(prev) || unicode.IsSpace(prev) {
					continue
				}
			} else if i+1 == len(runes) || !joins(prev) || !joins(runes[i+1]) || modifies(runes[i+1]) {
				continue
			}
		}
		out = append(out, r)
	}
	return string(out)
}

func modifies(r rune) bool {
	return r == zeroWidthJoiner || r == zeroWidthNonJoiner || unicode.Is(unicode.Variation_Selector, r)
}

// joins tells the letters and pictures that a joiner can stand beside: those of Latin, Greek and Cyrillic and of East Asia are not among them.
func joins(r rune) bool {
	switch {
	case r < 0x590:
		return false
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
		return false
	case r == 0xfe0f: // the selector that makes a sign an emoji
		return true
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) && !unicode.Is(unicode.Variation_Selector, r) || unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r)
}
