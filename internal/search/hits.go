package search

import (
	"cmp"
	"html"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// The sizes of what goes to a web service and of what is taken from it, in
// characters.
const (
	MaxQuery   = 400
	maxTitle   = 300
	maxSnippet = 1000
)

const (
	defaultLimit = 10
	mostLimit    = 50
)

// Clean makes a query fit to be sent to a web service: one line of at most
// MaxQuery characters without control characters, and a limit from 1 to 50, 10
// where none is given. ok is false when nothing is left that can be searched for;
// then there are no hits, and no request is made. A bound that is no date is
// CodeInvalid.
func Clean(q Query) (clean Query, ok bool, err error) {
	for _, d := range []string{q.Since, q.Until} {
		if _, err := time.Parse(time.DateOnly, d); d != "" && err != nil {
			return q, false, marchwarden.Errorf(marchwarden.CodeInvalid, "the date range of a search must be given as 2006-01-02, not %q", cut(d, 40))
		}
	}
	q.Text = cut(printable(q.Text), MaxQuery)
	q.Limit = min(cmp.Or(max(q.Limit, 0), defaultLimit), mostLimit)
	searchable := strings.ContainsFunc(q.Text, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r)
	})
	return q, searchable, nil
}

// Tidy makes what a web service found into hits that keep the promises of Engine
// for the query q: locators canonical and each once, titles and snippets plain
// text on one line, the filter and the known dates enforced, best first, at most
// q.Limit. What cannot be fetched is left out. Where the service gives no scores
// its order is taken for them.
func Tidy(found []Hit, q Query) []Hit {
	seen := map[string]bool{}
	var hits []Hit
	for _, h := range found {
		loc, ok := locator.Canonical(strings.TrimSpace(h.Locator))
		if !ok || seen[loc] || !q.Filter.Allows(locator.Host(loc)) {
			continue
		}
		h.Published = plaintext.Date(h.Published)
		if d := h.Published; d != "" && (q.Since != "" && d < q.Since || q.Until != "" && d > q.Until) {
			continue
		}
		seen[loc] = true
		h.Locator = loc
		hits = append(hits, h)
	}
	if slices.ContainsFunc(hits, func(h Hit) bool { return !(h.Score > 0) || math.IsInf(h.Score, 0) }) {
		scoreByRank(hits)
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	hits = hits[:min(len(hits), q.Limit)]
	for i, h := range hits {
		hits[i].Title, hits[i].Snippet = cut(PlainText(h.Title), maxTitle), cut(PlainText(h.Snippet), maxSnippet)
	}
	return hits
}

func scoreByRank(hits []Hit) {
	for i := range hits {
		hits[i].Score = 1 / float64(1+i)
	}
}

// Domains returns the filter's entries as hosts in ASCII: those that are allowed, and those
// that are excluded. plain is false if one of them is a suffix such as ".gov", which most
// services cannot be given; an excluded one is left out then.
func Domains(f marchwarden.SourceFilter) (only, not []string, plain bool) {
	if f.Empty() {
		return nil, nil, true
	}
	plain = true
	for e := range strings.SplitSeq(f.String(), ",") {
		e, bars := strings.CutPrefix(e, "!")
		name := strings.TrimPrefix(e, ".")
		whole := name == e && strings.Contains(e, ".")
		plain = plain && whole
		if loc, ok := locator.Canonical("http://" + name + "/"); ok {
			name = locator.Host(loc)
		}
		switch {
		case !bars:
			only = append(only, name)
		case whole:
			not = append(not, name)
		}
	}
	return only, not, plain
}

// WithSites adds a small filter to the text of a query as "site:" operators, for
// services that know them. The result is at most MaxQuery characters. A large
// filter, and a query with operators of its own, stay as they are.
func WithSites(text string, f marchwarden.SourceFilter) string {
	const most, longest = 4, 200
	only, not, _ := Domains(f)
	if len(only)+len(not) == 0 || len(only) > most || len(not) > most || strings.Contains(strings.ToLower(text), "site:") {
		return text
	}
	var ops []string
	if len(only) > 0 {
		ops = []string{"site:" + strings.Join(only, " OR site:")}
	}
	if len(only) > 1 {
		ops[0] = "(" + ops[0] + ")"
	}
	for _, d := range not {
		ops = append(ops, "-site:"+d)
	}
	op := strings.Join(ops, " ")
	if len(op) > longest {
		return text
	}
	return cut(text, MaxQuery-utf8.RuneCountInString(op)-1) + " " + op
}

var (
	hiddenText = regexp.MustCompile(`(?is)<(?:script|style)\b.*?</(?:script|style)\s*>|<!--.*?-->`)
	inlineTag  = regexp.MustCompile(`(?i)</?(?:a|abbr|b|code|em|font|i|mark|small|span|strong|sub|sup|u)(?:\s[^<>]*)?/?>`)
	anyTag     = regexp.MustCompile(`<[/!?]?[A-Za-z][^<>]*(?:>|$)`)
)

// PlainText takes the markup out of text that a service sent: HTML tags and
// comments, entities, control and format characters. The result is one line with
// single spaces, valid UTF-8, and holds no tag. Very long text is cut.
func PlainText(s string) string {
	const longest, rounds = 8 << 10, 8 // bytes; far more than is kept
	if len(s) > longest {
		s = s[:longest]
	}
	for range rounds { // entities may hide tags, and tags more tags
		before := s
		s = hiddenText.ReplaceAllString(printable(s), " ")
		s = anyTag.ReplaceAllString(inlineTag.ReplaceAllString(s, ""), " ")
		if s = html.UnescapeString(s); s == before {
			break
		}
	}
	s = printable(s)
	if anyTag.MatchString(s) {
		s = strings.ReplaceAll(s, "<", "")
	}
	return printable(s)
}

// printable folds a text so that a byte that is no UTF-8 leaves a space, and never joins
// two words of a query.
func printable(s string) string { return plaintext.Fold(strings.ToValidUTF8(s, " ")) }

// Asides are words of a request, not of its subject, beside the stop words.
const Asides = `explain describe tell list define discuss compare summarise summarize give show find please many much exactly currently`

// Words cuts a text into words. One of marks inside a word belongs to it: "COVID-19",
// "O'Neill", "U.S.", "6,000"; of marks, those that may end a word are "+" and "#", and
// come last.
func Words(text, marks string) []string {
	var words []string
	for w := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.So, r) && !strings.ContainsRune(marks, r)
	}) {
		w = strings.TrimRight(strings.TrimLeft(w, marks), strings.TrimRight(marks, "+#"))
		if w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s"); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// Keywords are the words that a question is about, in order and each once: those that
// are not idle, at most n of them. A question of idle words only keeps them, in lower case.
func Keywords(words []string, n int, idle func(word string) bool) []string {
	var content, all []string
	for _, w := range words {
		known := func(x string) bool { return strings.EqualFold(x, w) }
		if !slices.ContainsFunc(all, known) {
			all = append(all, strings.ToLower(w)) // "OR" in capitals is an operator
		}
		if !idle(w) && !slices.ContainsFunc(content, known) {
			content = append(content, w)
		}
	}
	if len(content) == 0 {
		content = all
	}
	return Heaviest(content, n)
}

// Heaviest keeps the n most telling words of a query, in their order: names and numbers
// before others, long words before short ones; of equals the earlier ones stay.
func Heaviest(words []string, n int) []string {
	weight := func(word string) int {
		w := utf8.RuneCountInString(word)
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsUpper(r) || unicode.IsNumber(r) }) {
			w += 100
		}
		return w
	}
	kept := slices.Clone(words)
	for len(kept) > n {
		lightest := 0
		for i, word := range kept {
			if weight(word) <= weight(kept[lightest]) {
				lightest = i
			}
		}
		kept = slices.Delete(kept, lightest, lightest+1)
	}
	return kept
}

// cut shortens s to n characters, after a whole word where there is one in the
// second half.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	s = string(r[:max(n, 0)])
	if i := strings.LastIndexByte(s, ' '); i > len(s)/2 {
		s = s[:i]
	}
	return strings.TrimSpace(s)
}
