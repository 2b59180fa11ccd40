package judge

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// values are the numbers of texts, however these write them ("twelve", "1.2 million"),
// and their units.
type values struct {
	numbers map[float64]bool
	units   map[string]bool
	sizes   []size
}

// size is a quantity in the smallest unit of its kind.
type size struct {
	of    string
	value float64
}

// measures are units that are multiples of one another.
var measures = map[string]size{
	"second": {"time", 1}, "minute": {"time", 60}, "hour": {"time", 3600}, "day": {"time", 86400}, "week": {"time", 604800}, "month": {"months", 1}, "years": {"months", 12},
	"millimetre": {"length", 1}, "centimetre": {"length", 10}, "metre": {"length", 1e3}, "kilometre": {"length", 1e6}, "inch": {"inches", 1}, "foot": {"inches", 12}, "yard": {"inches", 36},
	"milligram": {"weight", 1}, "gram": {"weight", 1e3}, "kilogram": {"weight", 1e6}, "tonne": {"weight", 1e9}, "millilitre": {"volume", 1}, "litre": {"volume", 1e3},
	"watt": {"power", 1}, "kilowatt": {"power", 1e3}, "megawatt": {"power", 1e6}, "cent": {"money", 1}, "eur": {"money", 100},
}

func sizeOf(q lexicon.Quantity) (size, bool) {
	m, ok := measures[q.Unit]
	return size{m.of, m.value * q.Value}, ok
}

// same reports that a quantity is among the sizes, within a thousandth.
func (v values) same(q lexicon.Quantity) bool {
	s, ok := sizeOf(q)
	return ok && slices.ContainsFunc(v.sizes, func(o size) bool { return o.of == s.of && math.Abs(o.value-s.value) <= 1e-3*s.value })
}

// dotted is a time of day as some write it: 8.15.
func dotted(t float64) float64 {
	h, m := math.Modf(t)
	return math.Round(100*h+60*m) / 100
}

// rounded reports that a quantity of a text is said to be about, over or under what one of
// the values is, and near to it.
func (v values) rounded(text string, q lexicon.Quantity) bool {
	low, high := 0.0, 0.0
	before := strings.ToLower(strings.TrimSpace(text[max(0, q.Start-16):q.Start]))
	for word, by := range map[string][2]float64{"about": {0.95, 1.05}, "roughly": {0.95, 1.05}, "around": {0.95, 1.05}, "approximately": {0.95, 1.05}, "some": {0.95, 1.05},
		"over": {1, 1.2}, "more than": {1, 1.2}, "above": {1, 1.2}, "nearly": {0.85, 1}, "almost": {0.85, 1}, "under": {0.85, 1}, "less than": {0.85, 1}} {
		if strings.HasSuffix(before, word) {
			low, high = by[0]*q.Value, by[1]*q.Value
		}
	}
	for n := range v.numbers {
		if n >= low && n <= high && high > 20 {
			return true
		}
	}
	return false
}

func valuesOf(texts ...string) values {
	v := values{numbers: map[float64]bool{}, units: map[string]bool{}}
	for _, s := range texts {
		for _, q := range lexicon.Quantities(s) {
			v.numbers[q.Value], v.units[q.Unit] = true, true
			if s, ok := sizeOf(q); ok {
				v.sizes = append(v.sizes, s)
			}
			if q.Unit == "time" && q.Value > 12 {
				v.numbers[q.Value-12] = true
			}
		}
		for _, t := range lexicon.Tokens(s) {
			if n, ok := figure(t); ok {
				v.numbers[n] = true
			}
		}
		for _, n := range lexicon.Spelled(s) {
			v.numbers[n.Value], v.numbers[n.Last] = true, true
		}
	}
	return v
}

// covers reports that a token of a text belongs to a quantity whose unit the texts use.
func (v values) covers(text string, t lexicon.Token) bool {
	return slices.ContainsFunc(lexicon.Quantities(text), func(q lexicon.Quantity) bool {
		return q.Start <= t.Start && t.End <= q.End && (v.units[q.Unit] || v.same(q))
	})
}

// lacked are the numbers of a sentence that are none of the values, as written. The
// parts of a date are looked at one by one.
func (v values) lacked(s string) []string {
	var out []string
	covered := map[int]bool{} // where tokens begin that belong to a quantity
	for _, q := range lexicon.Quantities(s) {
		known := v.numbers[q.Value] || v.numbers[-q.Value] || v.same(q) || q.Unit == "time" && v.numbers[dotted(q.Value)] || v.rounded(s, q)
		if !known && strings.Contains(" date time year decade ordinal ", " "+q.Unit+" ") {
			continue
		}
		for _, t := range lexicon.Tokens(q.Text) {
			covered[q.Start+t.Start] = true
		}
		if !known {
			out = append(out, q.Text)
		}
	}
	for _, t := range lexicon.Tokens(s) {
		if n, ok := figure(t); ok && !v.numbers[n] && !covered[t.Start] {
			out = append(out, t.Text)
		}
	}
	for _, n := range lexicon.Spelled(s) {
		if n.Value >= 2 && !n.Loose && !v.numbers[n.Value] && !covered[n.Start] {
			out = append(out, s[n.Start:n.End])
		}
	}
	return out
}

// figure is the number that a token begins with: 1990 of "1990s".
func figure(t lexicon.Token) (float64, bool) {
	digits := strings.ReplaceAll(t.Text, ",", "")
	if end := strings.IndexFunc(digits, func(r rune) bool { return (r < '0' || r > '9') && r != '.' }); end >= 0 {
		digits = digits[:end]
	}
	n, err := strconv.ParseFloat(strings.TrimRight(digits, "."), 64)
	return n, t.Number && err == nil
}

// elsewhere reports that a number of the claim is not in the sentence or row that says most
// of the rest of it, which has another in its place: the number belongs to something else.
func (p *pair) elsewhere() bool {
	rest := slices.DeleteFunc(slices.Clone(p.words), func(w string) bool { return w[0] >= '0' && w[0] <= '9' || slices.Contains(ones, w) })
	at, most := -1, 0.0
	for i, s := range p.sentences {
		if got := part(rest, s.holds); got > most {
			at, most = i, got
		}
	}
	if at < 0 || len(rest) < 2 || most < 0.5 {
		return false
	}
	near, own := valuesOf(p.sentences[at].text), valuesOf(p.claim.text)
	other := func(n float64) bool { return !own.numbers[n] }
	if !slices.ContainsFunc(slices.Collect(maps.Keys(near.numbers)), other) {
		return false
	}
	for n := range own.numbers {
		if near.numbers[n] || n < 2 || slices.ContainsFunc(lexicon.Quantities(p.claim.text), func(q lexicon.Quantity) bool { return q.Value == n && near.same(q) }) {
			continue
		}
		adds := func(s sentence) bool { // it says more of the claim than the number
			return valuesOf(s.text).numbers[n] && slices.ContainsFunc(rest, func(w string) bool { return s.holds[w] && !p.sentences[at].holds[w] })
		}
		if !slices.ContainsFunc(p.sentences, adds) {
			return true
		}
	}
	return false
}

// rows reports that the claim mixes rows of a table: the row that holds most of its words
// lacks one that another row has.
func (p *pair) rows() bool {
	at, most := -1, 0
	var table []int
	for i, s := range p.sentences {
		if strings.Count(s.text, "|")+strings.Count(strings.ReplaceAll(s.text, ", ", ""), ",") < 2 {
			continue
		}
		table = append(table, i)
		if n := int(part(p.words, s.holds)*100) + 1; n > most && len(table) > 1 { // not the head
			at, most = i, n
		}
	}
	if len(table) < 3 {
		return false
	}
	first := p.sentences[table[0]].holds
	return slices.ContainsFunc(p.words, func(w string) bool {
		return !first[w] && !p.sentences[at].holds[w] && slices.ContainsFunc(table, func(i int) bool { return p.sentences[i].holds[w] }) &&
			!slices.ContainsFunc(p.sentences, func(s sentence) bool {
				return s.holds[w] && !strings.Contains(s.text, "|") && !strings.Contains(s.text, ",")
			})
	})
}
