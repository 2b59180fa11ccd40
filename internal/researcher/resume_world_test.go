package researcher_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// effort is how much of a large test is run: little of it in everyday runs, all of it
// where MARCHWARDEN_TEST_FULL is set, and more where that is "torture".
func effort(few, all, torture int) int {
	switch os.Getenv("MARCHWARDEN_TEST_FULL") {
	case "":
		return few
	case "torture":
		return torture
	}
	return all
}

// world is everything outside a run. What it answers depends on the request alone;
// what it was asked, it counts by content. It is safe for concurrent use.
type world struct {
	docs    map[string]string // by locator
	denied  map[string]bool   // locators that cannot be read
	down    string            // searches with this word fail
	variant string            // is in every step prompt that the model answers, so to speak: its tool calls
	step    time.Duration     // by which every effect moves the clock

	mu    sync.Mutex // guards what follows
	calls map[string]int
	begun int
	at    time.Time
	hook  func(n int, key string) // called when the n-th effect begins
}

var began = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func newWorld(docs map[string]string) *world {
	return &world{docs: docs, denied: map[string]bool{}, calls: map[string]int{}, at: began}
}

// garden is a world with something to find in several steps, and some that fails.
func garden() *world {
	w := newWorld(map[string]string{
		"https://peas.example/":    "Peas like cool soil and shade. Peas were first sown by Gregor Mendel in Brno. They need little water.",
		"https://beans.example/":   "Beans like warm soil and sun. Beans climb on poles, said Gregor Mendel.",
		"https://mendel.example/":  "Gregor Mendel was a friar who grew peas in Brno. He counted every pea.",
		"https://brno.example/":    "Brno is a town in Moravia. Its abbey garden grew peas and beans.",
		"https://soil.example/":    "Cool soil holds water for peas. Warm soil suits beans and maize.",
		"https://members.example/": "What soil peas and beans like, said Gregor Mendel of Brno, is for members.",
		"https://maize.example/":   "Maize likes sun. Maize and beans grow well together in warm soil.",
	})
	w.denied["https://members.example/"] = true
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

// ask counts an effect and fails if its caller has gone.
func (w *world) ask(ctx context.Context, key string) error {
	w.mu.Lock()
	w.calls[key]++
	w.begun++
	w.at = w.at.Add(w.step)
	n, hook := w.begun, w.hook
	w.mu.Unlock()
	if hook != nil {
		hook(n, key)
	}
	if ctx.Err() != nil {
		return marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "ask for %.20s", key)
	}
	return nil
}

// forget begins the counting anew.
func (w *world) forget() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.calls
	w.calls, w.begun, w.hook = map[string]int{}, 0, nil
	return old
}

func (*world) Name() string { return "world" }

// Search finds what shares words with the query, most words first.
func (w *world) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if err := w.ask(ctx, "search "+q.Text); err != nil {
		return nil, err
	}
	if w.down != "" && strings.Contains(q.Text, w.down) {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the engine is down")
	}
	terms := lexicon.Terms(q.Text)
	shares := func(text string) int {
		n := 0
		for _, t := range lexicon.Terms(text) {
			if slices.Contains(terms, t) {
				n++
			}
		}
		return n
	}
	var hits []search.Hit
	for loc, text := range w.docs {
		if n := shares(text); n > 0 {
			hits = append(hits, search.Hit{Locator: loc, Title: strings.TrimSuffix(strings.TrimPrefix(loc, "https://"), ".example/"), Snippet: text[:min(len(text), 90)], Score: float64(n)})
		}
	}
	slices.SortFunc(hits, func(a, b search.Hit) int {
		if a.Score != b.Score {
			return int(b.Score - a.Score)
		}
		return strings.Compare(a.Locator, b.Locator)
	})
	return hits[:min(len(hits), q.Limit)], nil
}

// fetcher is the world as a fetcher into a store.
type fetcher struct {
	*world
	blobs blob.Store
}

func (f fetcher) Fetch(ctx context.Context, loc string) (fetch.Page, error) {
	if err := f.ask(ctx, "fetch "+loc); err != nil {
		return fetch.Page{}, err
	}
	text, ok := f.docs[loc]
	switch {
	case f.denied[loc]:
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "members only")
	case !ok:
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "no such page")
	}
	raw, err := f.blobs.Put(ctx, []byte("<p>"+text))
	if err != nil {
		return fetch.Page{}, err
	}
	ref, err := f.blobs.Put(ctx, []byte(text))
	return fetch.Page{Locator: loc, URL: loc, Source: "web", Title: loc, Raw: raw, Text: ref, RawBytes: len(text) + 3, TextBytes: len(text),
		MediaType: "text/html", Extractor: "test/1", FetchedAt: began}, err
}

// oracle is the world as a language model: it searches, reads a hit, and claims the
// first sentences that it is shown.
type oracle struct{ *world }

func (oracle) ID() string { return "test/oracle" }

var (
	shownHit     = regexp.MustCompile(`(?m)^(H\d+) `)
	shownPassage = regexp.MustCompile(`(?m)^\[(S\d+\.\d+)\] (.*)$`)
	shownClaim   = regexp.MustCompile(`(?m)^\d+\. `)
)

func promptKey(c llm.Call) string {
	rendered, _ := json.Marshal(struct {
		Model string
		Call  llm.Call
	}{"test/oracle", c})
	return "model " + blob.Of(rendered).String()
}

func (o oracle) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	if err := o.ask(ctx, promptKey(c)); err != nil {
		return llm.Reply{}, err
	}
	reply := llm.Reply{Stop: llm.StopEnd}
	switch c.Prompt {
	case "step":
		reply.Calls = o.next(c.Shown())
		reply.Text = "DONE"
		if len(reply.Calls) > 0 {
			reply.Text, reply.Stop = "", llm.StopTools
		}
	case "write":
		var claims []map[string]any
		for _, p := range shownPassage.FindAllStringSubmatch(c.Shown(), 6) {
			first := lexicon.Sentences(p[2])[0]
			claims = append(claims, map[string]any{"text": p[2][first.Start:first.End], "passages": []string{p[1]}, "new_paragraph": false})
		}
		reply.Text = asJSON(map[string]any{"claims": claims, "gaps": []any{}, "discoveries": []any{}, "open_questions": []any{}})
	case "judge":
		var list []any
		for i := range shownClaim.FindAllString(c.Shown(), -1) {
			list = append(list, map[string]any{"claim": i + 1, "support": "supported"})
		}
		reply.Text = asJSON(map[string]any{"verdicts": list})
	default:
		return llm.Reply{}, marchwarden.Errorf(marchwarden.CodeInternal, "no such prompt: %s", c.Prompt)
	}
	said := len(reply.Text)
	for _, call := range reply.Calls {
		said += len(call.Name) + len(call.Input)
	}
	reply.Usage = llm.Usage{In: (len(c.System) + len(c.Shown())) / 4, Out: said/4 + 1}
	return reply, nil
}

// next is what the oracle looks for, by what it has been shown.
func (o oracle) next(input string) []llm.ToolCall {
	tool := func(name string, in map[string]string) llm.ToolCall {
		return llm.ToolCall{Name: name, Input: json.RawMessage(asJSON(in))}
	}
	for _, q := range [][]string{{"peas soil", "beans soil"}, {"Gregor Mendel"}, {"Brno garden"}, {"maize sun"}} {
		if strings.Contains(input, q[0]+o.variant) {
			continue
		}
		var calls []llm.ToolCall
		if hit := shownHit.FindStringSubmatch(input); hit != nil {
			calls = append(calls, tool("read_page", map[string]string{"id": hit[1], "reason": "it may help"}))
		}
		for _, query := range q {
			calls = append(calls, tool("web_search", map[string]string{"query": query + o.variant, "reason": "it is asked"}))
		}
		return calls
	}
	return nil
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// bench is a place where runs are made and kept.
type bench struct {
	*world
	resumetest.Place
	model bool
	said  []string
	lab   researcher.Lab // what is set here is kept
}

func newBench(t resumetest.T, dir string, w *world, model bool) *bench {
	t.Helper()
	return &bench{world: w, Place: resumetest.Open(t, dir, w.now), model: model}
}

// cut is a bench with the first k lines of this one's trace and some of the next.
func (b *bench) cut(t resumetest.T, dir string, k, torn int) *bench {
	t.Helper()
	return &bench{world: b.world, Place: b.Cut(t, dir, k, torn), model: b.model, lab: b.lab}
}

// answer is one call of the researcher.
func (b *bench) answer(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error) {
	l := b.lab
	l.Traces, l.Blobs, l.Version, l.Now, l.NewID = b.Traces, b.Blobs, "test", b.now, resumetest.TheID
	l.Say = func(s string) { b.said = append(b.said, s) }
	if b.model {
		l.Model = oracle{b.world}
	}
	return researcher.Prepared{Lab: l, Name: "test", Prepare: func(context.Context, marchwarden.Request) (researcher.Setup, error) {
		return researcher.Setup{Where: "the world", Engine: b.world, Fetcher: fetcher{b.world, b.Blobs}}, nil
	}}.Research(ctx, req, nil)
}

func (b *bench) resume(ctx context.Context, more *marchwarden.Constraints) (*marchwarden.Result, error) {
	return b.answer(ctx, marchwarden.Request{Resume: resumetest.ID, Constraints: more})
}

// keyOf is how the world counts the effect of a step; "" for one that is none of it.
func keyOf(s trace.Step) string {
	switch s := s.(type) {
	case *trace.Search:
		return "search " + s.Query
	case *trace.SearchComplete:
		return "search " + s.Query
	case *trace.Fetch:
		return "fetch " + s.URL
	case *trace.FetchComplete:
		return "fetch " + s.URL
	case *trace.Model:
		return "model " + s.PromptHash.String()
	case *trace.ModelComplete:
		return "model " + s.PromptHash.String()
	}
	return ""
}

// effects are the effects of a log that are done for good, and those that were
// begun and not finished.
func effects(log *trace.Log) (done, open map[string]bool) {
	done, open = map[string]bool{}, map[string]bool{}
	for _, s := range log.Steps {
		key := keyOf(s)
		switch s := s.(type) {
		case trace.Recorded:
			delete(open, key)
			if key != "" && s.Record().Error != marchwarden.CodeCanceled {
				done[key] = true
			}
		case trace.Beginning:
			open[key] = true
		}
	}
	return done, open
}

// whole holds a finished run to what every one keeps.
func (b *bench) whole(t resumetest.T, res *marchwarden.Result) {
	t.Helper()
	b.Whole(t, res, func(ctx context.Context, log *trace.Log, blobs blob.Store) (want, got []byte, err error) {
		again, err := researcher.Again(ctx, log, blobs, nil)
		return again.Want, again.Got, err
	})
}

func request(c marchwarden.Constraints) marchwarden.Request {
	return marchwarden.Request{Question: "What soil do peas and beans like, and who was Gregor Mendel of Brno?", Constraints: &c}
}

func ptr(n int) *int { return &n }

// each runs a test for both reasoners.
func each(t *testing.T, fn func(t *testing.T, model bool)) {
	for _, model := range []bool{false, true} {
		t.Run(fmt.Sprintf("model %v", model), func(t *testing.T) { fn(t, model) })
	}
}
