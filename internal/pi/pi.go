// Package pi is the principal investigator: it takes a question, decides which
// researchers to send on which journey (a rihla), runs them in parallel, follows
// what they report, compares their evidence and writes one answer.
//
//	planner.go     who is asked what: as a planner proposes it, and past an end that came too early
//	run.go         the investigation: arrivals, taking reports
//	queue.go       rihlas that wait, by priority; their shares; sending
//	policy.go      the table from report to action; what may be told to whom
//	evidence.go    every citation of every report, held against stored bytes
//	reports.go     claims and short answers of reports; external researchers, who are missed and heard
//	synthesize.go  one draft from all reports
//	result.go      the result
//
// It knows researchers by the contract alone and trusts none of them: what cannot
// be checked is marked, what is false is dropped and named. It reaches the world
// through a replay.Journal, and even the order in which reports come in is
// recorded: running it again on a record gives the same bytes. A failing, slow or
// hostile researcher is a gap and never loses its siblings.
package pi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	outcome "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Name is the investigator's name in traces and in costs.
const Name = "pi"

// Logic names how an investigator works, apart from its minds, and changes when that
// does: a run that another one recorded is rerun as that one worked, or not at all.
// The one before knew one form of answer; those before that are not known any more.
const (
	Logic       = "pi/5"
	logicBefore = "pi/4"
)

func known(logic string) bool { return logic == Logic || logic == logicBefore }

// hasForms reports whether a run knows forms of an answer.
func (b *book) hasForms() bool { return b.inv.Logic != logicBefore }

// Scope says in a sentence what an investigator covers.
const Scope = "everything that the researchers of its network cover: it plans, asks them in parallel, follows up, compares their evidence and writes one answer"

// Minds make the parts of an investigator that think. They are kept apart from the
// rest because a rerun needs them too. Each is made for one run; model is the id of
// the language model, or "" for none.
type Minds struct {
	Planner func(model string) Planner
	Writer  func(model string) reason.Reasoner
	Vectors func(id string) embed.Embedder // finds what made the sentence vectors of an earlier run, by its id; nil finds none
}

// Config is what an investigator works with. The caller closes what it passes in.
type Config struct {
	outcome.Lab

	Dispatcher dispatch.Dispatcher
	Minds      Minds
	Options    Options
	// Refetch gets and stores a cited document that is not handed over; nil leaves such citations unchecked.
	Refetch func(ctx context.Context, locator string) (fetch.Page, error)
}

// Options are the user's wishes; the zero value of each is a sound default.
type Options struct {
	Parallel         int      // rihlas under way at once; 0 is 4
	MaxRihlas        int      // in all; 0 goes by the depth of the request
	MaxDepth         int      // of follow-ups; 0 goes by the depth of the request, -1 is none
	AllowEgress      []string // names the members whose findings may be told to others
	ModelSeesPrivate bool     // says that the model was named for everything: it may be shown what is private
	PlanOnly         bool     // ends an investigation with its plan
}

// PI is a principal investigator. It is a researcher like those that it asks, and safe for concurrent use.
type PI struct{ cfg Config }

// New makes an investigator.
func New(cfg Config) *PI { return &PI{cfg} }

// Research investigates a question under a trace of its own.
func (p *PI) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if req.Resume != "" {
		return p.resume(ctx, req, sink)
	}
	began := p.cfg.Now()
	start, err := p.start(ctx, req, began)
	if err == nil {
		err = p.continues(ctx, start)
	}
	if err != nil {
		return nil, err
	}
	ctx = marchwarden.WithTraceID(ctx, marchwarden.TraceID{}) // it is this run's, and none of those that it asks
	return p.cfg.Run(ctx, start, sink, began, func(j replay.Journal, clock func() time.Duration) (*marchwarden.Result, error) {
		r := newRun(p.cfg.Minds, p.cfg.Blobs, j, start)
		r.clock, r.world, r.embedder = clock, &p.cfg, p.cfg.Vectors
		return r.investigate(ctx)
	})
}

// continues reads the conversation that the question follows. Where a member or the model may not be told what is the
// user's own, findings of such sources are left out.
func (p *PI) continues(ctx context.Context, start *trace.Start) error {
	if start.Request.Follow == "" {
		return nil
	}
	chain, err := outcome.Chain(p.cfg.Traces, start.Request.Follow)
	if err != nil {
		return err
	}
	inv := start.Investigation
	outside := slices.ContainsFunc(inv.Members, func(m dispatch.Member) bool { return m.OpenWorld }) || start.Model != "" && !inv.ModelSeesPrivate
	turns, err := outcome.Turns(ctx, p.cfg.Blobs, chain, func(s *trace.Start) bool { return outside && outcome.Private(s, inv.AllowEgress) })
	start.Talk = &trace.Talk{Turns: turns}
	return err
}

func (p *PI) resume(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	ctx = marchwarden.WithTraceID(ctx, marchwarden.TraceID{})
	return p.cfg.Resume(ctx, Name, req, sink, func(start *trace.Start) (outcome.Ready, error) {
		writer, planner := p.cfg.Minds.Writer(start.Model), p.cfg.Minds.Planner(start.Model)
		if err := askedBack(start); err != nil {
			return outcome.Ready{}, err
		}
		ready := outcome.Ready{Mind: writer.ID(), Version: outcome.VersionOf(writer), Planner: planner.ID()}
		if !known(start.Investigation.Logic) {
			ready.Logic = Logic
		}
		there := p.cfg.Dispatcher.Members()
		for _, m := range start.Investigation.Members {
			if !slices.ContainsFunc(there, func(o dispatch.Member) bool { return o.Name == m.Name }) {
				ready.Said = append(ready.Said, fmt.Sprintf("the researcher %s is not in the network any more", m.Name))
			}
		}
		return ready, nil
	}, func(on *outcome.Resumed, e embed.Embedder) (*marchwarden.Result, error) {
		r := newRun(p.cfg.Minds, p.cfg.Blobs, on, on.Start)
		r.clock, r.world, r.began, r.embedder = on.Clock, &p.cfg, on.UnderWay(), e
		return r.investigate(ctx)
	})
}

// start is everything that the investigation depends on besides its record.
func (p *PI) start(ctx context.Context, req marchwarden.Request, began time.Time) (*trace.Start, error) {
	start, err := p.cfg.Start(ctx, Name, req, began, gatherShare, p.cfg.Minds.Writer(llm.ID(p.cfg.Model)))
	o := p.cfg.Options
	inv := &trace.Investigation{
		Logic: Logic, AllowEgress: o.AllowEgress, PlanOnly: o.PlanOnly, ModelSeesPrivate: o.ModelSeesPrivate,
		Planner: p.cfg.Minds.Planner(start.Model).ID(),
	}
	rihlas, depth := 8, 2
	switch req.Depth {
	case marchwarden.Shallow:
		rihlas, depth = 4, 1
	case marchwarden.Deep:
		rihlas, depth = 16, 3
	}
	inv.Parallel, inv.MaxRihlas = cmp.Or(max(0, o.Parallel), 4), cmp.Or(max(0, o.MaxRihlas), rihlas)
	inv.MaxDepth = min(max(0, cmp.Or(o.MaxDepth, depth)), req.Limits().MaxIterations-1)
	for _, m := range p.cfg.Dispatcher.Members() {
		m.Transport = "" // where it runs decides nothing, and a command line may hold more than the user wants kept
		inv.Members = append(inv.Members, m)
	}
	start.Decision = fmt.Sprintf("investigate %q with %s", req.Question, lexicon.Counted(len(inv.Members), "researcher", "researchers"))
	start.Investigation = inv
	return start, err
}

// Again investigates once more on a record: no member is asked and nothing fetched.
// Its want and got are equal to the byte unless the program or the record changed.
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, minds Minds) (want, got []byte, err error) {
	defer panics.Caught(&err, "a rerun")
	var e embed.Embedder
	start, want, err := outcome.Again(ctx, log, blobs, func(start *trace.Start) (err error) {
		inv := start.Investigation
		if inv == nil {
			return marchwarden.Errorf(marchwarden.CodeUnsupported, "run %s is no investigation", start.TraceID)
		}
		logic := inv.Logic
		if known(logic) { // it still knows how it worked before
			logic = Logic
		}
		if err := cmp.Or(outcome.SameMind(start, minds.Writer(start.Model)), outcome.MadeBy(inv.Planner, minds.Planner(start.Model).ID()),
			outcome.MadeBy(cmp.Or(logic, "an earlier investigator"), Logic), askedBack(start), hopped(log)); err != nil {
			return err
		}
		e, err = reader.VectorsOf(start, minds.Vectors)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	again := *start
	r := newRun(minds, blob.NamesOnly(blobs), replay.Rerun(log, blobs), &again)
	r.embedder = e
	res, err := r.investigate(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("rerun %s: %w", start.TraceID, err)
	}
	got, err = marchwarden.EncodeResult(res)
	return want, got, err
}

// askedBack refuses a run whose model could ask the user questions before it planned.
func askedBack(start *trace.Start) error {
	if !start.Investigation.Clarify {
		return nil
	}
	return &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: fmt.Sprintf("the model of run %s could ask back before it planned, which this program does not do any more", start.TraceID),
		Hint: "ask the question again, and say with --context what you know"}
}

// hopped refuses a run in which a report led to the next hop of a chain. Its question is another than that of the report;
// a second opinion, which is asked for under the same name, has the same.
func hopped(log *trace.Log) error {
	asked := map[int]string{}
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Rihla:
			asked[s.Number] = plaintext.Line(s.Question, maxTopic)
		case *trace.Decision:
			if s.What.About == aboutNextHop && s.What.Topic != asked[s.What.From] {
				return marchwarden.Errorf(marchwarden.CodeUnsupported, "the run followed names in its reports to a next hop, which this program does not do any more")
			}
		}
	}
	return nil
}

// reader is that of the run, or nil: where it is gone, the writer says so.
func (f *findings) reader() reader.Reader {
	read, err := reader.Of(f.start)
	if err != nil {
		return nil
	}
	return read
}

// What calls are at least: how many a rihla makes, to plan, write and judge; how many more the investigator makes for
// several rihlas, to write and judge; and the tokens of one, of which so many are input.
const (
	callsOfRihla = 3
	callsOfPI    = 2
	leastCall    = 1000
	leastInput   = 800
)

// Forecast says what an investigation would come to that sends the rihlas of its plan: at least, if all goes straight,
// and at most, by its caps. For people.
func Forecast(start *trace.Start, rihlas int) string {
	if start.Investigation == nil || rihlas == 0 {
		return ""
	}
	if start.Model == "" {
		return "no model, and no cost"
	}
	limits := start.LimitsNow()
	low := callsOfRihla * rihlas
	if rihlas > 1 {
		low += callsOfPI
	}
	most := max(rihlas, start.Investigation.MaxRihlas)*(limits.MaxIterations+callsOfRihla) + callsOfPI
	low = min(low, max(1, limits.TokenBudget/leastCall))
	high := max(low, min(most, limits.TokenBudget/(leastCall/2)))
	text := fmt.Sprintf("%d to %d calls of %s, %d to %d tokens", low, high, start.Model, low*leastCall, max(low*leastCall, limits.TokenBudget))
	least, known := start.Prices.Cost(start.Model, ledger.Tokens{In: low * leastInput, Out: low * (leastCall - leastInput)})
	if !known {
		return text + "; the price is unknown: MARCHWARDEN_PRICES can set it"
	}
	dear := max(least, start.Prices.Worst(start.Vectors, 0, limits.TokenBudget), start.Prices.Worst(start.Vectors, limits.TokenBudget, 0))
	if limits.MaxCostUSD > 0 {
		least, dear = min(least, limits.MaxCostUSD), min(dear, limits.MaxCostUSD)
	}
	if dear == 0 {
		return text + ", no cost"
	}
	return text + fmt.Sprintf(", $%.4f to $%.4f", least, dear)
}
