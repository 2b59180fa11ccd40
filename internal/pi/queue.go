package pi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type item struct {
	Sending
	priority int      // higher goes first, of equal ones the older
	parent   int      // number of the rihla that led to it; 0 for the plan's
	depth    int      // 0 for the plan's
	tokens   int      // at least so many are wanted; 0 for a share
	about    int      // index of the decision that it came of, or -1
	goesOn   *journey // the journey that it resumes, which had ended before it was done
	missing  string   // why it was left out
}

// push puts an item behind those that are no less urgent.
func (b *book) push(it *item) {
	at := slices.IndexFunc(b.waiting, func(o *item) bool { return o.priority < it.priority })
	if at < 0 {
		at = len(b.waiting)
	}
	b.waiting = slices.Insert(b.waiting, at, it)
	if it.parent > 0 {
		b.journeys[it.parent-1].led++
	}
}

// key makes the same question to the same researcher the same rihla, in whatever order or form its words are.
func key(researcher, question string) string {
	return researcher + "\x00" + lexicon.SameWords(question)
}

// hold splits the tokens before anything is sent: some are kept for the writing, the plan's rihlas share most of the
// rest. Nothing is kept where the researchers' own claims can be the answer: for a plan of one, and where the models of
// several would have too little to write. A sole member gets everything, what is not used comes back, and after a plan
// that cost too much its rihlas get the least.
func (r *run) hold() {
	r.overdrawn = r.model != nil && len(r.journeys) == 0 && r.meter.FreeRoom() < marchwarden.MinTokenBudget
	keep, share := int(writeShare*float64(r.meter.Limits().TokenBudget)), firstShare
	least := marchwarden.MinTokenBudget * 2
	if r.model != nil {
		least = fed * len(r.waiting)
	}
	if r.composes() {
		keep = int(reportShare * float64(r.meter.Limits().TokenBudget))
	}
	if len(r.waiting) < 2 && !r.composes() || r.meter.FreeRoom()-keep < least {
		keep = 0
	}
	switch {
	case r.inv.MaxDepth == 0, len(r.inv.Members) == 1:
		share = 1
	case len(r.waiting) < 2:
		share = soleShare
	}
	r.meter.Hold(keep)
	r.firstTokens, r.firstWeight = share*float64(r.meter.FreeRoom()), 0
	r.firstSources = r.meter.Limits().MaxSources - r.meter.Usage().Sources
	for _, it := range r.waiting {
		r.firstWeight += r.weight(it)
	}
}

// sendAll sends rihlas from the queue while there are workers and budget for them.
func (r *run) sendAll(ctx context.Context) error {
	for len(r.waiting) > 0 && r.underWay() < r.inv.Parallel {
		if r.stopped {
			return r.drop("the investigation was ending")
		}
		it := r.waiting[0]
		jr, why, err := r.grant(it)
		if err != nil || jr == nil && r.underWay() > 0 { // what those under way do not use comes back
			return err
		}
		r.waiting = r.waiting[1:]
		if jr == nil {
			r.meter.Exhaust(why.cap)
			if err := r.drop(why.words, it); err != nil {
				return err
			}
			continue
		}
		r.journeys = append(r.journeys, jr)
		jr.number = len(r.journeys)
		r.asked[key(jr.Researcher, jr.Question)] = jr.number
		if it.about >= 0 {
			r.decisions[it.about].Rihla = jr.number
		}
		if err := r.depart(ctx, jr); err != nil {
			return err
		}
	}
	return nil
}

// drop leaves rihlas out that cannot be sent any more: those given, or all that wait. Each is a gap.
func (b *book) drop(why string, items ...*item) error {
	if len(items) == 0 {
		items, b.waiting = b.waiting, nil
	}
	for _, it := range items {
		b.unask(key(it.Researcher, it.Question))
		if it.parent > 0 {
			b.journeys[it.parent-1].led--
		}
		if it.about >= 0 {
			d := &b.decisions[it.about]
			d.Action, d.Reason = marchwarden.Capped, why
			if err := b.tell(*d); err != nil {
				return err
			}
		}
		if it.goesOn != nil { // what went before says itself what is missing, and may be resumed later
			b.journeys[it.parent-1].followed = false
			b.extra--
		} else {
			it.missing = why
			b.dropped = append(b.dropped, it)
		}
	}
	return nil
}

// unask forgets a rihla that is left out; an earlier one that was the same was sent, and stays known.
func (b *book) unask(same string) {
	delete(b.asked, same)
	for _, jr := range b.journeys {
		if key(jr.Researcher, jr.Question) == same {
			b.asked[same] = jr.number
		}
	}
}

// grant gives a rihla its share of tokens and documents by its weight: the plan's rihlas of what was there for them,
// later ones of what is left. Without a journey it says why there is none.
func (b *book) grant(it *item) (*journey, shortage, error) {
	weight, all := b.weight(it), 0.0
	for _, w := range b.waiting { // it is the first of them
		all += b.weight(w)
	}
	room, left := b.meter.FreeRoom(), b.meter.Limits().MaxSources-b.meter.Usage().Sources
	tokens, sources := int(float64(room)*weight/all), int(float64(left)*weight/all)
	if b.continues(it.goesOn) {
		return b.grantMore(it, tokens, sources)
	}
	if b.overdrawn && it.depth == 0 {
		room = marchwarden.MinTokenBudget
	}
	if it.depth == 0 {
		tokens, sources = int(b.firstTokens*weight/b.firstWeight), int(float64(b.firstSources)*weight/b.firstWeight)
	}
	tokens = min(room, max(tokens, it.tokens, marchwarden.MinTokenBudget))
	spent, read := budget.TokenCap(b.meter.Limits().TokenBudget), budget.SourceCap(b.meter.Limits().MaxSources)
	switch {
	case tokens < marchwarden.MinTokenBudget:
		return nil, shortage{spent, fmt.Sprintf("%d tokens are left, and a rihla needs %d", room, marchwarden.MinTokenBudget)}, nil
	case tokens < it.tokens: // others were sent in the meantime
		return nil, shortage{spent, fmt.Sprintf("%d tokens are left, and %d would be more than it had", room, it.tokens)}, nil
	case left < 1:
		return nil, shortage{read, fmt.Sprintf("all %d documents are given away", b.meter.Limits().MaxSources)}, nil
	}
	sources = min(left, max(1, sources))
	money := b.money(tokens, room)
	reserved, err := b.meter.ReserveCost(min(tokens, b.meter.FreeRoom()), money)
	if err != nil {
		return nil, shortage{}, err
	}
	return &journey{item: *it, grant: tokens, money: money, sources: b.meter.TakeSources(sources), reserved: reserved, retry: it.tokens > 0, back: make(chan homecoming, 1)}, shortage{}, nil
}

// money is a rihla's part of the money: as large as its part of the tokens. Without a cap it is none.
func (b *book) money(tokens, room int) budget.Money {
	if b.meter.Limits().MaxCostUSD <= 0 {
		return 0
	}
	left := b.meter.MoneyRoom()
	return min(left, budget.Dollars(left.USD()*float64(tokens)/float64(max(1, room))))
}

// shortage is the cap that left no room for a rihla, and how, in words.
type shortage struct{ cap, words string }

func (b *book) weight(it *item) float64 {
	return cmp.Or(max(0, b.members[it.Researcher].Share), 1)
}

// depart sends a researcher on its journey. It comes back through r.ended.
func (r *run) depart(ctx context.Context, jr *journey) error {
	req := r.requestOf(jr)
	m, err := replay.Checkpoint(r.caller, r.j, fmt.Sprintf("sending rihla %d", jr.number), r.clock)
	if err != nil {
		return err
	}
	jr.took = m.Elapsed
	var patience time.Duration
	if wall := r.meter.Wall(); wall > 0 {
		patience = max(time.Second, time.Duration(rihlaShare*float64(wall-r.start.Counted(m.Elapsed))))
	}
	way, done := replay.Limited(ctx, patience)
	part := r.past
	// The id of its run is written down before the researcher can have done anything. Strangers choose for themselves,
	// and a run that goes on has one.
	if r.world != nil && !r.continues(jr.goesOn) && r.own(jr.Researcher) {
		if jr.id = r.began[jr.number]; !jr.id.Valid() {
			jr.id = r.world.NewID()
		}
	}
	go func() {
		defer done()
		var home homecoming
		defer func() { jr.back <- home; r.ended <- jr.number }()
		defer panics.Caught(&home.err, "a rihla")
		home.res, home.err = replay.Rihla(replay.Within(replay.Shield(way), part), r.j,
			replay.Journey{Number: jr.number, Researcher: jr.Researcher, Request: req, Reason: jr.Reason, Parent: jr.parent, TraceID: jr.id},
			func(ctx context.Context) (*marchwarden.Result, error) { return r.ask(ctx, jr, req) })
	}()
	r.liveOf(jr, marchwarden.StagePlan, "sent: "+jr.Question)
	return nil
}

// ask asks the dispatcher.
func (r *run) ask(ctx context.Context, jr *journey, req marchwarden.Request) (*marchwarden.Result, error) {
	if r.world == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeNotRecorded, "there is no %s in a rerun", jr.Researcher)
	}
	if began, ok := r.began[jr.number]; ok && replay.Retried(ctx) && r.own(jr.Researcher) {
		res, err := r.send(ctx, jr, marchwarden.Request{Question: req.Question, Resume: began.String()})
		if err == nil || ctx.Err() != nil {
			return res, err
		}
		r.liveOf(jr, marchwarden.StagePlan, "its run cannot go on, and is begun anew: "+err.Error())
	}
	return r.send(ctx, jr, req)
}

// send sends one request, and notes which run it began if it is not the one that it was told to.
func (r *run) send(ctx context.Context, jr *journey, req marchwarden.Request) (*marchwarden.Result, error) {
	var once sync.Once
	own := r.own(jr.Researcher)
	if jr.id.Valid() {
		ctx = marchwarden.WithTraceID(ctx, jr.id)
	}
	res, err := r.world.Dispatcher.Dispatch(ctx, jr.Researcher, req, func(e marchwarden.Event) {
		if own && e.TraceID.Valid() && e.TraceID != jr.id {
			once.Do(func() {
				_ = r.j.Note(&trace.RihlaUnderWay{Head: trace.Head{Decision: fmt.Sprintf("rihla %d is run %s", jr.number, e.TraceID)}, Number: jr.number, TraceID: e.TraceID}) // a journal that cannot be written says so by itself
			})
		}
		e.Rihla, e.Researcher, e.TraceID = jr.number, jr.Researcher, r.start.TraceID
		r.j.Live(e)
	})
	if errors.Is(err, dispatch.ErrNotAsked) { // an empty result beside the error records that nothing was spent
		return &marchwarden.Result{}, err
	}
	return res, err
}

// requestOf is what a researcher is told: question, context and its part of the budget; nothing that was found.
func (b *book) requestOf(jr *journey) marchwarden.Request {
	if b.continues(jr.goesOn) {
		return b.moreOf(jr)
	}
	asked, own := b.start.Request, b.own(jr.Researcher)
	req := marchwarden.Request{
		Question: jr.Question, Context: b.contextOf(jr), Depth: asked.Depth,
		Constraints: &marchwarden.Constraints{MaxIterations: new(b.stepsOf(jr)), TokenBudget: new(jr.grant), MaxSources: new(jr.sources), SourceFilter: asked.Filter().String()},
	}
	if c := asked.Constraints; c != nil {
		req.Constraints.Since, req.Constraints.Until = c.Since, c.Until
	}
	if b.meter.Limits().MaxCostUSD > 0 { // with nothing left, what costs nothing can be done
		req.Constraints.MaxCostUSD = new(max(1, jr.money).USD())
	}
	if own { // its own documents of the conversation are read first
		req.Follow = asked.Follow
	}
	if !b.hasForms() {
		return req
	}
	req.Format = marchwarden.Plain
	if b.asksAll(jr) && !b.composes() { // what it writes may be the answer
		req.Format, req.Length = asked.Format, asked.Length
		if own {
			req.Audience, req.Instructions = asked.Audience, asked.Instructions
		}
	}
	return req
}

// stepsOf is how many steps a rihla may have. One of a report has as many as its tokens are good for: a step with too few
// of them sees nothing of what was found.
func (b *book) stepsOf(jr *journey) int {
	most := b.meter.Limits().MaxIterations
	if b.composes() {
		return min(most, max(2, jr.grant/stepTokens))
	}
	return most
}

// paced reports whether a gap of a rihla is only that it took all the steps that it was given for its tokens.
func (b *book) paced(jr *journey, g marchwarden.Gap) bool {
	return b.composes() && b.own(jr.Researcher) && len(jr.res.Citations) > 0 && g.Category == marchwarden.BudgetExhausted &&
		strings.HasSuffix(g.Detail, " at the "+budget.IterationCap(b.stepsOf(jr)))
}

// composes reports whether the investigator writes the answer itself and adopts no report: a form that takes
// several passages over all of it, and a model.
func (b *book) composes() bool {
	form := b.start.Request.Form()
	return b.hasForms() && b.start.Model != "" && (form == marchwarden.Report || form == marchwarden.Table)
}

// contextOf is the context of a rihla in the user's own words; of an open question, also what they asked.
func (b *book) contextOf(jr *journey) string {
	said, asked := b.start.Request.Context, b.start.Request.Question
	if jr.about < 0 || b.decisions[jr.about].About != aboutOpenQuestion || jr.Question == asked {
		return said
	}
	return plaintext.Clip(strings.TrimSpace(said+"\nThis came up while answering: "+asked), marchwarden.MaxContextChars-1)
}

// grantMore lets a rihla resume one that had ended, with what that one had left, and so much more.
func (b *book) grantMore(it *item, tokens, sources int) (*journey, shortage, error) {
	was := it.goesOn
	room, free := b.meter.FreeRoom(), b.meter.Limits().MaxSources-b.meter.Usage().Sources
	used, paid, read := b.spent(was)
	rest, unread := max(0, was.grant-used), max(0, was.sources-read)
	if tokens = min(tokens, room-rest); tokens < marchwarden.MinTokenBudget {
		tokens = 0
	}
	sources = max(0, min(sources, free-unread))
	switch {
	case rest > room || tokens+rest == 0:
		return nil, shortage{budget.TokenCap(b.meter.Limits().TokenBudget), fmt.Sprintf("%d tokens are left", room)}, nil
	case unread > free:
		return nil, shortage{budget.SourceCap(b.meter.Limits().MaxSources), fmt.Sprintf("%d documents are left", free)}, nil
	}
	more := b.money(tokens+rest, room)
	reserved, err := b.meter.ReserveCost(tokens+rest, more)
	if err != nil {
		return nil, shortage{}, err
	}
	unpaid := max(0, was.money-paid)
	return &journey{item: *it, grant: tokens + rest, money: more, moreMoney: max(0, more-unpaid), sources: b.meter.TakeSources(sources + unread), moreTokens: tokens, moreSources: sources,
		reserved: reserved, retry: true, back: make(chan homecoming, 1)}, shortage{}, nil
}

func (b *book) moreOf(jr *journey) marchwarden.Request {
	var more marchwarden.Constraints
	if jr.moreTokens > 0 {
		more.TokenBudget = &jr.moreTokens
	}
	if jr.moreSources > 0 {
		more.MaxSources = &jr.moreSources
	}
	if jr.moreMoney > 0 {
		more.MaxCostUSD = new(jr.moreMoney.USD())
	}
	if n := b.start.Extended[b.past-1].Iterations; n > 0 {
		more.MaxIterations = &n
	}
	req := marchwarden.Request{Question: jr.Question, Resume: jr.goesOn.res.TraceID.String()}
	if more != (marchwarden.Constraints{}) {
		req.Constraints = &more
	}
	return req
}
