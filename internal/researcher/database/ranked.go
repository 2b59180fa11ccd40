package database

import (
	"slices"
	"strconv"
)

// superlative is what "the most" says: how many are wanted, 0 for all that are the utmost, which way, and where it stands.
type superlative struct {
	n        int
	way      string
	from, at int
	word     string
	dated    bool // the first or the last by a date
	sold     bool // by how many pieces were sold
}

// superlative finds "most", "the 5 cheapest", "top 3", "best selling", "latest".
func (a *asking) superlative() *superlative {
	for i, w := range a.q.low {
		s := superlative{way: "DESC", from: i, at: i + 1, word: w}
		for _, words := range []string{"best selling", "most sold", "sold most", "sold best", "sells best", "sold the most", "sells the most", "most popular", "best sold", "most often sold"} {
			if end, ok := a.q.phraseAt(i, words); ok {
				s.at, s.sold, s.word = end, true, "most"
			}
		}
		if end, ok := a.q.phraseAt(i, "most recent"); ok {
			s.at, s.dated, s.word = end, true, "latest"
		}
		switch {
		case s.sold || s.dated:
		case slices.Contains([]string{"latest", "newest", "last", "youngest"}, w):
			s.dated = true
		case slices.Contains([]string{"earliest", "first", "oldest"}, w):
			s.dated, s.way = true, "ASC"
		case w == "top" || slices.Contains(most, w):
		case slices.Contains(least, w):
			s.way = "ASC"
		default:
			continue
		}
		if i > 0 && a.q.low[i-1] == "at" || slices.ContainsFunc(a.written(), func(f filter) bool { return f.from <= i && i < f.at }) {
			continue // "at most", or a word of a name
		}
		a.use(s.from, s.at)
		s.n = a.howMuch(s)
		return &s
	}
	return nil
}

// howMuch is how many a superlative asks for: "top 5", "the 5 most", "which 3 products"; 0 for no number.
func (a *asking) howMuch(s superlative) int {
	count := func(i int) int {
		if i < 0 || i >= len(a.q.low) || a.used[i] {
			return 0
		}
		if k, err := strconv.Atoi(a.q.low[i]); err == nil && k > 0 && k <= manyGroups {
			return k
		}
		return 1 + slices.Index(countWords, a.q.low[i])
	}
	places := []int{s.at, s.from - 1}
	for _, n := range a.nouns {
		places = append(places, n.from-1)
	}
	for _, i := range places {
		if n := count(i); n > 0 {
			a.use(i, i+1)
			return n
		}
	}
	return 0
}

// ranked is "which X has the most Y", "the 5 most expensive products", "which category has the highest average price".
func (a drafting) ranked(s superlative) *draft {
	g, shown := a.ranks(s)
	if s.dated {
		return a.dated(s, shown)
	}
	fn := ""
	for i, w := range a.q.low {
		if f := map[string]string{"average": "AVG", "mean": "AVG", "total": "SUM", "sum": "SUM", "overall": "SUM"}[w]; f != "" && !a.used[i] && !a.inValue(i) {
			fn = f
			a.use(i, i+1)
		}
	}
	_, numbered := a.q.find("number of")
	if numbered > 0 {
		a.use(numbered-2, numbered)
	}
	c, counted := a.rankedBy(s, g, numbered)
	if s.at < len(a.q.low) && frequent[a.q.low[s.at]] && g != nil { // "used most often"
		a.use(s.at, s.at+1)
		c, counted = -1, g.table
		for _, n := range a.nouns {
			if n.table != g.table {
				counted = n.table
			}
		}
	}
	if c >= 0 && shown < 0 && a.q.has("who") {
		if label := a.called(a.r.cols[c].of); label >= 0 && !a.r.cols[label].key {
			shown = label
		}
	}
	more := slices.Contains([]string{"most", "least", "fewest", "top"}, s.word) && a.q.low[s.from] == s.word
	switch {
	case c >= 0 && g != nil && (fn != "" || s.sold || (more || s.n > 0) && a.r.cols[c].of != g.table):
		if fn == "" {
			fn = "SUM"
		}
		return a.mostOf(a.computed(fn, c, 0), g, s)
	case c >= 0 && shown < 0 && a.bareMeasure(s, c):
		return a.extreme(c, c, a.r.value(&a.r.cols[c]), a.r.filledTest(&a.r.cols[c]), s)
	case c >= 0 && shown >= 0 && (a.r.cols[shown].of == a.r.cols[c].of || a.named()[a.r.cols[c].of]):
		return a.extreme(shown, c, a.r.value(&a.r.cols[c]), a.r.filledTest(&a.r.cols[c]), s)
	case counted >= 0 && g != nil:
		return a.mostOf(a.computed("", -1, counted), g, s)
	}
	return nil
}

// bareMeasure reports that what is asked for is the number itself: "the highest price".
func (a drafting) bareMeasure(s superlative, c int) bool {
	return !a.q.has("who", "whom", "whose", "which") && slices.ContainsFunc(a.cols[min(s.at, len(a.cols)-1)], func(m mention) bool { return m.col == c }) && len(a.named()) < 2
}

// ranks is what a superlative ranks: as a group, and as the column to show; nil and -1 if the question does not say.
func (a drafting) ranks(s superlative) (*group, int) {
	place := -1
	if _, at := a.q.find("which", "what", "who", "whose", "in which", "list", "show", "give", "name"); at > 0 {
		for at < len(a.q.low) && at < s.from && (a.q.toks[at].Stop || a.used[at]) && len(a.cols[at]) == 0 {
			at++
		}
		if at < s.from && !a.used[at] {
			place = at
		}
	}
	if place < 0 {
		for _, n := range a.nouns {
			if n.from >= s.at && !a.inValue(n.from) {
				place = n.from
				break
			}
		}
	}
	if place < 0 {
		return nil, -1
	}
	t, c, at := a.thing(place)
	g, _ := a.groupAt(place)
	if c >= 0 && !a.r.unnamed && (a.r.cols[c].iso || a.r.cols[c].number) { // "who joined first"
		t, g = a.r.cols[c].of, nil
	}
	if t >= 0 {
		c = a.w.labelOf(t)
	}
	if g != nil || c >= 0 {
		a.use(place, max(at, place+1))
	}
	return g, c
}

// rankedBy is what a superlative ranks by: a column of numbers, or a table whose rows are counted.
func (a drafting) rankedBy(s superlative, g *group, numbered int) (by, counted int) {
	if s.sold {
		sold := func(c *column) bool {
			return measurable(c) && c.hasWord(pieces) && !c.hasWord(stocked) && (g == nil || c.of != g.table)
		}
		return a.only(sold), -1
	}
	from := max(s.from, numbered)
	for i := from; i < len(a.q.toks); i++ {
		if n, ok := a.nounAt(i); ok && (g == nil || n.table != g.table || i != n.from || !a.used[i]) && !(a.used[i] && i > s.from) {
			if m, ok := a.best(i, measurable); !ok || m.words <= n.at-n.from {
				return -1, n.table
			}
		}
		if i == s.from || !a.used[i] {
			if m, ok := a.best(i, measurable); ok {
				a.use(i, m.at)
				a.touched[m.col] = true
				return m.col, -1
			}
		}
	}
	return a.near(s.from, 0, 3, measurable), -1
}

// dated are the first or the last rows by a column of dates or years.
func (a drafting) dated(s superlative, shown int) *draft {
	if shown < 0 {
		return nil
	}
	of := a.r.cols[shown].of
	dates := func(c *column) bool { return (c.iso || c.year != "") && c.of == of && !c.role }
	if s.word == "oldest" || s.word == "youngest" {
		dates = func(c *column) bool { return c.year != "" && c.of == of && c.hasWord(ageLike) }
	}
	c := a.namedBy(dates)
	if c < 0 && s.word != "first" && s.word != "last" {
		c = a.only(dates)
	}
	if c < 0 {
		return nil // by what it is the first is not said
	}
	expr := a.r.cols[c].when()
	return a.extreme(shown, c, expr, expr+" IS NOT NULL", s)
}
