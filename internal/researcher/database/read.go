package database

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// question is what was asked, as a relation is held against it.
type question struct {
	text string
	toks []lexicon.Token
	low  []string // the tokens in lower case
}

func newQuestion(text string) *question {
	text = strings.TrimSpace(text)
	q := &question{text: text, toks: lexicon.Tokens(text)}
	for _, t := range q.toks {
		q.low = append(q.low, strings.ToLower(t.Text))
	}
	return q
}

// words are the stems that a search for rows looks for.
func (q *question) words() []string {
	var out []string
	for i, t := range q.toks {
		if !t.Stop && len(t.Stem) > 2 && !askWords[t.Stem] && !slices.Contains(out, q.low[i]) && len(out) < maxRowWords {
			out = append(out, t.Stem)
		}
	}
	return out
}

// filter is a condition that the question puts on rows.
type filter struct {
	col      int
	values   []string // it has one of these
	full     bool     // a value is written out in the question
	op       string   // or it compares with number: = < <= > >=
	number   float64
	to       float64 // the other end, with op "between"
	from, at int     // the tokens it stands in, first and after last
	not      bool
	named    bool // the question names the column as well
}

// mention is a column that words of the question name.
type mention struct {
	col   int
	at    int     // the token after the last
	share float64 // of the words of the column's name that are there
	words int
}

func (a *asking) free(from, at int) bool {
	return !slices.Contains(a.used[from:at], true)
}

func (a *asking) use(from, at int) {
	for i := max(0, from); i < min(at, len(a.used)); i++ {
		a.used[i] = true
	}
}

// mentions finds the columns that the words name: consecutive words, but for stop words, of a column's name.
func (a *asking) mentions() {
	a.cols = make([][]mention, len(a.q.toks))
	for i, t := range a.q.toks {
		if t.Stop {
			continue
		}
		for c := range a.r.cols {
			if a.r.cols[c].key {
				continue
			}
			if m, ok := a.mention(i, c); ok {
				a.cols[i] = append(a.cols[i], m)
			}
		}
		slices.SortStableFunc(a.cols[i], func(a, b mention) int {
			return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(b.share, a.share), cmp.Compare(a.col, b.col))
		})
	}
}

func (a *asking) mention(i, c int) (mention, bool) {
	col := &a.r.cols[c]
	if first := a.q.toks[i]; !col.called(first) {
		stems := col.stems
		if len(col.state()) > 0 {
			stems = col.state() // "birth_date" is of a birth
		}
		n := len(stems) // the last of them counts: "unit_price" is a price
		like := n > 0 && (synonyms()[[2]string{first.Stem, stems[n-1]}] || alike(first.Stem, stems[n-1]))
		return mention{col: c, at: i + 1, share: 0.6 / float64(n), words: 1}, like
	}
	found := map[string]bool{}
	end := i
	for j, t := range a.q.toks[i:min(i+6, len(a.q.toks))] {
		if col.called(t) {
			found[t.Stem] = true
			end = i + j + 1
		} else if !t.Stop {
			break
		}
	}
	return mention{col: c, at: end, share: float64(len(found)) / float64(len(col.stems)), words: len(found)}, true
}

// called reports that a word stands in a column's name.
func (c *column) called(t lexicon.Token) bool { return slices.Contains(c.stems, t.Stem) }

// best is the column that the word at i names, of those that pass a test; none if two are named alike.
func (a *asking) best(i int, ok func(*column) bool) (mention, bool) {
	if i < 0 || i >= len(a.cols) {
		return mention{}, false
	}
	var found []mention
	for _, m := range a.cols[i] {
		if ok(&a.r.cols[m.col]) && (len(found) == 0 || m.words == found[0].words && m.share == found[0].share) {
			found = append(found, m)
		}
	}
	found = nearest(found, func(m mention) int { return a.distance(&a.r.cols[m.col]) })
	if len(found) == 0 || len(found) > 1 && (!a.r.unnamed || found[0].share < 1) {
		return mention{}, false // none, or it may be either
	}
	return found[0], true
}

// nearest are those of the smallest rank.
func nearest[T any](found []T, rank func(T) int) []T {
	if len(found) < 2 {
		return found
	}
	least := rank(slices.MinFunc(found, func(a, b T) int { return cmp.Compare(rank(a), rank(b)) }))
	return slices.DeleteFunc(slices.Clone(found), func(t T) bool { return rank(t) > least })
}

// take is best, or -1 for none or if the word is understood already. The words count as understood from then on.
func (a *asking) take(i int, ok func(*column) bool) int {
	m, has := a.best(i, ok)
	if !has || a.used[i] {
		return -1
	}
	a.use(i, m.at)
	a.touched[m.col] = true
	return m.col
}

// near is the column that a word names from token at on, or else one before it, the nearest first; -1 if none does.
func (a *asking) near(at, ahead, behind int, ok func(*column) bool) int {
	for i := at; i < min(at+ahead, len(a.cols)); i++ {
		if c := a.take(i, ok); c >= 0 {
			return c
		}
	}
	for i := min(at, len(a.cols)) - 1; i >= max(0, at-behind); i-- {
		if c := a.take(i, ok); c >= 0 {
			return c
		}
	}
	return -1
}

// figure is a number as people write it.
var figure = regexp.MustCompile(`^\d[\d,]*(?:\.\d+)?$`)

func (q *question) numberAt(i int) (float64, bool) {
	if i < 0 || i >= len(q.toks) {
		return 0, false
	}
	if n := slices.Index(countWords, q.low[i]); n >= 0 {
		return float64(n + 1), true
	}
	if !figure.MatchString(q.low[i]) {
		return 0, false
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(q.low[i], ",", ""), 64)
	return v, err == nil
}

// phraseAt reports whether words stand at token i, and where they end.
func (q *question) phraseAt(i int, words string) (int, bool) {
	f := strings.Fields(words)
	if i < 0 || i+len(f) > len(q.low) || !slices.Equal(q.low[i:i+len(f)], f) {
		return 0, false
	}
	return i + len(f), true
}

// comparedAt is a comparison with a number that begins at token i: "at least 15", "15 or more", "between 3 and 5".
func (q *question) comparedAt(i int) (op string, n, to float64, end int, ok bool) {
	n, first := q.numberAt(i + 1)
	to, also := q.numberAt(i + 3)
	if first && also && q.low[i] == "between" && q.low[i+2] == "and" {
		return "between", n, to, i + 4, true
	}
	for _, c := range comparing() {
		at := i
		if n, ok = q.numberAt(i); c.after && ok {
			at++
		} else if c.after {
			continue
		}
		end, ok := q.phraseAt(at, c.words)
		if !ok {
			continue
		}
		if c.after {
			return c.op, n, 0, end, true
		}
		at = end
		for at < len(q.low) && at < end+3 && slices.Contains([]string{"the", "a", "year", "of"}, q.low[at]) {
			at++
		}
		if n, ok := q.numberAt(at); ok {
			return c.op, n, 0, at + 1, true
		}
	}
	return "", 0, 0, 0, false
}

// comparisons finds numbers that rows are compared with.
func (a *asking) comparisons() {
	for i := range a.q.toks {
		a.decade(i)
		if op, n, to, end, ok := a.q.comparedAt(i); ok {
			a.compare(i, end, op, n, to)
		}
	}
	for i := range a.q.toks {
		a.inYear(i)
	}
}

// compare makes a filter of a comparison at tokens [from, at): "at least 15 wins", "a population over 1000". A year is
// held against the column of years.
func (a *asking) compare(from, at int, op string, n, to float64) {
	if !a.free(from, at) || a.q.dashed(at-1) {
		return // "2007-2008" is a name
	}
	a.place = from
	numbers := func(c *column) bool { return c.number }
	year := n >= 1000 && n <= 2100 && n == math.Trunc(n)
	years := func(c *column) bool { return c.year != "" }
	if slices.Contains([]string{"before", "after", "since", "prior"}, a.q.low[from]) {
		if !year {
			return // "after 5 games": of time, no column tells
		}
		numbers = years
	}
	c := a.near(at, 3, 0, numbers)
	if c < 0 {
		c = a.near(from, 0, 5, func(c *column) bool { return numbers(c) || year && c.year != "" })
	}
	if c < 0 && year {
		c = a.only(years)
	}
	if c >= 0 {
		a.put(filter{col: c, op: op, number: n, to: to, from: from, at: at})
	}
}

// dashed reports that a token goes on behind a dash or a slash.
func (q *question) dashed(i int) bool {
	return strings.IndexAny(q.text[q.toks[i].End:], "-/–") == 0
}

// decade finds "the 1990s" and "the 1800s".
func (a *asking) decade(i int) {
	t := a.q.toks[i]
	n := float64(t.Year())
	a.place = i
	c := a.only(func(c *column) bool { return c.year != "" })
	rest := strings.TrimLeft(a.q.text[t.End:], "'’")
	if n == 0 || c < 0 || len(t.Text) == 4 && !strings.HasPrefix(rest, "s") {
		return
	}
	span := 9.0
	if math.Mod(n, 100) == 0 && n < 2000 {
		span = 99
	}
	a.put(filter{col: c, op: "between", number: n, to: n + span, from: i, at: i + 1})
}

// only is the one column that passes a test or, of several, one that is named; -1 without any or with a choice.
func (a *asking) only(ok func(*column) bool) int {
	for i := a.place - 1; i >= max(0, a.place-3); i-- {
		if m, has := a.best(i, ok); has {
			return m.col
		}
	}
	if c := a.namedBy(ok); c >= 0 {
		return c
	}
	var found []int
	for c := range a.r.cols {
		if !a.r.cols[c].key && ok(&a.r.cols[c]) {
			found = append(found, c)
		}
	}
	found = nearest(found, func(c int) int { return a.distance(&a.r.cols[c]) })
	found = nearest(found, func(c int) int { return a.r.cols[c].usual() })
	if len(found) == 1 && a.distance(&a.r.cols[found[0]]) < far {
		return found[0]
	}
	return -1
}

// namedBy is the one column that passes a test and that the question names, or -1.
func (a *asking) namedBy(ok func(*column) bool) int {
	found := -1
	for i := range a.cols {
		if m, has := a.best(i, ok); has && m.col != found {
			if found >= 0 {
				return -1
			}
			found = m.col
		}
	}
	return found
}

func (a *asking) put(f filter) {
	a.filters = append(a.filters, f)
	a.use(f.from, f.at)
}
