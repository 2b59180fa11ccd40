package pi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// crew is a network whose reports depend on the request alone, and on what a run
// that a request resumes had. It is safe for concurrent use.
type crew struct {
	members []dispatch.Member
	lasts   map[string]time.Duration // how long a member takes
	has     int                      // documents that each has on each question
	leads   map[string]string        // a member's report on the first question suggests another
	fails   map[string]bool
	deaf    map[string]bool // goes on although it is told to stop
	silent  bool            // does not tell which run it is

	mu     sync.Mutex // guards what follows
	runs   map[string]*crewRun
	texts  map[string][]byte
	calls  []crewCall
	hook   func(n int)
	refuse map[string]bool // trace ids that cannot be resumed
}

// crewRun is a run of a member, as its own trace would have it.
type crewRun struct {
	member, question string
	tokens, sources  int
}

type crewCall struct {
	member string
	req    marchwarden.Request
}

func (c crewCall) String() string {
	if c.req.Resume != "" {
		return c.member + " resume " + c.req.Resume
	}
	return c.member + " " + c.req.Question
}

func newCrew(names ...string) *crew {
	c := &crew{has: 4, lasts: map[string]time.Duration{}, leads: map[string]string{}, fails: map[string]bool{}, deaf: map[string]bool{},
		runs: map[string]*crewRun{}, texts: map[string][]byte{}, refuse: map[string]bool{}}
	for i, name := range names {
		c.members = append(c.members, dispatch.Member{Name: name, Scope: "matters of " + name, Trust: dispatch.Own})
		c.lasts[name] = time.Duration(10*(i+1)) * time.Millisecond
	}
	return c
}

func (c *crew) Members() []dispatch.Member { return c.members }

func (c *crew) Evidence(_ context.Context, _, hash string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.texts[hash]; ok {
		return b, nil
	}
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no %s", hash)
}

// idOf is the trace id of a member's run on a question.
func idOf(member, question string) marchwarden.TraceID {
	sum := sha256.Sum256([]byte(member + "\x00" + question))
	h := hex.EncodeToString(sum[:])
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("%s-%s-7%s-8%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:32]))
	if err != nil {
		panic(err)
	}
	return id
}

func (c *crew) Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	c.mu.Lock()
	c.calls = append(c.calls, crewCall{member, req})
	n, hook := len(c.calls), c.hook
	c.mu.Unlock()
	if hook != nil {
		hook(n)
	}
	run, id, err := c.open(member, req)
	if err != nil {
		return nil, err
	}
	if sink != nil && !c.silent {
		sink(marchwarden.Event{Stage: marchwarden.StagePlan, Message: "off", TraceID: id})
	}
	if c.deaf[member] {
		ctx = context.WithoutCancel(ctx)
	}
	select {
	case <-time.After(c.last(member, run.question)):
	case <-ctx.Done():
		res := c.report(member, run, 1, id)
		res.CostMetadata.BudgetExhausted = true
		return res, nil
	}
	if c.fails[member] {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "%s has a bad day", member)
	}
	return c.report(member, run, run.sources, id), nil
}

// last is how long a member takes: follow-ups are quick, so that their order is that
// of a run that nobody disturbs.
func (c *crew) last(member, question string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if question != crewQuestion {
		return c.lasts[member] / 10
	}
	return c.lasts[member]
}

// takes has a member take so long from now on.
func (c *crew) takes(member string, long time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lasts[member] = long
}

func (c *crew) open(member string, req marchwarden.Request) (crewRun, marchwarden.TraceID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := idOf(member, req.Question)
	if req.Resume == "" {
		l := req.Limits()
		c.runs[id.String()] = &crewRun{member, req.Question, l.TokenBudget, l.MaxSources}
		return *c.runs[id.String()], id, nil
	}
	run, ok := c.runs[req.Resume]
	if !ok || c.refuse[req.Resume] {
		return crewRun{}, id, marchwarden.Errorf(marchwarden.CodeNotFound, "no run %s", req.Resume)
	}
	if req.Constraints != nil {
		if n := req.Constraints.TokenBudget; n != nil {
			run.tokens += *n
		}
		if n := req.Constraints.MaxSources; n != nil {
			run.sources += *n
		}
	}
	return *run, idOf(run.member, run.question), nil
}

// report is what a member finds with so much: a document costs 400 tokens.
func (c *crew) report(member string, run crewRun, sources int, id marchwarden.TraceID) *marchwarden.Result {
	n := min(sources, c.has, (run.tokens-200)/400)
	var docs []doc
	c.mu.Lock()
	for i := range n {
		text := fmt.Sprintf("The answer of %s in place %d to the matter %.20q is number %d.", member, i+1, run.question, 7*i+len(member))
		c.texts[blob.Of([]byte(text)).String()] = []byte(text)
		docs = append(docs, doc{At: fmt.Sprintf("https://%s.example/%.6s/%d", member, id, i), Text: text})
	}
	c.mu.Unlock()
	res := reportOf(docs...)
	res.TraceID = id
	res.CostMetadata.TokensUsed, res.CostMetadata.BudgetExhausted = min(run.tokens, 200+400*n), n < c.has
	if n < c.has {
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: "the rest of " + run.question, Category: marchwarden.BudgetExhausted, Detail: "the work ended"})
	}
	if to := c.leads[member]; to != "" && run.question == crewQuestion {
		res.DiscoveryEvents = append(res.DiscoveryEvents, marchwarden.DiscoveryEvent{Type: marchwarden.RelatedResearch, SuggestedResearcher: to, Query: "What does " + to + " say of " + member + "?", Reason: "it was met"})
	}
	res.Normalize()
	return res
}

// forget begins the counting anew.
func (c *crew) forget() []crewCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.calls
	c.calls, c.hook = nil, nil
	return old
}

const crewQuestion = "What is the answer to the matter?"

var crewTime = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// study is a place where investigations of a crew are made and kept; its clock
// stands still.
type study struct {
	*crew
	resumetest.Place
	minds pi.Minds
	opts  pi.Options
	more  time.Duration
	newID func() marchwarden.TraceID // of runs; nil gives all the same
	said  []string
}

func newStudy(t resumetest.T, dir string, c *crew) *study {
	t.Helper()
	return &study{crew: c, Place: resumetest.Open(t, dir, func() time.Time { return crewTime }), minds: minds()}
}

func (s *study) research(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error) {
	newID := resumetest.TheID
	if s.newID != nil {
		newID = s.newID
	}
	return pi.New(pi.Config{Lab: researcher.Lab{Traces: s.Traces, Blobs: s.Blobs, Version: "test", Now: func() time.Time { return crewTime }, NewID: newID, More: s.more, Say: func(w string) { s.said = append(s.said, w) }},
		Dispatcher: s.crew, Minds: s.minds, Options: s.opts}).Research(ctx, req, nil)
}

func (s *study) ask(ctx context.Context, c marchwarden.Constraints) (*marchwarden.Result, error) {
	return s.research(ctx, marchwarden.Request{Question: crewQuestion, Constraints: &c})
}

func (s *study) resume(ctx context.Context, more *marchwarden.Constraints) (*marchwarden.Result, error) {
	return s.research(ctx, marchwarden.Request{Resume: resumetest.ID, Constraints: more})
}

// cut is a study with the first k lines of this one's trace and some of the next.
func (s *study) cut(t resumetest.T, dir string, k, torn int) *study {
	t.Helper()
	return &study{crew: s.crew, Place: s.Cut(t, dir, k, torn), minds: s.minds, opts: s.opts}
}

// whole holds a finished investigation to what every one keeps.
func (s *study) whole(t resumetest.T, res *marchwarden.Result) {
	t.Helper()
	s.Whole(t, res, func(ctx context.Context, log *trace.Log, blobs blob.Store) (want, got []byte, err error) {
		return pi.Again(ctx, log, blobs, s.minds)
	})
	if report, err := verify.Check(context.Background(), s.Blobs, res); err != nil || !report.OK() {
		t.Fatalf("the result does not stand: %s, %v", report, err)
	}
	cited := map[string]bool{}
	for _, c := range res.Citations {
		at := c.Locator + "\x00" + c.RawExcerpt
		if cited[at] {
			t.Fatalf("%s is cited twice", c.Locator)
		}
		cited[at] = true
	}
	for _, d := range res.Decisions {
		if d.Rihla > len(res.Rihlas) || d.From > len(res.Rihlas) {
			t.Fatalf("%+v is about no rihla of %d", d, len(res.Rihlas))
		}
	}
}

// rihlas are the numbers of the journeys of a log that came back, and of those that
// did not; of these, the runs that it names.
func rihlas(log *trace.Log) (done map[string]bool, open map[string]string) {
	done, open = map[string]bool{}, map[string]string{}
	asked, runs := map[int]string{}, map[int]string{}
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.Rihla:
			asked[s.Number] = s.Researcher + " " + s.Question
			open[asked[s.Number]] = ""
		case *trace.RihlaUnderWay:
			runs[s.Number] = s.TraceID.String()
			open[asked[s.Number]] = runs[s.Number]
		case *trace.RihlaComplete:
			done[asked[s.Number]] = true
			delete(open, asked[s.Number])
		}
	}
	return done, open
}

// said is what the calls were, in the order of their words.
func saidOf(calls []crewCall) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = c.String()
	}
	slices.Sort(out)
	return out
}
