package pi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// The follow-up policy: what is done about each kind of thing that a rihla
// reports. This is the contract's table, and the only place that decides it. A
// rule says where a follow-up would go, or why there is none; whether there is
// room for it, whether it was asked before and whether it may be told, is decided
// for all of them in follow.
//
//	about                  first                                              else
//	source_not_found       another researcher is asked, once a question       accepted
//	access_denied          another researcher, if this one brought nothing    for a person
//	budget_exhausted       the same one again, with more                      accepted
//	contradictory_sources  another researcher, with a targeted question       for a person
//	scope_exceeded         the specialist                                     for a person
//	related_research       the suggested researcher                           an open question
//	new_source             the suggested researcher                           an open question
//	contradiction          the suggested researcher                           an open question
//	open_question          if of high priority: its specialist, or the same   an open question
var policy = map[string]rule{
	string(marchwarden.ScopeExceeded):         {80, specialist, marchwarden.Flagged, "no researcher of this network covers it"},
	string(marchwarden.ContradictorySources):  {70, arbiter, marchwarden.Flagged, "nobody else can be asked; both excerpts are given for a person to compare"},
	string(marchwarden.ContradictionDetected): {70, suggested, marchwarden.Flagged, "no researcher of this network is suggested for it; kept as an open question"},
	aboutOpenQuestion:                         {60, answerer, marchwarden.Accepted, "kept as an open question"},
	string(marchwarden.RelatedResearch):       {50, suggested, marchwarden.Accepted, "no researcher of this network is suggested for it; kept as an open question"},
	string(marchwarden.NewSource):             {50, suggested, marchwarden.Accepted, "no researcher of this network is suggested for it; kept as an open question"},
	string(marchwarden.SourceNotFound):        {40, elsewhere, marchwarden.Accepted, "there is nobody else to ask"},
	string(marchwarden.AccessDenied):          {40, instead, marchwarden.Flagged, "nobody else was there to take it over; a person has to see why"},
	string(marchwarden.BudgetExhausted):       {30, again, marchwarden.Accepted, "what it brought is enough, or there is no more to give"},
}

// The priorities of what no report led to, beside those in the table.
const (
	planPriority   = 100
	secondPriority = 90
)

// The Abouts of decisions on what is no gap and no discovery: an open question, and a second opinion, which bears the
// name of the hops that earlier versions followed.
const (
	aboutOpenQuestion = "open_question"
	aboutNextHop      = "next_hop"
)

type rule struct {
	priority int
	target   func(b *book, n notice) (s Sending, tokens int) // whom to ask what; no researcher if there is no one to ask
	action   marchwarden.Action                              // when there is no one to ask
	why      string                                          // then
}

type notice struct {
	about    string
	topic    string
	detail   string
	suggests string   // a researcher
	parties  []string // who disagree, when it is more than one
	from     *journey
}

// notices are what a report asks for attention for, bounded: gaps, discoveries, open questions of high priority.
func (f *findings) notices(jr *journey) []notice {
	var out []notice
	for _, g := range jr.gaps {
		out = append(out, notice{about: string(g.Category), topic: g.Topic, detail: g.Detail, from: jr})
	}
	quarrel := slices.ContainsFunc(jr.gaps, func(g marchwarden.Gap) bool { return g.Category == marchwarden.ContradictorySources })
	if jr.res != nil {
		for _, d := range jr.res.DiscoveryEvents {
			if quarrel && d.Type == marchwarden.ContradictionDetected && d.SuggestedResearcher == "" {
				continue // the gap says the same, and more
			}
			out = append(out, notice{about: string(d.Type), topic: f.said(jr, d.Query, maxTopic), detail: d.Reason, suggests: d.SuggestedResearcher, from: jr})
		}
		for _, q := range jr.res.OpenQuestions {
			if q.Priority == marchwarden.High {
				out = append(out, notice{about: aboutOpenQuestion, topic: q.Question, detail: q.Context, from: jr})
			}
		}
	}
	return out[:min(len(out), maxNotices)]
}

// follow decides on things that were reported. Each decision is recorded with its reason.
func (b *book) follow(notices ...notice) error {
	for _, n := range notices {
		known, ok := policy[n.about]
		if !ok {
			continue // of no kind that there is: it stays in the report
		}
		d := marchwarden.Decision{About: n.about, Topic: plaintext.Line(n.topic, maxTopic), From: n.from.number, Action: known.action, Reason: known.why}
		s, tokens := known.target(b, n)
		if err := b.decide(d, n.from, &item{Sending: s, priority: known.priority, tokens: tokens}); err != nil {
			return err
		}
	}
	return nil
}

// decide records a decision about what a rihla reported and, if there is a question to send, whether it is sent.
func (b *book) decide(d marchwarden.Decision, from *journey, it *item) error {
	if it.Researcher != "" && it.Question != "" {
		it.parent, it.depth, it.about = from.number, from.depth+1, len(b.decisions)
		if d.Action, d.Reason = b.judge(it, from); d.Action == marchwarden.Dispatched {
			b.push(it)
		}
	}
	b.decisions = append(b.decisions, d)
	return b.tell(d)
}

// judge says whether a follow-up goes ahead: not twice, not beyond the caps, not if it tells what is private.
func (b *book) judge(it *item, from *journey) (marchwarden.Action, string) {
	same := key(it.Researcher, it.Question)
	before, repeat := b.asked[same]
	switch {
	case repeat && it.tokens == 0:
		if before > len(b.journeys) || key(it.Researcher, b.journeys[before-1].Question) != same { // it waits, and others went first
			return marchwarden.Accepted, it.Researcher + " is asked this already"
		}
		return marchwarden.Accepted, fmt.Sprintf("%s was asked this already (rihla %d)", it.Researcher, before)
	case b.stopped:
		return marchwarden.Capped, "the investigation was ending"
	case it.depth > b.inv.MaxDepth:
		return marchwarden.Capped, fmt.Sprintf("follow-ups go %d deep at most", b.inv.MaxDepth)
	case from.led >= maxPerReport:
		return marchwarden.Capped, fmt.Sprintf("one report leads to %d rihlas at most", maxPerReport)
	case len(b.journeys)+len(b.waiting) >= b.inv.MaxRihlas+b.extra:
		return marchwarden.Capped, fmt.Sprintf("there are %d rihlas at most", b.inv.MaxRihlas)
	case !b.mayTell(from.Researcher, it.Researcher, it.Question):
		b.gaps = append(b.gaps, marchwarden.Gap{
			Topic: it.Question, Category: marchwarden.AccessDenied,
			Detail: fmt.Sprintf("%s was not asked, because that would have told it what %s found (--allow-egress %s allows it)", it.Researcher, from.Researcher, from.Researcher),
		})
		return marchwarden.Withheld, fmt.Sprintf("it would tell %s what %s found, which is private", it.Researcher, from.Researcher)
	}
	b.asked[same] = len(b.journeys) + len(b.waiting) + 1
	return marchwarden.Dispatched, it.Reason
}

// Taint. What a private member reported must not be told to another member,
// unless the user allowed it. A question is clean if it was made before anything
// was found: the user's own, and those of the plan. A question that a report led
// to is as private as the member who reported.

// mayTell reports whether a question that came of member from's report may be sent to member to: one that tells nothing
// that was found is one of those from before, to the letter. Even a part of one would tell which part.
func (b *book) mayTell(from, to, question string) bool {
	return from == to || !b.secret(from) || slices.Contains(b.public, question)
}

// private reports whether what a member says is the user's own.
func (b *book) private(member string) bool {
	m, ok := b.members[member]
	return ok && m.Private
}

// secret reports whether what a member says is kept from the others.
func (b *book) secret(member string) bool { return b.private(member) && !b.allowed(member) }

// allowed reports whether a member's findings may be told to others.
func (b *book) allowed(member string) bool { return slices.Contains(b.inv.AllowEgress, member) }

// tell writes a decision into the trace; one that came to be another is told again.
func (b *book) tell(d marchwarden.Decision) error {
	did := fmt.Sprintf("%s %q of rihla %d: %s, %s", strings.ReplaceAll(d.About, "_", " "), d.Topic, d.From, d.Action, d.Reason)
	return b.j.Note(&trace.Decision{Head: trace.Head{Decision: did}, What: d})
}

// elsewhere asks another researcher the question of the rihla, once.
func elsewhere(b *book, n notice) (Sending, int) {
	return Sending{b.onceElsewhere(n.from), n.from.Question, fmt.Sprintf("%s has nothing on %q", n.from.Researcher, plaintext.Line(n.topic, maxWord))}, 0
}

// instead asks another researcher when this one came back with nothing at all.
func instead(b *book, n notice) (Sending, int) {
	if n.from.admitted > 0 {
		return Sending{}, 0
	}
	return Sending{b.onceElsewhere(n.from), n.from.Question, n.from.Researcher + " could not look"}, 0
}

// again sends the same researcher with a larger budget, if it brought little and the investigation can pay for it.
func again(b *book, n notice) (Sending, int) {
	const enough, larger = 0.7, 1.5
	want := int(float64(n.from.grant) * larger)
	if n.from.retry || n.from.res == nil || n.from.admitted > 0 && n.from.res.Confidence >= enough || b.meter.Room() < want {
		return Sending{}, 0
	}
	n.from.retry = true
	return Sending{n.from.Researcher, n.from.Question, fmt.Sprintf("%s ran out of budget; it gets more", n.from.Researcher)}, want
}

// arbiter asks a researcher who has no part in a disagreement about its very point.
func arbiter(b *book, n notice) (Sending, int) {
	question := asQuestion("Which is right about " + n.topic + "?")
	return Sending{b.another(n.from, question, n.parties...), question, n.from.Researcher + " found sources that disagree"}, 0
}

// specialist asks the researcher whose scope speaks to the topic.
func specialist(b *book, n notice) (Sending, int) {
	return Sending{b.suited(n.topic+" "+n.detail, n.from.Researcher), asQuestion(n.topic), "outside the scope of " + n.from.Researcher}, 0
}

// suggested asks the researcher that a discovery suggests.
func suggested(b *book, n notice) (Sending, int) {
	to := b.members[n.suggests].Name
	if n.suggests == "" {
		to = b.suited(n.topic+" "+n.detail, n.from.Researcher)
	}
	return Sending{to, asQuestion(n.topic), fmt.Sprintf("%s met it: %s", n.from.Researcher, plaintext.Line(n.detail, maxWord))}, 0
}

// answerer asks the member that covers an open question, or the one who raised it.
func answerer(b *book, n notice) (Sending, int) {
	open := b.inFull(n)
	to := b.suited(open, "")
	if to == "" || !b.mayTell(n.from.Researcher, to, open) {
		to = n.from.Researcher
	}
	return Sending{to, asQuestion(open), n.from.Researcher + " left it open"}, 0
}

// onceElsewhere is another researcher for the question of a rihla, unless one was found for it before.
func (b *book) onceElsewhere(from *journey) string {
	words := flatten(from.Question)
	if b.moved[words] {
		return ""
	}
	to := b.another(from, from.Question)
	b.moved[words] = to != ""
	return to
}

// another is the first researcher of the network, general ones first, that was not asked a question yet.
func (b *book) another(from *journey, question string, not ...string) string {
	for _, m := range b.inv.Members {
		if _, done := b.asked[key(m.Name, question)]; m.Name != from.Researcher && !done && !slices.Contains(not, m.Name) {
			return m.Name
		}
	}
	return ""
}

// suited is the researcher whose name or scope shares most words with a text, one at least; in a tie the earlier.
func (b *book) suited(text, not string) string {
	words := lexicon.TermSet(text)
	best, most := "", 0
	for _, m := range b.inv.Members {
		n := 0
		for _, w := range lexicon.Terms(m.Name + " " + m.Scope) {
			if words[w] {
				n++
			}
		}
		if words[lexicon.Stem(m.Name)] {
			n += 5
		}
		if m.Name != not && n > most {
			best, most = m.Name, n
		}
	}
	return best
}

// compareReports looks for contradictions across the first reports, once. It reports whether there is more to do.
func (f *findings) compareReports() (bool, error) {
	if f.compared || f.stopped {
		return len(f.waiting) > 0, nil
	}
	f.compared = true
	f.live(marchwarden.StageCheck, "comparing the reports")
	for _, c := range f.across() {
		from, parties, several := f.reporter(c)
		if !several { // one report has both sides, and says so itself
			continue
		}
		n := notice{about: string(marchwarden.ContradictorySources), topic: c.Subject + ": " + c.Attribute, detail: c.Detail, from: from, parties: parties}
		if err := f.follow(n); err != nil {
			return false, err
		}
	}
	return len(f.waiting) > 0, nil
}

// reporter is the journey that reported the later side of a contradiction, or one whose findings are secret; parties
// are the researchers of both sides, and several says that no single rihla reported both.
func (f *findings) reporter(c marchwarden.Contradiction) (from *journey, parties []string, several bool) {
	a, b := map[int]bool{}, map[int]bool{}
	for _, ad := range f.cited {
		src, jr := f.set.Sources()[ad.source-1], f.journeys[ad.journey-1]
		switch src.Page.Locator {
		case c.A.Locator:
			a[ad.journey] = true
		case c.B.Locator:
			b[ad.journey] = true
		default:
			continue
		}
		parties = append(parties, jr.Researcher)
		if from == nil || !f.secret(from.Researcher) {
			from = jr
		}
	}
	for n := range a {
		if b[n] {
			return from, parties, false
		}
	}
	return from, parties, len(a) > 0 && len(b) > 0
}

// across are the contradictions between excerpts that different rihlas cited.
func (f *findings) across() []marchwarden.Contradiction {
	var ids []evidence.ID
	for _, a := range f.cited {
		src := f.set.Sources()[a.source-1]
		for _, p := range src.Passages {
			if p.Span.Start < a.span.End && a.span.Start < p.Span.End {
				ids = append(ids, p.ID)
			}
		}
	}
	return verify.Contradictions(context.Background(), f.reader(), f.start.Request.Question, f.set, ids)
}
