package evidence

import (
	"context"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Reading is a text as a Set takes it in: its passages and their words.
type Reading struct {
	text     string
	passages []Passage
	words    *words
}

// Read reads a text before it is added to a Set. That takes about a second for 30 MB, and
// ends with an error of ctx when ctx does.
func Read(ctx context.Context, text string) (*Reading, error) {
	r := &Reading{text: text}
	var err error
	if r.passages, err = split(ctx, text); err != nil {
		return nil, err
	}
	r.words, err = readWords(ctx, r.passages)
	return r, err
}

// Text is the text that was read.
func (r *Reading) Text() string { return r.text }

// words are those of the passages of a document, as numbers.
type words struct {
	words []word // sentence by sentence
	ends  []int  // of each passage, in words
	vocabulary
}

// readWords reads the words of passages. Its error is that of ctx.
func readWords(ctx context.Context, passages []Passage) (*words, error) {
	ws := &words{vocabulary: newVocabulary(), ends: make([]int, 0, len(passages))}
	for i := range passages {
		if i%lookEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		p := &passages[i]
		for _, span := range p.Sentences {
			ws.words = append(ws.wordsOf(ws.words, p.Text[span.Start-p.Span.Start:span.End-p.Span.Start]), sentenceEnd)
		}
		ws.ends = append(ws.ends, len(ws.words))
	}
	return ws, nil
}

// lookEvery is after how many paragraphs or passages the context is looked at.
const lookEvery = 256

// word is the number of a term.
type word uint32

// What stands among words and is no term.
const (
	stopWord    word = iota // a word that is not looked up
	sentenceEnd             // the end of a sentence
	firstTerm
)

// vocabulary numbers terms in the order in which they are met.
type vocabulary struct {
	numbers map[string]word // of a term
	spelled map[string]word // of a word as it stands in a text; stopWord for those that are no term
}

func newVocabulary() vocabulary { return vocabulary{map[string]word{}, map[string]word{}} }

// wordsOf adds the terms of a text to words.
func (v *vocabulary) wordsOf(words []word, text string) []word {
	for spelling := range lexicon.Words(text) {
		w, known := v.spelled[spelling]
		if !known {
			if !lexicon.IsStop(spelling) {
				w = v.numberOf(lexicon.Stem(spelling))
			}
			v.spelled[strings.Clone(spelling)] = w
		}
		if w != stopWord {
			words = append(words, w)
		}
	}
	return words
}

// numberOf is the number of a term, a new one if it has none.
func (v *vocabulary) numberOf(term string) word {
	w, known := v.numbers[term]
	if !known {
		w = firstTerm + word(len(v.numbers))
		v.numbers[strings.Clone(term)] = w
	}
	return w
}
