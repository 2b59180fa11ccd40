package verify

import (
	"math"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// How alike two sentences must be to speak of the same thing. A false alarm costs more
// trust than a missed contradiction, so the floors are high.
const (
	relevantFloor = 0.3  // share of the question's words that a side must bear on
	valueFloor    = 0.75 // shared words where only a quantity differs
	polarityFloor = 0.55 // … where one denies what the other says
	commonFloor   = 4    // fewest shared words, whatever the share
)

// alike are the pairs of sentences that are worded alike and that a plain rule calls
// contradictory.
func (q *inquiry) alike(all []*statement) (sure []*pair) {
	for i, a := range all {
		for _, b := range all[i+1:] {
			bears := max(a.relevant, b.relevant)
			if a.source == b.source {
				bears = max(a.within, b.within)
			}
			if a.text == b.text || bears < relevantFloor || max(len(a.text), len(b.text)) > longest {
				continue
			}
			if !sameNames(a, b) {
				continue
			}
			common := 0
			for w := range a.words {
				if b.words[w] {
					common++
				}
			}
			p := &pair{a: a, b: b, weight: a.relevant + b.relevant}
			of := float64(common) / float64(len(a.words)+len(b.words)-common)
			switch {
			case common < commonFloor:
				alike, names := a.scene.agreement(b.scene, nil)
				if common >= 2 && common == max(len(a.words), len(b.words)) && a.alone() && b.alone() && (names < sceneFewest || float64(alike) >= shortScene*float64(names)) && p.otherAmount() {
					sure = append(sure, p)
				}
			case of >= valueFloor && p.otherAmount(), of >= polarityFloor && a.source != b.source && p.otherPolarity(): // one document speaks of two cases
				sure = append(sure, p)
			}
		}
	}
	return sure
}

// sameNames reports that each side has all names of the other and the word that the
// other begins with.
func sameNames(a, b *statement) bool {
	lacks := func(s *statement) func(string) bool {
		return func(n string) bool { return !s.words[n] }
	}
	return b.words[a.first] && a.words[b.first] && !slices.ContainsFunc(a.names, lacks(b)) && !slices.ContainsFunc(b.names, lacks(a))
}

// alone reports whether a sentence says by itself what it is about.
func (s *statement) alone() bool {
	return !slices.ContainsFunc(s.toks, func(t lexicon.Token) bool { return refers[strings.ToLower(t.Text)] })
}

// otherAmount holds when each side has exactly one quantity that the other has not, of
// one unit, further apart than rounding.
func (p *pair) otherAmount() bool {
	x, lone := lonely(p.a.amounts, p.b.amounts)
	y, also := lonely(p.b.amounts, p.a.amounts)
	if lone != 1 || also != 1 || len(p.a.denied) != len(p.b.denied) {
		return false
	}
	unit := unitOf(p.a.text, x)
	if unit != unitOf(p.b.text, y) || unit != "year" && near(x.Value, y.Value) || keyed(p.a.text, x) {
		return false
	}
	if p.on = strings.TrimSpace("number " + unit); unit == "year" {
		p.on = unit
		if strings.HasSuffix(strings.ToLower(p.a.text[:x.Start]), "as of ") || !slices.ContainsFunc(p.a.toks, func(t lexicon.Token) bool { return once[strings.ToLower(t.Text)] }) {
			return false // games are held in many years
		}
	}
	p.va, p.vb = statedValue{x.Text, x.Start}, statedValue{y.Text, y.Start}
	return true
}

// lonely counts the quantities that the others lack, and returns the last.
func lonely(qs, others []lexicon.Quantity) (last lexicon.Quantity, n int) {
	for _, q := range qs {
		if !slices.ContainsFunc(others, func(o lexicon.Quantity) bool { return o.Value == q.Value && o.Unit == q.Unit }) {
			last, n = q, n+1
		}
	}
	return last, n
}

func (p *pair) sameAmounts() bool {
	_, n := lonely(p.a.amounts, p.b.amounts)
	_, m := lonely(p.b.amounts, p.a.amounts)
	return n+m == 0
}

// near values are one value rounded differently.
func near(x, y float64) bool { return math.Abs(x-y) <= 0.05*max(math.Abs(x), math.Abs(y)) }

// unitOf is the unit of a quantity, or the word after a bare number.
func unitOf(text string, q lexicon.Quantity) string {
	if q.Unit != "" {
		return q.Unit
	}
	if rest := lexicon.Tokens(text[q.End:]); len(rest) > 0 && !rest[0].Stop && rest[0].Start <= 1 {
		return rest[0].Stem
	}
	return ""
}

// keyed reports that a quantity stands behind the label of a key: "id: 7".
func keyed(text string, q lexicon.Quantity) bool {
	before, ok := strings.CutSuffix(strings.TrimRight(text[:q.Start], " "), ":")
	toks := lexicon.Tokens(before)
	return ok && len(toks) > 0 && keys[strings.ToLower(toks[len(toks)-1].Text)]
}

// otherPolarity holds when one side denies a word that the other states, and all their
// quantities agree.
func (p *pair) otherPolarity() bool {
	if !p.sameAmounts() {
		return false
	}
	for _, t := range p.a.toks {
		inA, inB := p.a.denied[t.Stem], p.b.denied[t.Stem]
		at := slices.IndexFunc(p.b.toks, func(o lexicon.Token) bool { return o.Stem == t.Stem })
		if t.Stop || inA == inB || at < 0 || inA && len(p.b.denied) > 0 || inB && len(p.a.denied) > 0 {
			continue
		}
		p.on, p.va, p.vb = "“"+strings.ToLower(t.Text)+"” or not", statedValue{t.Text, t.Start}, statedValue{p.b.toks[at].Text, p.b.toks[at].Start}
		if inA {
			p.va.text = "not " + p.va.text
		} else {
			p.vb.text = "not " + p.vb.text
		}
		return true
	}
	return false
}
