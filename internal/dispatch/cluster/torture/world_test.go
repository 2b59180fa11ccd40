//go:build linux

package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// paying asks the world outside a run for something, which is counted.
type paying func(ctx context.Context, kind string, in, out any) error

// answer is what the world says. It depends on what is asked alone.
func answer(kind string, in json.RawMessage) (any, error) {
	switch kind {
	case "model":
		var c llm.Call
		if err := json.Unmarshal(in, &c); err != nil {
			return nil, err
		}
		return say(c)
	case "search":
		var q search.Query
		if err := json.Unmarshal(in, &q); err != nil {
			return nil, err
		}
		return find(q), nil
	case "page":
		var address string
		if err := json.Unmarshal(in, &address); err != nil {
			return nil, err
		}
		return pages(plotIn(address))[address], nil
	}
	return nil, fmt.Errorf("the world has no %q", kind)
}

// question is what is asked about a plot: each has an answer of its own.
func question(plot int) string {
	return fmt.Sprintf("What soil do the peas of plot%d like, and who was Gregor Mendel of plot%d?", plot, plot)
}

var plotName = regexp.MustCompile(`plot(\d+)`)

// plotIn is the plot that a text is about.
func plotIn(text string) int {
	var n int
	if found := plotName.FindStringSubmatch(text); found != nil {
		_, _ = fmt.Sscan(found[1], &n)
	}
	return n
}

// pages are what can be read about a plot, by address.
func pages(plot int) map[string]string {
	at := func(page string) string { return fmt.Sprintf("https://%s.plot%d.example/", page, plot) }
	return map[string]string{
		at("peas"):   fmt.Sprintf("Peas of plot%d like cool soil and shade. The peas of plot%d were first sown by Gregor Mendel in Brno.", plot, plot),
		at("mendel"): fmt.Sprintf("Gregor Mendel of plot%d was a friar who grew peas in Brno. He counted every pea of plot%d.", plot, plot),
		at("soil"):   fmt.Sprintf("Cool soil holds water for the peas of plot%d. Warm soil suits beans and maize.", plot),
	}
}

// find finds what shares words with a query, most words first.
func find(q search.Query) []search.Hit {
	terms := lexicon.Terms(q.Text)
	hits := []search.Hit{}
	for address, text := range pages(plotIn(q.Text)) {
		score := 0
		for _, t := range lexicon.Terms(text) {
			if slices.Contains(terms, t) {
				score++
			}
		}
		if score > 0 {
			hits = append(hits, search.Hit{Locator: address, Title: address, Snippet: text[:60], Score: float64(score)})
		}
	}
	slices.SortFunc(hits, func(a, b search.Hit) int {
		if a.Score != b.Score {
			return int(b.Score - a.Score)
		}
		return strings.Compare(a.Locator, b.Locator)
	})
	return hits[:min(len(hits), q.Limit)]
}

var (
	shownHit     = regexp.MustCompile(`(?m)^(H\d+) `)
	shownPassage = regexp.MustCompile(`(?m)^\[(S\d+\.\d+)\] (.*)$`)
	shownClaim   = regexp.MustCompile(`(?m)^\d+\. `)
)

// say is a language model: it searches twice, reads what it finds, one thing at a time,
// and claims the first sentences that it is shown.
func say(c llm.Call) (llm.Reply, error) {
	r := llm.Reply{Stop: llm.StopEnd}
	switch c.Prompt {
	case "step":
		r.Text = "DONE"
		if call, ok := next(c.Shown()); ok {
			r.Text, r.Stop, r.Calls = "", llm.StopTools, []llm.ToolCall{call}
		}
	case "write":
		claims := []any{}
		for _, p := range shownPassage.FindAllStringSubmatch(c.Shown(), 6) {
			first := lexicon.Sentences(p[2])[0]
			claims = append(claims, map[string]any{"text": p[2][first.Start:first.End], "passages": []string{p[1]}, "new_paragraph": false})
		}
		r.Text = asJSON(map[string]any{"claims": claims, "gaps": []any{}, "discoveries": []any{}, "open_questions": []any{}})
	case "judge":
		list := []any{}
		for i := range shownClaim.FindAllString(c.Shown(), -1) {
			list = append(list, map[string]any{"claim": i + 1, "support": "supported"})
		}
		r.Text = asJSON(map[string]any{"verdicts": list})
	default:
		return r, fmt.Errorf("no such prompt: %s", c.Prompt)
	}
	r.Usage = llm.Usage{In: (len(c.System) + len(c.Shown())) / 4, Out: len(r.Text)/4 + 9}
	return r, nil
}

// next is what the model wants next, by what it has been shown.
func next(input string) (llm.ToolCall, bool) {
	call := func(name string, in map[string]string) (llm.ToolCall, bool) {
		return llm.ToolCall{Name: name, Input: json.RawMessage(asJSON(in))}, true
	}
	for _, words := range []string{"peas soil", "Gregor Mendel"} {
		if query := fmt.Sprintf("%s plot%d", words, plotIn(input)); !strings.Contains(input, query) {
			return call("web_search", map[string]string{"query": query, "reason": "it is asked"})
		}
	}
	if hit := shownHit.FindStringSubmatch(input); hit != nil {
		return call("read_page", map[string]string{"id": hit[1], "reason": "it may help"})
	}
	return llm.ToolCall{}, false
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// outside is the world as a run sees it: a model, an engine and a fetcher for which
// every call is paid.
type outside struct {
	pay   paying
	blobs blob.Store
}

func (outside) ID() string   { return "test/oracle" }
func (outside) Name() string { return "world" }

func (o outside) Generate(ctx context.Context, c llm.Call) (r llm.Reply, err error) {
	return r, failed(ctx, o.pay(ctx, "model", c, &r))
}

func (o outside) Search(ctx context.Context, q search.Query) (hits []search.Hit, err error) {
	return hits, failed(ctx, o.pay(ctx, "search", q, &hits))
}

func (o outside) Fetch(ctx context.Context, address string) (fetch.Page, error) {
	var text string
	if err := o.pay(ctx, "page", address, &text); err != nil {
		return fetch.Page{}, failed(ctx, err)
	}
	raw, err := o.blobs.Put(ctx, []byte("<p>"+text))
	if err != nil {
		return fetch.Page{}, err
	}
	ref, err := o.blobs.Put(ctx, []byte(text))
	return fetch.Page{Locator: address, URL: address, Source: "web", Title: address, Raw: raw, Text: ref, RawBytes: len(text) + 3, TextBytes: len(text),
		MediaType: "text/html", Extractor: "test/1", FetchedAt: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}, err
}

func failed(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "ask the world")
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "ask the world")
}

// research is one call of the researcher that all of this is about.
func research(ctx context.Context, lab researcher.Lab, pay paying, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	o := outside{pay: pay, blobs: lab.Blobs}
	lab.Version, lab.Model, lab.PartOf = "test", o, true
	return researcher.Prepared{Lab: lab, Name: queue, Prepare: func(context.Context, marchwarden.Request) (researcher.Setup, error) {
		return researcher.Setup{Where: "the world", Engine: o, Fetcher: o}, nil
	}}.Research(ctx, req, sink)
}

// queue is the name of the one researcher.
const queue = "garden"

// essence is a result without what differs between two runs of the same question.
func essence(res *marchwarden.Result) ([]byte, error) {
	same := *res
	same.TraceID, same.CostMetadata.WallTimeSec = marchwarden.TraceID{}, 0
	return marchwarden.EncodeResult(&same)
}
