// Package conflict finds sentences of different documents that speak of the same
// thing and cannot both hold. It owns what makes two values, two amounts or two
// sentences contradict each other, and the judgement whether they are said of one
// thing. It reads no document and decides nothing about which side is right.
package conflict

import (
	"cmp"
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
	swapFloor     = 0.6  // … where one value stands in the place of another
	commonFloor   = 4    // fewest shared words, whatever the share
	equalFloor    = 2    // … where only a quantity differs and every word is shared
	alikeFloor    = 2    // … of those worth aligning
	anchor        = 3    // fewest shared words next to a value that stands for another
	relevantFloor = 0.3  // share of the question's words that a side must bear on
	statementCap  = 1600 // sentences compared, so that the time is bounded
	effortCap     = 5e7  // pairs of words compared where sentences are aligned, for the same reason
)

// How many of the names and numbers around two sentences must agree for their
// values to be of one thing: a name alone is shared by many.
const (
	swapScene   = 0.4  // of sentences that say the same but for the value
	askedScene  = 0.4  // of sentences that answer the question, each in its words
	nounScene   = 0.65 // of values that are common nouns, and may mean the same
	leastScene  = 0.3  // of the only two answers that differ
	boxScene    = 0.5  // of values in the boxes and tables of an encyclopaedia
	copyScene   = 0.8  // of tables, and of sentences on what is not asked: copies of one text
	knownBonus  = 0.1  // less is enough if each side knows the names in the other's sentence
	sceneFewest = 3    // fewest names and numbers in common, whatever the share
	sceneMany   = 8    // fewest for the bonus
	longest     = 400  // bytes of a sentence; what is longer is a table or the head of a page
)

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
	long     bool // see longest
	start    int  // where it stands in its source
	answer   answer
	scene    *scene
	record   *record // if it is a row of a table
}

// Find finds pairs of sentences of different sources that speak of
// the same thing and cannot both hold: a different quantity of one unit, one
// denies or reverses what the other says, a row of a table has another number than
// a sentence, or they give different names, dates or numbers for what the question
// asks. Only sentences of the passages named in among are compared, and of a pair
// one side at least bears on the question; an empty question lets all of them
// count. Both excerpts are sentences as they stand in their documents. Things of one
// name are told apart by what is said around the sentences; where that is little,
// only sentences that say the same but for the value are reported.
//
// Where none of this is found, the best of two weaker signs is reported alone: values
// that stand in the same words, one text being a copy of the other, or the two answers
// whose surroundings agree most.
//
// The order is that of the passages, then those that differ in a value, nearest to
// the question first; two values are set against each other once. The result is
// the same for the same input.
func Find(question string, set *evidence.Set, among []evidence.ID) []marchwarden.Contradiction {
	ask := inquire(question)
	all := statements(ask, set, among)
	var out []marchwarden.Contradiction
	var values []rival
	seen := map[string]bool{}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.source == b.source || !(a.relevant || b.relevant) && !(a.scene.bears && b.scene.bears) {
				continue
			}
			common := shared(a.ids, b.ids)
			if c, ok := contradict(a, b, common); ok {
				key := strings.Join(append(lexicon.Terms(c.Subject), "", c.Attribute), "\x00")
				if !seen[key] {
					seen[key] = true
					out = append(out, c)
				}
			} else if c, ok := otherwise(ask, a, b, common); ok {
				values = append(values, rival{c, ask.weight(a, b) + len(lexicon.Tokens(c.A.Value+" "+c.B.Value))})
			}
		}
	}
	if out = append(out, strongest(ask, out, values)...); len(out) > 0 {
		return out
	}
	if out = copies(ask, all); len(out) > 0 {
		return out
	}
	return nearest(ask, all)
}

// rival is a contradiction of two values, and how much it has of the question.
type rival struct {
	marchwarden.Contradiction
	weight int
}

// strongest leaves out what repeats another: two values are set against each
// other once, and of two sources only what they say nearest to the question if one
// value answers it.
func strongest(ask *inquiry, have []marchwarden.Contradiction, values []rival) []marchwarden.Contradiction {
	slices.SortStableFunc(values, func(a, b rival) int { return cmp.Compare(b.weight, a.weight) })
	seen := map[[3]string]bool{}
	note := func(c marchwarden.Contradiction) bool {
		va, vb := lexicon.Stem(c.A.Value), lexicon.Stem(c.B.Value)
		pair, sources := [3]string{"values", min(va, vb), max(va, vb)}, [3]string{"sources", c.A.Locator, c.B.Locator}
		if seen[pair] || ask.single && seen[sources] {
			return false
		}
		seen[pair], seen[sources] = true, true
		return true
	}
	for _, c := range have {
		note(c)
	}
	var out []marchwarden.Contradiction
	for _, v := range values {
		if note(v.Contradiction) {
			out = append(out, v.Contradiction)
		}
	}
	return out
}

// otherwise finds two values for one thing, in texts that bear on the question.
func otherwise(ask *inquiry, a, b *statement, common int) (c marchwarden.Contradiction, ok bool) {
	alike := common >= alikeFloor && 2*common >= min(len(a.ids), len(b.ids))
	switch {
	case !alike && (a.answer.kind == 0 || b.answer.kind == 0), !a.scene.bears || !b.scene.bears, len(a.denied) != len(b.denied),
		!ask.spend(len(a.toks) * len(b.toks)):
		return c, false
	}
	if alike {
		if c, ok = swapped(ask, a, b); ok {
			return c, true
		}
	}
	return answeredOtherwise(ask, a, b)
}

// swapped holds when two sentences say the same but for one value, in texts that
// speak of the same things.
func swapped(ask *inquiry, a, b *statement) (c marchwarden.Contradiction, ok bool) {
	parts, matched := hunks(a.toks, b.toks)
	if matched < commonFloor || float64(matched) < swapFloor*float64(min(len(a.toks), len(b.toks))) {
		return c, false
	}
	at, va, vb, others := -1, slot{}, slot{}, 0
	subject := false // what they speak of differs
	for i, h := range parts {
		x, y := slotAt(a, h.a0, h.a1), slotAt(b, h.b0, h.b1)
		switch {
		case at < 0 && otherNames(a.toks[h.a0:h.a1], b.toks[h.b0:h.b1]) && !differ(x, y):
			subject = true // Kate Ramsay, and Sophie Ramsay
		case !differ(x, y):
		case at < 0 && ask.wants(x.kind) && anchored(parts, i, len(a.toks)) && !(ask.names(a, x) && ask.names(b, y)) && !a.asOf(x):
			at, va, vb = i, x, y
		default:
			others++
			subject = subject || at < 0 && otherNames(a.toks[h.a0:h.a1], b.toks[h.b0:h.b1])
		}
	}
	if at < 0 || !ask.single && others > 0 {
		return c, false
	}
	floor := swapScene
	switch {
	case subject || !ask.single || a.leads(va) && b.leads(vb), !ask.says(a) || !ask.says(b), a.long && b.long:
		floor = copyScene
	case va.kind == aNoun:
		floor = nounScene
	}
	if !ask.sameThing(a, b, va, vb, floor) {
		return c, false
	}
	return report(a, b, sharedLead(a, b, va.start), va.kind.String(), va.text, vb.text), true
}

// otherNames reports whether names stand on both sides.
func otherNames(a, b []lexicon.Token) bool {
	name := func(t lexicon.Token) bool { return t.Capital && !t.Stop && !dated(t) }
	return slices.ContainsFunc(a, name) && slices.ContainsFunc(b, name)
}

// holds reports whether a sentence has a value too, wherever.
func (s *statement) holds(v slot) bool {
	return !slices.ContainsFunc(v.stems, func(w string) bool {
		return !slices.ContainsFunc(s.toks, func(t lexicon.Token) bool { return t.Stem == w })
	})
}

// asOf reports whether a value is the date of what is said: "as of 2017".
func (s *statement) asOf(v slot) bool { return v.kind == aDate && asOf(s.text, v.start) }

func asOf(text string, start int) bool {
	return strings.HasSuffix(strings.ToLower(text[:start]), "as of ")
}

// leads reports whether a value is the first thing in a sentence, and so may be
// what it speaks of.
func (s *statement) leads(v slot) bool {
	for _, t := range s.toks {
		if t.Start >= v.start {
			return true
		}
		if !t.Stop {
			return false
		}
	}
	return true
}

// answeredOtherwise holds when both sentences answer the question, each with
// another value, in texts that speak of the same things.
func answeredOtherwise(ask *inquiry, a, b *statement) (c marchwarden.Contradiction, ok bool) {
	floor := askedScene
	if a.long && b.long {
		floor = boxScene
	}
	va, vb := a.answer.slot, b.answer.slot
	if !differ(va, vb) || !ask.sameThing(a, b, va, vb, floor) {
		return c, false
	}
	return report(a, b, ask.about, a.answer.cue, va.text, vb.text), true
}

func statements(ask *inquiry, set *evidence.Set, among []evidence.ID) []*statement {
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
	vocabulary, entries := map[string]int{}, map[*evidence.Source]entry{}
	for _, p := range ps {
		src, _, _ := set.Passage(p.ID)
		about := lexicon.Terms(p.Heading + "\n" + src.Page.Title)
		of, ok := entries[src]
		if !ok {
			of = entryOf(src)
			entries[src] = of
		}
		around := newScene(src, p, ask.terms, of)
		for _, sp := range p.Sentences {
			if len(out) == statementCap {
				return out
			}
			if s := newStatement(src, src.Text[sp.Start:sp.End]); s != nil {
				s.relevant = bears(ask.terms, s, about)
				s.start, s.scene, s.answer = sp.Start, around, ask.answer(s)
				s.number(vocabulary)
				out = append(out, s)
			}
		}
	}
	return out
}

// newStatement is nil for what states nothing that could be denied.
func newStatement(src *evidence.Source, text string) *statement {
	if strings.HasSuffix(text, "?") {
		return nil
	}
	s := &statement{long: len(text) > longest, source: src, text: text, toks: lexicon.Tokens(text), words: map[string]bool{}, denied: map[string]bool{}}
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
	if len(s.words) == 0 {
		return nil
	}
	s.amounts = lexicon.Quantities(text)
	s.record = newRecord(text)
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

func bears(asked []string, s *statement, about []string) bool {
	if len(asked) == 0 {
		return true
	}
	n := 0
	for _, w := range asked {
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
