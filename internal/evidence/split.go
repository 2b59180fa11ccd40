package evidence

import (
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// MaxPassageChars is the longest passage, in characters.
const MaxPassageChars = 480

// maxPassages bounds the passages of one document. Prose of 32 MiB has fewer; a
// page of millions of one-letter paragraphs would fill the memory.
const maxPassages = 500_000

// Split cuts a text into passages, in order. IDs and source numbers are left
// empty. A passage is whole sentences of one paragraph of at most MaxPassageChars
// characters; a sentence that is longer by itself is cut at word boundaries. The
// items of a list, with the line that leads to them, count as one paragraph. Every
// byte that is not white space lies in exactly one passage, and in exactly one of
// its sentences; but a document that would have over 500,000 passages ends with
// these.
func Split(text string) []Passage {
	b := builder{text: text}
	var last lexicon.Paragraph
	for i, p := range lexicon.Paragraphs(text) {
		if len(b.passages) >= maxPassages {
			return b.passages[:maxPassages]
		}
		if i == 0 || !together(text, last, p) {
			b.flush()
			b.paragraphs++
		}
		for _, s := range p.Sentences {
			b.sentence(marchwarden.Span(s), p.Kind == lexicon.Heading)
		}
		if p.Kind == lexicon.Heading {
			b.flush()
			b.heading = strings.TrimSpace(strings.Trim(text[p.Start:p.End], "#"))
		}
		last = p
	}
	b.flush()
	return b.passages
}

// together reports whether a paragraph belongs with the one before it: items and
// loose lines of one block, and a list with the sentence that leads to it.
func together(text string, before, p lexicon.Paragraph) bool {
	if p.Kind != lexicon.Item && p.Kind != lexicon.Line {
		return false
	}
	if before.Block == p.Block && before.Kind == p.Kind {
		return true
	}
	return p.Kind == lexicon.Item && before.Kind != lexicon.Heading && text[before.End-1] == ':'
}

// builder gathers sentences into passages.
type builder struct {
	text       string
	heading    string // in force
	paragraphs int    // begun so far
	open       Passage
	chars      int // from the beginning of open to the end of its last sentence
	passages   []Passage
}

// sentence adds a sentence to the open passage, or to a new one if it does not
// fit. One that fits into none is cut.
func (b *builder) sentence(s marchwarden.Span, heading bool) {
	for {
		head, cut := fit(b.text, s, MaxPassageChars)
		b.piece(head, heading)
		if !cut {
			return
		}
		s.Start = head.End
		for r, n := utf8.DecodeRuneInString(b.text[s.Start:s.End]); isSpace(r); r, n = utf8.DecodeRuneInString(b.text[s.Start:s.End]) {
			s.Start += n
		}
	}
}

// piece adds what fits into one passage.
func (b *builder) piece(s marchwarden.Span, heading bool) {
	grown := b.chars
	if n := len(b.open.Sentences); n > 0 {
		grown += utf8.RuneCountInString(b.text[b.open.Sentences[n-1].End:s.End])
		if grown > MaxPassageChars {
			b.flush()
		}
	}
	if len(b.open.Sentences) == 0 {
		b.open = Passage{Heading: b.heading, IsHeading: heading, Paragraph: b.paragraphs}
		grown = utf8.RuneCountInString(b.text[s.Start:s.End])
	}
	b.open.Sentences = append(b.open.Sentences, s)
	b.chars = grown
}

// flush ends the open passage.
func (b *builder) flush() {
	n := len(b.open.Sentences)
	if n == 0 {
		return
	}
	p := b.open
	p.Index = len(b.passages) + 1
	p.Span = marchwarden.Span{Start: p.Sentences[0].Start, End: p.Sentences[n-1].End}
	p.Text = b.text[p.Span.Start:p.Span.End]
	b.passages = append(b.passages, p)
	b.open = Passage{}
	b.chars = 0
}
