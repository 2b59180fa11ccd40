package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// everybody is a planner that asks all members the question itself.
type everybody struct{ members []string }

func (everybody) ID() string { return "everybody/1" }

func (e everybody) Plan(_ context.Context, b *pi.Brief) ([]pi.Sending, error) {
	var out []pi.Sending
	for _, m := range b.Members {
		if len(e.members) == 0 || contains(e.members, m.Name) {
			out = append(out, pi.Sending{Researcher: m.Name, Question: b.Request.Question, Reason: "it may know"})
		}
	}
	return out, nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func minds(members ...string) pi.Minds {
	return pi.Minds{
		Planner: func(string) pi.Planner { return everybody{members} },
		Writer:  func(string) reason.Reasoner { return extractive.New() },
	}
}

// script is what one member does when it is asked.
type script func(ctx context.Context, n int, req marchwarden.Request) (*marchwarden.Result, error)

// stage is a network of scripted members.
type stage struct {
	members []dispatch.Member
	scripts map[string]script

	mu       sync.Mutex // guards what follows
	evidence map[string][]byte
	calls    map[string][]marchwarden.Request
}

func (s *stage) Members() []dispatch.Member { return s.members }

func (s *stage) Dispatch(ctx context.Context, member string, req marchwarden.Request, _ marchwarden.Sink) (*marchwarden.Result, error) {
	s.mu.Lock()
	s.calls[member] = append(s.calls[member], req)
	n := len(s.calls[member])
	s.mu.Unlock()
	return s.scripts[member](ctx, n, req)
}

func (s *stage) Evidence(_ context.Context, _, hash string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, ok := s.evidence[hash]; ok {
		return b, nil
	}
	return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "no %s", hash)
}

func newStage() *stage {
	return &stage{scripts: map[string]script{}, evidence: map[string][]byte{}, calls: map[string][]marchwarden.Request{}}
}

func (s *stage) add(m dispatch.Member, f script) {
	if m.Trust == "" {
		m.Trust = dispatch.Own
	}
	s.members = append(s.members, m)
	s.scripts[m.Name] = f
}

// report is a result with one claim per text, each the first sentence of its own
// document, which the stage hands over by hash.
func (s *stage) report(locators map[string]string) *marchwarden.Result {
	res := &marchwarden.Result{Confidence: 0.8, CostMetadata: marchwarden.CostMetadata{TokensUsed: 500, IterationsRun: 1, ModelID: "extractive/1", SourcesRead: len(locators)}}
	res.TraceID, _ = marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a11")
	res.ConfidenceFactors.QuerySpecificityMatch = 0.9
	for _, at := range sortedKeys(locators) {
		text := locators[at]
		s.mu.Lock()
		hash := blob.Of([]byte(text)).String()
		s.evidence[hash] = []byte(text)
		s.mu.Unlock()
		n := len(res.Citations) + 1
		res.Citations = append(res.Citations, marchwarden.Citation{Source: "web", Locator: at, RawExcerpt: text, ContentHash: hash,
			Span: &marchwarden.Span{Start: 0, End: len(text)}, Origin: at, Confidence: 0.8})
		res.Claims = append(res.Claims, marchwarden.Claim{Text: text, Citations: []int{n}, Support: marchwarden.Supported})
		res.Answer += fmt.Sprintf("%s [%d] ", text, n)
	}
	res.Normalize()
	return res
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	for i := range keys {
		for k := i + 1; k < len(keys); k++ {
			if keys[k] < keys[i] {
				keys[i], keys[k] = keys[k], keys[i]
			}
		}
	}
	return keys
}

// office is a place where investigations are made and kept. It is safe for
// concurrent use.
type office struct {
	traces *trace.Dir
	blobs  blob.Store
	ids    atomic.Int64
	// network is the engine by which members are asked; nil asks them directly.
	network *network
}

func newOffice(t testing.TB) *office {
	t.Helper()
	traces, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Close() })
	return &office{traces: traces, blobs: blob.NewMem()}
}

// pi is an investigator of the office; what cfg leaves out is the office's.
func (o *office) pi(cfg pi.Config) *pi.PI {
	cfg.Traces, cfg.Blobs, cfg.Version, cfg.Now = o.traces, o.blobs, "test", time.Now
	cfg.NewID = func() marchwarden.TraceID {
		id, _ := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012d", o.ids.Add(1)))
		return id
	}
	if cfg.Minds.Planner == nil {
		cfg.Minds = minds()
	}
	if o.network != nil {
		cfg.Dispatcher = o.network.through(cfg.Dispatcher)
	}
	return pi.New(cfg)
}

// ask investigates and audits the result.
func (o *office) ask(t testing.TB, cfg pi.Config, req marchwarden.Request) *marchwarden.Result {
	t.Helper()
	res, err := o.pi(cfg).Research(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	o.audit(t, cfg, res)
	return res
}

// audit holds a result to what every result must keep: its trace is closed and
// tells the same decisions, it comes out of its record again to the byte, every
// citation stands in the stored bytes, and the budget holds.
func (o *office) audit(t testing.TB, cfg pi.Config, res *marchwarden.Result) *trace.Log {
	t.Helper()
	log, err := o.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	start, err := log.Start()
	if err != nil || log.Complete() == nil {
		t.Fatalf("the trace of %s is not closed: %v", res.TraceID, err)
	}
	if cfg.Minds.Planner == nil {
		cfg.Minds = minds()
	}
	want, got, err := pi.Again(t.Context(), log, o.blobs, cfg.Minds)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Fatalf("the rerun differs:\n%s\n%s", want, got)
	}
	if report, err := verify.Check(t.Context(), o.blobs, res); err != nil || !report.OK() {
		t.Fatalf("the result does not stand: %s, %v", report, err)
	}
	if use := res.CostMetadata; (use.TokensUsed > start.Limits.TokenBudget) != use.OverBudget || use.SourcesRead > start.Limits.MaxSources {
		t.Fatalf("%+v is over %+v", use, start.Limits)
	}
	told := map[marchwarden.Decision]bool{}
	for _, s := range log.Steps {
		if d, ok := s.(*trace.Decision); ok {
			d.What.Rihla = 0
			told[d.What] = true
		}
	}
	for _, d := range res.Decisions {
		d.Rihla = 0
		if !told[d] {
			t.Fatalf("the trace does not tell of %+v", d)
		}
	}
	return log
}

func TestOneResearcherAnswers(t *testing.T) {
	s := newStage()
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		return s.report(map[string]string{"https://example.org/paris": "Paris is the capital of France."}), nil
	})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "What is the capital of France?"})
	if len(res.Citations) != 1 || res.Answer != "Paris is the capital of France. [1]" || len(res.Rihlas) != 1 || res.Rihlas[0].Citations != 1 {
		t.Errorf("%+v", res)
	}
}

func TestSeveralResearchersAreOneAnswer(t *testing.T) {
	s := newStage()
	for _, name := range []string{"web", "arxiv", "files"} {
		s.add(dispatch.Member{Name: name, Scope: "things"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return s.report(map[string]string{"https://" + name + ".org/": "The capital of France is Paris, says " + name + "."}), nil
		})
	}
	s.add(dispatch.Member{Name: "broken", Scope: "nothing"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		panic("boom")
	})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "What is the capital of France?"})
	if len(res.Citations) == 0 || len(res.Rihlas) != 4 || len(res.Gaps) == 0 {
		t.Errorf("%+v", res)
	}
	t.Logf("%s\n%+v\n%+v", res.Answer, res.Rihlas, res.Gaps)
}
