package engines

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The service wants every word to be in an article and takes at most 300
// characters: more words than these find nothing.
const (
	wikipediaMostWords = 10
	mostBytes          = 280
)

// asides are words of a request, not of its subject, beside the stop words.
var asides = map[string]bool{
	"explain": true, "describe": true, "tell": true, "list": true, "define": true, "discuss": true, "compare": true, "summarise": true, "summarize": true,
	"give": true, "show": true, "find": true, "please": true, "many": true, "much": true, "happen": true, "happens": true, "happened": true,
	"mean": true, "means": true, "called": true, "exactly": true, "currently": true,
}

// keywords returns what a question is about: its words in order, each once,
// without question words and stop words, and without anything that the service
// would take for an operator. English words are known; of other languages every
// word counts. A question of stop words only keeps them.
func keywords(text, language string) []string {
	english := language == "en" || language == "simple"
	var content, all []string
	for _, w := range split(text) {
		known := func(x string) bool { return strings.EqualFold(x, w) }
		if !slices.ContainsFunc(all, known) {
			all = append(all, w)
		}
		stop := english && (lexicon.IsStop(w) || asides[strings.ToLower(w)])
		if !stop && !slices.ContainsFunc(content, known) {
			content = append(content, w)
		}
	}
	if len(content) == 0 {
		content = lower(all) // "OR" in capitals is an operator
	}
	return fit(search.Heaviest(content, wikipediaMostWords, telling))
}

func lower(words []string) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = strings.ToLower(w)
	}
	return out
}

// split cuts a text into words. A hyphen, an apostrophe or a dot inside a word
// belongs to it: "COVID-19", "O'Neill", "U.S.", "6,000".
func split(text string) []string {
	var words []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.So, r) && !strings.ContainsRune("-'’.,&+#", r)
	}) {
		w = strings.TrimRight(strings.TrimLeft(w, "-'’.,&+#"), "-'’.,&")
		w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
		if w != "" {
			words = append(words, w)
		}
	}
	return words
}

// fewer is the more telling half of the words, in their order.
func fewer(words []string) []string { return search.Heaviest(words, max(1, len(words)/2), telling) }

// telling weighs a word by its look: names and numbers before others, long words
// before short ones.
func telling(w string) int {
	weight := utf8.RuneCountInString(w)
	if first, _ := utf8.DecodeRuneInString(w); unicode.IsUpper(first) || strings.ContainsFunc(w, unicode.IsNumber) {
		weight += 100
	}
	return weight
}

// fit drops words from the end that the service would not take.
func fit(words []string) []string {
	size := 0
	for i, w := range words {
		if size += len(w) + 1; size > mostBytes {
			if i == 0 { // one word that is far too long
				return []string{strings.ToValidUTF8(w[:mostBytes], "")}
			}
			return words[:i]
		}
	}
	return words
}
