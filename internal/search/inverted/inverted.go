// Package inverted is a full-text index in bytes: it turns documents, cut into
// chunks, into segments, and finds the chunks that say most about weighted terms.
// It owns what a word is, how a segment is laid out and how a chunk is scored
// (BM25 with fields). It knows no files, no database and no folders: where the
// bytes are kept, which documents are gone and what is done with the best chunks
// is for its caller to decide.
//
// A segment never changes. Documents that are gone are named when a View is made,
// and are left out when segments are merged. Every figure that a score is made of
// is counted over the chunks that are left, so that a score depends on what is in
// the index and not on how it came there.
package inverted

import (
	"errors"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// ErrDamaged says that bytes are no segment, or not all of one.
var ErrDamaged = errors.New("index segment is damaged")

// Document is one document to index. What its title and its path say counts for
// every chunk.
type Document struct {
	Title, Path string
	Chunks      []string
}

// Term is something to look for.
type Term struct {
	Stem   string  // every form of this word is looked for
	Word   string  // the form that was written, which counts half as much again; "" for none
	Weight float64 // what finding it counts; above 0
}

// Terms returns what to look for where a query has word. That is one term, but a
// word in a script without spaces is looked for by its pairs of characters. A
// compound is given as its parts with single spaces between them, such as
// "covid 19". What holds no word gives nothing. The weight of a word is 1, and that
// of a compound a quarter, since its parts are looked for as well.
func Terms(word string) []Term {
	var parts, glyphs []string
	var terms []Term
	each(word, func(t []byte, k kind) {
		switch k {
		case plain:
			parts = append(parts, string(t))
		case glyph:
			glyphs = append(glyphs, string(t))
		case pair:
			terms = append(terms, Term{Stem: string(t), Word: string(t), Weight: 1})
		}
	})
	if len(terms) == 0 {
		parts = append(parts, glyphs...)
	}
	if len(parts) > 0 {
		w, weight := strings.Join(parts, " "), 1.0
		if len(parts) > 1 {
			weight = compoundWeight
		}
		terms = append(terms, Term{Stem: stemOf(w), Word: w, Weight: weight})
	}
	return terms
}

// stemOf returns the stem of a folded word, or those of the parts of a compound.
func stemOf(word string) string {
	parts := strings.Split(word, " ")
	for i, p := range parts {
		parts[i] = lexicon.Stem(p)
	}
	return strings.Join(parts, " ")
}
