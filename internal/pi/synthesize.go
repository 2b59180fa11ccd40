package pi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// synthesize makes one draft of all reports. If one rihla brought everything, its claims are the answer: writing it again
// could only lose. Otherwise the writer writes from all evidence; where it cannot, the claims of the rihlas stand.
func (r *run) synthesize(ctx context.Context) (reason.Draft, error) {
	r.meter.Hold(0)
	r.inOrder()
	brought := r.brought()
	sources, passages := len(r.set.Sources()), r.set.Len()
	if !r.inv.PlanOnly {
		r.live(marchwarden.StageSynthesize, "writing from "+lexicon.Counted(sources, "source", "sources"))
	}
	if err := r.j.Note(&trace.SynthesisStart{Head: trace.Head{Decision: "write from " + lexicon.Counted(sources, "source", "sources") + " of " + lexicon.Counted(len(brought), "rihla", "rihlas")}, Sources: sources, Passages: passages}); err != nil {
		return reason.Draft{}, err
	}
	var draft reason.Draft
	switch {
	case r.inv.PlanOnly:
		draft.Refusal = "Only the plan was asked for; nobody was sent."
	case len(brought) == 0:
		draft.Refusal = r.refusal()
	default:
		var err error
		if draft, err = r.compose(ctx, brought); err != nil {
			return reason.Draft{}, err
		}
	}
	if !r.inv.PlanOnly {
		if err := r.inShort(ctx, &draft); err != nil {
			return reason.Draft{}, err
		}
	}
	draft.Contradictions = r.contradictions(draft.Contradictions)
	decision := fmt.Sprintf("%d claims drafted", len(draft.Claims))
	if len(draft.Claims) == 0 {
		decision = "no answer"
	}
	return draft, r.j.Note(&trace.SynthesisComplete{Head: trace.Head{Decision: decision}, Claims: len(draft.Claims)})
}

// refusal is what is said where nothing was brought, by the one researcher of ours that was asked, or of all.
func (b *book) refusal() string {
	if len(b.journeys) == 1 && b.journeys[0].res != nil && b.journeys[0].res.Refused() && b.own(b.journeys[0].Researcher) {
		return b.journeys[0].res.Answer
	}
	if how := b.unheard(); len(how) > 0 {
		return strings.Join(how, ", ") + ", and no other researcher brought evidence, so the question is not answered; the gaps say why."
	}
	return "No researcher brought evidence, so the question is not answered; the gaps say why."
}

func (r *run) compose(ctx context.Context, brought []*journey) (reason.Draft, error) {
	if len(brought) == 1 && !r.composes() {
		if draft := r.adopt(brought); len(draft.Claims) > 0 {
			return draft, nil
		}
	}
	written, err := r.write(ctx)
	if err != nil {
		return written, err
	}
	if len(written.Claims) > 0 && !r.starved {
		return r.completed(written, brought), nil
	}
	draft := r.adopt(brought)
	if r.starved && len(draft.Claims) == 0 {
		return written, nil
	}
	r.wrote = r.wrote && !r.starved
	draft.Gaps, draft.Closest = append(draft.Gaps, written.Gaps...), written.Closest
	if len(draft.Claims)+len(draft.Gaps) == 0 {
		draft.Gaps = []marchwarden.Gap{{Topic: r.start.Request.Question, Category: marchwarden.SourceNotFound,
			Detail: fmt.Sprintf("%d documents were brought, and nothing in them answers the question", len(r.set.Sources()))}}
	}
	return draft, nil
}

// completed adds what the writer passed over: the first claim of each rihla of the plan that was sent for a part, or of
// whose evidence nothing is said; and what external researchers answered to the whole.
func (f *findings) completed(d reason.Draft, brought []*journey) reason.Draft {
	said := map[string]bool{}
	for _, c := range d.Claims {
		said[flatten(c.Text)] = true
	}
	for _, jr := range brought {
		if !f.own(jr.Researcher) && f.asksAll(jr) {
			var heard []reason.Claim
			for i, c := range f.unsaid(d, jr) {
				c.Paragraph = i == 0
				said[flatten(c.Text)], heard = true, append(heard, c)
			}
			below(&d, jr, heard)
			continue
		}
		if jr.depth > 0 || (f.asksAll(jr) || d.Blocks != nil) && f.saysOf(d, jr) {
			continue
		}
		part := f.adopt([]*journey{jr}).Claims
		if len(part) > 0 && !said[flatten(part[0].Text)] {
			said[flatten(part[0].Text)] = true
			part[0].Paragraph = true
			below(&d, jr, part[:1])
		}
	}
	return d
}

// below adds claims of a journey to a draft; in one that has sections, as one of its own.
func below(d *reason.Draft, jr *journey, claims []reason.Claim) {
	part := reason.Draft{Claims: claims}
	if d.Blocks != nil && len(claims) > 0 {
		part.Blocks = append([]reason.Block{{Type: marchwarden.Heading, Level: 2, Text: jr.Question, Asks: jr.Question}}, reason.Paragraphs(claims)...)
	}
	d.Join(part)
}

// saysOf reports whether a draft says something of what a journey brought.
func (f *findings) saysOf(d reason.Draft, jr *journey) bool {
	return slices.ContainsFunc(d.Claims, func(c reason.Claim) bool {
		return slices.ContainsFunc(c.Passages, func(id evidence.ID) bool {
			src, _, ok := f.set.Passage(id)
			return ok && slices.ContainsFunc(f.cited, func(a admission) bool { return a.journey == jr.number && a.source == src.N })
		})
	})
}

// brought are the journeys that brought evidence, in their order.
func (b *book) brought() []*journey {
	var out []*journey
	for _, jr := range b.journeys {
		if jr.admitted > 0 {
			out = append(out, jr)
		}
	}
	return out
}

// write asks the writer. A model that was merely found is not shown what is private: then the writer without one writes.
func (r *run) write(ctx context.Context) (reason.Draft, error) {
	st := &reason.State{
		Request: r.start.Request, Limits: r.meter.Limits(), Now: r.start.StartedAt, Iteration: 1, Evidence: r.set,
		Asked: map[string]bool{}, Failed: map[string]error{}, Meter: r.meter, Vectors: r.embedder, Nonce: llm.Nonce(r.start.TraceID), Interrupted: r.interrupted,
		Questions: r.questions(),
		Drafted:   func(claims []reason.Claim) { r.j.Live(reason.Drafting(r.start.TraceID, claims)) },
	}
	var err error
	if st.Reader, err = reader.Of(r.start); err != nil {
		return reason.Draft{}, err
	}
	writer := r.plain
	private := func(a admission) bool { return r.private(r.journeys[a.journey-1].Researcher) }
	if r.model != nil && (r.inv.ModelSeesPrivate || !slices.ContainsFunc(r.cited, private)) {
		writer, st.Model, st.Scale, st.Paid = r.writer, r.model, r.model.Scale, r.model.Paid
	}
	draft, err := writer.Write(ctx, st)
	if replay.Fatal(err) {
		return reason.Draft{}, err
	}
	if err != nil { // a draft may be there all the same
		r.unwritten = marchwarden.CodeOf(err) == marchwarden.CodeCanceled
		r.starved = marchwarden.CodeOf(err) == marchwarden.CodeExhausted
		r.failed("writing the answer", err)
		if err := r.j.Note(&trace.SynthesisError{Head: trace.Head{Decision: fmt.Sprintf("writing failed: %v", err)}, Error: marchwarden.CodeOf(err)}); err != nil {
			return reason.Draft{}, err
		}
	}
	r.wrote, r.by = len(draft.Claims) > 0, draft.By
	if r.model != nil && writer == r.plain {
		r.by = r.plain.ID()
	}
	for i := range draft.Claims {
		if r.unseen(draft.Claims[i].Passages) {
			draft.Claims[i].Support = marchwarden.Unchecked
		}
	}
	// What was met on the way is what the researchers reported.
	draft.Discoveries, draft.OpenQuestions = nil, nil
	return draft, nil
}

// unseen reports whether only a reporter has seen the passages.
func (f *findings) unseen(ids []evidence.ID) bool {
	return !slices.ContainsFunc(ids, func(id evidence.ID) bool {
		src, _, ok := f.set.Passage(id)
		return ok && !src.Page.Unchecked
	})
}

// adopt makes a draft of the claims of journeys, each sentence once.
func (f *findings) adopt(journeys []*journey) reason.Draft {
	var d reason.Draft
	said := map[string]bool{}
	if len(journeys) == 1 && !f.set.Earlier {
		f.adoptBlocks(journeys[0], &d, said)
	}
	for _, jr := range journeys {
		own := f.own(jr.Researcher)
		for i, c := range claimsOf(jr.res) {
			claim := f.adopted(jr, c, own)
			if len(claim.Passages) == 0 || said[flatten(c.Text)] {
				continue
			}
			said[flatten(c.Text)] = true
			claim.Paragraph = i == 0 || breaks(jr.res.Answer, c.Text)
			d.Claims = append(d.Claims, claim)
		}
		match := float64(jr.res.ConfidenceFactors.QuerySpecificityMatch) // how much of the question it says it speaks to
		if !own {
			match = min(match, 0.7)
		}
		d.Match = max(d.Match, match)
	}
	if len(d.Claims) == 0 {
		d.Refusal = "The evidence that was found does not answer the question; the gaps say what is missing."
		if len(journeys) == 1 && f.own(journeys[0].Researcher) {
			d.Refusal = journeys[0].res.Answer
		}
	}
	return d
}

// adopted is one claim of a report on the citations that stood the check. A stranger's verdict on its own sentence is
// none; the judge's counts, unless the sentence is its source's.
func (f *findings) adopted(jr *journey, c marchwarden.Claim, own bool) reason.Claim {
	out := reason.Claim{Text: c.Text, Support: c.Support, Judge: c.Judge}
	verbatim := false
	var excerpts []verify.Excerpt
	for _, a := range f.cited {
		if a.journey != jr.number || !slices.Contains(c.Citations, a.index) {
			continue
		}
		src := f.set.Sources()[a.source-1]
		out.Passages, out.Spans = append(out.Passages, passageAt(src, a.span)), append(out.Spans, a.span)
		_, holds := evidence.Locate(src.Text[a.span.Start:a.span.End], c.Text)
		verbatim = verbatim || holds && !src.Page.Unchecked
		if !src.Page.Unchecked {
			excerpts = append(excerpts, verify.Excerpt{Heading: src.Page.Title, Text: src.Text[a.span.Start:a.span.End]})
		}
	}
	switch {
	case f.unseen(out.Passages):
		out.Support = marchwarden.Unchecked
	case !own && verbatim:
		out.Support = marchwarden.Supported
	case !own:
		o, _ := verify.NewJudge(f.reader()).Judge(context.Background(), c.Text, excerpts) // not broken off, so that a rerun comes to the same
		out.Support, out.Conflict, out.Judge = o.Verdict.Wire(), o.Against(), marchwarden.JudgeLocal
	}
	return out
}

// passageAt is the passage in which a span begins, or the last one before it.
func passageAt(src *evidence.Source, span marchwarden.Span) evidence.ID {
	id := evidence.ID("")
	for _, p := range src.Passages {
		if p.Span.Start > span.Start && id != "" {
			break
		}
		id = p.ID
	}
	return id
}

// contradictions are all that were found, by the writer, across the reports and by the researchers, each once.
func (f *findings) contradictions(written []marchwarden.Contradiction) []marchwarden.Contradiction {
	all := slices.Concat(written, f.across())
	for _, jr := range f.brought() {
		all = append(all, jr.res.Contradictions[:min(len(jr.res.Contradictions), maxNotices)]...)
	}
	var out []marchwarden.Contradiction
	seen := map[string]bool{}
	for _, c := range all {
		c.A, c.B = f.side(c.A), f.side(c.B)
		c.Subject, c.Attribute, c.Detail = f.line(c.Subject, maxTopic), f.line(c.Attribute, maxTopic), f.line(c.Detail, maxDetail)
		ends := []string{c.A.RawExcerpt, c.B.RawExcerpt}
		slices.Sort(ends)
		if key := strings.Join(ends, "\x00"); !seen[key] && c.A.RawExcerpt != c.B.RawExcerpt {
			seen[key] = true
			out = append(out, c)
		}
	}
	return out
}

// side is one half of a contradiction with what is known of its source, by locator or by words.
func (f *findings) side(s marchwarden.Side) marchwarden.Side {
	at := slices.IndexFunc(f.set.Sources(), func(src *evidence.Source) bool {
		return src.Page.Locator == bare(marchwarden.Citation{Source: src.Page.Source, Locator: s.Locator}) && strings.Contains(src.Text, s.RawExcerpt)
	})
	if at < 0 {
		at = slices.IndexFunc(f.set.Sources(), func(src *evidence.Source) bool { return strings.Contains(src.Text, s.RawExcerpt) })
	}
	if at < 0 {
		return s // the gate will drop it
	}
	page := f.set.Sources()[at].Page
	s.Locator, s.Title, s.Published, s.Authority = page.Locator, page.Title, page.Published, confidence.Authority(page)
	s.Researcher = ""
	if i := slices.IndexFunc(f.cited, func(a admission) bool { return a.source == at+1 }); i >= 0 {
		s.Researcher = f.journeys[f.cited[i].journey-1].Researcher
	}
	return s
}

// wroteIt are the models that answered, or else who wrote; and who wrote in place of the model asked for.
func (r *run) wroteIt() (model, by string) {
	if b := r.brought(); len(b) == 1 && !r.wrote {
		cost := b[0].res.CostMetadata
		return plaintext.Line(cost.ModelID, maxTopic), plaintext.Line(cost.ReasonerID, maxTopic)
	}
	if r.model == nil {
		return r.start.Mind, ""
	}
	if who := r.model.Answered(); len(who) > 0 {
		return strings.Join(who, "+"), r.by
	}
	return r.plain.ID(), r.by
}

// warnings are that the model did not answer, and what the researchers of this program warn of, each once.
func (r *run) warnings(by marchwarden.CostMetadata) []string {
	var out []string
	if who := cmp.Or(by.ReasonerID, by.ModelID); r.fault != "" && (by.ReasonerID != "" || who == r.plain.ID()) {
		out = append(out, outcome.Unwritten(r.start.Model, who, plaintext.Line(r.fault, maxDetail)))
	}
	said := len(out) > 0
	for _, how := range r.unheard() {
		if len(r.brought()) > 0 {
			out = append(out, how+": this answer is from other researchers alone, and may miss the point (the gaps say why)")
		}
	}
	for _, jr := range r.journeys {
		if jr.replaced {
			continue
		}
		if errors.Is(jr.err, replay.ErrGivenUp) {
			out = append(out, jr.Researcher+": "+outcome.GivenUp(1))
		}
		if jr.res == nil || !r.own(jr.Researcher) {
			continue
		}
		for _, w := range jr.res.Warnings {
			if said && strings.HasPrefix(w, r.start.Model+outcome.DidNotWrite) {
				continue
			}
			if w = jr.Researcher + ": " + plaintext.Line(w, maxDetail); !slices.Contains(out, w) {
				out = append(out, w)
			}
		}
	}
	return out
}
