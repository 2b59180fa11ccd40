package conflict

import (
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// How alike the words around two values must be for one text to be a copy of the
// other with the value replaced. What stands around may reach over the sentence.
const (
	around      = 12   // tokens on each side that are compared
	copiedWords = 5    // fewest of them in common, those of the question and common words aside
	copiedShare = 0.55 // of the shorter side
	verbatim    = 14   // tokens next to the values that are the same one by one: then the names beyond say nothing
	strangers   = 0.25 // most of the names and numbers there that the other side lacks
)

// run counts the tokens next to two values that are the same one by one, on both sides.
func run(a, b *value) int {
	left, right := 0, 0
	for left < min(len(a.before), len(b.before)) && a.before[len(a.before)-1-left].Stem == b.before[len(b.before)-1-left].Stem {
		left++
	}
	for right < min(len(a.after), len(b.after)) && a.after[right].Stem == b.after[right].Stem {
		right++
	}
	if min(left, right) < 3 {
		return 0
	}
	return left + right
}

// opens reports whether a sentence begins with a name that is not the value: what it
// speaks of.
func (s *statement) opens(v slot) bool {
	i := slices.IndexFunc(s.toks, func(t lexicon.Token) bool { return t.Stem == s.first })
	return i >= 0 && s.toks[i].Capital && !slices.Contains(v.stems, s.first)
}

var articles = words("a an the The A An")

// value is a value with the words around it.
type value struct {
	slot
	s             *statement
	before, after []lexicon.Token
}

// page is the words of a source.
type page struct{ toks []lexicon.Token }

// copies finds values that stand in the same words, in texts of which one at least
// bears on the question.
func copies(ask *inquiry, all []*statement) []marchwarden.Contradiction {
	if !ask.single {
		return nil
	}
	var best marchwarden.Contradiction
	most := -1
	pages := map[*evidence.Source]page{}
	begins := map[[3]string][]*value{} // by the words before, and by those after
	for _, s := range all {
		p, ok := pages[s.source]
		if !ok {
			p = page{lexicon.Tokens(s.source.Text)}
			pages[s.source] = p
		}
		for _, v := range ask.valuesOf(s, p) {
			for _, key := range v.keys() {
				for _, o := range begins[key] {
					if c, ok := ask.copied(o, v); ok {
						if w := ask.weight(o.s, v.s); w > most {
							best, most = c, w
						}
					}
				}
				begins[key] = append(begins[key], v)
			}
		}
	}
	if most < 0 {
		return nil
	}
	return []marchwarden.Contradiction{best}
}

// valuesOf are the values in a sentence that could answer the question.
func (q *inquiry) valuesOf(s *statement, p page) []*value {
	first, _ := slices.BinarySearchFunc(p.toks, s.start, func(t lexicon.Token, at int) int { return t.Start - at })
	var out []*value
	for i := 0; i < len(s.toks); i++ {
		t := s.toks[i]
		if t.Stop || slices.Contains(q.terms, t.Stem) && !dated(t) || !(t.Capital || dated(t) || q.wants(aNoun)) {
			continue
		}
		v := slotAt(s, i, i+1)
		end := i + 1
		for end < len(s.toks) && s.toks[end].End <= v.start+len(v.text) {
			end++
		}
		if v.kind == aNoun && !t.Capital && (i == 0 || !s.toks[i-1].Capital && !articles[s.toks[i-1].Text]) {
			continue // a verb, as likely
		}
		if v.kind == aNoun && t.Capital {
			v.kind = aName // the first word of the sentence
		}
		if q.wants(v.kind) && !s.asOf(v) && !q.names(s, v) && first+end <= len(p.toks) {
			at, to := first+i, first+end
			out = append(out, &value{v, s, p.toks[max(0, at-around):at], p.toks[to:min(len(p.toks), to+around)]})
		}
		i = end - 1
	}
	return out
}

// keys are what must be the same next to two values for them to be compared.
func (v *value) keys() [][3]string {
	var out [][3]string
	if n := len(v.before); n >= 2 {
		out = append(out, [3]string{"before", v.before[n-2].Stem, v.before[n-1].Stem})
	}
	if len(v.after) >= 2 {
		out = append(out, [3]string{"after", v.after[0].Stem, v.after[1].Stem})
	}
	return out
}

// copied holds when two values stand in the same words.
func (q *inquiry) copied(a, b *value) (c marchwarden.Contradiction, ok bool) {
	va, vb := apart(a.slot, b.slot)
	if a.s.source == b.s.source || !q.says(a.s) || !q.says(b.s) || !differ(va, vb) || !q.bearsOn(a, b) || !q.spend(2*around*around) ||
		!sameMeasure(a.s, b.s, a.slot, b.slot) || strings.Contains(a.s.text, b.text) || strings.Contains(b.s.text, a.text) || q.namesakes(a.s, b.s, a.slot, b.slot) || !q.sameTitles(a.s, b.s, a.slot, b.slot) {
		return c, false
	}
	m, n := min(len(a.before), len(b.before)), min(len(a.after), len(b.after)) // where a text ends, nothing is missing
	before := q.sameWords(a.before[len(a.before)-m:], b.before[len(b.before)-m:])
	after := q.sameWords(a.after[:n], b.after[:n])
	words, strange, names := before.words+after.words, before.strange+after.strange, before.names+after.names
	of := m + n
	if words < copiedWords || float64(before.matched+after.matched) < copiedShare*float64(of) || float64(strange) > strangers*float64(names) && run(a, b) < verbatim {
		return c, false
	}
	aside := q.aside(a.slot, b.slot)
	namesA, unknownA := a.s.named(b.s, aside)
	namesB, unknownB := b.s.named(a.s, aside)
	if 2*(unknownA+unknownB) > namesA+namesB || !b.s.words[a.s.first] && !a.s.words[b.s.first] && a.s.opens(a.slot) && b.s.opens(b.slot) {
		return c, false // they speak of others
	}
	return report(a.s, b.s, sharedLead(a.s, b.s, a.start), a.kind.String(), a.text, b.text), true
}

// sameMeasure is false of numbers of which one is a percentage and the other is none, or
// which are of different years.
func sameMeasure(a, b *statement, va, vb slot) bool {
	percent := func(s *statement, v slot) bool {
		return strings.HasPrefix(strings.TrimLeft(s.text[v.start+len(v.text):], " "), "%")
	}
	return va.kind != aNumber || percent(a, va) == percent(b, vb) && a.yearAt(va) == b.yearAt(vb)
}

// bearsOn reports whether two values stand where the question is spoken of. What is
// copied word by word has hardly any of its words, as often.
func (q *inquiry) bearsOn(a, b *value) bool {
	x, y := a.s.scene, b.s.scene
	return x.bears || y.bears || run(a, b) >= verbatim && slices.Contains(x.asked, true) && slices.Contains(y.asked, true)
}

// apart leaves out the words that two names begin or end with alike: of "Labor Party"
// and "Liberal Party" the first words differ.
func apart(a, b slot) (slot, slot) {
	if a.kind != aName || b.kind != aName {
		return a, b
	}
	for len(a.stems) > 1 && len(b.stems) > 1 && a.stems[0] == b.stems[0] {
		a.stems, b.stems = a.stems[1:], b.stems[1:]
	}
	for len(a.stems) > 1 && len(b.stems) > 1 && a.stems[len(a.stems)-1] == b.stems[len(b.stems)-1] {
		a.stems, b.stems = a.stems[:len(a.stems)-1], b.stems[:len(b.stems)-1]
	}
	return a, b
}

// nearest is, where nothing else was found, the pair of answers whose surroundings
// agree most, if they agree at all and the sentences do not speak of namesakes.
func nearest(ask *inquiry, all []*statement) []marchwarden.Contradiction {
	var best []marchwarden.Contradiction
	most := 0.0
	for i, a := range all {
		if a.answer.kind == 0 || !a.scene.bears {
			continue
		}
		for _, b := range all[i+1:] {
			if b.answer.kind == 0 || a.source == b.source || !b.scene.bears || len(a.denied) != len(b.denied) || !ask.spend(0) || !differ(a.answer.slot, b.answer.slot) {
				continue
			}
			if share := ask.agree(a, b, a.answer.slot, b.answer.slot); share >= leastScene && share > most {
				most, best = share, []marchwarden.Contradiction{report(a, b, ask.about, a.answer.cue, a.answer.text, b.answer.text)}
			}
		}
	}
	return best
}

// overlap is what two stretches of text have in common.
type overlap struct {
	matched        int // tokens
	words          int // of these neither common nor of the question
	names, strange int // names and numbers of both, and those of them that the other lacks
}

func (q *inquiry) sameWords(a, b []lexicon.Token) (o overlap) {
	parts, matched := hunks(a, b)
	o.matched = matched
	named := func(t lexicon.Token) bool { return !t.Stop && (t.Capital || t.Number) }
	next := 0
	for _, h := range append(parts, hunk{a0: len(a), a1: len(a), b0: len(b), b1: len(b)}) {
		for _, t := range a[next:h.a0] {
			if !t.Stop && !slices.Contains(q.terms, t.Stem) {
				o.words++
			}
			if named(t) {
				o.names += 2
			}
		}
		for _, t := range slices.Concat(a[h.a0:h.a1], b[h.b0:h.b1]) {
			if named(t) {
				o.names++
				o.strange++
			}
		}
		next = h.a1
	}
	return o
}
