package judge

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// counted is what becomes of the claim's numbers and dates.
func (p *pair) counted(t *table) {
	qs := lexicon.Quantities(p.claim.text)
	if len(qs) == 0 && len(numbersIn(p.claim.text)) == 0 {
		t.add("numbers", 0)
		t.add("numbers_all", 1)
		t.add("numbers_best", 1)
		t.flag("number_conflict", false)
		t.flag("year_conflict", false)
		return
	}
	var near []string
	for _, i := range p.best {
		near = append(near, p.ev.sentences[i].text)
	}
	held, nearby := valuesOf(p.texts()), valuesOf(near)
	ns := numbersIn(p.claim.text)
	inAll, inNear := 0, 0
	for _, n := range ns {
		if held.has(n) {
			inAll++
		}
		if nearby.has(n) {
			inNear++
		}
	}
	t.add("numbers", math.Log1p(float64(len(ns))))
	t.add("numbers_all", ratio(inAll, max(1, len(ns))))
	t.add("numbers_best", ratio(inNear, max(1, len(ns))))
	number, year := p.valueConflict(qs, nearby)
	t.flag("number_conflict", number)
	t.flag("year_conflict", year)
}

// valueConflict reports that the sentences nearest to the claim give another value
// of the same unit, or another year, where they do not give the claim's.
func (p *pair) valueConflict(qs []lexicon.Quantity, nearby values) (number, year bool) {
	for _, q := range qs {
		if nearby.has(q.Value) {
			continue
		}
		for _, i := range p.best {
			for _, other := range lexicon.Quantities(p.ev.sentences[i].text) {
				if other.Unit != q.Unit || other.Value == q.Value {
					continue
				}
				switch q.Unit {
				case "year":
					year = true
				case "", "ordinal":
				default:
					number = true
				}
			}
		}
	}
	return number, year
}

// values are numbers, however they were written.
type values []float64

func valuesOf(texts []string) values {
	var v values
	for _, t := range texts {
		v = append(v, numbersIn(t)...)
		v = append(v, spelled(t)...)
		for _, q := range lexicon.Quantities(t) {
			v = append(v, q.Value)
		}
	}
	slices.Sort(v)
	return slices.Compact(v)
}

// has reports whether a number is among the values, as it is or rounded: "about 1.4
// million" is held by 1,398,000.
func (v values) has(n float64) bool {
	if _, ok := slices.BinarySearch(v, n); ok {
		return true
	}
	if n < 100 || n >= 1000 && n <= 2100 {
		return false
	}
	at, _ := slices.BinarySearch(v, n*0.99)
	return at < len(v) && v[at] <= n*1.01
}

// numbersIn are the numbers that a text writes in digits, or as words from two on.
func numbersIn(s string) []float64 {
	out := figures(s)
	for _, n := range spelled(s) {
		if n >= 2 && n == float64(int(n)) {
			out = append(out, n)
		}
	}
	return out
}

// MissesNumber reports that a sentence holds a number that no text holds,
// however either writes it.
func MissesNumber(sentence string, texts []string) bool {
	held := map[float64]bool{}
	for _, t := range texts {
		for _, n := range figures(t) {
			held[n] = true
		}
		for _, q := range lexicon.Quantities(t) {
			held[q.Value] = true
		}
		for _, n := range spelled(t) {
			held[n] = true
		}
	}
	stated := map[int]bool{} // where a quantity begins that is held as a whole
	for _, q := range lexicon.Quantities(sentence) {
		switch {
		case held[q.Value] || held[-q.Value]:
			for _, t := range lexicon.Tokens(q.Text) {
				stated[q.Start+t.Start] = true
			}
		case !calendar[q.Unit]: // the parts of a date are looked at one by one
			return true
		}
	}
	return slices.ContainsFunc(lexicon.Tokens(sentence), func(t lexicon.Token) bool {
		n, ok := figure(t)
		return ok && !held[n] && !stated[t.Start]
	})
}

// calendar are the units of days and hours, which can be written in many ways.
var calendar = map[string]bool{"date": true, "time": true, "year": true, "decade": true, "ordinal": true}

// figures are the numbers that a text writes in digits.
func figures(s string) []float64 {
	var out []float64
	for _, t := range lexicon.Tokens(s) {
		if n, ok := figure(t); ok {
			out = append(out, n)
		}
	}
	return out
}

// figure is the number that a token begins with: 1990 of "1990s".
func figure(t lexicon.Token) (float64, bool) {
	digits := strings.ReplaceAll(t.Text, ",", "")
	end := 0
	for end < len(digits) && (digits[end] >= '0' && digits[end] <= '9' || digits[end] == '.') {
		end++
	}
	if !t.Number || end == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(strings.TrimRight(digits[:end], "."), 64)
	return n, err == nil
}

var (
	ones = numbered(0, 1, "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens = numbered(20, 10, "twenty thirty forty fifty sixty seventy eighty ninety")
	nths = numbered(1, 1, "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth")
	// scales follow a number; aliases stand for one.
	scales  = map[string]float64{"dozen": 12, "hundred": 100, "thousand": 1e3, "million": 1e6, "billion": 1e9}
	aliases = map[string]float64{"once": 1, "single": 1, "twice": 2, "both": 2, "pair": 2, "double": 2, "half": 50}
)

// numbered gives words the numbers from first on, step apart.
func numbered(first, step float64, words string) map[string]float64 {
	m := map[string]float64{}
	for i, w := range strings.Fields(words) {
		m[w] = first + float64(i)*step
	}
	return m
}

// spelled are the numbers that a text writes as words: "twelve", "twenty-one",
// "third", "two hundred".
func spelled(s string) []float64 {
	var out []float64
	ten, last := 0.0, 0.0 // the "twenty" of "twenty-one", the "two" of "two hundred"
	for _, t := range lexicon.Tokens(s) {
		w := strings.ToLower(t.Text)
		if d, ok := tens[w]; ok {
			ten, last = d, d
			out = append(out, d)
			continue
		}
		if n, ok := ones[w]; ok {
			last = n
			if n < 10 {
				last += ten
			}
			out = append(out, last)
		} else if n, ok := scales[w]; ok {
			last = max(1, last) * n
			out = append(out, last)
		} else {
			if n, ok := nths[w]; ok {
				out = append(out, ten+n)
			} else if n, ok := aliases[w]; ok {
				out = append(out, n)
			}
			last = 0
		}
		ten = 0
	}
	return out
}
