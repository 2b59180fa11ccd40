package pi

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// conclude grounds the draft once more, in the bytes that are stored here, and makes the result of it.
func (r *run) conclude(ctx context.Context, draft reason.Draft) (*marchwarden.Result, error) {
	r.live(marchwarden.StageCheck, "checking every excerpt against the stored bytes")
	grounded, err := verify.Gate(ctx, r.blobs, r.set, verify.Basis{Rules: r.start.Gate, Asked: r.public, Reader: r.reader(), Charts: r.start.Request.Form() != marchwarden.Brief}, draft)
	if err != nil {
		return nil, outcome.StoreError(err)
	}
	if err := r.j.Note(grounded.Step()); err != nil {
		return nil, err
	}
	last, err := replay.Checkpoint(r.caller, r.j, "the end", r.clock)
	if err != nil {
		return nil, err
	}
	if last.Interrupted && r.unwritten { // a caller who leaves when all is done has a whole result
		r.interrupted = true
	}
	res := r.assemble(draft, grounded)
	res.CostMetadata.WallTimeSec = last.Elapsed.Seconds()
	ending := outcome.Ending{Exhausted: r.meter.Usage().Exhausted, Interrupted: r.interrupted}
	if err := outcome.Seal(ctx, r.j, r.blobs, res, ending); err != nil {
		return nil, err
	}
	r.live(marchwarden.StageDone, fmt.Sprintf("%d citations, confidence %.2f", len(res.Citations), res.Confidence))
	return res, nil
}

func (r *run) assemble(draft reason.Draft, g verify.Grounded) *marchwarden.Result {
	use := r.meter.Usage()
	exhausted := len(use.Exhausted) > 0 || r.cutShort()
	res := &marchwarden.Result{
		Answer: g.Answer, Blocks: g.Blocks, ShortAnswer: g.ShortAnswer, Closest: g.Closest, Citations: g.Citations, Claims: g.Claims, Contradictions: g.Contradictions,
		Decisions: slices.SortedStableFunc(slices.Values(r.decisions), func(a, b marchwarden.Decision) int { return a.From - b.From }), // in the order of the rihlas that they are about
		TraceID:   r.start.TraceID,
		CostMetadata: marchwarden.CostMetadata{
			TokensUsed: use.Tokens, BudgetExhausted: exhausted, SourcesRead: r.sourcesRead(), OverBudget: use.OverBudget,
			CostUSD: use.CostUSD,
		},
	}
	for _, jr := range r.journeys {
		res.CostMetadata.IterationsRun = max(res.CostMetadata.IterationsRun, jr.depth+1)
	}
	confidence.Rate(res, confidence.Input{
		Sources: r.set.Sources(), Grounded: g, Match: draft.Match, BudgetExhausted: exhausted, Unheard: len(r.unheard()) > 0, Now: r.start.StartedAt,
	})
	for i := range res.Citations {
		res.Citations[i].Locator = r.locatorOf(g.Sources[i], &res.Citations[i])
	}
	for i := range res.Closest {
		for _, jr := range r.journeys {
			if jr.res != nil {
				res.Closest[i].Locator = placed(res.Closest[i], jr.res)
			}
		}
	}
	if r.inv.PlanOnly { // what was not asked for is not refused
		res.ShortAnswer = nil
	}
	outcome.MarkFollow(res, r.start)
	res.Gaps = r.mergeGaps(res, slices.Concat(draft.Gaps, g.Gaps))
	res.Rihlas = r.rihlas()
	res.DiscoveryEvents, res.OpenQuestions = r.leads()
	res.CostMetadata.ModelID, res.CostMetadata.ReasonerID = r.wroteIt()
	res.Warnings = r.warnings(res.CostMetadata)
	res.Normalize()
	return res
}

// cutShort reports whether a researcher ended at a cap, and was not sent again.
func (b *book) cutShort() bool {
	return slices.ContainsFunc(b.journeys, func(jr *journey) bool {
		return !jr.replaced && jr.res != nil && jr.res.CostMetadata.BudgetExhausted && !b.sentAgain(jr) &&
			!slices.ContainsFunc(jr.res.Gaps, func(g marchwarden.Gap) bool { return b.paced(jr, g) })
	})
}

// sentAgain reports whether a journey was made once more, with a larger budget.
func (b *book) sentAgain(jr *journey) bool {
	return slices.ContainsFunc(b.journeys, func(o *journey) bool {
		return o.parent == jr.number && o.retry && o.Sending.Researcher == jr.Researcher && o.Question == jr.Question && (o.goesOn == nil || o.res != nil)
	})
}

// locatorOf is the locator of a citation, with the place in the document if a researcher said it of the same words.
func (f *findings) locatorOf(source int, c *marchwarden.Citation) string {
	at := f.set.Sources()[source-1].Page.Locator
	for _, a := range f.cited {
		said := f.journeys[a.journey-1].res.Citations[a.index-1]
		if a.source == source && bare(said) == at && c.Span != nil && a.span.Start == c.Span.Start && (said.ContentHash == c.ContentHash || said.ContentHash == "") {
			return said.Locator
		}
	}
	for _, a := range f.cited {
		if a.source == source {
			return a.citation.Locator // as the one who brought the document calls it
		}
	}
	return c.Locator
}

// rihlas are the journeys, and what of the plan was never sent.
func (b *book) rihlas() []marchwarden.Rihla {
	var out []marchwarden.Rihla
	for _, jr := range b.journeys {
		rihla := marchwarden.Rihla{Researcher: jr.Researcher, Question: jr.Question, Reason: jr.Reason, Parent: jr.parent,
			Outcome: outcomeOf(jr), WallTimeSec: jr.took.Seconds()}
		if jr.res != nil {
			rihla.TraceID, rihla.Citations = jr.res.TraceID, jr.admitted
			rihla.TokensUsed, _, _ = b.spent(jr)
		}
		out = append(out, rihla)
	}
	if b.inv.PlanOnly {
		for _, it := range b.waiting {
			out = append(out, marchwarden.Rihla{Researcher: it.Researcher, Question: it.Question, Reason: it.Reason, Outcome: "planned"})
		}
	}
	return out
}

// outcomeOf says in a few words what became of a journey.
func outcomeOf(jr *journey) string {
	switch {
	case jr.replaced:
		return "ended before it was done, and went on later"
	case jr.lost:
		return "did not come back"
	case jr.err != nil && jr.res == nil:
		return "failed: " + plaintext.Line(jr.err.Error(), maxTopic)
	case jr.res == nil:
		return "failed: no report"
	case len(jr.res.Citations) == 0:
		return "found nothing to cite"
	case jr.admitted < len(jr.res.Citations):
		return fmt.Sprintf("%d of %d citations stood the check", jr.admitted, len(jr.res.Citations))
	case jr.admitted == 1:
		return "answered with 1 citation"
	}
	return fmt.Sprintf("answered with %d citations", jr.admitted)
}

// gapsOf are the gaps of a report as a result may carry them.
func (f *findings) gapsOf(jr *journey) []marchwarden.Gap {
	gaps := slices.Clone(jr.res.Gaps[:min(len(jr.res.Gaps), maxNotices)])
	gaps = slices.DeleteFunc(gaps, func(g marchwarden.Gap) bool { return f.paced(jr, g) })
	own := f.own(jr.Researcher)
	for i := range gaps {
		g := &gaps[i]
		if !own {
			g.Topic, g.Detail = f.line(g.Topic, maxTopic), f.line(g.Detail, maxDetail)
		}
		if !g.Category.Known() {
			g.Category = marchwarden.AccessDenied
		}
	}
	return gaps
}

// mergeGaps are the gaps that remain: not what a later rihla answered, and what several report once.
func (b *book) mergeGaps(res *marchwarden.Result, own []marchwarden.Gap) []marchwarden.Gap {
	var out []marchwarden.Gap
	at := map[string]int{}
	add := func(g marchwarden.Gap, from string) {
		key := string(g.Category) + "\x00" + flatten(g.Topic)
		i, known := at[key]
		switch {
		case !known:
			at[key] = len(out)
			if from != "" && !strings.Contains(g.Topic+g.Detail, from) {
				g.Detail = from + ": " + g.Detail
			}
			out = append(out, g)
		case !strings.Contains(out[i].Detail, g.Detail):
			out[i].Detail = plaintext.Line(out[i].Detail+"; "+strings.TrimSpace(from+" "+g.Detail), maxDetail)
		}
	}
	for _, g := range b.gaps {
		add(g, "")
	}
	for _, it := range b.dropped {
		add(marchwarden.Gap{Topic: it.Question, Category: marchwarden.BudgetExhausted, Detail: fmt.Sprintf("%s was not asked: %s", it.Researcher, it.missing)}, "")
	}
	several, said := len(b.brought()) > 1, wordsOf(res)
	for _, jr := range b.journeys {
		for _, g := range jr.gaps {
			// What a rihla followed and filled is none any more, but for contradictions: they are shown.
			filled := g.Category != marchwarden.ContradictorySources && b.filled(jr, string(g.Category), g.Topic)
			if filled || several && answeredBy(said, g) {
				continue
			}
			from := ""
			if len(b.journeys) > 1 {
				from = jr.Researcher
			}
			add(g, from)
		}
	}
	for _, g := range own {
		add(g, "")
	}
	if ex := b.meter.Usage().Exhausted; len(ex) > 0 {
		add(marchwarden.Gap{Topic: "the rest of: " + b.start.Request.Question, Category: marchwarden.BudgetExhausted, Detail: "the work ended at the " + strings.Join(ex, " and the ")}, "")
	}
	return out
}

// flatten is a text's words in lower case, a space between them.
func flatten(s string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(s), func(c rune) bool { return !unicode.IsLetter(c) && !unicode.IsDigit(c) }), " ")
}

// wordsOf are the stems in the claims of a result and in what they cite.
func wordsOf(res *marchwarden.Result) map[string]bool {
	words := map[string]bool{}
	for _, c := range res.Claims {
		maps.Copy(words, lexicon.TermSet(c.Text))
	}
	for _, c := range res.Citations {
		maps.Copy(words, lexicon.TermSet(c.RawExcerpt+" "+c.Title))
	}
	return words
}

// answeredBy reports whether the answer speaks of all that one researcher did not find: another did.
func answeredBy(said map[string]bool, g marchwarden.Gap) bool {
	topic := lexicon.Terms(g.Topic)
	if g.Category != marchwarden.SourceNotFound || len(topic) == 0 {
		return false
	}
	return !slices.ContainsFunc(topic, func(w string) bool { return !said[w] })
}

// filled reports whether what a journey, or the one that it resumes, reported led to a rihla that found something.
func (b *book) filled(jr *journey, about, topic string) bool {
	topic = plaintext.Line(topic, maxTopic)
	return slices.ContainsFunc(b.decisions, func(d marchwarden.Decision) bool {
		return d.From == jr.number && d.About == about && d.Topic == topic && d.Rihla > 0 && b.journeys[d.Rihla-1].admitted > 0
	}) || jr.goesOn != nil && b.filled(jr.goesOn, about, topic)
}

// leads are the discoveries and open questions of all reports, each once. What a rihla answered is no open question any
// more; a discovery that no member could follow is one.
func (f *findings) leads() ([]marchwarden.DiscoveryEvent, []marchwarden.OpenQuestion) {
	var events []marchwarden.DiscoveryEvent
	var open []marchwarden.OpenQuestion
	seen := map[string]bool{}
	first := func(kind, text string) bool {
		key := kind + "\x00" + flatten(text)
		fresh := !seen[key]
		seen[key] = true
		return fresh
	}
	ask := func(q marchwarden.OpenQuestion) {
		if len(open) < maxLeads && q.Question != "" && q.Question != verify.Removed && first("question", q.Question) {
			open = append(open, q)
		}
	}
	for _, jr := range f.journeys {
		if jr.res == nil {
			continue
		}
		for _, e := range jr.res.DiscoveryEvents {
			e.Query, e.Reason, e.SuggestedResearcher = f.said(jr, e.Query, maxTopic), f.said(jr, e.Reason, maxDetail), plaintext.Line(e.SuggestedResearcher, maxWord)
			e.SourceLocator = f.met(e.SourceLocator)
			if len(events) < maxLeads && e.Type.Known() && e.Query != "" && e.Query != verify.Removed && first(string(e.Type), e.Query) {
				events = append(events, e)
			}
		}
		for _, q := range jr.res.OpenQuestions {
			if !q.Priority.Known() || f.filled(jr, aboutOpenQuestion, q.Question) {
				continue
			}
			ask(marchwarden.OpenQuestion{Question: f.said(jr, q.Question, maxTopic), Context: f.said(jr, q.Context, maxDetail), Priority: q.Priority, SourceLocator: f.met(q.SourceLocator)})
		}
	}
	for _, d := range f.decisions {
		from := f.journeys[d.From-1]
		if d.Rihla > 0 || d.Action == marchwarden.Dispatched || from.goesOn != nil && f.filled(from, d.About, d.Topic) {
			continue
		}
		switch d.About {
		case string(marchwarden.RelatedResearch), string(marchwarden.NewSource), string(marchwarden.ContradictionDetected):
			ask(marchwarden.OpenQuestion{Question: f.said(from, d.Topic, maxTopic), Context: d.Reason, Priority: marchwarden.Medium})
		case string(marchwarden.ScopeExceeded): // contradictions have a list of their own
			ask(marchwarden.OpenQuestion{Question: f.said(from, d.Topic, maxTopic), Context: d.Reason, Priority: marchwarden.High})
		}
	}
	return events, open
}

// said is a text of a report as a result may carry it. Our researchers have taken out addresses they did not meet.
func (f *findings) said(jr *journey, s string, most int) string {
	if f.own(jr.Researcher) {
		return plaintext.Line(s, most)
	}
	return f.line(s, most)
}

// line is a foreign text on one line, without addresses that were not met here.
func (f *findings) line(s string, most int) string {
	return plaintext.Line(verify.Unlink(s, func(a string) bool {
		return strings.Contains(f.start.Request.Question, a) ||
			slices.ContainsFunc(f.set.Sources(), func(src *evidence.Source) bool {
				return src.Page.Locator == a || strings.Contains(src.Text, a)
			})
	}), most)
}

// met is a locator that is in the evidence, or "".
func (f *findings) met(at string) string {
	if slices.ContainsFunc(f.set.Sources(), func(src *evidence.Source) bool { return src.Page.Locator == at }) {
		return at
	}
	return ""
}
