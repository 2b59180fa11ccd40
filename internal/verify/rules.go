package verify

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// force is what a word does to the sentence it stands in.
type force uint

const (
	denies force = 1 << iota
	allows
	sweeps // all, always
	limits // most, often
	causes
	mayCause // words that name a cause, and other things as often
)

// forces are the words with force, by their stems.
var forces = func() map[string]force {
	m := map[string]force{}
	for f, list := range map[force]string{denies: "denies", allows: "allows", sweeps: "sweeps", limits: "limits", causes: "causes", mayCause: "may cause"} {
		for stem := range lexicon.StemSet(list) {
			m[stem] |= f
		}
	}
	return m
}()

func (s *sentence) forceAt(i int) force {
	if s.tokens[i].Contracted() {
		return denies
	}
	return forces[s.tokens[i].Stem]
}

func (s *sentence) force() (f force) {
	for i := range s.tokens {
		f |= s.forceAt(i)
	}
	return f
}

// governs reports that a word of a force stands before one of the words, no more content
// words than so many between, an odd number of times where it denies.
func (s *sentence) governs(f force, reach int, words []string) bool {
	n, found := 0, false
	for i := range s.tokens {
		if s.forceAt(i)&f == 0 {
			continue
		}
		n++
		for k, left := i+1, reach; k < len(s.tokens) && left > 0 && !strings.ContainsAny(s.text[s.tokens[k-1].End:s.tokens[k].Start], ".;:"); k++ {
			if !s.tokens[k].Stop {
				found, left = found || slices.Contains(words, s.tokens[k].Stem), left-1
			}
		}
	}
	return found && (f != denies || n%2 == 1)
}

// findings are what words tell against a claim.
type findings struct {
	numbers, names []string // of the claim, that the excerpts lack
	missing        []string // other content words that they lack
	flips          []string // why the nearest sentences say something else, in words for people
	denying        bool     // the claim denies, and they do not, or not in such words
	outright       bool     // one of the two denies, or they differ in numbers alone
}

// look holds the claim's words against the excerpts.
func (p *evidenced) look() findings {
	var texts []string
	for _, x := range p.excerpts {
		texts = append(texts, cleanText(x.Text), cleanText(x.Heading))
	}
	held := numbersOf(texts...)
	f := findings{numbers: held.lacked(p.claim.text)}
	counting := map[int]bool{} // where numbers end that may have a unit behind them
	for _, n := range lexicon.Spelled(p.claim.text) {
		counting[n.End] = true
	}
	for i, t := range p.claim.tokens {
		switch {
		case t.Number:
			counting[t.End] = true
		case t.Stop || counting[t.End] || p.all[t.Stem] || held.covers(p.claim.text, t):
		case p.named(i):
			f.names = append(f.names, t.Text)
		case p.roots[root(t.Stem)]:
		case i > 0 && counting[p.claim.tokens[i-1].End] && t.Stem != "time":
			f.numbers = append(f.numbers, p.claim.text[p.claim.tokens[i-1].Start:t.End]) // another unit
		default:
			f.missing = append(f.missing, t.Text)
		}
	}
	p.differs(&f)
	return f
}

func (p *evidenced) named(i int) bool {
	t := p.claim.tokens[i]
	return strings.IndexFunc(t.Text[1:], unicode.IsUpper) >= 0 || t.Capital && i > 0 && !strings.ContainsAny(p.claim.text[p.claim.tokens[i-1].End:t.Start], ".!?:")
}

// differs finds in which ways the claim says something else, or perhaps more, than the
// sentences that it rests on.
func (p *evidenced) differs(f *findings) {
	var around force
	governs := func(f force, reach int) bool {
		return slices.ContainsFunc(p.best, func(i int) bool { return p.sentences[i].governs(f, reach, p.words) })
	}
	for _, i := range p.best {
		around |= p.sentences[i].force()
	}
	own := p.claim.force()
	reversed := slices.ContainsFunc(p.claim.tokens, func(t lexicon.Token) bool { // unsafe, and not safe
		rest, un := strings.CutPrefix(strings.ToLower(t.Text), "un")
		return un && p.all[lexicon.Stem(rest)]
	})
	denied := own&denies == 0 && !reversed && governs(denies, 3)
	f.denying = own&denies != 0 && around&denies == 0
	other := len(f.numbers) > 0 && len(f.missing)+len(f.names) == 0 && len(p.best) > 0 && len(lexicon.Quantities(p.sentences[p.best[0]].text)) > 0
	f.outright = other || denied || f.denying
	for _, r := range []struct {
		is   bool
		says string
	}{
		{denied, "the excerpts deny what the claim says"},
		{own&(allows|denies) == 0 && governs(allows, 1), "the excerpts say only that it may be"},
		{own&sweeps != 0 && around&sweeps == 0, "the claim is more sweeping than the excerpts"},
		{own&(limits|allows) == 0 && governs(limits, 1), "the excerpts say it of some only"},
		{own&causes != 0 && around&(causes|mayCause) == 0, "the claim names a cause that the excerpts do not"},
	} {
		if r.is {
			f.flips = append(f.flips, r.says)
		}
	}
}

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
