package researcher_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/fetchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/anthropic"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/openai"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/model"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// How many runs the budget is tried with, and how many share a provider: a
// provider keeps every request.
const (
	budgetRuns  = 10_000
	perProvider = 250
)

// TestBudgetHolds runs the loop with the real adapters against a provider on the
// loopback, with sizes, replies, faults and token counts of all kinds, and holds
// every run against its caps.
func TestBudgetHolds(t *testing.T) {
	total := size(budgetRuns, 500, 100)
	var sum sums
	began := time.Now()
	for first := 0; first < total && !t.Failed(); first += perProvider {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			budgetRange(t, first, min(perProvider, total-first), &sum)
		})
	}
	t.Logf("budget: %d runs through a loopback provider with %d model calls, %d over budget, %d honest runs with %d overruns and %d tokens of which the meter has %d, %d runs exhausted, %d citations with %d fabricated locators, %.1f s",
		sum.runs.Load(), sum.calls.Load(), sum.over.Load(), sum.honest.Load(), sum.overruns.Load(), sum.charged.Load(), sum.metered.Load(), sum.exhausted.Load(), sum.citations.Load(), sum.fabricated.Load(), time.Since(began).Seconds())
}

// sums are over all runs.
type sums struct {
	runs, calls, over, honest, overruns, exhausted, citations, fabricated atomic.Int64
	charged, metered                                                      atomic.Int64 // tokens of honest runs, as the provider and as the meter counts them
}

// budgetRange plays n runs from the seed first against one provider.
func budgetRange(t *testing.T, first, n int, sum *sums) {
	gambles := map[string]*gamble{}
	for seed := first; seed < first+n; seed++ {
		g := newGamble(seed)
		gambles[g.name] = g
	}
	server := llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said { return gambles[turn.Model].answer(turn) })
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
	t.Cleanup(client.CloseIdleConnections)
	var group errgroup.Group
	group.SetLimit(2 * runtime.GOMAXPROCS(0))
	for seed := first; seed < first+n; seed++ {
		group.Go(func() error {
			gambles[fmt.Sprint("run-", seed)].play(t, server.URL(), client, sum)
			return nil
		})
	}
	_ = group.Wait() // failures are the test's
	sum.calls.Add(int64(len(server.Turns())))
}

// gamble is one run with a world and a model drawn by its seed.
type gamble struct {
	seed    int
	name    string
	wire    llmtest.Wire
	limits  marchwarden.Limits
	pages   map[string]string
	order   []string // locators
	counts  string   // how the provider counts
	faults  float64  // how often it fails
	eager   float64  // how much the model wants
	wordy   float64  // how long its replies are
	request marchwarden.Request

	mu      sync.Mutex // guards what follows
	dice    *rand.Rand // of the model and the search engine
	charged int        // tokens, by the provider's own count
}

// The honest ways of a provider to count.
const (
	countsWords   = "pieces of English words"
	countsLetters = "letters by four"
)

// countings are the ways of a provider to count.
var countings = []string{countsWords, countsLetters, countsWords, "estimate", "low", "zero", "negative", "absurd", "missing", "half more", "thrice", "cached"}

func newGamble(seed int) *gamble {
	d := rand.New(rand.NewPCG(uint64(seed), 1))
	g := &gamble{
		seed: seed, name: fmt.Sprint("run-", seed), wire: llmtest.WireOpenAI, pages: map[string]string{}, dice: rand.New(rand.NewPCG(uint64(seed), 2)),
		counts: countings[d.IntN(len(countings))], eager: d.Float64(), wordy: d.Float64() * d.Float64(),
		limits: marchwarden.Limits{TokenBudget: 1000 + int(59_000*d.Float64()*d.Float64()*d.Float64()), MaxIterations: 1 + d.IntN(20), MaxSources: 1 + d.IntN(20)},
	}
	if d.IntN(2) == 0 {
		g.wire = llmtest.WireAnthropic
	}
	if d.IntN(3) == 0 {
		g.faults = d.Float64() / 2
	}
	if d.IntN(10) == 0 {
		g.limits.TokenBudget = 1000
	}
	for i := range d.IntN(14) {
		loc := fmt.Sprintf("https://site%d.example/page/%d", i%5, i)
		rare := d.Float64() * d.Float64() * d.Float64()
		g.order, g.pages[loc] = append(g.order, loc), pool[d.IntN(len(pool))][int(float64(len(sizes))*rare)]
	}
	g.request = marchwarden.Request{Question: webtest.Startups, Constraints: &marchwarden.Constraints{
		MaxIterations: &g.limits.MaxIterations, TokenBudget: &g.limits.TokenBudget, MaxSources: &g.limits.MaxSources}}
	if d.IntN(4) == 0 {
		g.request.Context = strings.Repeat("What is known of gene therapy. ", 1+d.IntN(60))
	}
	return g
}

func (g *gamble) honest() bool { return g.counts == countsWords || g.counts == countsLetters }

// sizes of pages, in bytes; the large ones are rare.
var sizes = []int{300, 900, 0, 2500, 60, 1, 5000, 8000, 20_000, 60_000, 200_000}

// pool are pages of every size in several scripts, made once.
var pool = func() [][]string {
	units := []string{
		"Nova Edit is a startup that develops CRISPR gene therapy number %d for sickle cell disease. ",
		"Die Firma %d arbeitet an einer Gentherapie für Süßwasserfische über Äpfel.\n\n",
		"新しい遺伝子治療の会社%dは東京にあります。",
		"CRISPR %d 3.14159 2,718 1e9 ; {} [] <> == != 0x7f\t",
		"💥🧬 gene %d ",
		"genetherapystartup%d",
		"Yritys %d kehittää CRISPR-geenihoitoa, ja tutkijoiden mukaan ensimmäiset potilaskokeet aloitetaan todennäköisesti syksyllä. ",
		"Girişim %d, CRISPR gen tedavisi üzerinde çalışıyor ve araştırmacılar hastalığın iyileştirilebileceğini düşünüyor. ",
		"Gene therapy: Wojciechowska, Grzybowski %d, Nkechi Okonkwo, Thandiwe Mkhize, Rajalakshmi Venkataraman, Oyelaran Adebayo. ",
		"Компания %d разрабатывает генную терапию CRISPR для больных серповидной анемией. ",
		"CRISPR gene therapy %d ATGGCTAGCAAGGTTCTGACCGATTACGGCTTAAGC c3a91f07be5d2246908efa77 TWFyY2ggd2luZHMgYmxvdyBv. ",
	}
	out := make([][]string, len(units))
	for u, unit := range units {
		var b strings.Builder
		for i := 0; b.Len() < sizes[len(sizes)-1]; i++ {
			fmt.Fprintf(&b, unit, i)
		}
		for _, size := range sizes {
			out[u] = append(out[u], strings.ToValidUTF8(b.String()[:size], ""))
		}
	}
	return out
}()

// pieces are the pieces of words that a tokenizer knows; without any it takes four
// letters at a time.
type pieces map[string]bool

// english are pieces learnt from English, as those of real tokenizers are: what
// is frequent in the embedded library. A word of another language falls into many.
var english = func() pieces {
	const often, longest = 5, 12
	seen, known := map[string]int{}, pieces{}
	names, err := fs.Glob(corpus.FS(), "*.md")
	if err != nil {
		panic(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(corpus.FS(), name)
		if err != nil {
			panic(err)
		}
		for _, word := range strings.FieldsFunc(strings.ToLower(string(text)), func(r rune) bool { return r < 'a' || r > 'z' }) {
			for i := range word {
				for j := i + 2; j <= min(len(word), i+longest); j++ {
					seen[word[i:j]]++
				}
			}
		}
	}
	for piece, n := range seen {
		known[piece] = n >= often
	}
	return known
}()

// count is the tokens of a text: the longest known pieces of its small letters,
// pairs of capitals and of digits, marks one by one, and pairs of bytes of all
// else.
func (p pieces) count(s string) int {
	n := 0
	for i := 0; i < len(s); {
		j := i + 1
		run := func(in func(byte) bool) int {
			for j < len(s) && in(s[j]) {
				j++
			}
			return j - i
		}
		switch c := s[i]; {
		case small(c) || capital(c) && j < len(s) && small(s[j]):
			run(small)
			n += p.word(strings.ToLower(s[i:j]))
		case capital(c):
			n += (run(capital) + 1) / 2
		case c >= '0' && c <= '9':
			n += (run(func(c byte) bool { return c >= '0' && c <= '9' }) + 1) / 2
		case c >= 0x80:
			n += (run(func(c byte) bool { return c >= 0x80 }) + 1) / 2
			if j < len(s) && small(s[j]) { // which the letter after it joins
				j++
			}
		case c != ' ':
			n++
		}
		i = j
	}
	return n
}

func small(c byte) bool   { return c >= 'a' && c <= 'z' }
func capital(c byte) bool { return c >= 'A' && c <= 'Z' }

func (p pieces) word(w string) int {
	if p == nil {
		return (len(w) + 3) / 4
	}
	n := 0
	for w != "" {
		k := min(len(w), 12)
		for k > 1 && !p[w[:k]] {
			k--
		}
		w = w[k:]
		n++
	}
	return n
}

// play runs it and checks.
func (g *gamble) play(t *testing.T, base string, client *http.Client, sum *sums) {
	var m llm.Model = openai.New(llm.Config{Key: labKey, BaseURL: base + "/v1", Model: g.name, HTTP: client, Idle: 5 * time.Second})
	if g.wire == llmtest.WireAnthropic {
		m = anthropic.New(llm.Config{Key: labKey, BaseURL: base, Model: g.name, HTTP: client, Idle: 5 * time.Second})
	}
	m = llm.NewSteady(m, llm.SteadyConfig{Now: time.Now, Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }})
	blobs := blob.NewMem()
	engine := &anything{g: g}
	fetcher := &fetchtest.Fake{Store: blobs, Texts: g.pages, Errs: map[string]error{}, Now: time.Unix(1_800_000_000, 0).UTC()}
	for i, loc := range g.order {
		if i%7 == 6 {
			fetcher.Errs[loc] = marchwarden.Errorf(marchwarden.CodeUnavailable, "the page is down")
		}
	}
	journal := &memory{known: map[trace.ActionID]*effect{}}
	spy := &watched{Reasoner: model.New(m.ID()), wanted: map[string]bool{}}
	start := &trace.Start{Format: trace.Format, TraceID: newID(), Researcher: "web", Mind: m.ID(), Model: m.ID(), Engine: engine.Name(),
		Request: g.request, Limits: g.request.Limits(), StartedAt: time.Unix(1_800_000_000, 0).UTC()}
	l := loop.New(loop.Config{Engine: engine, Fetcher: fetcher, Reasoner: spy, Model: m, Blobs: blobs})
	res, err := l.Run(t.Context(), journal, start, func() time.Duration { return 0 })
	if err != nil {
		t.Errorf("seed %d: no result: %v", g.seed, err)
		return
	}
	sum.runs.Add(1)
	g.check(t, res, outcome{journal, spy, engine.asked(), fetcher.Fetched(), g.pages, fetcher.Errs}, sum)
}

// outcome is what was seen of a run.
type outcome struct {
	journal *memory
	spy     *watched
	asked   []string // queries
	fetched []string // locators that were asked for
	pages   map[string]string
	down    map[string]error
}

func (g *gamble) check(t *testing.T, res *marchwarden.Result, o outcome, sum *sums) {
	c := res.CostMetadata
	if over := c.TokensUsed > g.limits.TokenBudget; over != c.OverBudget || over && g.honest() || c.TokensUsed < 0 {
		sum.over.Add(1)
		t.Errorf("seed %d: %d tokens of %d used", g.seed, c.TokensUsed, g.limits.TokenBudget)
	}
	read := 0
	for _, loc := range o.fetched {
		if _, ok := o.pages[loc]; ok && o.down[loc] == nil {
			read++
		}
	}
	if c.IterationsRun > g.limits.MaxIterations || read > g.limits.MaxSources {
		t.Errorf("seed %d: %d iterations and %d documents, with %+v", g.seed, c.IterationsRun, read, g.limits)
	}
	sum.citations.Add(int64(len(res.Citations)))
	for _, cite := range res.Citations {
		if !slices.Contains(o.fetched, cite.Locator) {
			sum.fabricated.Add(1)
			t.Errorf("seed %d: %s is cited and was not fetched", g.seed, cite.Locator)
		}
	}
	if g.honest() {
		sum.honest.Add(1)
		for _, note := range o.journal.notes() {
			if strings.Contains(note, "tokens more than") {
				sum.overruns.Add(1)
				t.Errorf("seed %d: an honest provider that counts %s overran: %s", g.seed, g.counts, note)
			}
		}
		g.mu.Lock()
		charged := g.charged
		g.mu.Unlock()
		sum.charged.Add(int64(charged))
		sum.metered.Add(int64(c.TokensUsed))
		if charged > g.limits.TokenBudget {
			sum.over.Add(1)
			t.Errorf("seed %d: a provider that counts %s charged %d tokens of %d, the meter says %d", g.seed, g.counts, charged, g.limits.TokenBudget, c.TokensUsed)
		}
	}
	g.checkExhaustion(t, res, o, sum)
}

// checkExhaustion holds what the result says of its caps against what they did.
func (g *gamble) checkExhaustion(t *testing.T, res *marchwarden.Result, o outcome, sum *sums) {
	left := []string{} // what was planned and not done
	for want := range o.spy.wanted {
		if !slices.Contains(o.fetched, want) && !slices.Contains(o.asked, want) {
			left = append(left, want)
		}
	}
	said := -1
	for i, gap := range res.Gaps {
		if gap.Category == marchwarden.BudgetExhausted && strings.HasPrefix(gap.Detail, "the work ended at the ") && gap.Topic != "" {
			said = i
		}
	}
	c := res.CostMetadata
	if c.BudgetExhausted != res.ConfidenceFactors.BudgetExhausted || c.BudgetExhausted != (said >= 0) {
		t.Errorf("seed %d: exhausted %v, in the factors %v, in the gaps %v", g.seed, c.BudgetExhausted, res.ConfidenceFactors.BudgetExhausted, res.Gaps)
	}
	cut := o.spy.cut > 0 && !slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Topic == "writing the answer" })
	if (len(left) > 0 || o.spy.refused > 0 || cut) && !c.BudgetExhausted {
		t.Errorf("seed %d: not exhausted, though %d calls were refused, %d answers cut and these were left: %q", g.seed, o.spy.refused, o.spy.cut, left)
	}
	if len(left) > 0 && said >= 0 && !strings.Contains(res.Gaps[said].Detail, "were left") {
		t.Errorf("seed %d: the gap does not say what was left of %q: %+v", g.seed, left, res.Gaps[said])
	}
	if c.BudgetExhausted {
		sum.exhausted.Add(1)
	}
}
