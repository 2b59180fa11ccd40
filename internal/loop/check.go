package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// check lets the draft through the grounding gate, scores it, and closes the trace with the result.
func (r *run) check(ctx context.Context, draft reason.Draft) (*marchwarden.Result, error) {
	r.live(marchwarden.StageCheck, 0, 0, "checking every citation against the stored bytes")
	if r.blind() {
		draft.Refusal = "No source could be read, so the question is not answered; the gaps say why."
	}
	grounded, err := verify.Gate(ctx, r.cfg.Blobs, r.state.Evidence, verify.Basis{Rules: r.start.Gate, Asked: []string{r.start.Request.Question}, Reader: r.state.Reader, Charts: r.start.Request.Form() != marchwarden.Brief}, draft)
	if err != nil {
		return nil, outcome.StoreError(err)
	}
	step := grounded.Step()
	step.DroppedLeads, step.RefusedReads = r.dropLeads(&draft), r.refused
	r.tidy(&draft)
	if err := r.j.Note(step); err != nil {
		return nil, err
	}
	last, err := replay.Checkpoint(r.caller, r.j, "the end", r.clock)
	if err != nil {
		return nil, err
	}
	res := r.assemble(draft, grounded)
	res.CostMetadata.WallTimeSec = last.Elapsed.Seconds()
	ending := outcome.Ending{Exhausted: r.meter.Usage().Exhausted, Interrupted: r.state.Interrupted}
	if err := outcome.Seal(ctx, r.j, r.cfg.Blobs, res, ending); err != nil {
		return res, err
	}
	r.live(marchwarden.StageDone, 0, 0, fmt.Sprintf("%d citations, confidence %.2f", len(res.Citations), res.Confidence))
	return res, nil
}

// dropLeads takes discoveries and open questions out of the draft that are grounded in nothing the run met, or of no
// known kind, and counts them. One bad item must not cost the result.
func (r *run) dropLeads(d *reason.Draft) int {
	met := map[string]bool{"": true} // a lead need not name a source
	for _, s := range r.state.Searches {
		for _, h := range s.Hits {
			met[h.Locator] = true
		}
	}
	for _, src := range r.state.Evidence.Sources() {
		met[src.Page.Locator] = true
	}
	before := len(d.Discoveries) + len(d.OpenQuestions)
	d.Discoveries = slices.DeleteFunc(slices.Clone(d.Discoveries), func(e marchwarden.DiscoveryEvent) bool {
		return !e.Type.Known() || !met[e.SourceLocator]
	})
	d.OpenQuestions = slices.DeleteFunc(slices.Clone(d.OpenQuestions), func(q marchwarden.OpenQuestion) bool {
		return !q.Priority.Known() || !met[q.SourceLocator]
	})
	return before - len(d.Discoveries) - len(d.OpenQuestions)
}

// The longest texts of a mind that a result carries beside its claims.
const (
	maxTopic  = 200
	maxDetail = 500
)

func (r *run) tidy(d *reason.Draft) {
	d.Gaps, d.Discoveries, d.OpenQuestions = slices.Clone(d.Gaps), slices.Clone(d.Discoveries), slices.Clone(d.OpenQuestions)
	for i := range d.Gaps {
		g := &d.Gaps[i]
		g.Topic, g.Detail = r.plain(g.Topic, maxTopic), r.plain(g.Detail, maxDetail)
	}
	for i := range d.Discoveries {
		e := &d.Discoveries[i]
		e.Query, e.Reason, e.SuggestedResearcher = r.plain(e.Query, maxTopic), r.plain(e.Reason, maxDetail), r.plain(e.SuggestedResearcher, maxTopic)
	}
	for i := range d.OpenQuestions {
		q := &d.OpenQuestions[i]
		q.Question, q.Context = r.plain(q.Question, maxTopic), r.plain(q.Context, maxDetail)
	}
}

// plain is a text from outside, or from a mind, as a result may carry it: without control characters and addresses that
// the run did not meet.
func (r *run) plain(s string, most int) string {
	s = verify.Unlink(s, func(a string) bool {
		return r.state.Offered(a) || strings.Contains(r.start.Request.Question, a) ||
			slices.ContainsFunc(r.state.Evidence.Sources(), func(src *evidence.Source) bool { return strings.Contains(src.Text, a) })
	})
	return plaintext.Line(s, most)
}

// blind reports that nothing could be looked at: there is no evidence, because every search or read failed or the caller
// stopped the run first. Whether there are sources is then unknown.
func (r *run) blind() bool {
	if len(r.state.Evidence.Sources()) > 0 {
		return false
	}
	faults := r.state.Interrupted && len(r.state.Searches) == 0
	for _, s := range r.state.Searches {
		if s.Err == nil && len(s.Hits) == 0 {
			return false // it was looked at, and there was nothing
		}
		faults = faults || s.Err != nil
	}
	for _, err := range r.state.Failed {
		faults = faults || marchwarden.CodeOf(err) != marchwarden.CodeNotFound
	}
	return faults
}

// allGaps are the gaps of the result, bounded, since they may quote what a server sent. A blind run must not say that
// there are no sources: what failed has gaps of its own.
func (r *run) allGaps(drafted []marchwarden.Gap, exhausted []string) []marchwarden.Gap {
	var gaps []marchwarden.Gap
	for _, g := range r.gaps {
		gaps = append(gaps, g.Gap)
	}
	for _, g := range append(drafted, r.filterGaps()...) {
		if !g.Category.Known() {
			g.Category = marchwarden.AccessDenied
		}
		if g.Category != marchwarden.SourceNotFound || !r.blind() {
			gaps = append(gaps, g)
		}
	}
	gaps = append(gaps, r.budgetGaps(exhausted)...)
	for i := range gaps {
		gaps[i].Topic, gaps[i].Detail = plaintext.Line(gaps[i].Topic, maxDetail), plaintext.Line(gaps[i].Detail, maxDetail)
	}
	return gaps
}

func (r *run) assemble(draft reason.Draft, g verify.Grounded) *marchwarden.Result {
	use := r.meter.Usage()
	exhausted := len(use.Exhausted) > 0
	res := &marchwarden.Result{
		Answer: g.Answer, Blocks: g.Blocks, ShortAnswer: g.ShortAnswer, Closest: g.Closest, Citations: g.Citations, Claims: g.Claims, Contradictions: g.Contradictions,
		DiscoveryEvents: draft.Discoveries, OpenQuestions: draft.OpenQuestions,
		TraceID: r.start.TraceID,
		CostMetadata: marchwarden.CostMetadata{
			TokensUsed: use.Tokens, IterationsRun: use.Iterations, BudgetExhausted: exhausted, ModelID: r.mindID(draft.By), ReasonerID: draft.By, SourcesRead: len(r.state.Evidence.Sources()), OverBudget: use.OverBudget,
			CostUSD: use.CostUSD,
		},
	}
	if draft.By != "" && r.fault != "" {
		res.Warnings = []string{outcome.Unwritten(r.start.Model, draft.By, plaintext.Line(r.fault, maxDetail))}
	}
	if r.givenUp > 0 {
		res.Warnings = append(res.Warnings, outcome.GivenUp(r.givenUp))
	}
	outcome.MarkFollow(res, r.start)
	res.Gaps = r.allGaps(slices.Concat(draft.Gaps, g.Gaps), use.Exhausted)
	confidence.Rate(res, confidence.Input{
		Sources: r.state.Evidence.Sources(), Grounded: g, Match: draft.Match, BudgetExhausted: exhausted, Now: r.start.StartedAt,
	})
	res.Normalize()
	return res
}

// mindID is who answered: the models that did, or else the one who wrote.
func (r *run) mindID(wrote string) string {
	if r.model != nil {
		if who := r.model.Answered(); len(who) > 0 {
			return strings.Join(who, "+")
		}
	}
	return cmp.Or(wrote, r.start.Mind)
}

// filterGaps says that the caller's own filter left nothing to read, and what their dates left out.
func (r *run) filterGaps() (gaps []marchwarden.Gap) {
	if c := r.start.Request.Constraints; r.outdated > 0 {
		undated := 0
		for _, src := range r.state.Evidence.Sources() {
			if src.Page.Published == "" {
				undated++
			}
		}
		gaps = append(gaps, marchwarden.Gap{Topic: fmt.Sprintf("sources from %s to %s", cmp.Or(c.Since, "any date"), cmp.Or(c.Until, "today")), Category: marchwarden.SourceNotFound,
			Detail: fmt.Sprintf("%d documents were published outside these dates and left out; %d that were read do not say when they were published", r.outdated, undated)})
	}
	if r.filter.Empty() || len(r.state.Evidence.Sources()) > 0 {
		return gaps
	}
	return append(gaps, marchwarden.Gap{Topic: "sources within " + r.filter.String(), Category: marchwarden.SourceNotFound,
		Detail: "no document that the source filter allows was found; without the filter there may be some"})
}

// budgetGaps says what the caps kept the run from doing.
func (r *run) budgetGaps(exhausted []string) []marchwarden.Gap {
	if len(exhausted) == 0 {
		return nil
	}
	topic := "the rest of: " + r.start.Request.Question
	detail := "the work ended at the " + strings.Join(exhausted, " and the ")
	if left := r.leftover; len(left) > 0 {
		const most = 5
		topic = strings.Join(left[:min(most, len(left))], "; ")
		detail += fmt.Sprintf("; %d searches or documents were left", len(left))
	}
	return []marchwarden.Gap{{Topic: topic, Category: marchwarden.BudgetExhausted, Detail: detail}}
}

// synthesize releases the held tokens and asks the reasoner for its draft. A failure is a gap, never missing sources.
func (r *run) synthesize(ctx context.Context) (reason.Draft, error) {
	r.meter.Hold(0)
	sources, passages := len(r.state.Evidence.Sources()), r.state.Evidence.Len()
	r.live(marchwarden.StageSynthesize, 0, 0, fmt.Sprintf("writing from %d sources", sources))
	if err := r.j.Note(&trace.SynthesisStart{Head: head("write from %d passages of %d sources", passages, sources), Sources: sources, Passages: passages}); err != nil {
		return reason.Draft{}, err
	}
	draft, err := r.cfg.Reasoner.Write(ctx, r.state)
	if replay.Fatal(err) {
		return reason.Draft{}, err
	}
	if err != nil { // a draft may be there all the same
		if marchwarden.CodeOf(err) == marchwarden.CodeCanceled {
			if err := r.cut("writing cut", "writing"); err != nil {
				return reason.Draft{}, err
			}
		}
		r.failed("writing the answer", err)
		if len(draft.Claims) == 0 && draft.Refusal == "" {
			draft.Refusal = "The answer could not be written; see the gaps for what failed."
		}
		if err := r.j.Note(&trace.SynthesisError{Head: head("writing failed: %v", err), Error: marchwarden.CodeOf(err)}); err != nil || len(draft.Claims) == 0 {
			return draft, err
		}
	}
	decision := fmt.Sprintf("%d claims drafted", len(draft.Claims))
	if len(draft.Claims) == 0 {
		decision = "no answer: " + draft.Refusal
	}
	return draft, r.j.Note(&trace.SynthesisComplete{Head: head("%s", decision), Claims: len(draft.Claims)})
}
