package scholar

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// How much of a question a search of papers is given. Indexes want every term to
// be in a paper, so more terms than these find nothing.
const (
	mostWords   = 8
	mostPhrases = 3
	mostIDs     = 10
	longestTerm = 80 // characters
)

// Terms is what a question asks an index of papers for.
type Terms struct {
	IDs     []ID     // papers it names
	Bare    []ID     // arXiv ids, or other numbers that look like one
	Authors []string // the name after "papers by" and the like
	Phrases []string // what it puts in quotation marks
	Words   []string // its other content words in order, each once
}

// Empty reports whether nothing is asked for but papers by their identifiers.
func (t Terms) Empty() bool { return len(t.Authors)+len(t.Phrases)+len(t.Words) == 0 }

// Fewer is the more telling half of the words with all the rest. It is false when
// there is nothing to leave out.
func (t Terms) Fewer() (Terms, bool) {
	n := (len(t.Words) + 1) / 2
	if len(t.Words)+len(t.Phrases) < 3 || n == len(t.Words) {
		return t, false
	}
	t.Words = search.Heaviest(t.Words, n)
	return t, true
}

// searchPapers finds the papers that a query names, and then those that have all of its
// terms or, if there are none, the more telling half. A query for none of hosts finds
// nothing.
func searchPapers(q search.Query, named func([]ID, search.Query) ([]search.Hit, error),
	find func(Terms, search.Query) ([]search.Hit, error), hosts ...string) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok || !slices.ContainsFunc(hosts, func(host string) bool { return q.Filter.Allows(host) }) {
		return nil, err
	}
	terms := TermsOf(q.Text)
	var found []search.Hit
	if ids := slices.Concat(terms.IDs, terms.Bare); len(ids) > 0 {
		if found, err = named(ids, q); err != nil {
			return nil, err
		}
	}
	if !terms.Empty() && len(found) < q.Limit {
		more, err := find(terms, q)
		if fewer, ok := terms.Fewer(); ok && err == nil && len(more) == 0 {
			more, err = find(fewer, q)
		}
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return Hits(found, q), nil
}

var (
	byWho = regexp.MustCompile(`\b((?i:papers?|preprints?|articles?|works?|written|authored|published)\s+(?i:by))\s+((?:\p{Lu}[\p{L}'’.-]*)(?:\s+\p{Lu}[\p{L}'’.-]*){0,3})`)
	quote = regexp.MustCompile(`"([^"]{3,200})"|“([^”]{3,200})”`)
)

var asides = strings.Fields(search.Asides + ` say says use uses used using paper papers preprint preprints article articles
	arxiv doi recent latest literature publications publication`)

// idle tells words that say nothing about what a question asks for.
func idle(w string) bool { return lexicon.IsStop(w) || slices.Contains(asides, strings.ToLower(w)) }

// TermsOf reads a question in English. A question of stop words only keeps them.
// The terms hold letters, digits and the marks inside words, and no operator of
// any search language.
func TermsOf(text string) Terms {
	var t Terms
	t.IDs, text = cutIDs(text)
	t.Bare = bareIDs(text)
	for _, id := range t.Bare {
		text = strings.ReplaceAll(text, id.Versioned(), " ")
	}
	if m := byWho.FindStringSubmatchIndex(text); m != nil {
		if name := phrase(strings.TrimSuffix(text[m[4]:m[5]], "'s")); name != "" {
			t.Authors = append(t.Authors, name)
			text = text[:m[0]] + " " + text[m[1]:]
		}
	}
	text = quote.ReplaceAllStringFunc(text, func(found string) string {
		term := phrase(found)
		if !strings.Contains(term, " ") || len(t.Phrases) == mostPhrases {
			return " " + term + " "
		}
		t.Phrases = append(t.Phrases, term)
		return " "
	})
	other := !t.Empty() || len(t.IDs)+len(t.Bare) > 0
	t.Words = search.Keywords(slices.DeleteFunc(words(text), tooLong), mostWords, idle)
	if other { // then words that say nothing are not needed
		t.Words = slices.DeleteFunc(t.Words, idle)
	}
	t.IDs, t.Bare = t.IDs[:min(len(t.IDs), mostIDs)], t.Bare[:min(len(t.Bare), mostIDs)]
	return t
}

// phrase is text as a term of several words.
func phrase(s string) string {
	p := strings.Join(words(s), " ")
	if tooLong(p) {
		return ""
	}
	return p
}

func words(text string) []string { return search.Words(text, "-'’.,+#") }

func tooLong(term string) bool { return utf8.RuneCountInString(term) > longestTerm }
