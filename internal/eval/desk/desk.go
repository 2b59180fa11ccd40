// Package desk opens the libraries that evaluation suites ask, and asks them with the
// mind, the depth and the researcher that the user chose. It owns no measure: a suite
// sees eval.Desk alone.
//
// A library is indexed in memory. Without records a question runs on the very loop that
// a user's runs on, and leaves nothing behind; with them every question is a run with a
// trace of its own, which can be replayed and verified like any other.
package desk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Today is the day of every question, so that a run says tomorrow what it says today.
func Today() time.Time { return time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC) }

// Config is what a desk works with. The caller closes what it passes in, after the
// libraries.
type Config struct {
	Extractor *extract.Extractor
	// Model plans and writes; nil leaves both to the mind that needs none.
	Model llm.Model
	// Reasoner answers where there is no model; nil is the one of the program.
	Reasoner reason.Reasoner
	// Embed makes vectors; nil is to work without.
	Embed embed.Embedder
	// Depth is that of requests that name none; "" is balanced.
	Depth marchwarden.Depth
	// Records keeps a trace of every question; nil keeps none.
	Records *Records
	// Pi asks the investigator, who sends the researcher of the library. It needs
	// Records.
	Pi bool
}

// Records are where traces are kept.
type Records struct {
	Traces  *trace.Dir
	Blobs   blob.Store
	Version string // of the program
	// Now is the clock of the traces, made by OnToday.
	Now   func() time.Time
	NewID func() marchwarden.TraceID
}

// Desk opens libraries. It is safe for concurrent use.
type Desk struct {
	cfg  Config
	used *usage // by all questions
}

var _ eval.Desk = (*Desk)(nil)

// New makes a desk.
func New(cfg Config) (*Desk, error) {
	if cfg.Pi && cfg.Records == nil {
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "an investigator needs a place for its traces")
	}
	return &Desk{cfg, newUsage()}, nil
}

// Mind is the id of the mind that answers: a model's, or that of the one that needs
// none.
func (d *Desk) Mind() string {
	if d.cfg.Model != nil {
		return d.cfg.Model.ID()
	}
	return researcher.Mind("").ID()
}

// Used is what models have consumed so far, by model, also for questions that failed.
func (d *Desk) Used() map[string]ledger.Tokens {
	d.used.mu.Lock()
	defer d.used.mu.Unlock()
	return maps.Clone(d.used.by)
}

// Open indexes a library.
func (d *Desk) Open(ctx context.Context, name string, fsys fs.FS) (eval.Library, error) {
	ix, err := local.Open(ctx, "")
	if err != nil {
		return nil, err
	}
	l := &library{cfg: d.cfg, all: d.used, folder: fetch.EmbeddedFolder(name, name, fsys), index: ix, blobs: blob.NewMem()}
	if d.cfg.Records != nil {
		l.blobs = d.cfg.Records.Blobs
	}
	report, err := ix.Update(ctx, l.folder, local.UpdateOptions{Extract: d.cfg.Extractor, Now: Today})
	if err == nil && len(report.Notes) > 0 {
		err = marchwarden.Errorf(marchwarden.CodeMalformed, "library %s: %s: %s", name, report.Notes[0].Name, report.Notes[0].Reason)
	}
	if err == nil {
		l.fingerprint, err = ix.Fingerprint(ctx, l.folder)
	}
	if err != nil {
		return nil, errors.Join(err, ix.Close())
	}
	l.engine = ix.Engine(d.cfg.Embed, l.folder)
	l.fetcher = watched{fetch.NewFiles(l.blobs, d.cfg.Extractor, Today, l.folder)}
	l.described = fmt.Sprintf("%s (%d documents)", name, report.Added)
	return l, nil
}

// watched tells who watches what is read.
type watched struct{ fetch.Fetcher }

func (w watched) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	eval.Fetched(ctx, locator)
	return w.Fetcher.Fetch(ctx, locator)
}

// library is one indexed body of documents.
type library struct {
	cfg         Config
	all         *usage
	folder      *fetch.Folder
	index       *local.Index
	engine      search.Engine
	fetcher     fetch.Fetcher
	blobs       blob.Store
	fingerprint string
	described   string
}

// Engine is the search of the library.
func (l *library) Engine() search.Engine { return l.engine }

// Close frees the index.
func (l *library) Close() error { return l.index.Close() }

// Ask runs one question, checks the answer against the documents and charges what it
// cost.
func (l *library) Ask(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error) {
	if req.Depth == "" {
		req.Depth = l.cfg.Depth
	}
	var model llm.Model
	used := newUsage()
	if l.cfg.Model != nil {
		model = counted{l.cfg.Model, []*usage{used, l.all}}
	}
	ask := l.straight
	switch {
	case l.cfg.Pi:
		ask = l.investigate
	case l.cfg.Records != nil:
		ask = l.recorded
	}
	res, err := ask(ctx, req, model)
	if err == nil {
		err = ctx.Err() // a partial answer is no measure
	}
	if err != nil {
		return nil, err
	}
	if report, err := verify.Check(ctx, l.blobs, res); err != nil || !report.OK() {
		return nil, errors.Join(err, marchwarden.Errorf(marchwarden.CodeInternal, "an answer does not stand: %s", report))
	}
	s := eval.Spent{Tokens: res.CostMetadata.TokensUsed, USD: used.price(res)}
	if l.cfg.Records != nil {
		s.Trace = res.TraceID.String()
	}
	eval.Charge(ctx, s)
	return res, nil
}

// straight runs a question without a record.
func (l *library) straight(ctx context.Context, req marchwarden.Request, model llm.Model) (*marchwarden.Result, error) {
	id := llm.ID(model)
	mind := researcher.Mind(id)
	if l.cfg.Reasoner != nil {
		mind = l.cfg.Reasoner
	}
	run := loop.New(loop.Config{Engine: l.engine, Fetcher: l.fetcher, Reasoner: mind, Model: model, Vectors: l.cfg.Embed, Blobs: l.blobs})
	start := &trace.Start{Request: req, Limits: req.Limits(), StartedAt: Today(), Engine: l.engine.Name(), Model: id, Mind: mind.ID(), Instruments: trace.Instruments{Gate: verify.Rules}}
	reader.Describe(start, l.cfg.Embed)
	return run.Run(ctx, unwritten{}, start, func() time.Duration { return 0 })
}

// recorded runs a question under a trace.
func (l *library) recorded(ctx context.Context, req marchwarden.Request, model llm.Model) (*marchwarden.Result, error) {
	return l.researcher(model, false).Research(ctx, req, nil)
}

// asked is the researcher of the library, as the user's files researcher is of folders.
type asked struct {
	*library
	lab researcher.Lab
}

func (l *library) researcher(model llm.Model, partOf bool) asked {
	return asked{l, l.lab(model, partOf)}
}

func (l *library) lab(model llm.Model, partOf bool) researcher.Lab {
	r := l.cfg.Records
	return researcher.Lab{
		Traces: r.Traces, Blobs: l.blobs, Version: r.Version, Now: r.Now, NewID: r.NewID, Model: model, Vectors: l.cfg.Embed, PartOf: partOf,
	}
}

// Research answers under a new trace.
func (a asked) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	res, err := researcher.Prepared{Lab: a.lab, Name: filesName, Prepare: func(context.Context, marchwarden.Request) (researcher.Setup, error) {
		return researcher.Setup{
			Where: a.described, Engine: a.index.Engine(nil, a.folder), Ranked: a.ranked, Fetcher: a.fetcher, Library: []string{a.described}, Fingerprint: a.fingerprint,
		}, nil
	}}.Research(ctx, req, sink)
	if err == nil {
		for _, w := range res.Warnings {
			if strings.HasPrefix(w, trace.Unrecorded) {
				return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "a run was not kept: %s", w)
			}
		}
	}
	return res, err
}

// ranked is the search of the library with vectors.
func (l *library) ranked(e embed.Embedder) search.Engine { return l.index.Engine(e, l.folder) }

// OnToday is a clock that goes on like another and began Today.
func OnToday(clock func() time.Time) func() time.Time {
	began := clock()
	return func() time.Time { return Today().Add(clock().Sub(began)) }
}

// unwritten is a journal that records nothing: quality is measured on the same loop,
// without the disk.
type unwritten struct{}

func (unwritten) Do(ctx context.Context, _ replay.Effect, run func(context.Context) ([]byte, error)) ([]byte, error) {
	return run(ctx)
}
func (unwritten) Note(trace.Step) error  { return nil }
func (unwritten) Live(marchwarden.Event) {}
func (unwritten) Past(int)               {}
func (unwritten) Lose(error)             {}

// usage is what calls consumed, by model.
type usage struct {
	mu sync.Mutex // guards by
	by map[string]ledger.Tokens
}

func newUsage() *usage { return &usage{by: map[string]ledger.Tokens{}} }

func (u *usage) add(model string, t ledger.Tokens) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.by[model] = u.by[model].Plus(t)
}

// price is what a question cost by the price table; nil where that does not tell.
func (u *usage) price(res *marchwarden.Result) *float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	e := ledger.EntryOf(Today(), "", "", res)
	e.Charge(u.by)
	return e.CostUSD
}

// counted is a model whose use is counted.
type counted struct {
	llm.Model
	used []*usage
}

// Generate asks the model.
func (c counted) Generate(ctx context.Context, call llm.Call) (llm.Reply, error) {
	r, err := c.Model.Generate(ctx, call)
	for _, u := range c.used {
		u.add(r.By(c.ID()), ledger.Tokens{In: r.Usage.In, Out: r.Usage.Out, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite})
	}
	return r, err
}
