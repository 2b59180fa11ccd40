package local

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxTerms bounds the work of one query; a question has far fewer words.
const maxTerms = 48

// stopWords say how a question is built, not what it is about.
var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(`a about above after again all also am an and any are as at be because been before being below between both but by
		can could did do does doing down during each few for from further had has have having he her here hers him his how i if in into is it its itself
		just let me more most my no nor not now of off on once only or other our ours out over own please same she should so some such than that the their
		theirs them then there these they this those through to too under until up us very was we were what when where which while who whom whose why will
		with would you your yours s t re ve ll d m don doesn didn isn aren wasn weren`) {
		set[w] = true
	}
	return set
}()

// terms returns what to look for: the content words of a query, in lower case,
// each once, in order. A compound such as "6,000" or "covid-19" counts as its
// parts and, with its parts joined by single spaces, as a phrase. A query made of
// stop words only is searched for these.
func terms(query string) []string {
	var content, all []string
	add := func(list *[]string, term string) {
		if !slices.Contains(*list, term) && len(*list) < maxTerms {
			*list = append(*list, term)
		}
	}
	for field := range strings.FieldsSeq(strings.ToValidUTF8(query, " ")) {
		words := strings.FieldsFunc(strings.ToLower(field), func(r rune) bool { return !isWordRune(r) })
		contentful := 0
		for _, w := range words {
			add(&all, w)
			if !stopWords[w] {
				add(&content, w)
				contentful++
			}
		}
		if contentful > 0 && len(words) > 1 && len(words) <= 4 {
			add(&content, strings.Join(words, " "))
		}
		if len(content) == maxTerms {
			break
		}
	}
	if len(content) == 0 {
		return all
	}
	return content
}

// isWordRune is what FTS5's unicode61 tokenizer makes words of.
func isWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Co, r)
}

// matchExpr writes terms as an FTS5 expression: any of them, each quoted, so
// that nothing in a query is ever taken for an operator.
func matchExpr(terms []string) string {
	quoted := make([]string, len(terms))
	for i, t := range terms {
		quoted[i] = `"` + t + `"` // a term holds letters, digits and spaces only
	}
	return strings.Join(quoted, " OR ")
}

// snippetRunes is the longest snippet, in characters.
const snippetRunes = 300

// snippet cuts the part of body out that holds the most different terms, whole
// words with single spaces between them, at most snippetRunes characters.
func snippet(body string, terms []string) string {
	words := strings.Fields(body)
	sizes, hits := make([]int, len(words)), make([]int, len(words))
	for i, w := range words {
		sizes[i], hits[i] = utf8.RuneCountInString(w), termIn(w, terms)
	}
	best, bestEnd, bestScore := 0, 0, -1
	count := make([]int, len(terms))
	size, distinct, end := -1, 0, 0
	for start := range words {
		for end < len(words) && size+1+sizes[end] <= snippetRunes {
			size += 1 + sizes[end]
			if h := hits[end]; h >= 0 {
				if count[h]++; count[h] == 1 {
					distinct++
				}
			}
			end++
		}
		if distinct > bestScore {
			best, bestEnd, bestScore = start, end, distinct
		}
		if end == start { // a word longer than a snippet
			end++
			continue
		}
		size -= 1 + sizes[start]
		if h := hits[start]; h >= 0 {
			if count[h]--; count[h] == 0 {
				distinct--
			}
		}
	}
	if best == bestEnd && len(words) > 0 {
		return prefixRunes(words[best], snippetRunes)
	}
	return strings.Join(words[best:bestEnd], " ")
}

// termIn returns the term that a word of a text is a form of, or -1. Two words
// are taken for forms of one when they differ in their last letters only.
func termIn(word string, terms []string) int {
	word = strings.ToLower(strings.TrimFunc(word, func(r rune) bool { return !isWordRune(r) }))
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
