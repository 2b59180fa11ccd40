package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

const (
	leastReply    = 350
	mostReply     = 3000
	replyShare    = 10    // of the budget's parts, one is for the reply, at least
	leastEvidence = 250   // with less there is nothing to write from
	mostEvidence  = 12000 // more does not make an answer better
	leanBelow     = 9000  // budgets under it get the lean schema
	repairFrame   = 60    // what the markers of a repair cost, in tokens
	mostBrief     = 3     // sentences of a brief answer
	nudge         = 10    // attempt number of a call whose reply was empty; smaller ones are the metered model's
)

// Write asks the model for claims on the packed evidence and judges them. Where
// it fails, the draft is the one of package extractive and comes with the fault.
func (r *Reasoner) Write(ctx context.Context, s *reason.State) (reason.Draft, error) {
	if s.Model == nil || s.Interrupted || s.Evidence.Len() == 0 {
		return r.standInWrite(ctx, s)
	}
	defer r.opinions.work.Wait()
	d, packed, err := r.draft(ctx, s)
	if err != nil && len(d.Claims) == 0 {
		r.failed = r.failed || marchwarden.CodeOf(err) != marchwarden.CodeExhausted
		stand, failed := r.standInWrite(ctx, s)
		if failed != nil {
			return stand, failed
		}
		return stand, marchwarden.Wrap(err, marchwarden.CodeOf(err), "the model could not write the answer, which is made of sentences of the sources instead")
	}
	err = errors.Join(err, r.judge(ctx, s, &d))
	r.finish(ctx, s, &d, packed)
	if s.Form() == marchwarden.Report {
		oppose(s, &d)
	}
	return d, err
}

// draft writes in the form that is asked for, as far as there is room for it. It may come with an error.
func (r *Reasoner) draft(ctx context.Context, s *reason.State) (reason.Draft, []evidence.Passage, error) {
	switch room := s.Meter.Room(); {
	case s.Form() == marchwarden.Report && room >= reportRoom:
		if d, packed, err := r.report(ctx, s); len(d.Claims) > 0 || marchwarden.CodeOf(err) != marchwarden.CodeMalformed {
			return d, packed, err
		}
	case s.Form() == marchwarden.Table && room >= tableRoom:
		if d, packed, err := r.table(ctx, s); err == nil && len(d.Claims) > 0 {
			return d, packed, nil
		}
	}
	d, packed, err := r.compose(ctx, s)
	if s.Form() == marchwarden.Brief {
		d.Claims = d.Claims[:min(len(d.Claims), mostBrief)]
	}
	return d, packed, err
}

// standInWrite is the draft of the reasoner without a model.
func (r *Reasoner) standInWrite(ctx context.Context, s *reason.State) (reason.Draft, error) {
	d, err := instead(ctx, r, s, r.plain.Write)
	d.By = r.plain.ID()
	return d, err
}

// compose asks for the answer, again if it is empty or cannot be read. Packed is what the model was shown.
func (r *Reasoner) compose(ctx context.Context, s *reason.State) (reason.Draft, []evidence.Passage, error) {
	reply, call, packed, err := r.askAnswer(ctx, s)
	if err != nil {
		return reason.Draft{}, nil, err
	}
	fields, ok := answerOf(reply.Text)
	cut := reply.Stop == llm.StopLength // a repair may end well and mends the form only
	if !ok {
		if reply, err = r.repair(ctx, s, reply.Text, call.MaxTokens); err != nil {
			return reason.Draft{}, nil, err
		}
		if fields, ok = answerOf(reply.Text); !ok || len(llm.List(fields["claims"])) == 0 {
			// A repair leaves out what it cannot mend; an empty one says nothing about the sources.
			return reason.Draft{}, nil, marchwarden.Errorf(marchwarden.CodeMalformed, "its reply could not be read, nor could its repair")
		}
	}
	cut = cut || reply.Stop == llm.StopLength
	d, had := draftOf(s, fields)
	if len(d.Claims) == 0 && had > 0 {
		return reason.Draft{}, nil, marchwarden.Errorf(marchwarden.CodeMalformed, "none of its %d sentences could be read", had)
	}
	if cut && len(d.Claims) == 0 {
		return reason.Draft{}, nil, marchwarden.Errorf(marchwarden.CodeTruncated, "its reply was cut at %d tokens, before a sentence was whole", call.MaxTokens)
	}
	if cut {
		s.Meter.Exhaust(budget.TokenCap(s.Limits.TokenBudget))
		d.Gaps = append(d.Gaps, marchwarden.Gap{Topic: "the end of the answer", Category: marchwarden.BudgetExhausted,
			Detail: fmt.Sprintf("the model's reply was cut at %d tokens; its whole sentences are kept", call.MaxTokens)})
	}
	return d, packed, nil
}

// askAnswer makes the call; with less evidence if it does not fit, and once more if the reply was empty.
func (r *Reasoner) askAnswer(ctx context.Context, s *reason.State) (reply llm.Reply, call llm.Call, packed []evidence.Passage, err error) {
	for _, share := range []float64{1, 0.5, 0.2} {
		if call, packed, err = r.writeCall(s, share); err != nil {
			return reply, call, packed, err
		}
		calls := []llm.Call{call}
		r.readAlong(s, calls, answerBegun)
		call = calls[0]
		if reply, err = r.ask(ctx, s, call); marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
			break
		}
	}
	if err == nil && blank(reply) {
		call.Attempt = nudge
		if spare := s.Meter.Room() - llm.Price(s.Scale, call); reply.Stop == llm.StopLength && spare > 0 {
			call.MaxTokens += min(spare, max(thinking, call.MaxTokens)) // it was thinking
		}
		reply, err = r.ask(ctx, s, call)
		switch {
		case err != nil || !blank(reply):
		case reply.Stop == llm.StopLength:
			s.Meter.Exhaust(budget.TokenCap(s.Limits.TokenBudget))
			err = &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: fmt.Sprintf("it was still thinking when its reply was cut at %d tokens", call.MaxTokens), Hint: "a larger token budget leaves it more"}
		default:
			err = marchwarden.Errorf(marchwarden.CodeMalformed, "it answered with nothing, twice")
		}
	}
	return reply, call, packed, err
}

func blank(reply llm.Reply) bool {
	return strings.TrimSpace(llm.WithoutThinking(reply.Text)) == ""
}

// writeCall asks for the answer from as much evidence as there is room for beside a reply and its repair. The share
// scales the evidence down; what is left is the reply's. A room too small for any is CodeExhausted.
func (r *Reasoner) writeCall(s *reason.State, share float64) (llm.Call, []evidence.Passage, error) {
	room := s.Meter.Room()
	v := newView(s.Nonce)
	c, task := r.begin(s, "write", "")
	r.forget(&c, s, int(share)*room/2)
	c.Schema = writeSchema
	if s.Limits.TokenBudget < leanBelow {
		c.Schema = leanSchema
	}
	c.MaxTokens = min(mostReply, max(leastReply, min(s.Limits.TokenBudget/replyShare, room/5)))
	most := mostReply
	if r.thinks {
		most += thinking
		c.MaxTokens += min(thinking, room/4)
	}
	c.Input = llm.Limit(most) + task
	if s.Form() == marchwarden.Brief {
		c.Input += "Form: one to three sentences\n"
	}
	c.Input += words(s.Request.Length) + wishes(v, s.Request)
	frame := llm.EstimateText(v.Open("sources") + v.End())
	fixed := llm.Price(s.Scale, c) + llm.Scaled(s.Scale, frame)
	mend := llm.Scaled(s.Scale, llm.Estimate(prompt("repair").Call())+repairFrame+leastReply) + leastReply // a reply comes in and goes out once more
	left := room - fixed - mend
	if left < llm.Scaled(s.Scale, leastEvidence) { // better an answer that cannot be repaired than none
		left = room - fixed
	}
	if left < llm.Scaled(s.Scale, leastEvidence) {
		if r.dead(s) { // it would not have answered anyway
			return c, nil, tooFew(s)
		}
		return c, nil, exhausted(s)
	}
	tokens := int(share * float64(min(mostEvidence, llm.Unscaled(s.Scale, left))))
	p, lines := r.show(&c, s, tokens, evidence.MaxPassageChars)
	c.Input += v.Block("sources", lines)
	c.MaxTokens = min(most, c.MaxTokens+max(0, room-llm.Price(s.Scale, c)-mend))
	c.Input = llm.Limit(c.MaxTokens) + strings.TrimPrefix(c.Input, llm.Limit(most))
	return c, p.passages(), nil
}

// repair asks for a broken reply again, if there is room for that.
func (r *Reasoner) repair(ctx context.Context, s *reason.State, broken string, tokens int) (llm.Reply, error) {
	v := newView(s.Nonce)
	c := prompt("repair").Call()
	tokens = min(tokens, (llm.Unscaled(s.Scale, s.Meter.Room())-llm.Estimate(c)-repairFrame)/2)
	c.MaxTokens = tokens
	in := llm.Unscaled(s.Scale, s.Meter.Room()-c.MaxTokens) - llm.Estimate(c) - repairFrame
	if min(in, tokens) < leastEvidence {
		return llm.Reply{}, marchwarden.Errorf(marchwarden.CodeMalformed, "its reply could not be read, and the budget has no room to repair it")
	}
	words := v.Unmarked(llm.ClipBytes(llm.WithoutThinking(broken), 16*tokens))
	c.Input = v.Block("reply", []string{clipTokens(words, min(in, tokens))})
	reply, err := r.ask(ctx, s, c)
	if err != nil {
		return reply, fmt.Errorf("its reply could not be read, nor repaired: %w", err)
	}
	return reply, nil
}

// finish adds what is computed: the reason for an empty answer, the contradictions, how much was met.
func (r *Reasoner) finish(ctx context.Context, s *reason.State, d *reason.Draft, packed []evidence.Passage) {
	if len(d.Claims) == 0 {
		d.Refusal = "The passages that were read do not answer the question; the gaps say what is missing."
		if len(d.Gaps) == 0 {
			d.Gaps = append(d.Gaps, marchwarden.Gap{Topic: llm.Clip(s.Request.Question, topicChars), Category: marchwarden.SourceNotFound,
				Detail: fmt.Sprintf("the model found no answer in %d passages of %d sources", len(packed), len(s.Evidence.Sources()))})
		}
	}
	d.Contradictions = quarrels(ctx, s, d.Claims, packed)
	for _, c := range d.Contradictions[:min(len(d.Contradictions), mostQuarrels)] {
		d.Discoveries = append(d.Discoveries, marchwarden.DiscoveryEvent{Type: marchwarden.ContradictionDetected,
			Query: c.Subject + " " + strings.TrimPrefix(c.Attribute, "number of "), Reason: c.Detail, SourceLocator: c.A.Locator})
	}
	d.Match = matchOf(s, d.Claims, d.Gaps)
}

// quarrels are the contradictions that touch the answer: a side is cited, or bears on most of the question.
func quarrels(ctx context.Context, s *reason.State, claims []reason.Claim, packed []evidence.Passage) []marchwarden.Contradiction {
	var among, used []evidence.ID
	for _, c := range claims {
		used = append(used, c.Passages...)
	}
	for _, ps := range packed {
		among = append(among, ps.ID)
	}
	stated := cited(s.Evidence, used)
	touches := func(side marchwarden.Side) bool {
		return slices.ContainsFunc(stated, func(x verify.Excerpt) bool { return strings.Contains(x.Text, side.RawExcerpt) }) ||
			share(s.Request.Question, lexicon.TermSet(side.RawExcerpt)) >= 0.5
	}
	return slices.DeleteFunc(verify.Contradictions(ctx, s.Reader, s.Request.Question, s.Evidence, slices.Concat(used, among)), func(c marchwarden.Contradiction) bool {
		return !touches(c.A) && !touches(c.B)
	})
}
