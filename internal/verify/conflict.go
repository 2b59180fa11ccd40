package verify

// This part finds sentences that speak of the same thing and cannot both hold: which of them
// are compared, the plain rules by which they contradict each other (alike.go), and what a
// reader is asked about the rest (answers.go). It does not say which side is right.

import (
	"cmp"
	"context"
	"fmt"
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
