package researcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// slow faults take longer than ten thousand runs can wait for.
var slow = []llmtest.Fault{llmtest.FaultStall, llmtest.FaultPings, llmtest.FaultFlood}

var quick = slices.DeleteFunc(slices.Clone(llmtest.Faults), func(c llmtest.FaultCase) bool { return slices.Contains(slow, c.Fault) })

// answer is what the model of a gamble says to a turn.
func (g *gamble) answer(turn llmtest.Turn) llmtest.Said {
	g.mu.Lock()
	defer g.mu.Unlock()
	var said llmtest.Said
	switch webtest.SiteOf(turn) {
	case webtest.SiteStep:
		said = g.step(turn)
	case webtest.SiteJudge:
		said = llmtest.Said{Text: `{"verdicts":[{"claim":1,"support":"supported"},{"claim":2,"support":"unsupported"},{"claim":3,"support":"partial"},{"claim":4,"support":"?"}]}`}
	default:
		said = llmtest.Said{Text: webtest.Draft(turn.Input, g.dice.IntN(20))}
		if g.dice.IntN(10) == 0 {
			said.Text = said.Text[:g.dice.IntN(len(said.Text))]
		}
	}
	if g.dice.Float64() < g.wordy {
		said.Text += strings.Repeat(" and so on", g.dice.IntN(2*turn.MaxTokens))
	}
	if g.honest() { // such a provider stops where it was told to
		g.cutTo(&said, turn.MaxTokens)
	}
	said.Usage = g.usage(turn, said)
	if g.counts == "missing" {
		said.Fault = llmtest.FaultUsageMissing
	}
	if g.dice.Float64() < g.faults {
		said.Fault = quick[g.dice.IntN(len(quick))].Fault
		if g.honest() && (strings.HasPrefix(string(said.Fault), "usage_") || said.Fault == llmtest.FaultManyCalls) {
			said.Fault = llmtest.FaultServer // no lies, and no more than was allowed
		}
	}
	if i := slices.IndexFunc(llmtest.Faults, func(c llmtest.FaultCase) bool { return c.Fault == said.Fault }); i < 0 || llmtest.Faults[i].Charged {
		g.charged += said.Usage.Total()
	}
	return said
}

// step wants searches and reads, of what is there and of what is not.
func (g *gamble) step(turn llmtest.Turn) llmtest.Said {
	if g.dice.Float64() > 0.3+g.eager {
		return llmtest.Said{Text: "DONE, that is enough."}
	}
	var calls []llm.ToolCall
	for range 1 + g.dice.IntN(5) {
		calls = append(calls, searchFor(fmt.Sprint("gene therapy ", g.dice.IntN(40))))
	}
	for range g.dice.IntN(7) {
		calls = append(calls, read(fmt.Sprint(string("HLUX"[g.dice.IntN(4)]), g.dice.IntN(15))))
	}
	if g.dice.IntN(20) == 0 {
		for range 64 {
			calls = append(calls, searchFor(strings.Repeat("long words ", g.dice.IntN(200))))
		}
	}
	if g.dice.IntN(4) == 0 { // the way of models without tools
		raw, err := json.Marshal(object{"calls": asObjects(calls)})
		if err != nil {
			panic(err)
		}
		return llmtest.Said{Text: string(raw)}
	}
	return llmtest.Said{Calls: calls}
}

// cutTo ends a reply at its limit, as a provider does.
func (g *gamble) cutTo(said *llmtest.Said, limit int) {
	for g.reckon(*said) > limit && len(said.Calls) > 0 {
		said.Calls = said.Calls[:len(said.Calls)/2]
		said.Stop = llm.StopLength
	}
	for n := g.reckon(*said); n > limit; n = g.reckon(*said) {
		said.Text = strings.ToValidUTF8(said.Text[:min(len(said.Text)-1, len(said.Text)*limit/n)], "")
		said.Stop = llm.StopLength
	}
}

// reckon is what a reply counts.
func (g *gamble) reckon(said llmtest.Said) int {
	n := g.tokens(said.Text)
	for _, c := range said.Calls {
		n += g.tokens(c.Name) + g.tokens(string(c.Input))
	}
	return n
}

// tokens is the provider's tokenizer. An honest one knows nothing of the estimate.
func (g *gamble) tokens(s string) int {
	switch g.counts {
	case countsWords:
		return english.count(s)
	case countsLetters:
		return pieces(nil).count(s)
	}
	return llm.EstimateText(s)
}

// input is what a request counts before the provider lies about it: its texts,
// and what an honest provider adds, unseen.
func (g *gamble) input(turn llmtest.Turn) int {
	n := g.tokens(turn.System) + g.tokens(turn.Input)
	if !g.honest() {
		return n
	}
	var hidden struct {
		Tools        []json.RawMessage
		OutputConfig struct {
			Format struct{ Schema json.RawMessage }
		} `json:"output_config"`
		ResponseFormat struct {
			JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(turn.Body, &hidden); err != nil {
		panic(err)
	}
	n += 60 + g.seed%31 + g.tokens(string(hidden.OutputConfig.Format.Schema)+string(hidden.ResponseFormat.JSONSchema.Schema))
	for i, tool := range hidden.Tools {
		if i == 0 {
			n += 350
		}
		n += g.tokens(string(tool))
	}
	return n
}

// usage is what the provider counts, in its way.
func (g *gamble) usage(turn llmtest.Turn, said llmtest.Said) *llm.Usage {
	in, out := g.input(turn), min(g.reckon(said), turn.MaxTokens)
	switch g.counts {
	case "low":
		return &llm.Usage{In: in / 10, Out: out / 10}
	case "zero":
		return &llm.Usage{}
	case "negative":
		return &llm.Usage{In: -in, Out: -out - g.dice.IntN(1_000_000)}
	case "absurd":
		return &llm.Usage{In: 100_000_000_000, Out: g.dice.IntN(1 << 40)}
	case "half more":
		return &llm.Usage{In: in * 3 / 2, Out: out}
	case "thrice":
		return &llm.Usage{In: 3 * in, Out: 3 * out}
	case "cached":
		return &llm.Usage{In: in, Out: out, CacheRead: g.dice.IntN(in + 1), CacheWrite: g.dice.IntN(in + 1)}
	}
	return &llm.Usage{In: in, Out: out}
}

// anything is a search engine that finds some of the pages, whatever was asked.
type anything struct {
	g *gamble

	mu      sync.Mutex // guards queries
	queries []string
}

func (*anything) Name() string { return "anything" }

func (a *anything) Search(_ context.Context, q search.Query) ([]search.Hit, error) {
	a.mu.Lock()
	a.queries = append(a.queries, q.Text)
	a.mu.Unlock()
	sum := len(q.Text)
	for _, r := range q.Text {
		sum = sum*31 + int(r)
	}
	if sum < 0 {
		sum = -sum
	}
	if sum%11 == 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "the engine is down")
	}
	var hits []search.Hit
	for i, loc := range a.g.order {
		if (sum>>i)%2 == 0 && len(hits) < q.Limit {
			hits = append(hits, search.Hit{Locator: loc, Title: fmt.Sprint("Gene therapy ", i), Snippet: "A startup and its CRISPR gene therapy.", Score: 1 / float64(i+1)})
		}
	}
	return hits, nil
}

func (a *anything) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.queries)
}

// memory is a journal that keeps everything in memory. Like the real one it runs
// equal effects once, gives values back as they are in JSON, and reduces errors to
// code and sentence.
type memory struct {
	mu    sync.Mutex // guards what follows
	known map[trace.ActionID]*effect
	said  []string
}

var _ replay.Journal = (*memory)(nil)

type effect struct {
	once sync.Once
	out  []byte
	err  error
}

func (m *memory) Do(ctx context.Context, e replay.Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	input, err := json.Marshal(e.Input)
	if err != nil {
		return nil, errors.Join(replay.ErrJournal, err)
	}
	id := replay.Key(e.Kind, input)
	m.mu.Lock()
	f := m.known[id]
	if f == nil {
		f = &effect{}
		m.known[id] = f
	}
	m.mu.Unlock()
	f.once.Do(func() {
		out, err := run(ctx)
		if err != nil {
			err = &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: err.Error()}
		}
		f.out, f.err = slices.Clone(out), err
	})
	return slices.Clone(f.out), f.err
}

func (m *memory) Note(s trace.Step) error {
	raw, err := json.Marshal(s)
	if err != nil {
		return errors.Join(replay.ErrJournal, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.said = append(m.said, string(raw))
	return nil
}

func (m *memory) Live(marchwarden.Event) {}
func (m *memory) Past(int)               {}
func (m *memory) Lose(error)             {}

func (m *memory) notes() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.said)
}

// watched is a reasoner that is watched: what it wanted, what it was refused.
type watched struct {
	reason.Reasoner
	wanted  map[string]bool // queries, and locators that were offered
	refused int             // model calls that did not fit the budget
	cut     int             // answers that ended at their limit and were used so
}

func (w *watched) Plan(ctx context.Context, s *reason.State) (reason.Plan, error) {
	if s.Model != nil && s.Iteration == 1 {
		s.Model = &overheard{s.Model, w}
	}
	plan, err := w.Reasoner.Plan(ctx, s)
	for _, q := range plan.Searches {
		w.wanted[q.Query] = true
	}
	w.want(s, plan.Reads)
	return plan, err
}

func (w *watched) Choose(s *reason.State, hits []search.Hit) []reason.Read {
	reads := w.Reasoner.Choose(s, hits)
	w.want(s, reads)
	return reads
}

func (w *watched) want(s *reason.State, reads []reason.Read) {
	for _, r := range reads {
		if s.Offered(r.Locator) {
			w.wanted[r.Locator] = true
		}
	}
}

// overheard is the metered model as its reasoner sees it.
type overheard struct {
	llm.Model
	w *watched
}

func (o *overheard) Generate(ctx context.Context, c llm.Call) (llm.Reply, error) {
	reply, err := o.Model.Generate(ctx, c)
	if marchwarden.CodeOf(err) == marchwarden.CodeExhausted {
		o.w.refused++
	}
	switch {
	case c.Prompt == "repair": // what a repair makes of an answer is judged by its own end
		o.w.cut = 0
	case err == nil && c.Prompt == "write" && reply.Stop == llm.StopLength:
		o.w.cut = 1
	}
	return reply, err
}
