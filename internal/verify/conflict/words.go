package conflict

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// opposites are words of which no two of a pair hold of one thing at once.
var opposites = lexicon.Pairs(`reliably rarely; reliable unreliable; increase decrease; increased decreased; rise fall; rose fell; high low; higher lower; highest lowest;
	allowed forbidden; allow forbid; permit prohibit; permitted banned; legal illegal; always never; often rarely; common rare; safe dangerous; safe unsafe;
	possible impossible; more less; most least; largest smallest; larger smaller; better worse; best worst; accept reject; accepted rejected; true false; before after; earlier later;
	effective ineffective; necessary unnecessary; tolerant sensitive; resistant susceptible; easy difficult; win lose; won lost; succeed fail; mandatory optional;
	required optional; majority minority; improve worsen; strong weak; fast slow; early late; include exclude; included excluded; support oppose; grow shrink; gain loss`)

func contradict(a, b *statement, common int) (marchwarden.Contradiction, bool) {
	if !(a.relevant || b.relevant) {
		return marchwarden.Contradiction{}, false
	}
	if c, ok := againstRow(a, b); ok {
		return c, true
	}
	if a.long || b.long || !sameNames(a, b) {
		return marchwarden.Contradiction{}, false
	}
	if common < commonFloor {
		if common < max(equalFloor, len(a.ids), len(b.ids)) || !a.standsAlone() || !b.standsAlone() || !a.scene.ofOneThing(b.scene) {
			return marchwarden.Contradiction{}, false
		}
		return differentValue(a, b)
	}
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

// refers are words for something that another sentence names.
var refers = words("it its he his him she her hers they their them this these that those")

// standsAlone reports whether a sentence says by itself what it is about: no other
// names that, and it is no row of cells without labels.
func (s *statement) standsAlone() bool {
	if s.record == nil && strings.Contains(s.text, "; ") {
		return false
	}
	return !slices.ContainsFunc(s.toks, func(t lexicon.Token) bool { return refers[strings.ToLower(t.Text)] })
}

// differentValue holds when each side has exactly one quantity that the other
// has not, of one unit, further apart than rounding.
func differentValue(a, b *statement) (marchwarden.Contradiction, bool) {
	x, lone := lonely(a.amounts, b.amounts)
	y, alone := lonely(b.amounts, a.amounts)
	if lone != 1 || alone != 1 || !sameRow(a, b, x, y) {
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
		if asOf(a.text, x.Start) || !slices.ContainsFunc(a.toks, func(t lexicon.Token) bool { return once[strings.ToLower(t.Text)] }) {
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

// hunk is where two sentences part: tokens [a0,a1) of one stand where the other
// has [b0,b1).
type hunk struct{ a0, a1, b0, b1 int }

// hunks aligns the tokens of two sentences by their longest common sequence.
func hunks(a, b []lexicon.Token) (parts []hunk, matched int) {
	width := len(b) + 1
	longest := make([]int16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i].Stem == b[j].Stem {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	var open hunk
	end := func(i, j int) {
		if open.a1, open.b1 = i, j; open.a0 < i || open.b0 < j {
			parts = append(parts, open)
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i].Stem == b[j].Stem:
			end(i, j)
			i, j = i+1, j+1
			open = hunk{a0: i, b0: j}
		case longest[(i+1)*width+j] >= longest[i*width+j+1]:
			i++
		default:
			j++
		}
	}
	end(len(a), len(b))
	return parts, int(longest[0])
}

// anchored reports whether part i stands next to words that the sentences share.
func anchored(parts []hunk, i, end int) bool {
	before, after := parts[i].a0, end-parts[i].a1
	if i > 0 {
		before -= parts[i-1].a1
	}
	if i+1 < len(parts) {
		after = parts[i+1].a0 - parts[i].a1
	}
	return before+after >= anchor
}
