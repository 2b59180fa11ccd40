package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// desk is one researcher with all that it works with, opened for one command,
// and with a line in the ledger for every call.
type desk struct {
	name       string
	scope      string
	openWorld  bool // reaches outside this machine
	private    bool // reports what is the user's own
	partOf     bool // works for an investigation, whose line in the ledger it is part of
	silent     bool // works for somebody whose own ledger it is a matter of
	researcher marchwarden.Researcher
	a          *app
	cfg        *settings.Settings
	records    *records
	shown      mcpkit.Records // the runs that a server shows; nil for those of the records
	warn       func(string)
	told       func(finished)
	close      []func() error // in the order of closing, before the records
}

var _ marchwarden.Researcher = (*desk)(nil)

// deskOptions choose a researcher and what it works with.
type deskOptions struct {
	researcher string
	only       []string // the members of an investigation; none is all that there are
	online     bool
	isolate    bool // each built-in researcher has a process of its own
	library    []string
	embedded   bool
	db         string
	// allowSamples lets values of the database be shown to the model before it asks.
	allowSamples bool
	model        string
	search       string
	render       string
	timeout      string
	// For an investigation.
	parallel    int
	maxRihlas   int
	allowEgress []string
	planOnly    bool
	// partOf says that the researcher works for an investigation.
	partOf bool
	// shared is where a worker's researchers record and keep, beside the home folder; nil
	// elsewhere.
	shared *workplace
	// flags are what going on with the run needs, begunBy is the model of one that
	// goes on ("" for a run of its own), and more is added to its time.
	flags   []string
	begunBy string
	more    time.Duration
	// told hears of each finished call, warn of what people should know.
	told func(finished)
	warn func(string)
	// log is where a server logs; nil elsewhere.
	log *slog.Logger
}

// finished is a call that gave a result.
type finished struct {
	start  *trace.Start
	result *marchwarden.Result
	before marchwarden.CostMetadata // of which an earlier line of the ledger tells
}

// researcherFor is the researcher that the options mean: the named one, else the
// investigator.
func researcherFor(c *settings.Settings, o deskOptions) string {
	return cmp.Or(o.researcher, c.Text(settings.Researcher), settings.PI)
}

// openDesk opens a researcher for a command. The options are checked before
// anything is made.
func (a *app) openDesk(c *settings.Settings, o deskOptions) (*desk, error) {
	name := researcherFor(c, o)
	if err := o.check(a, c, name); err != nil {
		return nil, err
	}
	if err := a.startTracing(c); err != nil {
		return nil, err
	}
	if o.flags == nil && !o.partOf && o.shared == nil {
		o.flags = o.recordable(a, c)
	}
	if name, o.only = workerFor(name, o.only); name == settings.PI {
		return a.openPIDesk(c, o)
	}
	deadline, err := c.Deadline(o.timeout, name == web.Name || name == arxiv.Name)
	if err != nil {
		return nil, err
	}
	public := name == web.Name || name == arxiv.Name
	model, err := a.openModel(c, chooseModel(c, cmp.Or(o.begunBy, o.model), public), public)
	if err != nil {
		return nil, err
	}
	table, err := calibrationOf(c)
	if err != nil {
		return nil, err
	}
	vs, err := a.openVectors(c)
	if err != nil {
		return nil, err
	}
	lab := researcher.Lab{Version: programVersion(), Now: a.now, NewID: a.newID, Deadline: deadline, Model: model, Flags: o.flags, More: o.more, Say: o.warn,
		Vectors: vs.embedder, VectorsOf: vs.of, Calibration: table}
	d, err := builtinNamed(name).open(a, c, o, lab)
	if err != nil {
		return nil, errors.Join(err, vs.Close())
	}
	d.close = append(d.close, vs.Close)
	return d, nil
}

// flagsOf says which researchers a flag is for.
var flagsOf = []struct {
	flag  string
	given func(o deskOptions) bool
	names []string
}{
	{"--library", func(o deskOptions) bool { return len(o.library) > 0 }, []string{files.Name}},
	{"--embedded", func(o deskOptions) bool { return o.embedded }, []string{files.Name}},
	{"--online", func(o deskOptions) bool { return o.online }, []string{web.Name, arxiv.Name}},
	{"--db", func(o deskOptions) bool { return o.db != "" }, []string{database.Name}},
	{"--allow-samples", func(o deskOptions) bool { return o.allowSamples }, []string{database.Name}},
	{"--search", func(o deskOptions) bool { return o.search != "" }, []string{web.Name}},
	{"--render", func(o deskOptions) bool { return o.render != "" }, []string{web.Name}},
	{"--researchers", func(o deskOptions) bool { return len(o.only) > 0 }, nil},
	{"--plan", func(o deskOptions) bool { return o.planOnly }, nil},
	{"--parallel", func(o deskOptions) bool { return o.parallel != 0 }, nil},
	{"--max-rihlas", func(o deskOptions) bool { return o.maxRihlas != 0 }, nil},
	{"--allow-egress", func(o deskOptions) bool { return len(o.allowEgress) > 0 }, nil},
}

// flagsFor refuses flags that are for somebody who is not asked.
func (o deskOptions) flagsFor(a *app, c *settings.Settings, name string) error {
	for _, f := range flagsOf {
		asked := slices.Contains(f.names, name)
		if name == settings.PI {
			asked = len(f.names) == 0 || len(o.only) == 0 || slices.ContainsFunc(f.names, o.wants)
		}
		switch {
		case !f.given(o) || asked:
		case name == settings.PI:
			return invalid(f.flag, "add it to --researchers", "is for the researcher "+f.names[0]+", who is not asked")
		case len(f.names) == 0:
			return invalid(f.flag, "leave out --researcher to let all of them work together", "is not for the researcher "+name)
		default:
			return invalid(f.flag, "use --researcher "+f.names[0]+", or leave it out", "is not for the researcher "+name)
		}
	}
	if o.render != "" && name == settings.PI && offline(a, c, o) != "" {
		return invalid("--render", "add --online", "is for the web, which is not asked")
	}
	return nil
}

// narrowed leaves out what is for researchers that are not among those named: settings and
// flags of a program may bring in a library that one question is not asked of.
func (o deskOptions) narrowed(names []string) deskOptions {
	if !slices.Contains(names, files.Name) {
		o.library, o.embedded = nil, false
	}
	if !slices.Contains(names, database.Name) {
		o.db, o.allowSamples = "", false
	}
	if !slices.Contains(names, web.Name) {
		o.search, o.render = "", ""
	}
	o.online = o.online && (slices.Contains(names, web.Name) || slices.Contains(names, arxiv.Name))
	return o
}

// check refuses options that do not go together.
func (o deskOptions) check(a *app, c *settings.Settings, name string) error {
	if !slices.Contains(c.ResearcherNames(), name) {
		return invalid("--researcher", "", fmt.Sprintf("must be %s, not %q", settings.Either(c.ResearcherNames()), plaintext.Clip(name, 40)))
	}
	if err := o.flagsFor(a, c, name); err != nil {
		return err
	}
	if o.render != "" && o.render != settings.RenderAuto && o.render != settings.RenderNever {
		return invalid("--render", "", fmt.Sprintf("must be %s or %s, not %q", settings.RenderAuto, settings.RenderNever, plaintext.Clip(o.render, 40)))
	}
	if err := c.AreMembers("--allow-egress", o.allowEgress); err != nil {
		return err
	}
	return c.AreMembers(c.Label(settings.AllowEgress), c.List(settings.AllowEgress))
}

// The most that an investigation may be told to do.
const (
	maxParallel = 64
	maxRihlas   = 200
)

// openFilesDesk opens the researcher of local documents.
func (a *app) openFilesDesk(c *settings.Settings, o deskOptions, lab researcher.Lab) (*desk, error) {
	library, err := a.openLibrary(c, o.library, o.embedded)
	if err != nil {
		return nil, err
	}
	d, err := a.newDesk(c, o, &lab)
	if err != nil {
		return nil, errors.Join(err, closeFolders(library))
	}
	x := a.extractor(c)
	r := files.New(files.Config{Lab: lab, Library: library, IndexPath: c.IndexPath(), Extractor: x, Warn: o.warn})
	d.name, d.scope, d.researcher, d.private = files.Name, files.Scope, r, a.hasFolders(c, o)
	d.close = []func() error{r.Close, x.Close, func() error { return closeFolders(library) }}
	return d, nil
}

// openWebDesk opens the researcher of the open web.
func (a *app) openWebDesk(c *settings.Settings, o deskOptions, lab researcher.Lab) (*desk, error) {
	engine, err := a.openEngines(c, o.search)
	if err != nil {
		return nil, err
	}
	d, fetcher, err := a.newPagesDesk(c, o, &lab, o.render)
	if err != nil {
		return nil, err
	}
	if problem := chromiumProblem(c); problem != "" && rendersPages(c, o.render) {
		o.warn(problem + "; pages that need JavaScript are read without it")
	}
	d.name, d.scope, d.openWorld = web.Name, web.Scope, true
	d.researcher = web.New(web.Config{Lab: lab, Engine: engine, Fetcher: fetcher, Secrets: c.Secrets()})
	return d, nil
}

// newDesk opens the records and completes the lab with them.
func (a *app) newDesk(c *settings.Settings, o deskOptions, lab *researcher.Lab) (*desk, error) {
	rec, err := a.recordsFor(c, o)
	if err != nil {
		return nil, err
	}
	d := &desk{a: a, cfg: c, records: rec, warn: o.warn, told: o.told, partOf: o.partOf, silent: o.shared != nil}
	lab.Traces, lab.Blobs, lab.PartOf = rec.book(), rec.blobs, o.partOf
	lab.Spent = func(call researcher.Call) {
		d.enter(finished{call.Start, call.Result, call.Before})
	}
	return d, nil
}

// newPagesDesk is newDesk for a researcher that reads pages of the open web, which
// the desk closes.
func (a *app) newPagesDesk(c *settings.Settings, o deskOptions, lab *researcher.Lab, rendering string) (*desk, *webfetch.Fetcher, error) {
	if _, err := fetchAllow(c); err != nil {
		return nil, nil, err
	}
	d, err := a.newDesk(c, o, lab)
	if err != nil {
		return nil, nil, err
	}
	x := a.extractor(c)
	pages, err := a.openWebFetcher(c, d.records, x, rendering)
	if err != nil {
		return nil, nil, errors.Join(err, x.Close(), d.records.Close())
	}
	d.close = []func() error{d.closing(pages), x.Close}
	return d, pages, nil
}

// closing closes a fetcher of pages. Its cache costs downloads, never an answer.
func (d *desk) closing(pages *webfetch.Fetcher) func() error {
	return func() error {
		if err := pages.Close(); err != nil {
			d.warn(err.Error())
		}
		return nil
	}
}

// evidence is stored content by its hash, for whoever wants to check.
func (d *desk) evidence(ctx context.Context, hash string) ([]byte, error) {
	return blob.Evidence(ctx, d.records.blobs, hash)
}

func (a *app) extractor(c *settings.Settings) *extract.Extractor {
	return extract.New(extract.Config{CacheDir: c.CachePath()})
}

// Research asks the researcher. A call without a result is in the ledger too,
// unless its request was wrong.
func (d *desk) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	req.Question, req.Context = d.a.hide.Text(req.Question), d.a.hide.Text(req.Context) // who pastes a key does not mean to ask about it
	res, err := d.a.tracer.Research(d.researcher, d.name).Research(ctx, req, sink)
	if err != nil && !errors.Is(err, marchwarden.CodeInvalid) && !d.partOf && !d.silent && req.Resume == "" { // what a run that goes on has cost is in its trace
		d.append(ledger.Entry{Time: d.a.now().UTC(), Researcher: d.name, Question: req.Question, Outcome: ledger.Failed})
	}
	return res, err
}

// enter puts a finished call into the ledger and passes it on. The rihlas of an
// investigation are part of its line: they were one question.
func (d *desk) enter(call finished) {
	if d.told != nil {
		defer d.told(call)
	}
	if d.partOf || d.silent {
		return
	}
	e := ledger.EntryOf(d.a.now(), call.start.Researcher, call.start.Request.Question, call.result)
	f, _ := d.since(call.result)
	e.TokensUsed -= call.before.TokensUsed
	e.Iterations -= call.before.IterationsRun
	e.WallTimeSec -= call.before.WallTimeSec
	e.Searches = f.Searches
	e.Charge(f.Tokens)
	if f.Unpriced { // what strangers charge, nobody knows
		e.CostUSD = nil
	}
	if f.Interrupted {
		e.Outcome = ledger.Interrupted
	}
	d.append(e)
}

// append writes to the ledger. A ledger that cannot be written is a warning: it
// never harms a result.
func (d *desk) append(e ledger.Entry) {
	if err := ledger.Open(d.cfg.Text(settings.Ledger)).Append(e); err != nil {
		d.warn("the call is not in the ledger: " + err.Error())
	}
}

// Close closes the researcher, then what it worked with.
func (d *desk) Close() error {
	var errs []error
	for _, c := range d.close {
		errs = append(errs, c())
	}
	return errors.Join(append(errs, d.records.Close())...)
}
