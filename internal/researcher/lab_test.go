package researcher_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/engines"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// lab is the web researcher with every part real: the SDKs of the providers, the
// search client, the guarded fetcher, the extractor, the stores. Only the other
// ends of the connections are ours, on loopback.
type lab struct {
	marchwarden.Researcher
	site   *webtest.Site
	server *llmtest.Server
	traces *trace.Dir
	blobs  blob.Store
}

// options change a lab; the zero value is a fast one with the OpenAI wire.
type options struct {
	wire     llmtest.Wire
	noModel  bool
	deadline time.Duration
	idle     time.Duration // silence limit of the model
	secrets  []string
	extract  *extract.Extractor
	dir      string
	allow    []netip.Prefix   // what the guard opens; the whole loopback when empty
	steady   llm.SteadyConfig // how the model is made steady; Now is set
	page     time.Duration    // longest time for a page; 10 s when zero
	search   time.Duration    // longest time for a search
	far      *farEnds         // where the far ends are, when another process has them
}

// farEnds are the addresses of a search service and of a provider.
type farEnds struct{ search, model string }

var ids atomic.Int64

// size is how much of a large test is run: all of it where MARCHWARDEN_TEST_FULL
// is "all", a good part of it where it is anything else, and little every day.
func size(all, part, everyday int) int {
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "all":
		return all
	case "":
		return everyday
	}
	return part
}

func newLab(t testing.TB, pages map[string]webtest.Page, answer func(llmtest.Turn) llmtest.Said, o options) *lab {
	t.Helper()
	blobs, home := blob.NewMem(), t.TempDir()
	if o.dir != "" { // a process that ends before the test does
		home = o.dir
		kept, err := blobdir.Open(filepath.Join(home, "blobs"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = kept.Close() })
		blobs = kept
	}
	traces, err := trace.OpenDir(filepath.Join(home, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	x := o.extract
	if x == nil {
		x = extract.New(extract.Config{})
		t.Cleanup(func() { _ = x.Close() })
	}
	if o.allow == nil {
		o.allow = webtest.Loopback
	}
	l := &lab{traces: traces, blobs: blobs}
	fetcher := webfetch.New(webfetch.Config{Store: blobs, Extract: x, Guard: guard.New(o.allow), Now: time.Now, PerHost: 16, Pace: -1, Timeout: cmp.Or(o.page, 10*time.Second)})
	far := o.far
	if far == nil {
		l.site = webtest.New(t, pages)
		far = &farEnds{search: l.site.SearchURL()}
	}
	var model llm.Model
	if !o.noModel {
		if o.far == nil {
			l.server = llmtest.NewServer(t, answer)
			far.model = l.server.URL()
		}
		model = newModel(far.model, o)
	}
	l.Researcher = researcher.NewWeb(researcher.WebConfig{
		Engine:  search.Chain(engines.NewSearxng(engines.Config{BaseURL: far.search, Timeout: o.search})),
		Fetcher: fetcher, Secrets: o.secrets,
		Lab: researcher.Lab{Traces: traces, Blobs: blobs, Version: "test", Now: time.Now, NewID: newID, Deadline: o.deadline, Model: model},
	})
	t.Cleanup(func() { _, _ = fetcher.Close(), traces.Close() })
	return l
}

func newModel(at string, o options) llm.Model {
	var m llm.Model = openai.New(llm.Config{Provider: "openai", Key: labKey, BaseURL: at + "/v1", Model: "gpt-test", Idle: o.idle})
	if o.wire == llmtest.WireAnthropic {
		m = anthropic.New(llm.Config{Key: labKey, BaseURL: at, Model: "claude-test", Idle: o.idle})
	}
	o.steady.Now = time.Now
	return llm.NewSteady(m, o.steady)
}

func newID() marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("00000000-0000-7000-8000-%012d", ids.Add(1)))
	if err != nil {
		panic(err)
	}
	return id
}

// ask researches and holds the result against everything that is promised of
// every result, whatever the model did.
func (l *lab) ask(t testing.TB, req marchwarden.Request) *marchwarden.Result {
	t.Helper()
	res, err := l.Research(t.Context(), req, nil)
	if err != nil {
		t.Fatalf("no result: %v", err)
	}
	l.holds(t, req, res)
	return res
}

// holds checks the five promises on a result.
func (l *lab) holds(t testing.TB, req marchwarden.Request, res *marchwarden.Result) {
	t.Helper()
	limits := req.Limits()
	if c := res.CostMetadata; (c.TokensUsed > limits.TokenBudget) != c.OverBudget || c.IterationsRun > limits.MaxIterations {
		t.Errorf("over budget, or it says so without: %+v of %+v", c, limits)
	}
	if report, err := verify.Check(t.Context(), l.blobs, res); err != nil || !report.OK() {
		t.Errorf("not grounded: %v %v", report, err)
	}
	log, err := l.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range verify.CheckFetched(log, res) {
		if f.Problem != "" {
			t.Errorf("a citation that was not fetched: %+v", f)
		}
	}
	read := 0
	for _, s := range log.Steps {
		if f, ok := s.(*trace.FetchComplete); ok && f.Error == "" {
			read++
		}
	}
	if read > limits.MaxSources {
		t.Errorf("%d documents fetched, at most %d allowed", read, limits.MaxSources)
	}
	if log.Complete() == nil {
		t.Error("the trace is not closed")
	}
	for _, s := range sentences(res.Answer) {
		if len(res.Citations) > 0 && !strings.HasSuffix(s, "]") {
			t.Errorf("a sentence without a marker: %q", s)
		}
	}
	again, err := researcher.Again(t.Context(), log, l.blobs, nil)
	if err != nil || !again.Same() {
		t.Errorf("not replayable: %v\n want %s\n  got %s", err, again.Want, again.Got)
	}
}

// sentences are the marked sentences of an answer, and what is left after them.
func sentences(answer string) []string {
	return regexp.MustCompile(`(?s).+?(?:\[\d+\])+|.+$`).FindAllString(strings.TrimSpace(answer), -1)
}

// The call sites of the reasoner, as webtest tells them apart.
const (
	siteStep   = webtest.SiteStep
	siteWrite  = webtest.SiteWrite
	siteJudge  = webtest.SiteJudge
	siteRepair = webtest.SiteRepair
)

var (
	siteOf    = webtest.SiteOf
	searchFor = webtest.SearchFor
	read      = webtest.Read
	tool      = webtest.Tool
	obedient  = webtest.Obedient
	passageID = webtest.PassageID
	biotech   = webtest.Biotech
)

const startups = webtest.Startups
