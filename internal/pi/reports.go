package pi

import (
	"cmp"
	"context"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// External researchers are those whom the user has brought in, for a reason: one that
// gives no answer is missed, one that gives an answer is heard, and one that was left
// out is asked where ours are unsure.

// own reports whether a member is one of this program's researchers.
func (b *book) own(name string) bool { return b.members[name].Trust == dispatch.Own }

// unheard names the external researchers that were sent and gave no answer, and says how.
func (b *book) unheard() []string {
	var out []string
	for _, jr := range b.journeys {
		answered := func(o *journey) bool { return o.Researcher == jr.Researcher && o.res != nil }
		if b.own(jr.Researcher) || slices.ContainsFunc(b.journeys, answered) {
			continue
		}
		how := jr.Researcher + " did not answer"
		if jr.unasked {
			how = jr.Researcher + " was not reached"
		}
		if !slices.Contains(out, how) {
			out = append(out, how)
		}
	}
	return out
}

// unsaid are the claims of an external researcher that a draft does not say, on evidence that stood the check.
func (f *findings) unsaid(d reason.Draft, jr *journey) []reason.Claim {
	words := map[string]bool{}
	for _, c := range d.Claims {
		maps.Copy(words, lexicon.TermSet(c.Text))
	}
	claims := slices.DeleteFunc(f.adopt([]*journey{jr}).Claims, func(c reason.Claim) bool { return saidBy(words, c.Text) })
	return claims[:min(mostHeard, len(claims))]
}

// saidBy reports whether words say a claim: all its numbers are among them or, where it has none, half its words.
func saidBy(words map[string]bool, claim string) bool {
	terms := lexicon.Terms(claim)
	missing := func(w string) bool { return !words[w] }
	if numbers := slices.DeleteFunc(slices.Clone(terms), func(w string) bool { return !strings.ContainsFunc(w, unicode.IsDigit) }); len(numbers) > 0 {
		return !slices.ContainsFunc(numbers, missing)
	}
	return 2*len(slices.DeleteFunc(slices.Clone(terms), missing)) >= len(terms)
}

// unsure is the confidence of a report of ours below which those are asked, too, whose scope has no word of it.
const unsure = 0.4

// seconds are the rihlas of a second opinion: by external researchers, where ours are unsure of their answer.
func (b *book) seconds(jr *journey) []Sending {
	if jr.depth > 0 || !b.asksAll(jr) || !b.own(jr.Researcher) || jr.admitted == 0 || jr.res.Confidence >= unsure {
		return nil
	}
	var out []Sending
	for _, m := range b.inv.Members {
		if _, asked := b.asked[key(m.Name, jr.Question)]; !b.own(m.Name) && !asked {
			out = append(out, Sending{m.Name, jr.Question, jr.Researcher + " is unsure of its answer"})
		}
	}
	return out
}

// inShort gives a draft the short answer of a report or, where there is no answer, what the reports call closest.
func (f *findings) inShort(ctx context.Context, d *reason.Draft) error {
	if len(d.Claims) == 0 {
		return f.near(ctx, d)
	}
	if d.Short != nil {
		return nil
	}
	var leads []int // the sources of the first claim
	for _, id := range d.Claims[0].Passages {
		if src, _, ok := f.set.Passage(id); ok {
			leads = append(leads, src.N)
		}
	}
	for _, jr := range f.brought() {
		if !f.asksAll(jr) {
			continue // a part of the answer is none
		}
		if s, source := f.shortOf(jr); s != nil && slices.Contains(leads, source) {
			d.Short = s
			return nil
		}
	}
	return nil
}

// asksAll reports whether a journey was sent with the whole question.
func (b *book) asksAll(jr *journey) bool {
	return flatten(jr.Question) == flatten(b.start.Request.Question)
}

// shortOf is the short answer of a report and its source, nil if its words do not stand there. What a stranger calls
// yes or no is its word only.
func (f *findings) shortOf(jr *journey) (*reason.Short, int) {
	s := jr.res.ShortAnswer
	if s == nil || s.Validate(len(jr.res.Citations)) != nil || s.Kind.Decides() && !f.own(jr.Researcher) {
		return nil, 0
	}
	at := slices.IndexFunc(f.cited, func(a admission) bool { return a.journey == jr.number && a.index == s.Citation })
	if at < 0 {
		return nil, 0
	}
	a := f.cited[at]
	src := f.set.Sources()[a.source-1]
	if src.Page.Unchecked {
		return nil, 0
	}
	span, ok := *s.Span, src.Page.Text.String() == jr.res.Citations[a.index-1].ContentHash && s.Span.In(len(src.Text)) && s.Kind.Words(src.Text[s.Span.Start:s.Span.End]) == s.Text
	if !ok && !s.Kind.Decides() { // another state of the document may have the words as well
		span, ok = evidence.Locate(src.Text[a.span.Start:a.span.End], s.Text)
		span.Start, span.End = span.Start+a.span.Start, span.End+a.span.Start
	}
	if !ok {
		return nil, 0
	}
	return &reason.Short{Passage: passageAt(src, span), Span: span, Kind: s.Kind}, src.N
}

// near takes what our researchers call closest into the evidence, first of those that had the whole question.
func (f *findings) near(ctx context.Context, d *reason.Draft) error {
	for _, all := range []bool{true, false} {
		for _, jr := range f.journeys {
			if jr.replaced || jr.res == nil || !f.own(jr.Researcher) || f.asksAll(jr) != all {
				continue
			}
			for _, c := range jr.res.Closest[:min(len(jr.res.Closest), maxNotices)] {
				if err := f.nearBy(ctx, jr, c, d); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nearBy adds one passage to a draft, if it stands in its document.
func (f *findings) nearBy(ctx context.Context, jr *journey, near marchwarden.Closest, d *reason.Draft) error {
	c := near.Citation()
	if len(d.Closest) >= marchwarden.MaxClosest || unusable(c) != "" {
		return nil
	}
	whole := c
	whole.Locator, whole.RawExcerpt = bare(c), "" // of the document alone
	h, err := f.evidence(ctx, jr, whole, f.obtain)
	if err != nil || !h.Text.Valid() {
		return err
	}
	text, err := f.textOf(ctx, h)
	if err != nil {
		return err
	}
	span, ok := placeOf(c, text)
	src, _ := f.set.Add(evidence.Cited(f.attributed(c, h, f.members[jr.Researcher]), h.Text, len(text)), text)
	if ok && src.Page.Text == h.Text {
		d.Closest = append(d.Closest, reason.Near{Passage: passageAt(src, span), Span: span, Reason: near.Reason})
	}
	return nil
}

// questions are those of the plan beside the whole one, each once: what a report may have sections for.
func (b *book) questions() []string {
	var out []string
	for _, q := range b.public {
		if flatten(q) != flatten(b.start.Request.Question) && !slices.Contains(out, q) {
			out = append(out, q)
		}
	}
	return out
}

// adoptBlocks takes over the blocks of a report with their claims and cells, on the citations that stood the check.
// Nothing in them is trusted: the gate holds them to the evidence like a draft's.
func (f *findings) adoptBlocks(jr *journey, d *reason.Draft, said map[string]bool) {
	for _, b := range jr.res.Blocks[:min(len(jr.res.Blocks), maxBlocks)] {
		block := reason.Block{Type: b.Type, Level: b.Level, Text: b.Text, Ordered: b.Ordered, Columns: b.Columns}
		for _, c := range slices.Concat(b.Claims, b.Items) {
			claim := f.adopted(jr, c, f.own(jr.Researcher))
			if len(claim.Passages) == 0 || said[flatten(c.Text)] {
				continue
			}
			said[flatten(c.Text)] = true
			claim.Paragraph = len(block.Claims) == 0
			block.Claims, d.Claims = append(block.Claims, len(d.Claims)), append(d.Claims, claim)
		}
		for _, row := range b.Rows {
			var cells []reason.Cell
			for _, c := range row {
				cells = append(cells, reason.Cell{Text: c.Text, Passages: f.passagesOf(jr, c.Citations)})
			}
			block.Rows = append(block.Rows, cells)
		}
		if ids := f.passagesOf(jr, []int{b.Citation}); len(ids) > 0 {
			block.Passage = ids[0]
		}
		d.Blocks = append(d.Blocks, block)
	}
}

// passagesOf are where the citations of a report stand that stood the check.
func (f *findings) passagesOf(jr *journey, citations []int) []evidence.ID {
	var out []evidence.ID
	for _, a := range f.cited {
		if a.journey == jr.number && slices.Contains(citations, a.index) {
			out = append(out, passageAt(f.set.Sources()[a.source-1], a.span))
		}
	}
	return out
}

// mark is a marker, as it stands after a sentence.
var mark = regexp.MustCompile(`\[(\d{1,4})\]`)

// claimsOf are the claims of a result; where it lists none, the sentences of its answer that have markers.
func claimsOf(res *marchwarden.Result) []marchwarden.Claim {
	if len(res.Claims) > 0 {
		return res.Claims
	}
	var out []marchwarden.Claim
	for _, sp := range lexicon.Sentences(res.Answer) {
		lead, rest := leading(res.Answer[sp.Start:sp.End])
		if len(out) > 0 {
			out[len(out)-1].Citations = cite(out[len(out)-1].Citations, lead)
		}
		if text := strings.TrimSpace(mark.ReplaceAllString(rest, "")); text != "" {
			out = append(out, marchwarden.Claim{Text: text, Citations: cite(nil, numbers(rest)), Support: marchwarden.Unchecked})
		}
	}
	return slices.DeleteFunc(out, func(c marchwarden.Claim) bool { return len(c.Citations) == 0 })
}

// leading parts the markers that a sentence begins with from the rest: they belong to the sentence before it.
func leading(sentence string) (lead []int, rest string) {
	rest = strings.TrimSpace(sentence)
	for {
		at := mark.FindStringIndex(rest)
		if at == nil || at[0] != 0 {
			return lead, rest
		}
		lead, rest = append(lead, numbers(rest[:at[1]])...), strings.TrimSpace(rest[at[1]:])
	}
}

func numbers(text string) []int {
	var out []int
	for _, m := range mark.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1]) // at most four digits
		out = append(out, n)
	}
	return out
}

func cite(list, more []int) []int {
	for _, n := range more {
		if !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	return list
}

// breaks reports whether a claim begins a paragraph of an answer.
func breaks(answer, claim string) bool {
	i := strings.Index(answer, claim)
	return i == 0 || i >= 2 && answer[i-2:i] == "\n\n"
}

// placed is the locator of a closest passage, with its place in the document if a report says it.
func placed(c marchwarden.Closest, res *marchwarden.Result) string {
	for _, o := range res.Closest {
		document, _ := verify.CutPlace(o.Locator)
		if document == c.Locator && o.ContentHash == c.ContentHash && o.Span != nil && c.Span != nil && *o.Span == *c.Span {
			return o.Locator
		}
	}
	return c.Locator
}

// unwanted says why the request does not want what an external researcher cites; "" if it does. Runs that
// recorded no prices did not ask.
func (f *findings) unwanted(jr *journey, c marchwarden.Citation, h replay.Held) string {
	if f.own(jr.Researcher) || f.start.Prices == nil {
		return ""
	}
	filter := f.start.Request.Filter()
	if !filter.Allows(cmp.Or(locator.Host(c.Locator), path.Base(bare(c)))) {
		return "it is outside the source filter " + filter.String()
	}
	if date := cmp.Or(h.Published, c.Published); !f.start.Request.Covers(date) {
		return "it was published on " + plaintext.Line(date, maxWord) + ", outside the dates that were asked for"
	}
	return ""
}
