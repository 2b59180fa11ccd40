package llm

// This part is text from outside as a prompt may show it: data between markers that it cannot forge,
// never an instruction.

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// Nonce is a word that the author of a source cannot know: the source was written before the run had an id.
func Nonce(run marchwarden.TraceID) string {
	sum := sha256.Sum256([]byte("marchwarden/nonce/v1/" + run.String()))
	return hex.EncodeToString(sum[:6])
}

// Quoter cleans text from outside for the prompts of one run; what is stored stays. It is safe for concurrent use.
type Quoter struct {
	nonce     string
	forgeries []*regexp.Regexp // the first is the nonce, and what looks like a marker
}

// forged is what text from outside must not look like: brackets of a marker, and tags of chat templates.
const forged = `[<＜‹〈⟨«]{3,}|[>＞›〉⟩»]{3,}|<[|｜]|[|｜]>|<</?SYS>>|\[/?INST\]|</?think>|<(?:start|end)_of_turn>`

var forgedMarker = regexp.MustCompile(`(?i)` + forged)

// NewQuoter makes a quoter whose markers bear a nonce, unknown to those who wrote what is quoted; of a blank one only the
// look-alikes are taken out. also is what else a prompt gives a meaning, such as its labels.
func NewQuoter(nonce string, also ...*regexp.Regexp) Quoter {
	markers := forgedMarker
	if nonce = strings.TrimSpace(nonce); nonce == "" {
		nonce = "data"
	} else {
		markers = regexp.MustCompile(`(?i)` + regexp.QuoteMeta(nonce) + `|` + forged)
	}
	return Quoter{nonce, append([]*regexp.Regexp{markers}, also...)}
}

// Line is Text of at most n characters. A longer text is cut at a word and ends in
// "…", and of one that is very much longer only the beginning is looked at.
func (v Quoter) Line(s string, n int) string { return Clip(v.Text(ClipBytes(s, 4*n+64)), n) }

// Text is text from outside on one line: without controls, invisible characters and
// forgeries, white space folded.
func (v Quoter) Text(s string) string { return stripped(s, v.forgeries) }

// Unmarked is Text of a model's own words, in which nothing but markers is forged.
func (v Quoter) Unmarked(s string) string { return stripped(s, v.forgeries[:1]) }

// layers is how deep forgeries may hide in each other.
const layers = 4

// stripped is the visible text without what matches, nor what taking that out lets appear. Of a text that hides
// forgeries in forgeries nothing is left.
func stripped(s string, forgeries []*regexp.Regexp) string {
	s = visible(s)
	for range layers {
		before := len(s)
		for _, f := range forgeries {
			s = f.ReplaceAllString(s, "")
		}
		if len(s) == before {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

// Open is the marker before a quotation of some kind, with its line break.
func (v Quoter) Open(kind string) string { return "<<<" + kind + " " + v.nonce + ">>>\n" }

// End is the marker after a quotation, with its line break.
func (v Quoter) End() string { return "<<<end " + v.nonce + ">>>\n" }

// Block puts clean lines between markers; without lines there is none.
func (v Quoter) Block(kind string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return v.Open(kind) + strings.Join(lines, "\n") + "\n" + v.End()
}

// visible drops what cannot be seen. Breaks and tabs become spaces, bytes that are no UTF-8 the replacement character.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r <= '~':
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		case unicode.IsGraphic(r):
			return r
		}
		return utf8.RuneError
	}, s)
}

// Clip shortens s to at most n characters, the last of them "…", at a word where one is near. Nothing is cleaned.
func Clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := string([]rune(s)[:max(0, n-1)])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)*2/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}

// ClipBytes bounds the work on a text without splitting a character.
func ClipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
