package local

import (
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
)

// maxTerms bounds the work of one query; a question has far fewer words.
const maxTerms = 48

// stopWords say how a question is built, not what it is about.
var stopWords = lexicon.WordSet("library stop")

// terms returns what to look for: the content words of a query, in lower case,
// each once, in order, and how often the query has each. A compound such as "6,000" or
// "covid-19" counts as its parts and, with its parts joined by single spaces, as a
// phrase. A query made of stop words only is searched for these.
func terms(query string) (terms []string, times []int) {
	var content, all counted
	for field := range strings.FieldsSeq(strings.ToValidUTF8(query, " ")) {
		words := strings.FieldsFunc(strings.ToLower(field), func(r rune) bool { return !inverted.WordRune(r) })
		contentful := 0
		for _, w := range words {
			all.add(w)
			if !stopWords[w] {
				content.add(w)
				contentful++
			}
		}
		if contentful > 0 && len(words) > 1 && len(words) <= 4 {
			content.add(strings.Join(words, " "))
		}
	}
	if len(content.words) == 0 {
		content = all
	}
	return content.words, content.times
}

// counted is a list of words and how often each was met.
type counted struct {
	words []string
	times []int
}

// add counts a word; beyond maxTerms different ones the rest is left out.
func (c *counted) add(word string) {
	switch i := slices.Index(c.words, word); {
	case i >= 0:
		c.times[i]++
	case len(c.words) < maxTerms:
		c.words, c.times = append(c.words, word), append(c.times, 1)
	}
}

// snippetRunes is the longest snippet, in characters.
const snippetRunes = 300

// snippet cuts the part of body out that holds the most different terms, whole
// words with single spaces between them, at most snippetRunes characters.
func snippet(body string, terms []string) string {
	words := strings.Fields(body)
	sizes, hits := make([]int, len(words)), make([]uint64, len(words)) // a bit for each of maxTerms
	for i, w := range words {
		sizes[i] = utf8.RuneCountInString(w)
		if at := termIn(w, terms); at >= 0 {
			hits[i] = 1 << at
		}
	}
	best, bestEnd, most := 0, 0, -1
	for start := range words {
		end, size, held := start, -1, uint64(0)
		for end < len(words) && size+1+sizes[end] <= snippetRunes {
			size += 1 + sizes[end]
			held |= hits[end]
			end++
		}
		if n := bits.OnesCount64(held); n > most {
			best, bestEnd, most = start, end, n
		}
	}
	if best == bestEnd && len(words) > 0 { // a word longer than a snippet
		return prefixRunes(words[best], snippetRunes)
	}
	return strings.Join(words[best:bestEnd], " ")
}

// termIn returns the term that a word of a text is a form of, or -1. Two words
// are taken for forms of one when they differ in their last letters only.
func termIn(word string, terms []string) int {
	word = strings.ToLower(strings.TrimFunc(word, func(r rune) bool { return !inverted.WordRune(r) }))
	return slices.IndexFunc(terms, func(t string) bool {
		if word == t {
			return true
		}
		n := 0
		for n < len(word) && n < len(t) && word[n] == t[n] {
			n++
		}
		return n >= 4 && len(word)-n <= 3 && len(t)-n <= 3
	})
}

// chunkRunes is the size of a chunk aimed at, in characters.
const chunkRunes = 1000

// chunk cuts text into pieces of about chunkRunes characters that begin and end
// at paragraphs, without overlap. Only a paragraph that is much longer is cut
// inside, at a line end, a sentence end or a space. A heading, and a title before
// everything, go with what follows.
func chunk(text string) []string {
	var pieces, current []string
	size := 0
	flush := func(keep int) {
		if body := current[:len(current)-keep]; len(body) > 0 {
			pieces = append(pieces, strings.Join(body, "\n\n"))
		}
		current = slices.Clone(current[len(current)-keep:])
		size = 0
		for _, p := range current {
			size += utf8.RuneCountInString(p)
		}
	}
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for _, part := range cutLong(strings.Trim(paragraph, "\n")) {
			n := utf8.RuneCountInString(part)
			alone := len(current) == 1 && (isHeading(current[0]) || len(pieces) == 0 && len(current[0]) <= 200 && !strings.Contains(current[0], "\n")) // a title, to judge by its look
			if size > 0 && size+n > chunkRunes && !alone {
				keep := 0
				if len(current) > 1 && isHeading(current[len(current)-1]) {
					keep = 1
				}
				flush(keep)
			}
			current = append(current, part)
			size += n
		}
	}
	flush(0)
	return withoutStub(pieces)
}

// withoutStub joins the last piece with the one before if it is less than half a chunk,
// such as authors and keywords below an abstract.
func withoutStub(pieces []string) []string {
	n := len(pieces)
	if n < 2 {
		return pieces
	}
	last, joined := utf8.RuneCountInString(pieces[n-1]), pieces[n-2]+"\n\n"+pieces[n-1]
	if last >= chunkRunes/2 || utf8.RuneCountInString(joined) > chunkRunes*3/2 {
		return pieces
	}
	return append(pieces[:n-2], joined)
}

// isHeading guesses: one short line that does not end like a sentence.
func isHeading(paragraph string) bool {
	last, _ := utf8.DecodeLastRuneInString(paragraph)
	return len(paragraph) <= 120 && !strings.Contains(paragraph, "\n") && !strings.ContainsRune(`.!?;,"'”’)`, last)
}

// cutLong cuts a paragraph of more than half as much again as a chunk. A blank
// paragraph gives nothing.
func cutLong(paragraph string) []string {
	var parts []string
	for len(prefixRunes(paragraph, chunkRunes*3/2)) < len(paragraph) {
		head := prefixRunes(paragraph, chunkRunes)
		end := cutPoint(head)
		parts = append(parts, strings.TrimRightFunc(paragraph[:end], unicode.IsSpace))
		paragraph = strings.TrimLeftFunc(paragraph[end:], unicode.IsSpace)
	}
	if strings.TrimSpace(paragraph) != "" {
		parts = append(parts, paragraph)
	}
	return slices.DeleteFunc(parts, func(p string) bool { return p == "" })
}

// cutPoint finds the best place to cut in the second half of head, or its end.
func cutPoint(head string) int {
	for _, sep := range []string{"\n", ". ", "? ", "! ", "; ", " "} {
		if i := strings.LastIndex(head, sep); i >= len(head)/2 {
			return i + len(sep)
		}
	}
	return len(head)
}

// prefixRunes is the first n characters of s.
func prefixRunes(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
