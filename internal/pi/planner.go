package pi

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Planner is the part of an investigator's mind that decides whom to ask what. It
// proposes; the investigator caps, refuses what is private or was asked before,
// and records. Implementations are deterministic given what they are told and the
// model calls they make.
type Planner interface {
	// ID names the planner and its version, such as "derive/1".
	ID() string
	// Plan proposes the first rihlas, the most important first. It sees the
	// question and the members, nothing that was found. A plan may come with an
	// error: what failed, and how to go on all the same.
	Plan(ctx context.Context, b *Brief) ([]Sending, error)
}

// Brief is what a planner knows. A planner changes nothing in it.
type Brief struct {
	Request marchwarden.Request
	Limits  marchwarden.Limits
	Now     time.Time
	Members []dispatch.Member
	Untold  []string     // names members whose Scope no model may be shown: it tells of sources of the user's own
	Most    int          // how many rihlas there may be
	Model   *llm.Metered // nil for a planner without one
	Meter   *budget.Meter
	Nonce   string
}

// Sending is one rihla that is proposed.
type Sending struct {
	Researcher string // a member's name
	Question   string // 1 to 500 characters, whole: the researcher knows nothing else
	Reason     string // a few words for people
}

func (r *run) brief() *Brief {
	b := &Brief{
		Request: r.start.Request, Limits: r.meter.Limits(), Now: r.start.StartedAt, Members: r.inv.Members,
		Most: r.inv.MaxRihlas, Model: r.model, Meter: r.meter, Nonce: llm.Nonce(r.start.TraceID),
	}
	for _, m := range r.inv.Members {
		if r.secret(m.Name) {
			b.Untold = append(b.Untold, m.Name)
		}
	}
	return b
}

// understand completes the question from the conversation that it follows.
func (r *run) understand(ctx context.Context) error {
	if r.start.Talk == nil {
		return nil
	}
	thinking, done := replay.Limited(ctx, time.Duration(planShare*float64(r.start.Wall)))
	defer done()
	understood, err := outcome.Understand(replay.Shield(thinking), r.start, r.model)
	if replay.Fatal(err) {
		return err
	}
	if err != nil {
		r.failed("completing the question", err)
	}
	r.start = understood
	step := &trace.Message{Head: trace.Head{Decision: "understood as: " + r.start.Request.Question}}
	r.live(marchwarden.StagePlan, step.Decision)
	return r.j.Note(step)
}

// plan asks the planner for the first rihlas. What cannot be is left out; if nothing is left, every member is asked the
// question itself.
func (r *run) plan(ctx context.Context) error {
	r.live(marchwarden.StagePlan, "planning")
	thinking, done := replay.Limited(ctx, time.Duration(planShare*float64(r.start.Wall)))
	defer done()
	proposed, err := r.planned(replay.Shield(thinking))
	if replay.Fatal(err) {
		return err
	}
	if err != nil && marchwarden.CodeOf(err) != marchwarden.CodeExhausted { // a small budget is no fault
		r.failed("planning", err)
	}
	question := r.start.Request.Question
	r.public = append(r.public, question)
	r.propose(proposed)
	if len(r.waiting) == 0 {
		for _, m := range r.inv.Members {
			r.propose([]Sending{{m.Name, question, "the question itself"}})
		}
	}
	step := &trace.Plan{Head: trace.Head{Decision: "begin with " + lexicon.Counted(len(r.waiting), "rihla", "rihlas")}}
	if len(r.waiting) == 0 {
		step.Decision = "there is nobody to ask"
		r.gaps = append(r.gaps, marchwarden.Gap{Topic: question, Category: marchwarden.ScopeExceeded, Detail: "there is no researcher in this network"})
	}
	for _, m := range r.inv.Members { // those for whom the cap on rihlas left no place
		if len(r.waiting) >= r.inv.MaxRihlas && !slices.ContainsFunc(r.waiting, func(it *item) bool { return it.Researcher == m.Name }) {
			r.gaps = append(r.gaps, marchwarden.Gap{Topic: "researcher " + m.Name, Category: marchwarden.BudgetExhausted,
				Detail: fmt.Sprintf("it was not asked: there are %d rihlas at most (--max-rihlas allows more)", r.inv.MaxRihlas)})
		}
	}
	for _, it := range r.waiting {
		step.Rihlas = append(step.Rihlas, trace.Sending(it.Sending))
	}
	r.live(marchwarden.StagePlan, "begin with "+lexicon.Counted(len(r.waiting), "question", "questions"))
	return r.j.Note(step)
}

// failed is the gap of a failure of the investigator's own mind.
func (r *run) failed(topic string, err error) {
	gap := marchwarden.GapFor(topic, err)
	r.gaps = append(r.gaps, gap)
	if r.model != nil && r.fault == "" && !r.interrupted && marchwarden.CodeOf(err) != marchwarden.CodeExhausted {
		r.fault = gap.Detail
	}
}

// planned asks the planner, whose panics are failures.
func (r *run) planned(ctx context.Context) (sendings []Sending, err error) {
	defer panics.Caught(&err, "the planner")
	return r.planner.Plan(ctx, r.brief())
}

// propose takes over what a planner wants for a start.
func (b *book) propose(sendings []Sending) {
	for _, s := range sendings {
		s.Question, s.Reason = asQuestion(s.Question), plaintext.Line(s.Reason, maxDetail)
		_, known := b.members[s.Researcher]
		_, repeat := b.asked[key(s.Researcher, s.Question)]
		if !known || repeat || s.Question == "" || len(b.waiting) >= b.inv.MaxRihlas {
			continue
		}
		b.asked[key(s.Researcher, s.Question)] = len(b.waiting) + 1
		b.public = append(b.public, s.Question)
		b.push(&item{Sending: s, priority: planPriority, about: -1})
	}
}

// asQuestion is a text on one line that a request may ask, cut only if it is too long.
func asQuestion(s string) string {
	if line := plaintext.Line(s, marchwarden.MaxQuestionChars); utf8.RuneCountInString(line) <= marchwarden.MaxQuestionChars {
		return line
	}
	return plaintext.Line(s, marchwarden.MaxQuestionChars-1)
}

// extend goes past an end of the gathering, if the investigation did: with what was added to its limits it sends what it
// had left out, and resumes the rihlas that were not done. It reports false at the last end.
func (b *book) extend() (bool, error) {
	if b.past == len(b.start.Extended) {
		return false, nil
	}
	e := b.start.Extended[b.past]
	b.past++
	b.j.Past(b.past)
	b.meter.Extend(e.Limits(), e.Wall, e.Spent, budget.Dollars(e.SpentUSD))
	b.interrupted, b.stopped, b.compared = false, false, false

	left := b.dropped
	b.dropped = nil
	for _, it := range left {
		b.asked[key(it.Researcher, it.Question)] = len(b.journeys) + len(b.waiting) + 1
		if it.about >= 0 {
			said := &b.decisions[it.about]
			said.Action, said.Reason = marchwarden.Dispatched, it.Reason
			if err := b.tell(*said); err != nil {
				return false, err
			}
		}
		b.push(it)
	}
	for _, jr := range slices.Clone(b.journeys) {
		if !b.unfinished(jr) {
			continue
		}
		stopped := !jr.lost && jr.res == nil // it came back when the caller left, with nothing
		if jr.lost || stopped {              // what it read is not known, and is read again
			b.meter.ReturnSources(jr.sources)
			jr.sources = 0
		}
		if stopped {
			jr.reserved.Settle(0)
		}
		from := jr
		for from.res == nil && from.goesOn != nil { // one that failed to go on leaves the report before it
			from = from.goesOn
		}
		jr.followed = true
		b.extra++
		s := Sending{jr.Researcher, jr.Question, fmt.Sprintf("rihla %d had ended before it was done", jr.number)}
		b.push(&item{Sending: s, priority: jr.priority, parent: jr.number, depth: jr.depth, about: -1, goesOn: from})
	}
	return true, nil
}

// unfinished reports whether a journey ended at a cap or with the caller's patience, and no rihla was sent after it.
func (b *book) unfinished(jr *journey) bool {
	switch {
	case jr.followed || jr.replaced || b.sentAgain(jr):
		return false
	case jr.lost:
		return true
	case jr.res == nil:
		return jr.goesOn != nil || marchwarden.CodeOf(jr.err) == marchwarden.CodeCanceled
	}
	return jr.res.CostMetadata.BudgetExhausted
}

// continues reports whether a journey can resume as the same run: one of this program's that told which it was.
func (b *book) continues(jr *journey) bool {
	return jr != nil && jr.res != nil && jr.res.TraceID.Valid() && b.own(jr.Researcher)
}

// replace takes a report in the place of the one that it resumes; without one, the earlier stands.
func (f *findings) replace(jr *journey) {
	was := jr.goesOn
	if was == nil || jr.res == nil {
		return
	}
	was.replaced, was.gaps, was.admitted = true, nil, 0
	f.cited = slices.DeleteFunc(f.cited, func(a admission) bool { return a.journey == was.number })
	for i := range f.decisions {
		if f.decisions[i].Rihla == was.number {
			f.decisions[i].Rihla = jr.number
		}
	}
}

// forsake leaves what was set aside for a rihla that broke off: it is neither given to another nor counted as used.
func (b *book) forsake(jr *journey) {
	if b.start.Model != "" {
		b.meter.Unpriced()
	}
}

// sourcesRead is how many documents were read. What a rihla that broke off had of them is not counted.
func (b *book) sourcesRead() int {
	n := b.meter.Usage().Sources
	for _, jr := range b.journeys {
		if !jr.unasked && jr.res == nil {
			n -= jr.sources
		}
	}
	return n
}

// spent is what a rihla used. A stranger cannot charge more tokens than it was given; what its models cost is not paid
// here, and unknown. So is what one of ours does not say, which then is all that it had. The meter knows of what is unknown.
func (b *book) spent(jr *journey) (tokens int, money budget.Money, read int) {
	if jr.unasked {
		return 0, 0, 0
	}
	priced := func(jr *journey) budget.Money {
		if usd := jr.res.CostMetadata.CostUSD; usd != nil {
			return max(0, budget.Dollars(*usd))
		}
		return jr.money
	}
	cost, own := jr.res.CostMetadata, b.own(jr.Researcher)
	tokens, money, read = cost.TokensUsed, priced(jr), cost.SourcesRead
	if !own {
		tokens, money = min(tokens, jr.grant), 0
	}
	if own && cost.CostUSD == nil || !own && cost.TokensUsed > 0 {
		b.meter.Unpriced()
	}
	if was := jr.goesOn; b.continues(was) { // it reports for both
		tokens, read = max(0, tokens-was.res.CostMetadata.TokensUsed), read-was.res.CostMetadata.SourcesRead
		if cost.CostUSD != nil {
			money = max(0, money-priced(was))
		}
	}
	return tokens, money, max(0, read)
}

// inFull is an open question as it can be asked by itself: a part of its rihla's question names its subject.
func (b *book) inFull(n notice) string {
	for _, p := range lexicon.ReadQuestion(n.from.Question, "").Parts {
		if lexicon.Plain(p.Label) == lexicon.Plain(n.topic) {
			return p.Question()
		}
	}
	return n.topic
}
