package verify

import (
	"slices"
	"strconv"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// numberValues are the numbers of texts, however these write them ("twelve", "1.2 million"),
// and their units.
type numberValues struct {
	numbers map[float64]bool
	units   map[string]bool
}

func numbersOf(texts ...string) numberValues {
	v := numberValues{map[float64]bool{}, map[string]bool{}}
	for _, s := range texts {
		for _, q := range lexicon.Quantities(s) {
			v.numbers[q.Value], v.units[q.Unit] = true, true
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
func (v numberValues) covers(text string, t lexicon.Token) bool {
	return slices.ContainsFunc(lexicon.Quantities(text), func(q lexicon.Quantity) bool {
		return q.Start <= t.Start && t.End <= q.End && v.units[q.Unit]
	})
}

// lacked are the numbers of a sentence that are none of the values, as written. The
// parts of a date are looked at one by one.
func (v numberValues) lacked(s string) []string {
	var out []string
	covered := map[int]bool{} // where tokens begin that belong to a quantity
	for _, q := range lexicon.Quantities(s) {
		known := v.numbers[q.Value] || v.numbers[-q.Value]
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
