package report

// This part reads the answer of a result: where its sentences end, which
// citations their markers name and which claims they are.
//
// An answer is Markdown as the gate of package verify writes it: paragraphs of
// sentences, escaped, with markers behind them. The package owns the markers and
// what a sentence is, for every view of an answer. Any other markup is text to
// it: who renders Markdown cuts it into pieces and asks Ends where sentences end.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// None is said where there is no answer.
const None = "No answer."

// Sentence is a piece of the answer that ends in markers, or the rest of a paragraph
// that has none.
type Sentence struct {
	Text  string // plain, on one line
	Cited []int  // the numbers of its markers, each that of a citation
	Claim int    // the number of the claim that it is, from one; 0 for none
}

// breaks are the blank lines between paragraphs.
var breaks = regexp.MustCompile(`\n[ \t]*\n\s*`)

// Sentences are the paragraphs of an answer as sentences. What looks like a marker
// and has no citation is text. It takes time in proportion to the answer and the
// claims.
func Sentences(res *marchwarden.Result) [][]Sentence {
	var out [][]Sentence
	claims := Claims(res.Claims)
	for _, paragraph := range breaks.Split(strings.TrimSpace(res.Answer), -1) {
		if ss := split(paragraph, len(res.Citations)); len(ss) > 0 {
			for i := range ss {
				ss[i].Claim = claims.Find(ss[i].Text)
			}
			out = append(out, ss)
		}
	}
	return out
}

// Piece is a part of a paragraph: text, or a marker.
type Piece struct {
	Text   string
	Marker int // the number of a citation, from one; 0 for text
}

// Ends are where the sentences of a paragraph end: for each of them the index behind
// its last piece. A sentence ends where text comes after a marker; white space is no
// text and stays with what is before it.
func Ends(paragraph []Piece) []int {
	var out []int
	cited := false
	for i, p := range paragraph {
		switch {
		case p.Marker > 0:
			cited = true
		case cited && strings.TrimSpace(p.Text) != "":
			out = append(out, i)
			cited = false
		}
	}
	if len(paragraph) > 0 {
		out = append(out, len(paragraph))
	}
	return out
}

func split(paragraph string, citations int) []Sentence {
	var out []Sentence
	pieces := read(paragraph, citations)
	from := 0
	for _, end := range Ends(pieces) {
		var s Sentence
		var text strings.Builder
		for _, p := range pieces[from:end] {
			text.WriteString(p.Text)
			if p.Marker > 0 {
				s.Cited = append(s.Cited, p.Marker)
			}
		}
		if s.Text = plaintext.Fold(text.String()); s.Text != "" || len(s.Cited) > 0 {
			out = append(out, s)
		}
		from = end
	}
	return out
}

// token is what an answer is read by: an escaped character, a marker, or neither.
var token = regexp.MustCompile("\\\\[!-/:-@\\[-`{-~]|\\[(\\d{1,9})\\]")

func read(paragraph string, citations int) []Piece {
	var out []Piece
	at := 0
	say := func(s string) {
		if s != "" {
			out = append(out, Piece{Text: s})
		}
	}
	for _, m := range token.FindAllStringSubmatchIndex(paragraph, -1) {
		say(paragraph[at:m[0]])
		at = m[1]
		if m[2] < 0 { // escaped
			say(paragraph[m[0]+1 : m[1]])
			continue
		}
		if n := number(paragraph[m[2]:m[3]], citations); n > 0 {
			out = append(out, Piece{Marker: n})
			continue
		}
		say(paragraph[m[0]:m[1]])
	}
	say(paragraph[at:])
	return out
}

var leading = regexp.MustCompile(`^\[(\d{1,9})\]`)

// Marker is the number of the marker that a text begins with, and how many bytes it
// takes; 0 and 0 where there is none, or none that one of so many citations has.
func Marker(text string, citations int) (n, size int) {
	m := leading.FindStringSubmatch(text)
	if m == nil {
		return 0, 0
	}
	if n = number(m[1], citations); n == 0 {
		return 0, 0
	}
	return n, len(m[0])
}

func number(digits string, citations int) int {
	if n, _ := strconv.Atoi(digits); n >= 1 && n <= citations {
		return n
	}
	return 0
}

// Plain is a piece of an answer on one line, with its escapes resolved and without
// the markers of so many citations.
func Plain(text string, citations int) string {
	var b strings.Builder
	for _, p := range read(text, citations) {
		b.WriteString(p.Text)
	}
	return plaintext.Fold(b.String())
}

// Finder gives sentences the numbers of their claims, which come in the same order;
// one that is said twice is found twice. It is for one answer and one goroutine.
type Finder struct {
	at   map[string][]int // by their text, the claims from zero, in their order
	next int
}

// Claims is a finder that has found none of the claims yet.
func Claims(all []marchwarden.Claim) *Finder {
	f := &Finder{at: map[string][]int{}}
	for i, c := range all {
		text := plaintext.Fold(c.Text)
		f.at[text] = append(f.at[text], i)
	}
	return f
}

// Find is the number of the next claim with a text, from one, beginning anew behind
// the last claim; 0 for none.
func (f *Finder) Find(text string) int {
	at := f.at[text]
	if len(at) == 0 {
		return 0
	}
	i, _ := slices.BinarySearch(at, f.next)
	found := at[i%len(at)]
	f.next = found + 1
	return found + 1
}

// Verdict is a verdict of the contract; what is none was not checked.
func Verdict(s marchwarden.Support) string {
	switch s {
	case marchwarden.Supported, marchwarden.Quoted, marchwarden.Partial, marchwarden.Unsupported:
		return string(s)
	}
	return string(marchwarden.Unchecked)
}
