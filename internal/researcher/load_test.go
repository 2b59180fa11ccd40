package researcher_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// stopped is one run that its caller stops.
type stopped struct {
	res  *marchwarden.Result
	err  error
	took time.Duration // from the stop to the return
}

// stopAt researches and stops when the channel says so.
func (l *lab) stopAt(t *testing.T, req marchwarden.Request, now <-chan struct{}) stopped {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var at time.Time
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-now:
		case <-time.After(20 * time.Second):
			t.Error("the moment to stop never came")
		}
		at = time.Now()
		cancel()
	}()
	res, err := l.Research(ctx, req, nil)
	end := time.Now()
	<-watched
	return stopped{res, err, end.Sub(at)}
}

// wantPartial: a caller that stops a run gets what was gathered, soon, with a
// closed trace.
func (l *lab) wantPartial(t *testing.T, req marchwarden.Request, s stopped) {
	t.Helper()
	if s.err != nil {
		t.Fatalf("no result: %v", s.err)
	}
	if s.took > 8*time.Second { // 2 s are promised, on a machine that is not busy
		t.Errorf("%v from the stop to the result", s.took)
	}
	l.holds(t, req, s.res)
	cleanOfFaults(t, l, s.res)
}

// A caller that stops a run reaches the provider, wherever the run is: long before the
// minute is over that the provider would take.
func TestCancelReachesEverything(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for _, site := range slices.Concat(callSites, []string{"search", "fetch"}) {
		for _, wire := range []llmtest.Wire{llmtest.WireOpenAI, llmtest.WireAnthropic} {
			t.Run(site+" "+string(wire), func(t *testing.T) { cancelAt(t, site, wire) })
		}
	}
	goleak.VerifyNone(t, before)
}

func cancelAt(t *testing.T, site string, wire llmtest.Wire) {
	now, over := make(chan struct{}), make(chan struct{})
	stop := sync.OnceFunc(func() { close(now) })
	var gone atomic.Int64 // pages whose reader went away
	broken := &cell{site: siteRepair}
	answer := func(turn llmtest.Turn) llmtest.Said {
		said, at := obedient(turn), callSite(turn)
		if site == siteRepair && at == siteWrite {
			said = broken.answer(turn)
		}
		if at == site {
			said.Delay = time.Minute
			time.AfterFunc(30*time.Millisecond, stop)
		}
		return said
	}
	pages := biotech()
	if site == "fetch" {
		slow := pages["/arc"]
		slow.Serve = func(_ http.ResponseWriter, r *http.Request) {
			time.AfterFunc(200*time.Millisecond, stop) // the other pages are there by then
			<-r.Context().Done()
			gone.Add(1)
		}
		pages["/arc"] = slow
	}
	l := newLab(t, pages, answer, options{wire: wire})
	t.Cleanup(func() { close(over) }) // before the site closes, which waits for its requests
	if site == "search" {
		l.site.FailSearch(func(http.ResponseWriter) bool { stop(); <-over; return true })
	}
	req := marchwarden.Request{Question: startups}
	s := l.stopAt(t, req, now)
	l.wantPartial(t, req, s)
	nothing := site == siteFirst || site == "search" // is there yet
	if (len(s.res.Citations) == 0) != nothing || nothing && !strings.HasPrefix(s.res.Answer, "No source could be read") {
		t.Errorf("%d citations: %s %+v", len(s.res.Citations), s.res.Answer, s.res.Gaps)
	}
	log, err := l.traces.Load(s.res.TraceID)
	if err != nil {
		t.Fatal(err)
	}
	if !log.Complete().Interrupted || !s.res.CostMetadata.BudgetExhausted {
		t.Errorf("nothing says that the run was stopped: %+v", s.res.CostMetadata)
	}
	heard := func() bool { return l.server.Canceled() > 0 || gone.Load() > 0 || site == "search" } // which cannot see its clients
	for end := time.Now().Add(20 * time.Second); !heard() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if !heard() {
		t.Error("the far end was not told")
	}
}

// A run may be stopped at any moment.
func TestCancelAtFiftyMoments(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("moments", func(t *testing.T) {
		answer := func(turn llmtest.Turn) llmtest.Said {
			said := obedient(turn)
			said.Delay = 100 * time.Millisecond
			return said
		}
		pages := biotech()
		for path, p := range pages {
			p.Delay = 100 * time.Millisecond
			pages[path] = p
		}
		l := newLab(t, pages, answer, options{})
		req := marchwarden.Request{Question: startups}
		began := time.Now()
		l.ask(t, req)
		whole := time.Since(began)
		moments := size(50, 50, 12)
		var g errgroup.Group
		g.SetLimit(10)
		var mu sync.Mutex
		partial, cited, slowest := 0, 0, time.Duration(0)
		for i := range moments {
			g.Go(func() error {
				now := make(chan struct{})
				time.AfterFunc(whole*time.Duration(i)/time.Duration(moments), func() { close(now) })
				s := l.stopAt(t, req, now)
				t.Run(strconv.Itoa(i), func(t *testing.T) { l.wantPartial(t, req, s) })
				mu.Lock()
				defer mu.Unlock()
				slowest = max(slowest, s.took)
				if s.err == nil && s.res.CostMetadata.BudgetExhausted {
					partial++
				}
				if s.err == nil && len(s.res.Citations) > 0 {
					cited++
				}
				return nil
			})
		}
		_ = g.Wait() // its work fails tests, not the group
		t.Logf("stopped at %d moments of a run of %v: %d partial results, %d with citations, slowest %v after the stop",
			moments, whole.Round(time.Millisecond), partial, cited, slowest.Round(time.Millisecond))
	})
	goleak.VerifyNone(t, before)
}

// A step that asks a model, searches and reads three pages takes as long as the
// slowest of each. What things took is measured in the same run, so that a slow
// machine is slow on both sides; a crowded one delays one side more, so that every day
// only what goes on at once is counted.
func TestStepTakesItsCriticalPath(t *testing.T) {
	const think, load, most = 400 * time.Millisecond, 300 * time.Millisecond, 1.10
	var now, peak atomic.Int64
	pages := map[string]webtest.Page{}
	for path, p := range biotech() {
		text := p.Text
		p.Serve = func(w http.ResponseWriter, _ *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
			}
			time.Sleep(load)
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<title>A page</title><article><p>"+strings.ReplaceAll(text, "\n\n", "</p><p>")+"</p></article>") // see serve
		}
		pages[path] = p
	}
	answer := func(turn llmtest.Turn) llmtest.Said {
		said := obedient(turn)
		said.Delay = think
		return said
	}
	best := 0.0
	for try := range 10 { // a busy machine may need several
		l := newLab(t, pages, answer, options{})
		l.site.Finds(func(string) []string { return []string{"/nova", "/arc", "/help"} })
		one := 1
		res := l.ask(t, marchwarden.Request{Question: startups, Constraints: &marchwarden.Constraints{MaxIterations: &one}})
		log, err := l.traces.Load(res.TraceID)
		if err != nil {
			t.Fatal(err)
		}
		wall, path := stepTimes(t, log)
		ratio := float64(wall) / float64(path)
		t.Logf("a step of %v over a critical path of %v: %.3f (of the delays alone: %.3f); %d pages at once",
			wall.Round(time.Millisecond), path.Round(time.Millisecond), ratio, float64(wall)/float64(think+load), peak.Load())
		if peak.Load() < 3 {
			t.Fatalf("%d pages were loaded at once, want 3", peak.Load())
		}
		if try == 0 || ratio < best {
			best = ratio
		}
		if best <= most || !datatest.Full() {
			return
		}
	}
	t.Errorf("the step takes %.3f of its critical path at best, want at most %.2f", best, most)
}

// stepTimes are the time from the first question to the model to the last page,
// and the sum of the slowest model call, search and page in it.
func stepTimes(t *testing.T, log *trace.Log) (wall, path time.Duration) {
	t.Helper()
	var first, last time.Time
	slowest := map[trace.Action]time.Duration{}
	pages := 0
	for _, s := range log.Steps {
		head := s.Header()
		if head.Action == trace.ActionModel && first.IsZero() {
			first = head.Timestamp
		}
		if head.Action == trace.ActionSynthesisStart {
			break
		}
		rec, ok := s.(trace.Recorded)
		if !ok || head.Action == trace.ActionCheckpoint {
			continue
		}
		if head.Action == trace.ActionFetchComplete {
			pages++
		}
		if last.IsZero() || head.Action == trace.ActionFetchComplete {
			last = head.Timestamp
		}
		slowest[head.Action] = max(slowest[head.Action], time.Duration(rec.Record().ElapsedMS*float64(time.Millisecond)))
	}
	if pages != 3 || len(slowest) != 3 {
		t.Fatalf("%d pages and %d kinds of effects in the step, want 3 and 3", pages, len(slowest))
	}
	for _, d := range slowest {
		path += d
	}
	return last.Sub(first), path
}

// gate is a provider that holds back its answers of a call site until it is told
// to give them, so that any number of runs are under way at once. It can be
// reached over HTTP.
type gate struct {
	mu    sync.Mutex // guards what follows
	came  map[string]int
	shut  map[string]chan struct{}
	armed bool
}

func (g *gate) answer(turn llmtest.Turn) llmtest.Said {
	site := siteOf(turn)
	g.mu.Lock()
	g.came[site]++
	hold := g.shut[site]
	armed := g.armed
	g.mu.Unlock()
	if armed && hold != nil {
		<-hold
	}
	said := obedient(turn)
	said.Delay = 50 * time.Millisecond
	return said
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	site := r.FormValue("site")
	switch r.FormValue("do") {
	case "arm":
		g.armed, g.came = true, map[string]int{}
	case "open":
		close(g.shut[site])
	}
	_, _ = fmt.Fprint(w, g.came[site]) // a client that went away is its own affair
}

// farEnv asks the test binary to be the far ends of the load test: in a process
// of their own they cost this one nothing.
const farEnv = "MARCHWARDEN_TEST_FAR_ENDS"

func TestFarEnds(t *testing.T) {
	if os.Getenv(farEnv) == "" {
		t.Skip("this is the other process of TestLoad")
	}
	g := &gate{came: map[string]int{}, shut: map[string]chan struct{}{siteStep: make(chan struct{}), siteWrite: make(chan struct{})}}
	pages := biotech()
	pages["/gate"] = webtest.Page{Serve: g.serve}
	site, server := webtest.New(t, pages), llmtest.NewServer(t, g.answer)
	fmt.Printf("far %s %s\n", site.URL, server.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until the other process is done
}

// startFarEnds starts the other process; stop ends it.
func startFarEnds(t *testing.T) (site, model string, stop func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFarEnds$")
	cmd.Env = append(os.Environ(), farEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // its own tests are not this test's
	})
	t.Cleanup(stop)
	line, err := bufio.NewReader(out).ReadString('\n')
	if n, _ := fmt.Sscanf(line, "far %s %s", &site, &model); n != 2 {
		t.Fatalf("the far ends said %q: %v", line, err)
	}
	return site, model, stop
}

// footprint is what a process holds.
type footprint struct {
	bytes      uint64
	goroutines int
}

func measure() footprint {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // pools need two
	runtime.ReadMemStats(&m)
	return footprint{m.HeapInuse + m.StackInuse, runtime.NumGoroutine()}
}

// A thousand researches in one process, all under way at once: at most 1 MiB each,
// and nothing is left of them. The far ends are another process, so that what is
// measured is the researcher: heap and stacks after a collection, when every run
// waits for its plan, and again when every run has its evidence and waits for its
// answer, less what the process held before.
func TestLoad(t *testing.T) {
	runs := size(1000, 100, 50)
	site, model, stop := startFarEnds(t)
	tell := func(do, at string) int {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get(site + "/gate?do=" + do + "&site=" + at)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		n, _ := strconv.Atoi(string(body))
		return n
	}
	before := goleak.IgnoreCurrent()
	t.Run("runs", func(t *testing.T) {
		l := newLab(t, nil, nil, options{far: &farEnds{site + "/searx", model}, idle: 5 * time.Minute, search: 2 * time.Minute, page: time.Minute})
		t.Cleanup(stop) // before the lab closes, so that no connection is left
		one := 1
		req := marchwarden.Request{Question: startups, Depth: marchwarden.Shallow, Constraints: &marchwarden.Constraints{MaxIterations: &one}}
		l.ask(t, req) // what is made once is made
		tell("arm", "")
		base := measure()
		began := time.Now()
		results := make([]*marchwarden.Result, runs)
		var g errgroup.Group
		for i := range runs {
			g.Go(func() (err error) {
				results[i], err = l.Research(t.Context(), req, nil)
				return err
			})
		}
		var worst footprint
		for _, at := range []string{siteStep, siteWrite} {
			for end := time.Now().Add(2 * time.Minute); tell("count", at) < runs; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d of %d runs reached the %s call", tell("count", at), runs, at)
				}
			}
			time.Sleep(200 * time.Millisecond)
			m := measure()
			m.bytes -= min(m.bytes, base.bytes)
			t.Logf("all %d at the %s call after %v: %d KiB and %.1f goroutines each", runs, at, time.Since(began).Round(time.Millisecond),
				m.bytes>>10/uint64(runs), float64(m.goroutines-base.goroutines)/float64(runs))
			worst.bytes = max(worst.bytes, m.bytes)
			tell("open", at)
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		for i, res := range results {
			if len(res.Citations) == 0 || len(modelGaps(res)) > 0 {
				t.Fatalf("run %d: %d citations, %+v", i, len(res.Citations), res.Gaps)
			}
			if i%(runs/10) == 0 {
				l.holds(t, req, res)
			}
		}
		if each := worst.bytes / uint64(runs); each > 1<<20 {
			t.Errorf("%d KiB for each research, want at most 1024", each>>10)
		}
		if took > 90*time.Second {
			t.Errorf("took %v", took)
		}
		t.Logf("%d researches in %v: %d KiB each", runs, took.Round(time.Millisecond), worst.bytes>>10/uint64(runs))
	})
	goleak.VerifyNone(t, before)
}
