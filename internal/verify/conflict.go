package verify

// This part finds sentences that speak of the same thing and cannot both hold: which of them
// are compared, and the plain rules by which they contradict each other. What a reader is asked
// about the rest is in answers.go. It does not say which side is right.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

// Bounds of the work.
const (
	statementCap = 1000 // sentences compared
	maxPairs     = 2    // pairs that a reader is asked about, each in both directions
	maxWindows   = 8    // windows in which a reader looks for answers
	longest      = 400  // bytes of a sentence; what is longer is a table or the head of a page
)

// Contradictions finds pairs of sentences that speak of the same thing and cannot both hold. Plain
// rules find those that are worded alike and differ in an amount or a denial; a reader,
// which may be nil, those of different documents in which it finds different answers to
// the question, and that it calls contradicted whichever of the two is the evidence.
//
// Only sentences of the passages named in among are compared, and of a pair one side at
// least bears on the question; an empty question lets all of them count. Both excerpts
// are sentences as they stand in their documents. What bears most on the question comes
// first, and two values are set against each other once. The result is the same for the
// same input, and a rerun must come to it: the end of ctx does not break it off. Where the
// reader fails, the plain rules remain.
func Contradictions(ctx context.Context, r reader.Reader, question string, set *evidence.Set, among []evidence.ID) []marchwarden.Contradiction {
	ctx = context.WithoutCancel(ctx)
	ask := inquire(question)
	all := statements(ask, set, among)
	sure := ask.alike(all)
	if r != nil {
		sure = append(sure, confirmed(ctx, r, ask.opposed(ask.answers(ctx, r, all)))...)
	}
	return reports(sure)
}

// pair is two sentences that may contradict each other.
type pair struct {
	a, b   *statement
	va, vb statedValue // what they differ in; may be empty
	on     string      // what it is, in words: "number of days"
	weight float64     // how near they are to the question
	bound  float64     // how sure the reader must be
}

// confirmed are the pairs of which a reader says that each side contradicts the other.
func confirmed(ctx context.Context, r reader.Reader, open []*pair) []*pair {
	open = open[:min(maxPairs, len(open))]
	var asked []reader.Pair
	for _, p := range open {
		asked = append(asked, reader.Pair{Evidence: p.a.framed(), Claim: p.b.text}, reader.Pair{Evidence: p.b.framed(), Claim: p.a.text})
	}
	said, err := r.Relate(ctx, asked)
	if err != nil || len(said) != len(asked) {
		return nil
	}
	var out []*pair
	for i, p := range open {
		if min(said[2*i].Contradicted, said[2*i+1].Contradicted) >= p.bound {
			out = append(out, p)
		}
	}
	return out
}

// reports are the contradictions of pairs, each two values once, or each two sentences
// where there are none.
func reports(pairs []*pair) []marchwarden.Contradiction {
	slices.SortStableFunc(pairs, func(a, b *pair) int { return cmp.Compare(b.weight, a.weight) })
	var out []marchwarden.Contradiction
	seen := map[[2]string]bool{}
	for _, p := range pairs {
		a, b := cmp.Or(lexicon.Stem(p.va.text), p.a.text), cmp.Or(lexicon.Stem(p.vb.text), p.b.text)
		if key := [2]string{min(a, b), max(a, b)}; !seen[key] {
			seen[key] = true
			out = append(out, p.report())
		}
	}
	return out
}

func (p *pair) report() marchwarden.Contradiction {
	c := marchwarden.Contradiction{
		Subject: p.subject(), Attribute: p.on,
		A: marchwarden.Side{Locator: p.a.source.Page.Locator, RawExcerpt: p.a.text, Value: p.va.text},
		B: marchwarden.Side{Locator: p.b.source.Page.Locator, RawExcerpt: p.b.text, Value: p.vb.text},
	}
	inA, inB := path.Base(c.A.Locator), path.Base(c.B.Locator)
	c.Detail = fmt.Sprintf("%s: %q in %s and %q in %s.", c.Subject, c.A.Value, inA, c.B.Value, inB)
	if c.A.Value == "" {
		c.Detail = fmt.Sprintf("%s: what %s and %s say cannot both hold.", c.Subject, inA, inB)
	}
	return c
}

// subject is the beginning of a up to where the two part, as far as b has its words,
// too, or else what stands above them.
func (p *pair) subject() string {
	end := 0
	for _, t := range p.a.toks {
		if t.Stop || t.Number {
			continue
		}
		if !p.b.words[t.Stem] || p.va.text != "" && t.Start >= p.va.start {
			break
		}
		end = t.End
	}
	return cmp.Or(strings.Join(strings.Fields(p.a.text[:end]), " "), p.a.head, p.b.head, p.on)
}

// statement is one sentence, ready to be compared.
type statement struct {
	source   *evidence.Source
	passage  int
	head     string // what stands above it
	text     string
	start    int // where it stands in its source
	toks     []lexicon.Token
	words    map[string]bool // content stems without numbers
	names    []string
	first    string // the first content stem: what the sentence is about
	amounts  []lexicon.Quantity
	denied   map[string]bool // stems that a negation stands directly before
	relevant float64         // share of the question's words that it and what is above it have
	within   float64         // the same without the words of the title, which all of its document is about
	scene    scene
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
	for _, p := range ps {
		src, _, _ := set.Passage(p.ID)
		around := newScene(src, p)
		for _, sp := range p.Sentences {
			if len(out) == statementCap {
				return out
			}
			if s := newStatement(src.Text[sp.Start:sp.End]); s != nil {
				s.source, s.passage, s.head, s.scene, s.start = src, p.Index-1, strings.Trim(src.Page.Title+" › "+p.Heading, " ›"), around, sp.Start
				s.relevant, s.within = ask.share(s.head+" "+s.text), ask.beyond(src.Page.Title).share(p.Heading+" "+s.text)
				if set.Earlier {
					s.within = s.relevant
				}
				out = append(out, s)
			}
		}
	}
	return out
}

// Words by which sentences are compared: those that deny the words after them, labels of
// rows before the name of what the row is about and before what only numbers it, words that
// point outside their sentence, those for what happens in one year only, and words that are
// capitalised and are no names.
var (
	deniers  = lexicon.WordSet("deniers")
	naming   = lexicon.WordSet("row names")
	keys     = lexicon.WordSet("row keys")
	refers   = lexicon.WordSet("pronouns", "pointers")
	once     = lexicon.WordSet("once")
	calendar = lexicon.StemSet("months", "weekdays")
)

// newStatement is nil for what states nothing that could be denied.
// A label of a row that only says that a name follows is no word of it.
func newStatement(text string) *statement {
	if strings.HasSuffix(text, "?") {
		return nil
	}
	s := &statement{text: text, toks: lexicon.Tokens(text), words: map[string]bool{}, denied: map[string]bool{}, amounts: lexicon.Quantities(text)}
	for i, t := range s.toks {
		switch {
		case t.Number, naming[strings.ToLower(t.Text)] && strings.HasPrefix(text[t.End:], ":"):
		case deniers[strings.ToLower(t.Text)] || t.Contracted():
			for _, n := range s.toks[i+1 : min(len(s.toks), i+3)] {
				if !n.Stop {
					s.denied[n.Stem] = true
				}
			}
		case !t.Stop:
			s.words[t.Stem] = true
			s.first = cmp.Or(s.first, t.Stem)
			if t.Capital && i > 0 && !calendar[t.Stem] {
				s.names = append(s.names, t.Stem)
			}
		}
	}
	if len(s.words) == 0 {
		return nil
	}
	return s
}

func (s *statement) framed() string { return strings.TrimPrefix(s.head+". "+s.text, ". ") }

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
