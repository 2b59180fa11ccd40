package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/fetchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// straight is a journal that keeps nothing.
type straight struct{}

func (straight) Do(ctx context.Context, _ replay.Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	return run(ctx)
}
func (straight) Note(trace.Step) error  { return nil }
func (straight) Live(marchwarden.Event) {}
func (straight) Past(int)               {}
func (straight) Lose(error)             {}

// latency is how long a page or a search takes over the network, at its best.
const latency = 40 * time.Millisecond

// world is ten pages behind a slow network.
type world struct {
	engine  slowEngine
	fetcher *fetchtest.Fake
	blobs   blob.Store
}

// slowEngine finds the same pages for every query.
type slowEngine struct {
	*searchtest.Fake
	hits []search.Hit
}

func (e slowEngine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	if _, err := e.Fake.Search(ctx, q); err != nil {
		return nil, err
	}
	return e.hits[:min(len(e.hits), q.Limit)], nil
}

const asked = "How high is the Zanzibar dam and who built it?"

func newWorld() *world {
	w := &world{blobs: blob.NewMem()}
	w.engine = slowEngine{Fake: &searchtest.Fake{Delay: latency}}
	w.fetcher = &fetchtest.Fake{Store: w.blobs, Texts: map[string]string{}, Delay: map[string]time.Duration{}}
	p := newProse(8)
	for i := range 10 {
		locator := fmt.Sprintf("file:%d", i)
		w.fetcher.Texts[locator] = strings.Join([]string{p.passage(60), fmt.Sprintf("The Zanzibar dam is %d metres high. It was built by the Weber company in 19%d.", 80+i, 10+i), p.passage(60)}, "\n\n")
		w.fetcher.Delay[locator] = latency
		w.engine.hits = append(w.engine.hits, search.Hit{Locator: locator, Title: "Dam", Snippet: "The Zanzibar dam", Score: float64(20 - i)})
	}
	return w
}

func (w *world) research(t testing.TB) {
	req := marchwarden.Request{Question: asked}
	l := loop.New(loop.Config{Engine: w.engine, Fetcher: w.fetcher, Reasoner: extractive.New(), Blobs: w.blobs})
	start := &trace.Start{Request: req, Limits: req.Limits(), StartedAt: time.Unix(1_700_000_000, 0), Engine: "fake"}
	res, err := l.Run(t.Context(), straight{}, start, func() time.Duration { return 0 })
	if err != nil || len(res.Citations) == 0 {
		t.Fatalf("no answer: %v", err)
	}
}

// looping measures a whole research over a slow network beside a loop that makes
// the same searches and reads the same pages one after another.
func looping(t testing.TB) []result {
	first := newWorld()
	first.research(t)
	queries, pages := first.engine.Queries(), first.fetcher.Fetched()
	return times(fmt.Sprintf("a research of %d searches and %d pages, %v each, with its answer checked", len(queries), len(pages), latency), 3,
		side{"", func() { newWorld().research(t) }},
		side{"one search and one page after another, and no answer", func() {
			w := newWorld()
			err := sequential(queries, func(q search.Query) error { _, err := w.engine.Search(t.Context(), q); return err })
			if err == nil {
				err = sequential(pages, func(p string) error { _, err := w.fetcher.Fetch(t.Context(), p); return err })
			}
			if err != nil {
				t.Fatal(err)
			}
		}})
}
