package researcher_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// The call sites of a run, in their order. The first and the second step are the
// same prompt before and after there is evidence.
const (
	siteFirst  = "first step"
	siteSecond = "second step"
)

var callSites = []string{siteFirst, siteSecond, siteWrite, siteRepair, siteJudge}

func callSite(turn llmtest.Turn) string {
	site := siteOf(turn)
	if site != siteStep {
		return site
	}
	if strings.Contains(turn.Input, "[S1.") {
		return siteSecond
	}
	return siteFirst
}

// cell is one fault at one call site over one wire, always or only the first time.
type cell struct {
	llmtest.FaultCase
	site     string
	wire     llmtest.Wire
	once     bool
	deadline time.Duration

	met atomic.Int64 // calls at the site
}

func (c *cell) String() string {
	often := "always"
	if c.once {
		often = "once"
	}
	return fmt.Sprintf("%s/%s/%s/%s", c.Fault, c.site, c.wire, often)
}

// answer is the obedient model with the cell's fault. A reply has to be broken
// for the repair to be asked for.
func (c *cell) answer(turn llmtest.Turn) llmtest.Said {
	said, site := obedient(turn), callSite(turn)
	if c.site == siteRepair && site == siteWrite {
		said.Text = "Here is what I found, but not in the form that was asked for."
		for _, m := range passageID.FindAllString(turn.Input, 4) {
			said.Text += "\n" + m
		}
	}
	if site == c.site && (c.met.Add(1) == 1 || !c.once) {
		said.Fault = c.Fault
	}
	return said
}

const (
	faultDeadline = 4 * time.Second
	faultGrace    = 10 * time.Second
)

// patience is the deadline of runs that go wrong, many at a time: longer where this machine is so
// busy that a run without a fault takes long by itself.
func patience(t *testing.T, x *extract.Extractor) time.Duration {
	t.Helper()
	l := newLab(t, biotech(), obedient, options{wire: llmtest.WireOpenAI, extract: x})
	began := time.Now()
	if _, err := l.Research(t.Context(), marchwarden.Request{Question: startups}, nil); err != nil {
		t.Fatal(err)
	}
	return max(faultDeadline, 30*time.Since(began))
}

// checked is the matrix as it was found, by call site.
type checked struct {
	mu   sync.Mutex // guards rows
	rows map[string]*checkedRow
}

type checkedRow struct {
	cells, valid, cited, inTime, passing, recovered int
	slowest                                         time.Duration
}

func (c *checked) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-12s %6s %6s %6s %8s %8s %18s", "call site", "cells", "valid", "cited", "in time", "slowest", "passing→recovered")
	for _, site := range callSites {
		r := c.rows[site]
		fmt.Fprintf(&b, "\n%-12s %6d %6d %6d %8d %8v %8d→%d", site, r.cells, r.valid, r.cited, r.inTime, r.slowest.Round(time.Millisecond), r.passing, r.recovered)
	}
	return b.String()
}

// abreast runs subtests at once, which mostly wait: as many as are given, whatever
// the number of cores. The caller calls wait after the last.
func abreast(t *testing.T, most int) (run func(name string, f func(*testing.T)), wait func()) {
	var g errgroup.Group
	g.SetLimit(most)
	run = func(name string, f func(*testing.T)) {
		g.Go(func() error {
			t.Run(name, f)
			return nil
		})
	}
	return run, func() { _ = g.Wait() } // what fails is a test, not the group
}

// Every fault of a model at every call site ends in a valid result in time: what
// was gathered, with a gap that names what was lost.
func TestModelFaults(t *testing.T) {
	x := extract.New(extract.Config{})
	t.Cleanup(func() { _ = x.Close() })
	sum := checked{rows: map[string]*checkedRow{}}
	for _, site := range callSites {
		sum.rows[site] = &checkedRow{}
	}
	deadline := patience(t, x)
	run, wait := abreast(t, 20)
	n := 0
	for _, f := range llmtest.Faults {
		for _, site := range callSites {
			for _, wire := range []llmtest.Wire{llmtest.WireOpenAI, llmtest.WireAnthropic} {
				for _, once := range []bool{false, true} {
					if n++; n%size(1, 7, 19) != 0 {
						continue
					}
					c := &cell{FaultCase: f, site: site, wire: wire, once: once, deadline: deadline}
					run(c.String(), func(t *testing.T) { c.run(t, x, &sum) })
				}
			}
		}
	}
	wait()
	t.Logf("in time is %v + %v%s", deadline, faultGrace, &sum)
}

func (c *cell) run(t *testing.T, x *extract.Extractor, sum *checked) {
	passing := c.once && c.Retryable && c.Fault != llmtest.FaultRateLimitedHour
	res, took := c.research(t, x)
	if passing && len(modelGaps(res)) > 0 { // on a busy machine a second call may have failed, for real
		again := &cell{FaultCase: c.FaultCase, site: c.site, wire: c.wire, once: true, deadline: c.deadline}
		res, took = again.research(t, x)
	}
	sum.mu.Lock()
	defer sum.mu.Unlock()
	row := sum.rows[c.site]
	row.cells++
	row.slowest = max(row.slowest, took)
	if len(res.Citations) > 0 {
		row.cited++
	}
	if passing {
		row.passing++
		if lost := modelGaps(res); len(lost) > 0 {
			t.Errorf("a fault that passed is still felt: %+v", lost)
		} else {
			row.recovered++
		}
	}
	if took <= c.deadline+faultGrace {
		row.inTime++
	} else {
		t.Errorf("took %v of %v", took, c.deadline)
	}
	if !t.Failed() {
		row.valid++
	}
}

// research makes one run with the fault and holds it to all promises.
func (c *cell) research(t *testing.T, x *extract.Extractor) (*marchwarden.Result, time.Duration) {
	t.Helper()
	l := newLab(t, biotech(), c.answer, options{wire: c.wire, deadline: c.deadline, idle: c.deadline * 3 / 20, extract: x})
	req := marchwarden.Request{Question: startups}
	began := time.Now()
	res, err := l.Research(t.Context(), req, nil)
	took := time.Since(began)
	if err != nil {
		t.Fatalf("no result: %v", err)
	}
	l.holds(t, req, res)
	c.judge(t, l, res)
	if c.met.Load() == 0 {
		t.Error("the call site was not reached, so nothing was tried")
	}
	return res, took
}

// modelGaps are the gaps that the model left.
func modelGaps(res *marchwarden.Result) []marchwarden.Gap {
	return slices.DeleteFunc(slices.Clone(res.Gaps), func(g marchwarden.Gap) bool {
		return !strings.HasPrefix(g.Topic, "planning ") && g.Topic != "writing the answer"
	})
}

// judge looks at what of the fault is in the result.
func (c *cell) judge(t *testing.T, l *lab, res *marchwarden.Result) {
	if len(res.Citations) == 0 && l.gathered(t, res) > 0 {
		t.Errorf("evidence was there and nothing is cited: %s\n%+v", res.Answer, res.Gaps)
	}
	cleanOfFaults(t, l, res)
	for _, s := range l.steps(t, res) {
		if m, ok := s.(*trace.ModelComplete); ok && m.Error == marchwarden.CodeRateLimited && c.Fault == llmtest.FaultRateLimitedHour && m.ElapsedMS > 1000 {
			t.Errorf("waited %v ms for a provider that asks for an hour", m.ElapsedMS)
		}
	}
	lost := modelGaps(res)
	names := func(words ...string) bool {
		return slices.ContainsFunc(lost, func(g marchwarden.Gap) bool {
			return g.Category != marchwarden.SourceNotFound && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(g.Detail, w) })
		})
	}
	switch {
	case c.Fault == llmtest.FaultRateLimitedHour && !c.once && !names("come back in 1h"):
		t.Errorf("no gap says when to come back: %+v", lost)
	case c.Fault == llmtest.FaultRefusal && !c.once && !names("would not answer"):
		t.Errorf("no gap tells of the refusal: %+v", lost)
	case len(c.Codes) > 0 && !c.once && !names(string(c.wire), "127.0.0.1:"):
		t.Errorf("no gap names %s or its address: %+v", c.wire, lost)
	}
}

// gathered is how many documents a run has read.
func (l *lab) gathered(t testing.TB, res *marchwarden.Result) int {
	t.Helper()
	n := 0
	for _, s := range l.steps(t, res) {
		if f, ok := s.(*trace.FetchComplete); ok && f.Error == "" {
			n++
		}
	}
	return n
}

// steps are what the trace of a result holds.
func (l *lab) steps(t testing.TB, res *marchwarden.Result) []trace.Step {
	t.Helper()
	log, err := l.traces.Load(res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	return log.Steps
}

// cleanOfFaults: no text of an error in the answer, no stack and no key anywhere.
func cleanOfFaults(t testing.TB, l *lab, res *marchwarden.Result) {
	t.Helper()
	for _, word := range []string{"status", "openai", "anthropic", "searxng", "overloaded", "rate limit", "panic", "failed", "sorry", "cannot help"} {
		if strings.Contains(strings.ToLower(res.Answer), word) {
			t.Errorf("the answer speaks of a fault (%q): %s", word, res.Answer)
		}
	}
	all, err := json.Marshal([]any{res, l.steps(t, res)})
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{labKey, "goroutine ", ".go:", "[recovered]"} {
		if strings.Contains(string(all), word) {
			t.Errorf("%q is in the result or the trace", word)
		}
	}
}

// A search service that fails is a gap that names it and is never taken for
// missing sources; one that finds nothing is.
func TestSearchFaults(t *testing.T) {
	status := func(code int, header ...string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			if len(header) == 2 {
				w.Header().Set(header[0], header[1])
			}
			http.Error(w, "no", code)
			return true
		}
	}
	body := func(text string) func(http.ResponseWriter) bool {
		return func(w http.ResponseWriter) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, text) // a client that went away is its own affair
			return true
		}
	}
	run, wait := abreast(t, 6)
	for _, tt := range []struct {
		name string
		fail func(http.ResponseWriter) bool
		want marchwarden.GapCategory
	}{
		{"429", status(429), marchwarden.AccessDenied},
		{"429 for an hour", status(429, "Retry-After", "3600"), marchwarden.AccessDenied},
		{"403", status(403), marchwarden.AccessDenied},
		{"404", status(404), marchwarden.AccessDenied},
		{"500", status(500), marchwarden.AccessDenied},
		{"503", status(503), marchwarden.AccessDenied},
		{"silent", func(http.ResponseWriter) bool { time.Sleep(1200 * time.Millisecond); return true }, marchwarden.AccessDenied},
		{"malformed", body(`{"results": [{"url": "http`), marchwarden.AccessDenied},
		{"a page", body(`<!doctype html><title>Log in</title>`), marchwarden.AccessDenied},
		{"another form", body(`[1, 2, 3]`), marchwarden.AccessDenied},
		{"empty", body(`{"query": "x", "results": []}`), marchwarden.SourceNotFound},
	} {
		for _, noModel := range []bool{true, false} {
			run(fmt.Sprintf("%s/model %v", tt.name, !noModel), func(t *testing.T) {
				l := newLab(t, biotech(), obedient, options{noModel: noModel, deadline: faultDeadline, search: 500 * time.Millisecond})
				l.site.FailSearch(tt.fail)
				began := time.Now()
				res := l.ask(t, marchwarden.Request{Question: startups})
				if took := time.Since(began); took > faultDeadline+faultGrace {
					t.Errorf("took %v", took)
				}
				cleanOfFaults(t, l, res)
				named, missing := false, false
				for _, g := range res.Gaps {
					named = named || g.Category == tt.want && (tt.want == marchwarden.SourceNotFound || strings.Contains(g.Topic+g.Detail, "searxng"))
					missing = missing || g.Category == marchwarden.SourceNotFound
				}
				if (tt.want == marchwarden.AccessDenied) != strings.HasPrefix(res.Answer, "No source could be read") {
					t.Errorf("the answer is %q", res.Answer)
				}
				if !named || missing != (tt.want == marchwarden.SourceNotFound) {
					t.Errorf("want %s: %+v", tt.want, res.Gaps)
				}
			})
		}
	}
	wait()
}

// A page that fails is a gap of the right kind, and costs no other page.
func TestPageFaults(t *testing.T) {
	fails := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
	}
	html := func(w http.ResponseWriter) { w.Header().Set("Content-Type", "text/html") }
	shut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			t.Error("a page was asked for that robots.txt disallows")
		}
		_, _ = io.WriteString(w, "User-agent: *\nDisallow: /\n") // a client that went away is its own affair
	}))
	t.Cleanup(shut.Close)
	run, wait := abreast(t, 6)
	for _, tt := range []struct {
		name  string
		serve http.HandlerFunc
		want  marchwarden.GapCategory
	}{
		{"404", fails(404), marchwarden.SourceNotFound},
		{"410", fails(410), marchwarden.SourceNotFound},
		{"401", fails(401), marchwarden.AccessDenied},
		{"403", fails(403), marchwarden.AccessDenied},
		{"429", fails(429), marchwarden.AccessDenied},
		{"451", fails(451), marchwarden.AccessDenied},
		{"500", fails(500), marchwarden.AccessDenied},
		{"503", fails(503), marchwarden.AccessDenied},
		{"stall", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, marchwarden.AccessDenied},
		{"stall after the head", func(w http.ResponseWriter, r *http.Request) {
			html(w)
			_ = http.NewResponseController(w).Flush() // else the client sees the other stall
			<-r.Context().Done()
		}, marchwarden.AccessDenied},
		{"cut body", func(w http.ResponseWriter, _ *http.Request) {
			html(w)
			w.Header().Set("Content-Length", "90000")
			_, _ = io.WriteString(w, "<p>CRISPR therapy startups, the beginning of a page") // the rest is the fault
		}, marchwarden.AccessDenied},
		{"wrong type", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write([]byte("\x00\x01\x02\xfe\xff binary \x00\x00")) // a client that went away is its own affair
		}, marchwarden.ScopeExceeded},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/bad", http.StatusFound) }, marchwarden.AccessDenied},
		{"redirects without end", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/bad?"+r.URL.RawQuery+"x", http.StatusFound)
		}, marchwarden.AccessDenied},
		{"redirect to a file", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		}, marchwarden.AccessDenied},
		{"20 MB", func(w http.ResponseWriter, _ *http.Request) {
			html(w)
			for range 20 {
				_, _ = io.WriteString(w, strings.Repeat("<p>CRISPR</p>\n", 1<<20/14)) // the client stops in the middle
			}
		}, marchwarden.AccessDenied},
		{"robots", nil, marchwarden.AccessDenied},
	} {
		for _, noModel := range []bool{true, false} {
			run(fmt.Sprintf("%s/model %v", tt.name, !noModel), func(t *testing.T) {
				pages := biotech()
				pages["/bad"] = webtest.Page{Title: "CRISPR gene therapy startups in biotech", Text: "All emerging startups working on CRISPR.", Serve: tt.serve}
				l := newLab(t, pages, obedient, options{noModel: noModel, deadline: faultDeadline, page: 700 * time.Millisecond})
				bad := "/bad"
				if tt.serve == nil {
					bad = shut.URL + "/emerging-biotech-startups-crispr-gene-therapy/bad"
				}
				l.site.Finds(func(string) []string { return []string{bad, "/nova", "/arc", "/help"} })
				res := l.ask(t, marchwarden.Request{Question: startups})
				cleanOfFaults(t, l, res)
				at := slices.IndexFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.HasSuffix(g.Topic, "/bad") })
				if at < 0 || res.Gaps[at].Category != tt.want {
					t.Errorf("want %s: %+v", tt.want, res.Gaps)
				}
				if len(res.Citations) == 0 || slices.ContainsFunc(res.Citations, func(c marchwarden.Citation) bool { return strings.Contains(c.Locator, "/bad") }) {
					t.Errorf("%d citations: %s", len(res.Citations), res.Answer)
				}
			})
		}
	}
	wait()
}
