package model

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// reader answers every prompt from what it is shown, as a plain model would: it
// searches first, reads a hit next, and claims the sentences of the passages.
type readerModel struct {
	calls  []llm.Call
	counts float64 // tokens for each that is estimated; zero is one
	cites  int     // passages of its claims; zero is four
}

func (*readerModel) ID() string { return "test/reader" }

var shownPassage = regexp.MustCompile(`(?m)^\[(S\d+\.\d+)\] (.*)$`)

func (m *readerModel) Generate(_ context.Context, c llm.Call) (llm.Reply, error) {
	c.Heard = nil // calls are compared
	m.calls = append(m.calls, c)
	switch c.Prompt {
	case "step":
		if hit := regexp.MustCompile(`(?m)^(H\d+) `).FindStringSubmatch(c.Shown()); hit != nil {
			return llm.Reply{Calls: []llm.ToolCall{open(hit[1]), find("gene editing therapy trial results")}, Stop: llm.StopTools}, nil
		}
		return llm.Reply{Calls: []llm.ToolCall{find("CRISPR startups gene therapy"), find("biotech companies gene editing")}, Stop: llm.StopTools}, nil
	case "write":
		var claims []obj
		for _, p := range shownPassage.FindAllStringSubmatch(c.Shown(), cmp.Or(m.cites, 4)) {
			first := lexicon.Sentences(p[2])[0]
			claims = append(claims, claim(p[2][first.Start:first.End], p[1]))
		}
		return llm.Reply{Text: encoded(answer(claims...)), Stop: llm.StopEnd}, nil
	case "judge":
		n := len(regexp.MustCompile(`(?m)^\d+\. `).FindAllString(c.Input, -1))
		return llm.Reply{Text: verdicts(slices.Repeat([]string{"supported"}, n)...).Text, Stop: llm.StopEnd}, nil
	}
	return llm.Reply{}, errors.New("no such prompt: " + c.Prompt)
}

// library is the embedded documents as hits and pages, by how they fit a query.
type library struct {
	set   *evidence.Set
	blobs blob.Store
}

func newLibrary(t *testing.T) *library {
	l := &library{&evidence.Set{}, blob.NewMem()}
	names, err := fs.Glob(corpus.FS(), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		file, err := fs.ReadFile(corpus.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		header, body, _ := strings.Cut(strings.TrimPrefix(string(file), "---\ntitle: "), "\n---\n")
		title, _, _ := strings.Cut(header, "\n")
		text := []byte(body)
		ref, err := l.blobs.Put(context.Background(), text)
		if err != nil {
			t.Fatal(err)
		}
		l.set.Add(fetch.Page{Locator: "https://" + strings.TrimSuffix(name, ".md") + ".example/", Title: title, Source: "web", Text: ref, Published: "2025-01-01"}, string(text))
	}
	return l
}

func (l *library) search(query string) []search.Hit {
	var hits []search.Hit
	seen := map[int]bool{}
	for _, p := range l.set.Rank(lexicon.Terms(query), 0) {
		if !seen[p.Source] && len(hits) < 10 {
			seen[p.Source] = true
			src, _, _ := l.set.Passage(p.ID)
			hits = append(hits, search.Hit{Locator: src.Page.Locator, Title: src.Page.Title, Snippet: p.Text})
		}
	}
	return hits
}

func (l *library) read(s *reason.State, reads []reason.Read) {
	for _, rd := range reads[:s.Meter.TakeSources(len(reads))] {
		for _, src := range l.set.Sources() {
			if src.Page.Locator == rd.Locator {
				s.Evidence.Add(src.Page, src.Text)
			}
		}
	}
}

// run is a research call in small: what the loop does around a reasoner.
func (l *library) run(t *testing.T, question string, limits marchwarden.Limits, m llm.Model) (reason.Draft, *reason.State) {
	t.Helper()
	s := stateOf(question, &evidence.Set{}, limits, m)
	if rm, ok := m.(*readerModel); ok && rm.counts > 0 {
		counting(s, m, rm.counts)
	}
	s.Meter.Hold(limits.TokenBudget / 2)
	r := New("m")
	for s.Iteration = 1; ; s.Iteration++ {
		p, err := r.Plan(context.Background(), s)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Searches)+len(p.Reads) == 0 {
			break
		}
		if _, err := s.Meter.Iterate(); err != nil {
			break
		}
		l.read(s, p.Reads)
		var hits []search.Hit
		for _, sr := range p.Searches {
			found := l.search(sr.Query)
			s.Searches = append(s.Searches, reason.Searched{Query: sr.Query, Iteration: s.Iteration, Hits: found})
			hits = append(hits, found...)
		}
		l.read(s, r.Choose(s, hits))
	}
	s.Meter.Hold(0)
	d, err := r.Write(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	return d, s
}

const startups = "What emerging startups in biotech are working on CRISPR gene therapy?"

// TestSmallestPreset is the promise of the shallow preset: two steps, an answer
// with citations, and room for a repair, within 5,000 tokens.
func TestSmallestPreset(t *testing.T) {
	l := newLibrary(t)
	for _, question := range []string{startups, "What is the capital of France?", "When is the last frost in Utah and which crops survive it?"} {
		m := &readerModel{}
		d, s := l.run(t, question, shallow, m)
		var sizes []int
		var names []string
		for _, c := range m.calls {
			sizes = append(sizes, llm.Estimate(c)+c.MaxTokens)
			names = append(names, c.Prompt)
		}
		if got := strings.Join(names, " "); !strings.HasPrefix(got, "step step write") {
			t.Fatalf("the calls are %s", got)
		}
		if sizes[1] > 1400 {
			t.Errorf("the second step reserves %d tokens", sizes[1])
		}
		g, err := verify.Gate(context.Background(), l.blobs, s.Evidence, verify.Basis{Rules: verify.Rules}, d)
		if err != nil || len(g.Citations) < 2 || g.UnknownIDs > 0 {
			t.Errorf("%d citations, %d unknown ids, %v", len(g.Citations), g.UnknownIDs, err)
		}
		shown := len(shownPassage.FindAllString(m.calls[2].Shown(), -1))
		t.Logf("%q: %v reserved %v, %d passages shown, %d of 5000 tokens, %d citations, exhausted %v", question, names, sizes, shown, s.Meter.Usage().Tokens, len(g.Citations), s.Meter.Usage().Exhausted)
		if slices.ContainsFunc(s.Meter.Usage().Exhausted, func(w string) bool { return strings.HasPrefix(w, "token") }) || s.Meter.Usage().Tokens > 5000 {
			t.Errorf("used %+v", s.Meter.Usage())
		}
	}
}

// A provider that counts more than is estimated gets as far as the budget allows:
// after the first call everything is planned by what it counts, no call is refused
// while writing, and the answer is the model's.
func TestSmallestPresetOfAHarshProvider(t *testing.T) {
	l := newLibrary(t)
	for _, tt := range []struct {
		counts  float64
		prompts string
		least   int // citations
	}{{1.2, "step write judge", 4}, {1.6, "step write", 4}, {2, "step write", 3}} {
		m := &readerModel{counts: tt.counts}
		d, s := l.run(t, startups, shallow, m)
		var names []string
		input := 0
		for _, c := range m.calls {
			names = append(names, c.Prompt)
			input += int(float64(llm.Estimate(c)) * tt.counts)
		}
		g, err := verify.Gate(context.Background(), l.blobs, s.Evidence, verify.Basis{Rules: verify.Rules}, d)
		used := s.Meter.Usage()
		t.Logf("%.1f: %v, %d citations, %d of 5000 tokens, of which %d input; %v", tt.counts, names, len(g.Citations), used.Tokens, input, used.Exhausted)
		if err != nil || len(g.Citations) < tt.least || !strings.HasPrefix(strings.Join(names, " "), tt.prompts) {
			t.Errorf("%.1f: %v with %d citations, %v", tt.counts, names, len(g.Citations), err)
		}
		if refused := s.Model.(*metered).refused; slices.Contains(refused, "write") || slices.Contains(refused, "judge") {
			t.Errorf("%.1f: these were refused, and could have been made to fit: %v", tt.counts, refused)
		}
		if used.Tokens > shallow.TokenBudget || input > used.Tokens || strings.Contains(strings.Join(used.Exhausted, " "), "counted") {
			t.Errorf("%.1f: the provider counted %d and more, the meter has %+v", tt.counts, input, used)
		}
	}
}

func TestSameStateAndRepliesGiveTheSame(t *testing.T) {
	l := newLibrary(t)
	for _, limits := range []marchwarden.Limits{shallow, balanced, deep} {
		one, two := &readerModel{}, &readerModel{}
		d1, _ := l.run(t, startups, limits, one)
		d2, _ := l.run(t, startups, limits, two)
		diff(t, "calls", two.calls, one.calls)
		diff(t, "drafts", d2, d1)
	}
}

// TestEverySourceIsHeard holds the packing to its promises.
func TestEverySourceIsHeard(t *testing.T) {
	long := dam[0]
	long.text = strings.Repeat("The Pineview Dam was completed and its cost was paid in full by many people of the valley.\n\n", 200)
	s := stateOf(damQuestion, setOf([]page{long, dam[1], dam[2]}), balanced, scripted(nil))
	v := newView(nonce)
	for _, tokens := range []int{0, 60, 300, 1000, 4000} {
		p := newPacker(v, s.Evidence, tokens, evidence.MaxPassageChars)
		p.fill(queriesOf(s))
		if cost := llm.EstimateText(strings.Join(p.lines(), "\n")); cost > tokens {
			t.Errorf("%d tokens packed into %d", cost, tokens)
		}
		if tokens >= 300 && len(p.heads) != 3 {
			t.Errorf("with %d tokens %d sources are shown", tokens, len(p.heads))
		}
		var ids []evidence.ID
		for _, ps := range p.passages() {
			ids = append(ids, ps.ID)
		}
		if !slices.IsSortedFunc(p.passages(), func(a, b evidence.Passage) int {
			if a.Source != b.Source {
				return a.Source - b.Source
			}
			return a.Index - b.Index
		}) {
			t.Errorf("out of order: %v", ids)
		}
	}
}
