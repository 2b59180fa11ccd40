package loop_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/fetchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// script is a reasoner that does what it is told: the plans in order, every hit
// read, and one claim for each passage.
type script struct {
	plans  [][]string
	choose func([]search.Hit) []reason.Read
	write  func(*reason.State) (reason.Draft, error)
	plan   error
	look   func(context.Context) error // called first of all, by each method
}

func (s *script) peek(ctx context.Context) error {
	if s.look == nil {
		return nil
	}
	return s.look(ctx)
}

func (*script) ID() string { return "script/1" }

func (s *script) Plan(ctx context.Context, st *reason.State) (reason.Plan, error) {
	if err := s.peek(ctx); err != nil {
		return reason.Plan{}, err
	}
	if s.plan != nil {
		return reason.Plan{}, s.plan
	}
	if st.Iteration > len(s.plans) {
		return reason.Plan{Decision: "nothing is left", Complete: true}, nil
	}
	p := reason.Plan{Decision: fmt.Sprintf("plan %d", st.Iteration)}
	for _, q := range s.plans[st.Iteration-1] {
		p.Searches = append(p.Searches, reason.Search{Query: q})
	}
	return p, nil
}

func (s *script) Choose(_ *reason.State, hits []search.Hit) []reason.Read {
	_ = s.peek(context.Background()) // it cannot fail
	if s.choose != nil {
		return s.choose(hits)
	}
	var reads []reason.Read
	for _, h := range hits {
		reads = append(reads, reason.Read{Locator: h.Locator})
	}
	return reads
}

func (s *script) Write(ctx context.Context, st *reason.State) (reason.Draft, error) {
	if err := s.peek(ctx); err != nil {
		return reason.Draft{}, err
	}
	if s.write != nil {
		return s.write(st)
	}
	d := reason.Draft{Match: 1}
	for _, p := range st.Evidence.Passages() {
		d.Claims = append(d.Claims, reason.Claim{Text: p.Text, Passages: []evidence.ID{p.ID}, Support: marchwarden.Supported})
	}
	return d, nil
}

// lab is a loop with everything around it scripted but the journal and the
// store.
type lab struct {
	engine  *searchtest.Fake
	fetcher *fetchtest.Fake
	mind    *script
	blobs   blob.Store
	traces  *trace.Dir
	req     marchwarden.Request
	wall    time.Duration
	began   time.Time
	events  []marchwarden.Event
}

const labID = "00000000-0000-7000-8000-000000000001"

func newLab(t *testing.T, docs int) *lab {
	t.Helper()
	blobs := blob.NewMem()
	l := &lab{
		engine:  &searchtest.Fake{Hits: map[string][]search.Hit{}, Errs: map[string]error{}},
		fetcher: &fetchtest.Fake{Store: blobs, Texts: map[string]string{}, Pages: map[string]fetch.Page{}, Errs: map[string]error{}, Delay: map[string]time.Duration{}},
		mind:    &script{plans: [][]string{{"peas"}}},
		blobs:   blobs,
		req:     marchwarden.Request{Question: "What do peas like?"},
		began:   time.Now(),
	}
	for i := range docs {
		locator := fmt.Sprintf("doc%d.md", i+1)
		l.engine.Hits["peas"] = append(l.engine.Hits["peas"], search.Hit{Locator: locator, Title: locator})
		l.fetcher.Texts[locator] = fmt.Sprintf("Peas of kind %d like cool soil.", i+1)
	}
	var err error
	if l.traces, err = trace.OpenDir(t.TempDir(), time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.traces.Close() })
	return l
}

func (l *lab) clock() time.Duration { return time.Since(l.began) }

func (l *lab) start() *trace.Start {
	id, _ := marchwarden.ParseTraceID(labID)
	return &trace.Start{Head: trace.Head{Decision: "test"}, Format: trace.Format, TraceID: id, Mind: "script/1", Engine: "fake",
		Request: l.req, Limits: l.req.Limits(), StartedAt: l.began.UTC(), Wall: l.wall}
}

func (l *lab) run(t *testing.T, ctx context.Context) *marchwarden.Result {
	t.Helper()
	start := l.start()
	w, err := l.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	j := replay.Record(w, l.blobs, l.clock, func(ev marchwarden.Event) { l.events = append(l.events, ev) })
	res, err := loop.New(loop.Config{Engine: l.engine, Fetcher: l.fetcher, Reasoner: l.mind, Blobs: l.blobs}).Run(ctx, j, start, l.clock)
	if err != nil {
		t.Fatal(err)
	}
	l.rerun(t, res)
	return res
}

// rerun holds every run of these tests to the third promise: the same code on
// the record gives the same bytes, with neither engine nor fetcher.
func (l *lab) rerun(t *testing.T, res *marchwarden.Result) {
	t.Helper()
	log := l.log(t)
	start, err := log.Start()
	if err != nil {
		t.Fatal(err)
	}
	again, err := loop.New(loop.Config{Reasoner: l.mind, Blobs: l.blobs}).Run(context.Background(), replay.Rerun(log, l.blobs), start, nil)
	if err != nil {
		t.Fatalf("rerun: %v", err)
	}
	want, _ := marchwarden.EncodeResult(res)
	got, _ := marchwarden.EncodeResult(again)
	if string(want) != string(got) {
		t.Errorf("the rerun differs\nran   %s\nrerun %s", want, got)
	}
}

func (l *lab) log(t *testing.T) *trace.Log {
	t.Helper()
	id, _ := marchwarden.ParseTraceID(labID)
	log, err := l.traces.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func gap(res *marchwarden.Result, c marchwarden.GapCategory) *marchwarden.Gap {
	for i := range res.Gaps {
		if res.Gaps[i].Category == c {
			return &res.Gaps[i]
		}
	}
	return nil
}

func TestRunAnswers(t *testing.T) {
	l := newLab(t, 3)
	res := l.run(t, t.Context())
	if len(res.Citations) != 3 || len(res.Gaps) != 0 || res.CostMetadata.IterationsRun != 1 || res.CostMetadata.BudgetExhausted {
		t.Errorf("result %+v", res)
	}
	if c := l.log(t).Complete(); c == nil || c.Citations != 3 {
		t.Errorf("the trace is not closed well: %+v", c)
	}
	var stages []marchwarden.Stage
	for _, ev := range l.events {
		stages = append(stages, ev.Stage)
	}
	for _, s := range []marchwarden.Stage{marchwarden.StagePlan, marchwarden.StageSearch, marchwarden.StageFetch, marchwarden.StageSynthesize, marchwarden.StageCheck, marchwarden.StageDone} {
		if !slices.Contains(stages, s) {
			t.Errorf("no progress of stage %s in %v", s, stages)
		}
	}
}

// TestFaultsBecomeGaps runs each fault at each place it can happen.
func TestFaultsBecomeGaps(t *testing.T) {
	unavailable := marchwarden.Errorf(marchwarden.CodeUnavailable, "the service is down")
	denied := marchwarden.Errorf(marchwarden.CodeDenied, "members only")
	missing := marchwarden.Errorf(marchwarden.CodeNotFound, "no such file")
	tests := []struct {
		name      string
		fault     func(*lab)
		category  marchwarden.GapCategory
		citations int
	}{
		{"search fails", func(l *lab) { l.mind.plans = [][]string{{"peas", "down"}}; l.engine.Errs["down"] = unavailable }, marchwarden.AccessDenied, 3},
		{"every search fails", func(l *lab) { l.engine.Err = unavailable; l.engine.Errs["peas"] = unavailable }, marchwarden.AccessDenied, 0},
		{"a page is denied", func(l *lab) { l.fetcher.Errs["doc2.md"] = denied }, marchwarden.AccessDenied, 2},
		{"a page is gone", func(l *lab) { l.fetcher.Errs["doc2.md"] = missing }, marchwarden.SourceNotFound, 2},
		{"a page is no text", func(l *lab) {
			l.fetcher.Pages["doc2.md"] = fetch.Page{NonText: true, MediaType: "image/png"}
		}, marchwarden.ScopeExceeded, 2},
		{"planning fails", func(l *lab) { l.mind.plan = errors.New("boom") }, marchwarden.AccessDenied, 0},
		{"writing fails", func(l *lab) {
			l.mind.write = func(*reason.State) (reason.Draft, error) { return reason.Draft{}, unavailable }
		}, marchwarden.AccessDenied, 0},
		{"an invented passage", func(l *lab) {
			l.mind.write = func(*reason.State) (reason.Draft, error) {
				return reason.Draft{Claims: []reason.Claim{{Text: "Pigs fly.", Passages: []evidence.ID{"S7.7"}}}}, nil
			}
		}, marchwarden.SourceNotFound, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLab(t, 3)
			tt.fault(l)
			res := l.run(t, t.Context())
			if gap(res, tt.category) == nil {
				t.Errorf("no gap of category %s in %+v", tt.category, res.Gaps)
			}
			if len(res.Citations) != tt.citations {
				t.Errorf("%d citations, want %d", len(res.Citations), tt.citations)
			}
			if tt.citations == 0 && res.Confidence >= 0.3 {
				t.Errorf("confidence %.2f without a citation", res.Confidence)
			}
			if strings.Contains(res.Answer, "boom") || strings.Contains(res.Answer, "down") {
				t.Errorf("an error text is sold as the answer: %q", res.Answer)
			}
		})
	}
}

func TestCapsEndTheWork(t *testing.T) {
	ptr := func(n int) *int { return &n }
	t.Run("sources", func(t *testing.T) {
		l := newLab(t, 5)
		l.req.Constraints = &marchwarden.Constraints{MaxSources: ptr(2)}
		res := l.run(t, t.Context())
		if got := l.fetcher.Fetched(); len(got) != 2 {
			t.Errorf("fetched %v, want 2", got)
		}
		wantExhausted(t, res, "2 sources", "doc3.md")
	})
	t.Run("iterations", func(t *testing.T) {
		l := newLab(t, 1)
		l.mind.plans = [][]string{{"peas"}, {"pods"}, {"soil"}}
		l.req.Constraints = &marchwarden.Constraints{MaxIterations: ptr(2)}
		res := l.run(t, t.Context())
		if res.CostMetadata.IterationsRun != 2 {
			t.Errorf("%d iterations", res.CostMetadata.IterationsRun)
		}
		wantExhausted(t, res, "2 iterations", "soil")
	})
	t.Run("tokens", func(t *testing.T) {
		l := newLab(t, 1)
		l.mind.write = func(st *reason.State) (reason.Draft, error) {
			if _, err := st.Meter.Reserve(st.Limits.TokenBudget + 1); err == nil {
				t.Error("more than the budget was granted")
			}
			r, err := st.Meter.Reserve(st.Limits.TokenBudget)
			if err != nil {
				t.Error(err)
			}
			r.Settle(1 << 40)
			return reason.Draft{Refusal: "no room"}, nil
		}
		res := l.run(t, t.Context())
		wantExhausted(t, res, "token budget", "")
		if c := res.CostMetadata; c.TokensUsed != 1<<40 || !c.OverBudget {
			t.Errorf("what was used beyond the budget is not said: %+v", c)
		}
	})
	t.Run("wall time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newLab(t, 2)
			l.wall = time.Second
			l.fetcher.Delay["doc2.md"] = 2 * time.Second
			l.mind.plans = [][]string{{"peas"}, {"pods"}}
			res := l.run(t, t.Context())
			if !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Detail, "wall time of 1s") }) || !res.CostMetadata.BudgetExhausted {
				t.Errorf("no gap names the wall time: %+v", res.Gaps)
			}
			if len(res.Citations) != 1 || res.CostMetadata.WallTimeSec != 1 {
				t.Errorf("%d citations after %v s: what was read in time is written, what was not is cut", len(res.Citations), res.CostMetadata.WallTimeSec)
			}
		})
	})
}

func wantExhausted(t *testing.T, res *marchwarden.Result, what, left string) {
	t.Helper()
	g := gap(res, marchwarden.BudgetExhausted)
	if g == nil || !strings.Contains(g.Detail, what) || !strings.Contains(g.Topic, left) {
		t.Errorf("gap %+v, want one that names %q and %q", g, what, left)
	}
	if !res.CostMetadata.BudgetExhausted || !res.ConfidenceFactors.BudgetExhausted {
		t.Error("budget_exhausted is not set")
	}
}

// TestInterrupt cuts a run at many moments: there is always a result, the trace
// is closed, and the rerun (inside run) gives the same bytes.
func TestInterrupt(t *testing.T) {
	for ms := range 30 {
		t.Run(fmt.Sprint(ms), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLab(t, 4)
				l.engine.Delay = 7 * time.Millisecond
				for i := range 4 {
					l.fetcher.Delay[fmt.Sprintf("doc%d.md", i+1)] = time.Duration(3*i+1) * time.Millisecond
				}
				l.mind.plans = [][]string{{"peas"}, {"pods"}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
				defer cancel()
				res := l.run(t, ctx)
				if took := time.Since(l.began); took > 6*time.Second {
					t.Errorf("took %v after the caller stopped", took)
				}
				if l.log(t).Complete() == nil {
					t.Error("the trace is not closed")
				}
				if ms == 24 {
					return // the caller and the last search end at the same moment
				}
				done := ms > 24
				if done == res.CostMetadata.BudgetExhausted {
					t.Errorf("after %d ms: budget_exhausted %v, gaps %+v", ms, res.CostMetadata.BudgetExhausted, res.Gaps)
				}
			})
		})
	}
}

// TestReasonersCannotSeeTheCaller stops a run at the moment a reasoner is asked,
// and the reasoner gives up when its context has ended. What it does then is in
// no record, so the rerun (inside run) would decide differently.
func TestReasonersCannotSeeTheCaller(t *testing.T) {
	for call := range 5 {
		t.Run(fmt.Sprint(call), func(t *testing.T) {
			l := newLab(t, 2)
			l.mind.plans = [][]string{{"peas"}, {"pods"}}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			calls := 0
			l.mind.look = func(ctx context.Context) error {
				if calls++; calls == call+1 {
					cancel()
				}
				if _, ok := ctx.Deadline(); ok {
					t.Error("a reasoner sees a deadline")
				}
				return ctx.Err()
			}
			res := l.run(t, ctx)
			if done := l.log(t).Complete(); done == nil {
				t.Errorf("the trace is not closed: %+v", res)
			}
		})
	}
}

// TestParallel shows that searches and fetches of one step run together: the
// virtual clock moves by the longest of them.
func TestParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t, 6)
		l.engine.Delay = 400 * time.Millisecond
		l.engine.Hits["pods"] = l.engine.Hits["peas"]
		l.mind.plans = [][]string{{"peas", "pods"}}
		for i := range 6 {
			l.fetcher.Delay[fmt.Sprintf("doc%d.md", i+1)] = 300 * time.Millisecond
		}
		res := l.run(t, t.Context())
		if res.CostMetadata.WallTimeSec != 0.7 {
			t.Errorf("wall time %v s, want the critical path of 0.7 s", res.CostMetadata.WallTimeSec)
		}
	})
}

func TestOnlyHitsAreRead(t *testing.T) {
	l := newLab(t, 1)
	l.fetcher.Texts["/etc/passwd"] = "root"
	l.mind.choose = func([]search.Hit) []reason.Read {
		return []reason.Read{{Locator: "/etc/passwd"}, {Locator: "doc1.md"}, {Locator: "doc1.md"}}
	}
	l.run(t, t.Context())
	if got := l.fetcher.Fetched(); !slices.Equal(got, []string{"doc1.md"}) {
		t.Errorf("fetched %v, want doc1.md alone", got)
	}
	if !l.decided(t, "1 documents were not read: nothing in this run had offered them") {
		t.Error("the refusal is not in the trace")
	}
}

// decided reports whether a step of the trace says so.
func (l *lab) decided(t *testing.T, what string) bool {
	t.Helper()
	return slices.ContainsFunc(l.log(t).Steps, func(s trace.Step) bool { return strings.Contains(s.Header().Decision, what) })
}

// TestOnlyDocumentsReadCountAsSources: one that could not be read leaves its
// place to another.
func TestOnlyDocumentsReadCountAsSources(t *testing.T) {
	two := 2
	l := newLab(t, 2)
	l.req.Constraints = &marchwarden.Constraints{MaxSources: &two}
	l.fetcher.Errs["doc1.md"] = marchwarden.Errorf(marchwarden.CodeDenied, "members only")
	l.engine.Hits["pods"] = []search.Hit{{Locator: "doc3.md"}}
	l.fetcher.Texts["doc3.md"] = "Pods are for eating."
	l.mind.plans = [][]string{{"peas"}, {"pods"}}
	res := l.run(t, t.Context())
	if len(res.Citations) != 2 || res.CostMetadata.BudgetExhausted {
		t.Errorf("%d citations, budget exhausted %v", len(res.Citations), res.CostMetadata.BudgetExhausted)
	}
}

// TestBadItemsOfADraftAreDropped: a reasoner is not trusted, and one bad item
// does not cost the result.
func TestBadItemsOfADraftAreDropped(t *testing.T) {
	l := newLab(t, 1)
	l.mind.write = func(*reason.State) (reason.Draft, error) {
		return reason.Draft{
			Refusal: "no",
			Match:   math.NaN(),
			Gaps:    []marchwarden.Gap{{Topic: "odd", Category: "because"}},
			Discoveries: []marchwarden.DiscoveryEvent{
				{Type: marchwarden.NewSource, Query: "kept", SourceLocator: "doc1.md"},
				{Type: marchwarden.NewSource, Query: "never met", SourceLocator: "https://evil.example/"},
				{Type: "advert", Query: "no such kind"},
			},
			OpenQuestions: []marchwarden.OpenQuestion{
				{Question: "Kept?", Priority: marchwarden.Low},
				{Question: "Never met?", Priority: marchwarden.Low, SourceLocator: "https://evil.example/"},
				{Question: "No such priority?", Priority: "urgent"},
			},
		}, nil
	}
	res := l.run(t, t.Context())
	if len(res.DiscoveryEvents) != 1 || res.DiscoveryEvents[0].Query != "kept" || len(res.OpenQuestions) != 1 || res.OpenQuestions[0].Question != "Kept?" {
		t.Errorf("kept %+v and %+v", res.DiscoveryEvents, res.OpenQuestions)
	}
	if len(res.Gaps) != 1 || res.Gaps[0].Category != marchwarden.AccessDenied {
		t.Errorf("gaps %+v", res.Gaps)
	}
	for _, s := range l.log(t).Steps {
		if v, ok := s.(*trace.Verify); ok && v.DroppedLeads != 4 {
			t.Errorf("%d dropped leads counted, want 4", v.DroppedLeads)
		}
	}
}

func TestSourceFilterHoldsAfterFetching(t *testing.T) {
	l := newLab(t, 2)
	l.fetcher.Pages["doc1.md"] = fetch.Page{Origin: "usu.edu"}
	l.fetcher.Pages["doc2.md"] = fetch.Page{Origin: "blog.example.com"}
	const liar = "https://blog.example.com/a.edu"
	l.engine.Hits["peas"] = append(l.engine.Hits["peas"], search.Hit{Locator: liar})
	l.fetcher.Texts[liar] = "Peas like it hot."
	l.fetcher.Pages[liar] = fetch.Page{Origin: "usu.edu"} // what the page says of itself
	l.req.Constraints = &marchwarden.Constraints{SourceFilter: ".edu"}
	res := l.run(t, t.Context())
	if len(res.Citations) != 1 {
		t.Errorf("%d citations, want the one the filter allows", len(res.Citations))
	}
	for _, c := range res.Citations {
		if c.Locator != "doc1.md#L1" {
			t.Errorf("cited %s, which the filter forbids", c.Locator)
		}
	}
	if slices.Contains(l.fetcher.Fetched(), liar) {
		t.Errorf("%s was fetched, which the filter forbids", liar)
	}
	for _, q := range l.engine.Queries() {
		if q.Filter.String() != ".edu" {
			t.Errorf("the engine was asked with filter %q", q.Filter)
		}
	}
}

func TestBadRequestsLeaveNoTrace(t *testing.T) {
	l := newLab(t, 1)
	l.req.Question = " "
	_, err := loop.New(loop.Config{Reasoner: l.mind, Blobs: l.blobs}).Run(t.Context(), replay.Rerun(&trace.Log{}, l.blobs), l.start(), l.clock)
	if !errors.Is(err, marchwarden.CodeInvalid) {
		t.Errorf("error %v", err)
	}
}

// A record that cannot be written costs no answer.
func TestABrokenTraceDoesNotEndTheRun(t *testing.T) {
	l := newLab(t, 1)
	start := l.start()
	w, err := l.traces.Create(start.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	w.Close() // every append fails from here on
	j := replay.Record(w, l.blobs, l.clock, nil)
	res, err := loop.New(loop.Config{Engine: l.engine, Fetcher: l.fetcher, Reasoner: l.mind, Blobs: l.blobs}).
		Run(t.Context(), j, start, l.clock)
	if err != nil || len(res.Citations) == 0 || j.Lost() == nil {
		t.Errorf("%v, %v, lost: %v", res, err, j.Lost())
	}
}
