// Package evidence turns documents into numbered passages with spans, finds
// verbatim text in them and ranks them under a token allowance. It owns passage
// ids, folding and the raw_excerpt rule. It does not fetch, store or judge: what
// a passage means is for others.
//
// Every span is a range of bytes of the document's stored text, on rune
// boundaries, and every text given out is cut from that text byte for byte.
package evidence

import (
	"context"
	"fmt"
	"strconv"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// ID names a passage within a Set: "S3.12" is passage 12 of source 3, both
// counted from one.
type ID string

func makeID(n, index int) ID {
	return ID("S" + strconv.Itoa(n) + "." + strconv.Itoa(index))
}

// parse reads the form makeID writes. Any other spelling is no id.
func (id ID) parse() (source, index int, ok bool) {
	_, err := fmt.Sscanf(string(id), "S%d.%d", &source, &index)
	return source, index, err == nil && makeID(source, index) == id
}

// Passage is a few whole sentences of one paragraph.
type Passage struct {
	ID     ID
	Source int              // number of the source in its Set, from 1; 0 outside a Set
	Index  int              // number of the passage in its document, from 1
	Span   marchwarden.Span // where it stands in the document's text
	Text   string           // the document's text at Span, byte for byte
	// Heading is the nearest heading above the passage, "" if there is none.
	Heading string
	// Path are all headings above it, outermost first, "Manual › Fines"; in a message
	// of a thread also its subject, sender and date.
	Path string
	// IsHeading marks a passage that is itself a heading, or names the columns of a
	// table: it says what follows is about, and states nothing.
	IsHeading bool
	// Columns are the names of the columns where the passage is rows of a table that
	// names them.
	Columns []string
	// Paragraph numbers the paragraphs of the document from 1. Long paragraphs
	// give several passages.
	Paragraph int
	// Sentences are the spans of its sentences in the document's text. A sentence
	// too long for one passage appears as one piece in each.
	Sentences []marchwarden.Span
}

// Source is a document in a Set.
type Source struct {
	N        int // from 1
	Page     fetch.Page
	Text     string
	Passages []Passage
	earlier  bool // by earlier rules the name of a file, with its ending, may be its title
}

// Set is the evidence of one run. The zero Set is empty and ready for use. Several may
// read it at once, while none adds to it.
type Set struct {
	// Earlier has texts split as the runs of earlier rules had them: without terms, settings, lists of contents and names
	// of columns above shorter rows.
	Earlier   bool
	sources   []*Source
	byLocator map[string]*Source
	byText    map[blob.Ref]*Source
	index     index
}

// Add takes in a document and numbers it. If its locator or the same text is in
// the set already, nothing changes and the source that is there is returned with
// false. A document without text is a source without passages.
func (s *Set) Add(page fetch.Page, text string) (*Source, bool) {
	return s.take(page, text, func() *Reading {
		r, _ := s.Read(context.Background(), text) // fails with its context alone
		return r
	})
}

// AddRead is Add for a text that was read before.
func (s *Set) AddRead(page fetch.Page, r *Reading) (*Source, bool) {
	return s.take(page, r.text, func() *Reading { return r })
}

func (s *Set) take(page fetch.Page, text string, read func() *Reading) (*Source, bool) {
	if src, ok := s.byLocator[page.Locator]; ok {
		return src, false
	}
	ref := page.Text
	if !ref.Valid() && text != "" {
		ref = blob.Of([]byte(text))
	}
	if src, ok := s.byText[ref]; ok && ref.Valid() {
		return src, false
	}
	if s.byLocator == nil {
		s.byLocator = make(map[string]*Source)
		s.byText = make(map[blob.Ref]*Source)
	}
	r := read()
	src := &Source{N: len(s.sources) + 1, Page: page, Text: r.text, Passages: r.passages, earlier: s.Earlier}
	for i := range src.Passages {
		p := &src.Passages[i]
		p.Source = src.N
		p.ID = makeID(src.N, p.Index)
	}
	s.index.add(page.Title, src.Passages)
	s.sources = append(s.sources, src)
	s.byLocator[page.Locator] = src
	if ref.Valid() {
		s.byText[ref] = src
	}
	return src, true
}

// Sources returns the documents in the order in which they were added. The
// caller does not change them.
func (s *Set) Sources() []*Source { return s.sources }

// Passage returns the passage with an id, and its source. It is false for an id
// that is not in the set or is spelled otherwise than the set spells it.
func (s *Set) Passage(id ID) (*Source, Passage, bool) {
	n, i, ok := id.parse()
	if !ok || n < 1 || n > len(s.sources) {
		return nil, Passage{}, false
	}
	src := s.sources[n-1]
	if i < 1 || i > len(src.Passages) {
		return nil, Passage{}, false
	}
	return src, src.Passages[i-1], true
}

// Len is how many passages there are.
func (s *Set) Len() int { return len(s.index.passages) }

// Passages returns all passages, by source and then in the order of the text.
func (s *Set) Passages() []Passage {
	var all []Passage
	for _, src := range s.sources {
		all = append(all, src.Passages...)
	}
	return all
}

// Cited is the page of a document that another researcher has read, as far as a citation of it
// tells. The text is the one stored here, with its length in bytes.
func Cited(c marchwarden.Citation, text blob.Ref, size int) fetch.Page {
	p := fetch.Page{
		Locator: c.Locator, Source: c.Source, Title: c.Title, Published: c.Published, Origin: c.Origin, Standing: c.Authority,
		Unchecked: c.Unchecked, Text: text, TextBytes: size,
	}
	if c.FetchedAt != nil {
		p.FetchedAt = *c.FetchedAt
	}
	return p
}

// Reading is a text as a Set takes it in: its passages.
type Reading struct {
	text     string
	passages []Passage
}

// Read reads a text before it is added to the Set. That takes part of a second for 30 MB, and
// ends with an error of ctx when ctx does.
func (s *Set) Read(ctx context.Context, text string) (*Reading, error) {
	passages, err := split(ctx, text, s.Earlier)
	return &Reading{text, passages}, err
}

// Text is the text that was read.
func (r *Reading) Text() string { return r.text }
