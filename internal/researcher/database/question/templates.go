package question

import (
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// find is the first place of one of several phrases, and where it ends; -1 if none
// is there.
func (q *question) find(phrases ...string) (from, at int) {
	for i := range q.low {
		for _, p := range phrases {
			if end, ok := q.phraseAt(i, p); ok {
				return i, end
			}
		}
	}
	return -1, -1
}

func (q *question) has(phrases ...string) bool {
	from, _ := q.find(phrases...)
	return from >= 0
}

// auxiliary words end the noun that a question asks for.
var auxiliary = func() map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(`is are was were has had have did does do can could will would won wins win with that who which in on at of from for by to when where during and or than if between
		came come comes appeared appears scored got played finished`) {
		out[w] = true
	}
	return out
}()

// target is the column that a question asks for, and how many words were guessed;
// col is -1 where there is none.
func (rd *reading) target() (col int, soft float64) {
	q := rd.q
	wh, at := q.find("which", "what", "whose", "who", "whom", "when", "where", "name", "list", "give", "tell")
	if wh < 0 {
		if len(rd.cols) > 0 {
			if m, ok := rd.best(0, func(*column) bool { return true }); ok && !rd.used[0] {
				rd.use(0, m.at)
				return m.col, 0
			}
		}
		return rd.r.entity(), 0.5
	}
	switch q.low[wh] {
	case "who", "whom":
		if end, ok := q.phraseAt(wh+1, "was the"); ok || q.has("who is the", "who were the") {
			if !ok {
				end = wh + 3
			}
			for i := end; i < min(end+3, len(q.low)) && !auxiliary[q.low[i]]; i++ {
				if m, ok := rd.best(i, func(c *column) bool { return !c.number }); ok && !rd.used[i] {
					rd.use(i, m.at)
					return m.col, 0
				}
			}
		}
		return rd.person(), 0
	case "when":
		return rd.only(func(c *column) bool { return c.year != "" || c.date || slices.Contains(c.stems, "date") }), 0
	case "where":
		return rd.only(func(c *column) bool { return slices.ContainsFunc(c.stems, func(s string) bool { return placeLike[s] }) }), 0
	}
	return rd.noun(at)
}

var (
	placeLike  = stems("venue location place city site stadium country state town region ground arena")
	personLike = stems("name player driver rider athlete candidate winner person author director artist opponent swimmer skier cyclist coach senator member contestant delegate jockey actor singer incumbent commissioner judge team nation country")
)

// person is the column that answers "who".
func (rd *reading) person() int {
	if c := rd.r.entity(); c >= 0 && slices.ContainsFunc(rd.r.cols[c].stems, func(s string) bool { return personLike[s] }) {
		return c
	}
	for i := range rd.r.cols {
		if c := &rd.r.cols[i]; !c.number && slices.ContainsFunc(c.stems, func(s string) bool { return personLike[s] }) {
			return i
		}
	}
	return rd.r.entity()
}

// noun is the column that the noun after "which" or "what" names. A noun that is
// no column's name is taken for what the rows are, at a price.
func (rd *reading) noun(at int) (int, float64) {
	q := rd.q
	for at < len(q.low) && (q.toks[at].Stop || q.low[at] == "name" || q.low[at] == "names" || q.low[at] == "s") && len(rd.cols[at]) == 0 {
		at++
	}
	lost := 0.0
	for i := at; i < min(at+5, len(q.low)); i++ {
		if auxiliary[q.low[i]] && i > at {
			break
		}
		if m, ok := rd.best(i, func(*column) bool { return true }); ok && !rd.used[i] {
			rd.use(i, m.at)
			return m.col, 0
		}
		if !q.toks[i].Stop && !asking[q.toks[i].Stem] && !rd.used[i] {
			lost = 0.5
			rd.used[i] = true // the noun: what the rows are called
			break
		}
	}
	if slices.ContainsFunc(q.low[at:min(at+3, len(q.low))], func(w string) bool { return w == "year" || w == "date" || w == "season" }) {
		if c := rd.only(func(c *column) bool { return c.year != "" }); c >= 0 {
			return c, 0
		}
	}
	return rd.r.entity(), lost
}

// yesNo refuses questions that want a yes or a no: rows are none.
func (rd *reading) yesNo() *draft {
	if len(rd.q.low) == 0 {
		return refused
	}
	switch rd.q.low[0] {
	case "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would":
		if !rd.q.has("or") {
			return refused
		}
	}
	if rd.q.has("consecutive", "consecutively", "in a row", "respectively", "combined", "alphabetically", "alphabetical") {
		return refused // no statement of these templates does that
	}
	return nil
}

// average is "the average X".
func (rd *reading) average() *draft {
	from, at := rd.q.find("average", "mean")
	if from < 0 || rd.inValue(from) {
		return nil
	}
	rd.use(from, at)
	c := rd.measure(at)
	if c < 0 {
		return refused
	}
	where, words := rd.conditions(nil)
	col := &rd.r.cols[c]
	return &draft{what: "AVG(" + rd.r.value(col) + "), COUNT(*)", where: both(both(where, rd.r.filledTest(col)), rd.r.noTotals()), meaning: fmt.Sprintf("the average %s %s", col.name, of(words))}
}

// count is "how many", "the number of" and "the total": the sum of a column of
// numbers that is named, or else the number of rows.
func (rd *reading) count() *draft {
	from, at := rd.q.find("how many", "total number of", "number of", "how much", "total of", "total amount of", "amount of", "count", "the total", "what number")
	if wh, _ := rd.q.find("which", "who", "where", "when", "name"); wh >= 0 && (from < 0 || wh < from) {
		return nil
	}
	if from < 0 || rd.inValue(from) || rd.q.has("how many times more") {
		return nil
	}
	if i, _ := rd.q.find("number"); i >= from && i < at && rd.nameWord(lexicon.Stem("number")) {
		return nil // a column of numbers is called so
	}
	if rd.q.has("many years", "many days", "many weeks", "many months", "of years", "of days", "of weeks", "of months") && rd.namedFrom(at) < 0 {
		return refused // of time that passed, no column tells
	}
	rd.use(from, at)
	where, words := rd.conditions(nil)
	if m, ok := rd.head(at); ok {
		col := &rd.r.cols[m.col]
		rd.use(m.at-1, m.at)
		return &draft{what: "SUM(" + rd.r.value(col) + "), COUNT(*)", where: both(both(where, rd.r.filledTest(col)), rd.r.noTotals()), meaning: fmt.Sprintf("the sum of %s %s", col.name, of(words))}
	}
	soft := 0.0
	for i := at; i < min(at+3, len(rd.q.toks)); i++ {
		t := rd.q.toks[i]
		if auxiliary[rd.q.low[i]] {
			break
		}
		if t.Stop || asking[t.Stem] || rd.used[i] {
			continue
		}
		// What is counted: the rows, whatever they are called, or the values of a column.
		if m, ok := rd.best(i, func(c *column) bool { return !c.number }); ok {
			rd.use(i, m.at)
			if rd.q.has("different", "unique", "distinct") {
				return &draft{what: "COUNT(DISTINCT " + rd.r.cols[m.col].expr + ")", where: where, meaning: fmt.Sprintf("the number of different %s %s", rd.r.cols[m.col].name, of(words))}
			}
		} else {
			soft += 0.25
			rd.used[i] = true
		}
		break
	}
	if rd.single() {
		return refused // a row that is named is there once
	}
	if where == "" && !rd.q.has("listed", "table", "list", "chart", "total", "there", "all") {
		return refused
	}
	return &draft{what: "COUNT(*)", where: both(where, rd.r.noTotals()), meaning: "the number " + of(words), soft: soft}
}

// single reports that the filters name one row by what no other row has.
func (rd *reading) single() bool {
	return slices.ContainsFunc(rd.filters, func(f filter) bool {
		return f.op == "" && f.full && !f.not && len(f.values) == 1 && rd.r.cols[f.col].unique > 0.9
	})
}

// namedFrom is a column of numbers that is named near a token, or -1.
func (rd *reading) namedFrom(at int) int {
	for i := max(0, at-1); i < min(at+2, len(rd.cols)); i++ {
		if m, ok := rd.best(i, func(c *column) bool { return c.number }); ok {
			return m.col
		}
	}
	return -1
}

// head is the column of numbers that the noun from token at on names.
func (rd *reading) head(at int) (mention, bool) {
	for i := at; i < min(at+4, len(rd.q.toks)); i++ {
		if auxiliary[rd.q.low[i]] && i > at {
			break
		}
		if m, ok := rd.best(i, func(c *column) bool { return c.number && c.year == "" && !c.ordinal() }); ok && !rd.used[i] {
			rd.use(at, m.at)
			rd.touched[m.col] = true
			return m, true
		}
		if !rd.q.toks[i].Stop && !asking[rd.q.toks[i].Stem] && len(rd.cols[i]) > 0 {
			break
		}
	}
	return mention{}, false
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// lookup is the value of a column in the rows that the question names.
func (rd *reading) lookup() *draft {
	if len(rd.filters) == 0 {
		return nil
	}
	answer, soft := rd.target()
	if answer < 0 || rd.q.has("how") {
		return refused
	}
	if slices.ContainsFunc(rd.filters, func(f filter) bool { return f.col == answer && !f.not && f.op == "" }) {
		return refused // it would answer with what was asked
	}
	where, words := rd.conditions(nil)
	return &draft{what: rd.show(answer), where: both(where, rd.r.cols[answer].expr+" IS NOT NULL"), tail: rd.listed(),
		meaning: fmt.Sprintf("the %s %s", rd.r.cols[answer].name, of(words)), soft: soft}
}
