package pi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/guard"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/engines"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// The world of the report: four towns with a heat pump programme each, and five pages on
// each of these.
const reportQuestion = "How do the heat pump programmes of Aldmoor, Brenhaven, Corwick and Dunfirth compare?"

var (
	reportTowns   = []string{"Aldmoor", "Brenhaven", "Corwick", "Dunfirth"}
	reportAspects = []string{"origin", "cost", "savings", "complaints", "plans"}
	reportFacts   = map[string]func(town string, k int) []string{
		"origin": func(t string, k int) []string {
			return []string{fmt.Sprintf("The origin of the heat pump programme of %s was a cold winter in %d.", t, 2011+k),
				fmt.Sprintf("The council of %s began the heat pump programme in %d with a loan from the regional bank.", t, 2013+k)}
		},
		"cost": func(t string, k int) []string {
			return []string{fmt.Sprintf("The heat pump programme of %s cost %d million euros up to 2025.", t, 4+3*k),
				fmt.Sprintf("A household in %s paid %d euros of the cost of its own pump.", t, 1200+150*k)}
		},
		"savings": func(t string, k int) []string {
			return []string{fmt.Sprintf("The savings of households in %s were %d percent of their heating bills.", t, 21+4*k),
				fmt.Sprintf("In %s the heat pump programme replaced %d oil boilers, which brought the largest savings.", t, 310+95*k)}
		},
		"complaints": func(t string, k int) []string {
			return []string{fmt.Sprintf("Complaints in %s were mostly about the noise of %d outdoor units.", t, 14+5*k),
				fmt.Sprintf("The ombudsman of %s settled the complaints about heat pump installers in %d weeks.", t, 6+k)}
		},
		"plans": func(t string, k int) []string {
			return []string{fmt.Sprintf("The plans of %s foresee %d further heat pumps by 2030.", t, 500+120*k),
				fmt.Sprintf("In its plans %s wants to connect the harbour district to the heat pump network in %d.", t, 2027+k)}
		},
	}
	reportFiller = []string{
		"The weekly market of %s opens at seven on Saturdays and sells bread, fish and flowers below the old town hall.",
		"Visitors reach %s by the coastal railway, whose blue carriages stop twice an hour at the little station by the river.",
		"The football club of %s plays in the third division and trains on the meadow behind the brewery.",
		"A museum in %s shows nets, anchors and the ledgers of merchants who traded salt with the islands.",
		"The school choir of %s sang at the opening of the new library, which stands beside the chestnut avenue.",
		"Every autumn the people of %s hold a lantern walk along the sea wall, with soup afterwards.",
		"The oldest bridge of %s has five arches and was widened twice for carts and once for buses.",
		"Bird watchers come to the marsh east of %s, where herons and avocets rest in spring.",
	}
)

// reportPages are the twenty pages by their path.
func reportPages() map[string]webtest.Page {
	pages := map[string]webtest.Page{}
	for k, town := range reportTowns {
		for _, aspect := range reportAspects {
			text := strings.Join(reportFacts[aspect](town, k), " ")
			for i := range 24 {
				text += "\n\n" + fmt.Sprintf(reportFiller[i%len(reportFiller)], town) + fmt.Sprintf(" This was note %d of the local almanac.", 7*i+k)
			}
			pages["/"+strings.ToLower(town)+"/"+aspect] = webtest.Page{Title: town + " heat pump programme: " + aspect, Text: text}
		}
	}
	return pages
}

// reportWorld is an investigator with the web researcher, every part real but the model.
type reportWorld struct {
	dir    string
	blobs  blob.Store
	traces *trace.Dir
	web    marchwarden.Researcher
	mind   *reporter
	ids    atomic.Int64
}

func newReportWorld(t *testing.T, mind *reporter) *reportWorld {
	w := &reportWorld{dir: t.TempDir(), blobs: blob.NewMem(), mind: mind}
	site := webtest.New(t, reportPages())
	site.Finds(func(query string) []string {
		var out []string
		for _, town := range reportTowns {
			for _, aspect := range reportAspects {
				if strings.Contains(query, aspect) && (strings.Contains(query, town) || !strings.Contains(query, "town")) {
					out = append(out, "/"+strings.ToLower(town)+"/"+aspect)
				}
			}
		}
		return out
	})
	x := extract.New(extract.Config{})
	fetcher := webfetch.New(webfetch.Config{Store: w.blobs, Extract: x, Guard: guard.New(webtest.Loopback), Now: time.Now, PerHost: 32, Pace: -1, Timeout: 30 * time.Second})
	t.Cleanup(func() { _, _ = x.Close(), fetcher.Close() })
	w.open(t)
	w.web = researcher.NewWeb(researcher.WebConfig{Engine: engines.NewSearxng(engines.Config{BaseURL: site.SearchURL()}), Fetcher: fetcher,
		Lab: researcher.Lab{Traces: w.traces, Blobs: w.blobs, Version: "test", Now: time.Now, NewID: w.newID, Model: mind, PartOf: true}})
	return w
}

func (w *reportWorld) open(t *testing.T) {
	traces, err := trace.OpenDir(filepath.Join(w.dir, "traces"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traces.Close() })
	w.traces = traces
}

func (w *reportWorld) newID() marchwarden.TraceID {
	id, _ := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012d", w.ids.Add(1)))
	return id
}

func (*reportWorld) Members() []dispatch.Member {
	return []dispatch.Member{{Name: "web", Scope: "the open web", Trust: dispatch.Own, OpenWorld: true}}
}

func (w *reportWorld) Dispatch(ctx context.Context, _ string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	return w.web.Research(ctx, req, sink)
}

func (w *reportWorld) Evidence(ctx context.Context, _, hash string) ([]byte, error) {
	ref, err := blob.Parse(hash)
	if err != nil {
		return nil, err
	}
	return w.blobs.Get(ctx, ref)
}

func reportMinds() pi.Minds {
	return pi.Minds{Planner: func(id string) pi.Planner { return pi.PlannerFor(id, derive.New()) }, Writer: researcher.Mind}
}

func (w *reportWorld) research(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error) {
	return pi.New(pi.Config{Lab: researcher.Lab{Traces: w.traces, Blobs: w.blobs, Version: "test", Now: time.Now, NewID: w.newID, Model: w.mind}, Dispatcher: w, Minds: reportMinds(),
		Options: pi.Options{Parallel: 8}}).Research(ctx, req, nil)
}

// reporter is a competent model with a clock of its own: a call begins when those that its run waited for have ended, and
// lasts as long as lasts says. Calls of one run that are under way together begin together. It is safe for concurrent use.
type reporter struct {
	twist func(c llm.Call, text string) string // what a hostile one makes of a reply; nil is none
	wait  int                                  // sections that must be under way together before one is answered

	mu       sync.Mutex // guards what follows
	calls    []llm.Call
	in       int                // input tokens in all
	ends     map[string]float64 // of what each run has heard so far
	run      map[string]string  // of a nonce
	wall     float64
	sections chan struct{}
	waiting  int
}

func newReporter(wait int) *reporter {
	return &reporter{wait: wait, ends: map[string]float64{}, run: map[string]string{}, sections: make(chan struct{})}
}

var (
	lasts = map[string]float64{"investigate": 2, "step": 2, "write": 4, "judge": 2, "outline": 3, "section": 6, "summarize": 2}

	nonceIn    = regexp.MustCompile(`<<<\w+ (\w+)>>>`)
	askedIn    = regexp.MustCompile(`(?m)^Question: (.*)$`)
	passagesIn = regexp.MustCompile(`(?m)^\[(S\d+\.\d+)\] (.*)$`)
	partsIn    = regexp.MustCompile(`(?m)^Part: (.*)$`)
	hitsIn     = regexp.MustCompile(`(?m)^(H\d+) ([^|]*)`)
	statedIn   = regexp.MustCompile(`(?m)^\d+\. (.*?)((?: S\d+\.\d+)+)$`)
)

func (*reporter) ID() string { return "test/reporter" }

// begin is when a call begins, and the run that it is of.
func (m *reporter) begin(c llm.Call) (string, float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls, m.in = append(m.calls, c), m.in+llm.Estimate(c)
	nonce, run := "", ""
	if f := nonceIn.FindStringSubmatch(c.Input); f != nil {
		nonce = f[1]
	}
	switch c.Prompt {
	case "investigate", "outline", "section", "summarize":
		run = "pi"
	case "judge":
		run = m.run[nonce]
	default:
		run = askedIn.FindStringSubmatch(c.Input)[1]
	}
	if nonce != "" {
		m.run[nonce] = run
	}
	at := max(m.ends[run], m.ends["pi"])
	if c.Prompt == "outline" {
		at = m.wall
	}
	if c.Prompt == "section" {
		if m.waiting++; m.waiting == m.wait {
			close(m.sections)
		}
	}
	return run, at
}

func (m *reporter) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	run, at := m.begin(c)
	if c.Prompt == "section" && m.wait > 0 {
		select {
		case <-m.sections:
		case <-time.After(20 * time.Second): // the sections are not written side by side
			return llm.Reply{}, marchwarden.Errorf(marchwarden.CodeInternal, "only %d sections are under way", m.waiting)
		}
	}
	reply := m.answer(c)
	if m.twist != nil {
		reply.Text = m.twist(c, reply.Text)
	}
	for i, b := range []byte(reply.Text) { // as a stream would be
		if b == '}' && c.Heard != nil {
			c.Heard(reply.Text[:i+1])
		}
	}
	reply.Usage = llm.Usage{In: llm.Estimate(c), Out: llm.EstimateText(reply.Text) + 30*len(reply.Calls)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ends[run] = max(m.ends[run], at+lasts[c.Prompt])
	m.wall = max(m.wall, m.ends[run])
	return reply, ctx.Err()
}

func aspectOf(text string) string {
	for _, a := range reportAspects {
		if strings.Contains(strings.ToLower(text), a) {
			return a
		}
	}
	return ""
}

// facts are the passages shown that tell of an aspect, by id, with their sentences.
func factsIn(input, aspect string) (ids []string, said map[string][]string) {
	said = map[string][]string{}
	for _, p := range passagesIn.FindAllStringSubmatch(input, -1) {
		for k, town := range reportTowns {
			for _, fact := range reportFacts[aspect](town, k) {
				if strings.Contains(p[2], fact) {
					if said[p[1]] == nil {
						ids = append(ids, p[1])
					}
					said[p[1]] = append(said[p[1]], fact)
				}
			}
		}
	}
	return ids, said
}

type jsonClaim struct {
	Text     string   `json:"text"`
	Passages []string `json:"passages"`
}

func (m *reporter) answer(c llm.Call) llm.Reply {
	said := func(v any) llm.Reply {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return llm.Reply{Text: string(b), Stop: llm.StopEnd}
	}
	switch c.Prompt {
	case "investigate":
		var all []map[string]string
		for _, a := range reportAspects {
			all = append(all, map[string]string{"researcher": "web", "question": "What are the " + a + " of the heat pump programmes?", "reason": "a part of it"})
		}
		return said(map[string]any{"rihlas": all})
	case "step":
		return m.step(c)
	case "write":
		var claims []map[string]any
		for _, a := range reportAspects {
			ids, facts := factsIn(c.Input, a)
			for _, id := range ids {
				if len(claims) < 8 {
					claims = append(claims, map[string]any{"text": facts[id][0], "passages": []string{id}, "new_paragraph": false})
				}
			}
		}
		return said(map[string]any{"claims": claims, "gaps": []any{}, "discoveries": []any{}, "open_questions": []any{}})
	case "outline":
		var sections []map[string]any
		for _, p := range partsIn.FindAllStringSubmatch(c.Input, -1) {
			a := aspectOf(p[1])
			var ids []string
			for _, ps := range passagesIn.FindAllStringSubmatch(c.Input, -1) {
				if strings.Contains(strings.ToLower(ps[2]), a) && len(ids) < 8 {
					ids = append(ids, ps[1])
				}
			}
			form := "text"
			if a == "cost" {
				form = "table"
			}
			sections = append(sections, map[string]any{"heading": strings.ToUpper(a[:1]) + a[1:] + " of the programmes", "question": p[1], "passages": ids, "form": form})
		}
		return said(map[string]any{"sections": sections})
	case "section":
		return said(m.section(c))
	case "summarize":
		var claims []jsonClaim
		for i, s := range statedIn.FindAllStringSubmatch(c.Input, -1) {
			if i%7 == 0 && len(claims) < 3 {
				claims = append(claims, jsonClaim{s[1], strings.Fields(s[2])})
			}
		}
		return said(map[string]any{"claims": claims})
	case "judge":
		var verdicts []map[string]any
		for i := range statedIn.FindAllString(c.Input, -1) {
			verdicts = append(verdicts, map[string]any{"claim": i + 1, "support": "supported"})
		}
		return said(map[string]any{"verdicts": verdicts})
	}
	panic("no such prompt: " + c.Prompt)
}

// step searches for each town, reads the pages of its aspect, and is done.
func (m *reporter) step(c llm.Call) llm.Reply {
	aspect := aspectOf(askedIn.FindStringSubmatch(c.Input)[1])
	if aspect == "" {
		aspect = "origin"
	}
	if !strings.Contains(c.Input, "searched: ") {
		var calls []llm.ToolCall
		for _, town := range reportTowns {
			calls = append(calls, webtest.SearchFor(aspect+" of the programme in the town "+town))
		}
		return llm.Reply{Calls: calls, Stop: llm.StopTools}
	}
	var calls []llm.ToolCall
	for _, h := range hitsIn.FindAllStringSubmatch(c.Input, -1) {
		if strings.Contains(h[2], ": "+aspect) {
			calls = append(calls, webtest.Read(h[1]))
		}
	}
	if len(calls) == 0 {
		return llm.Reply{Text: "DONE", Stop: llm.StopEnd}
	}
	return llm.Reply{Calls: calls, Stop: llm.StopTools}
}

var amount = regexp.MustCompile(`\d+ (?:million )?euros`)

func (m *reporter) section(c llm.Call) any {
	aspect := aspectOf(regexp.MustCompile(`(?m)^Section: (.*)$`).FindString(c.Input))
	ids, facts := factsIn(c.Input, aspect)
	block := func(kind string, claims []jsonClaim, columns []string, rows [][]jsonClaim) map[string]any {
		if claims == nil {
			claims = []jsonClaim{}
		}
		return map[string]any{"type": kind, "claims": claims, "columns": append([]string{}, columns...), "rows": append([][]jsonClaim{}, rows...)}
	}
	var first, rest []jsonClaim
	var rows [][]jsonClaim
	for _, id := range ids {
		for i, f := range facts[id] {
			if i == 0 {
				first = append(first, jsonClaim{f, []string{id}})
			} else {
				rest = append(rest, jsonClaim{f, []string{id}})
			}
		}
		town := reportTowns[slices.IndexFunc(reportTowns, func(t string) bool { return strings.Contains(facts[id][0], t) })]
		if aspect == "cost" && len(facts[id]) == 2 {
			rows = append(rows, []jsonClaim{{town, []string{id}}, {amount.FindString(facts[id][0]), []string{id}}, {amount.FindString(facts[id][1]), []string{id}}})
		}
	}
	blocks := []map[string]any{block("paragraph", first, nil, nil), block("list", rest, nil, nil)}
	if rows != nil {
		blocks = []map[string]any{block("paragraph", first[:1], nil, nil), block("table", nil, []string{"Programme", "Cost", "Household"}, rows)}
	}
	return map[string]any{"blocks": blocks, "gaps": []any{}}
}
