package verify

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// How alike two sentences must be to speak of the same thing. A false alarm
// costs more trust than a missed contradiction, so the floors are high.
const (
	valueFloor    = 0.75 // shared words where only a quantity differs
	polarityFloor = 0.55 // … where one denies what the other says
	oppositeFloor = 0.7  // … where one word is the opposite of the other's
	commonFloor   = 4    // fewest shared words, whatever the share
	relevantFloor = 0.3  // share of the question's words that a side must bear on
	statementCap  = 1600 // sentences compared, so that the time is bounded
)

// opposites are words of which no two of a pair hold of one thing at once.
var opposites = pairs(`reliably rarely; reliable unreliable; increase decrease; increased decreased; rise fall; rose fell; high low; higher lower; highest lowest;
	allowed forbidden; allow forbid; permit prohibit; permitted banned; legal illegal; always never; often rarely; common rare; safe dangerous; safe unsafe;
	possible impossible; more less; most least; largest smallest; larger smaller; better worse; best worst; accept reject; accepted rejected; true false; before after; earlier later;
	effective ineffective; necessary unnecessary; tolerant sensitive; resistant susceptible; easy difficult; win lose; won lost; succeed fail; mandatory optional;
	required optional; majority minority; improve worsen; strong weak; fast slow; early late; include exclude; included excluded; support oppose; grow shrink; gain loss`)

func pairs(list string) map[string][]string {
	m := map[string][]string{}
	for p := range strings.SplitSeq(list, ";") {
		a, b, _ := strings.Cut(strings.TrimSpace(p), " ")
		sa, sb := lexicon.Stem(a), lexicon.Stem(b)
		m[sa], m[sb] = append(m[sa], sb), append(m[sb], sa)
	}
	return m
}

// calendar words are capitalised and yet name nobody; deniers deny the words
// after them; turns begin a condition; what is said with once happens in one
// year only.
var (
	calendar = words("january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday")
	deniers  = words("not never no cannot rarely seldom hardly without")
	once     = words("born died founded established published invented released completed introduced began ended discovered built created launched opened adopted ratified abolished")
	turns    = words("when if because although while even which that unless provided")
)

func words(list string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		m[w] = true
	}
	return m
}

// statement is one sentence, ready to be compared.
type statement struct {
	source   *evidence.Source
	text     string
	toks     []lexicon.Token
	words    map[string]bool // content stems without numbers
	ids      []int           // the same, numbered and sorted: comparing is most of the work
	names    []string
	first    string // the first content stem: what the sentence is about
	amounts  []lexicon.Quantity
	denied   map[string]bool // stems that a negation stands directly before
	relevant bool
}

// Contradictions finds pairs of sentences of different sources that speak of
// the same thing and cannot both hold: a different quantity of one unit, or one
// denies or reverses what the other says. Only sentences of the passages named
// in among are compared, and of a pair one side at least bears on the question;
// an empty question lets all of them count. Both excerpts are sentences as they
// stand in their documents. The order is that of the passages, the result the
// same for the same input.
func Contradictions(question string, set *evidence.Set, among []evidence.ID) []marchwarden.Contradiction {
	all := statements(question, set, among)
	var out []marchwarden.Contradiction
	seen := map[string]bool{}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.source == b.source || !(a.relevant || b.relevant) {
				continue
			}
			common := shared(a.ids, b.ids)
			if common < commonFloor || !sameNames(a, b) {
				continue
			}
			c, ok := contradict(a, b, common)
			if !ok || seen[c.Subject+"\x00"+c.Attribute] {
				continue
			}
			seen[c.Subject+"\x00"+c.Attribute] = true
			out = append(out, c)
		}
	}
	return out
}

func statements(question string, set *evidence.Set, among []evidence.ID) []*statement {
	asked := map[string]bool{}
	for _, s := range lexicon.Terms(question) {
		asked[s] = true
	}
	var ps []evidence.Passage
	for _, id := range among {
		if _, p, ok := set.Passage(id); ok && !p.IsHeading {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b evidence.Passage) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Index, b.Index))
	})
	ps = slices.CompactFunc(ps, func(a, b evidence.Passage) bool { return a.ID == b.ID })
	var out []*statement
	vocabulary := map[string]int{}
	for _, p := range ps {
		src, _, _ := set.Passage(p.ID)
		about := lexicon.Terms(p.Heading + "\n" + src.Page.Title)
		for _, sp := range p.Sentences {
			if len(out) == statementCap {
				return out
			}
			if s := newStatement(src, src.Text[sp.Start:sp.End]); s != nil {
				s.relevant = bears(asked, s, about)
				s.number(vocabulary)
				out = append(out, s)
			}
		}
	}
	return out
}

// newStatement is nil for what states nothing that could be denied.
func newStatement(src *evidence.Source, text string) *statement {
	if strings.HasSuffix(text, "?") || len(text) > 400 {
		return nil
	}
	s := &statement{source: src, text: text, toks: lexicon.Tokens(text), words: map[string]bool{}, denied: map[string]bool{}}
	for i, t := range s.toks {
		if t.Number {
			continue
		}
		if deniers[strings.ToLower(t.Text)] || strings.HasSuffix(t.Text, "n't") {
			for _, n := range s.toks[i+1 : min(len(s.toks), i+3)] {
				if !n.Stop {
					s.denied[n.Stem] = true
				}
			}
			continue
		}
		if t.Stop {
			continue
		}
		s.words[t.Stem] = true
		s.first = cmp.Or(s.first, t.Stem)
		if t.Capital && i > 0 && !calendar[strings.ToLower(t.Text)] {
			s.names = append(s.names, t.Stem)
		}
	}
	if len(s.words) < commonFloor {
		return nil
	}
	s.amounts = lexicon.Quantities(text)
	return s
}

// number fills ids.
func (s *statement) number(vocabulary map[string]int) {
	for w := range s.words {
		id, ok := vocabulary[w]
		if !ok {
			id = len(vocabulary)
			vocabulary[w] = id
		}
		s.ids = append(s.ids, id)
	}
	slices.Sort(s.ids)
}

func bears(asked map[string]bool, s *statement, about []string) bool {
	if len(asked) == 0 {
		return true
	}
	n := 0
	for w := range asked {
		if s.words[w] || slices.Contains(about, w) {
			n++
		}
	}
	return float64(n) >= relevantFloor*float64(len(asked))
}

// shared counts what two sorted lists have in common.
func shared(a, b []int) int {
	n := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			n, i, j = n+1, i+1, j+1
		}
	}
	return n
}

// sameNames reports that each side has all names of the other and the word that
// the other begins with.
func sameNames(a, b *statement) bool {
	if !b.words[a.first] || !a.words[b.first] {
		return false
	}
	lacks := func(s *statement) func(string) bool {
		return func(n string) bool { return !s.words[n] }
	}
	return !slices.ContainsFunc(a.names, lacks(b)) && !slices.ContainsFunc(b.names, lacks(a))
}

func contradict(a, b *statement, common int) (marchwarden.Contradiction, bool) {
	share := float64(common) / float64(len(a.words)+len(b.words)-common)
	if share >= valueFloor {
		if c, ok := differentValue(a, b); ok {
			return c, true
		}
	}
	if share >= polarityFloor {
		if c, ok := differentPolarity(a, b); ok {
			return c, true
		}
	}
	return oppositeWord(a, b, common)
}

// differentValue holds when each side has exactly one quantity that the other
// has not, of one unit, further apart than rounding.
func differentValue(a, b *statement) (marchwarden.Contradiction, bool) {
	x, lone := lonely(a.amounts, b.amounts)
	y, alone := lonely(b.amounts, a.amounts)
	if lone != 1 || alone != 1 {
		return marchwarden.Contradiction{}, false
	}
	ux, uy := unitOf(a.text, x), unitOf(b.text, y)
	if ux != uy || near(x.Value, y.Value) && ux != "year" || len(a.denied) != len(b.denied) {
		return marchwarden.Contradiction{}, false
	}
	subject := sharedLead(a, b, x.Start)
	attribute := "number"
	if ux != "" {
		attribute = "number of " + plural(ux)
	}
	if ux == "year" {
		if !slices.ContainsFunc(a.toks, func(t lexicon.Token) bool { return once[strings.ToLower(t.Text)] }) {
			return marchwarden.Contradiction{}, false // games are held in many years
		}
		attribute = "year"
	}
	return report(a, b, subject, attribute, amountText(a.text, x, ux), amountText(b.text, y, uy)), true
}

// lonely counts the quantities that the others lack, and returns the last.
func lonely(qs, others []lexicon.Quantity) (last lexicon.Quantity, n int) {
	for i := range qs {
		found := false
		for j := range others {
			found = found || others[j].Value == qs[i].Value && others[j].Unit == qs[i].Unit
		}
		if !found {
			last, n = qs[i], n+1
		}
	}
	return last, n
}

// near values are one value rounded differently.
func near(x, y float64) bool {
	return math.Abs(x-y) <= 0.05*math.Max(math.Abs(x), math.Abs(y))
}

// unitOf is the unit of a quantity, or the word after a bare number.
func unitOf(text string, q lexicon.Quantity) string {
	if q.Unit != "" {
		return q.Unit
	}
	if rest := lexicon.Tokens(text[q.End:]); len(rest) > 0 && !rest[0].Stop {
		return rest[0].Stem
	}
	return ""
}

// plural writes a unit as one counts it.
func plural(unit string) string {
	switch {
	case unit == "foot":
		return "feet"
	case unit == "%" || strings.HasSuffix(unit, "s"):
		return unit
	}
	return unit + "s"
}

func amountText(text string, q lexicon.Quantity, unit string) string {
	if unit == "" || unit == "year" || strings.ContainsAny(q.Text, " %$€£") {
		return q.Text
	}
	if rest := lexicon.Tokens(text[q.End:]); len(rest) > 0 && rest[0].Start <= 1 {
		return text[q.Start : q.End+rest[0].End]
	}
	return q.Text
}

// differentPolarity holds when one side denies a word that the other states,
// and all their quantities agree.
func differentPolarity(a, b *statement) (marchwarden.Contradiction, bool) {
	if !sameAmounts(a, b) {
		return marchwarden.Contradiction{}, false
	}
	for _, t := range a.toks {
		inA, inB := a.denied[t.Stem], b.denied[t.Stem]
		if t.Stop || inA == inB || !b.words[t.Stem] || (inA && len(b.denied) > 0) || (inB && len(a.denied) > 0) {
			continue
		}
		va, vb := t.Text, written(b, t.Stem)
		if inA {
			va = "not " + va
		} else {
			vb = "not " + vb
		}
		c := report(a, b, sharedLead(a, b, t.Start), sharedRun(a, b, t.Start), va, vb)
		says, denies := a, b
		if inA {
			says, denies = b, a
		}
		c.Detail = fmt.Sprintf("%s says %q, and %s denies it.", path.Base(says.source.Page.Locator), c.Subject+" "+c.Attribute, path.Base(denies.source.Page.Locator))
		return c, true
	}
	return marchwarden.Contradiction{}, false
}

// sharedRun is what a goes on to say from a point, as far as b says it too.
func sharedRun(a, b *statement, from int) string {
	end := from
	for _, t := range a.toks {
		if t.Start < from {
			continue
		}
		if !t.Stop && !t.Number && !b.words[t.Stem] || turns[strings.ToLower(t.Text)] || strings.ContainsAny(a.text[end:t.Start], ",;:(") {
			break
		}
		if !t.Stop {
			end = t.End
		}
	}
	return strings.Join(strings.Fields(a.text[from:end]), " ")
}

// oppositeWord holds when the sides are alike but for one word, and that word
// is the opposite of the other's.
func oppositeWord(a, b *statement, common int) (marchwarden.Contradiction, bool) {
	share := float64(common) / float64(max(1, len(a.words)+len(b.words)-common-2)) // the pair itself aside
	if share < oppositeFloor || !sameAmounts(a, b) || len(a.denied) != len(b.denied) {
		return marchwarden.Contradiction{}, false
	}
	for _, t := range a.toks {
		if t.Stop || b.words[t.Stem] {
			continue
		}
		for _, o := range opposites[t.Stem] {
			if b.words[o] && !a.words[o] {
				return report(a, b, sharedLead(a, b, t.Start), t.Text, t.Text, written(b, o)), true
			}
		}
	}
	return marchwarden.Contradiction{}, false
}

func sameAmounts(a, b *statement) bool {
	_, n := lonely(a.amounts, b.amounts)
	_, m := lonely(b.amounts, a.amounts)
	return n == 0 && m == 0
}

func written(s *statement, stem string) string {
	for _, t := range s.toks {
		if t.Stem == stem {
			return t.Text
		}
	}
	return stem
}

// sharedLead is the beginning of a up to where the two part, as far as b has
// its words too: what both speak of.
func sharedLead(a, b *statement, until int) string {
	end := 0
	for _, t := range a.toks {
		if t.Start >= until {
			break
		}
		if t.Stop || t.Number {
			continue
		}
		if !b.words[t.Stem] {
			break
		}
		end = t.End
	}
	if end == 0 {
		for _, t := range a.toks { // the first shared word, wherever it is
			if !t.Stop && b.words[t.Stem] {
				return t.Text
			}
		}
	}
	return strings.Join(strings.Fields(a.text[:end]), " ")
}

func report(a, b *statement, subject, attribute, va, vb string) marchwarden.Contradiction {
	return marchwarden.Contradiction{
		Subject: subject, Attribute: attribute,
		A:      marchwarden.Side{Locator: a.source.Page.Locator, RawExcerpt: a.text, Value: va},
		B:      marchwarden.Side{Locator: b.source.Page.Locator, RawExcerpt: b.text, Value: vb},
		Detail: fmt.Sprintf("%s: %q in %s and %q in %s.", subject, va, path.Base(a.source.Page.Locator), vb, path.Base(b.source.Page.Locator)),
	}
}
