package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// desk is one researcher with all that it works with, opened for one command,
// and with a line in the ledger for every call.
type desk struct {
	name       string
	scope      string
	openWorld  bool // reaches outside this machine
	researcher marchwarden.Researcher
	a          *app
	cfg        *config
	records    *records
	warn       func(string)
	close      []func() error // in the order of closing, before the records
}

var _ marchwarden.Researcher = (*desk)(nil)

// deskOptions choose a researcher and what it works with.
type deskOptions struct {
	researcher string
	library    []string
	embedded   bool
	model      string
	search     string
	render     string
	timeout    string
	// told hears of each finished call, warn of what people should know.
	told func(researcher.Call)
	warn func(string)
}

// researcherFor is the researcher that the options mean: the named one, else the
// web if an engine of it was named, else the files.
func (c *config) researcherFor(o deskOptions) string {
	switch {
	case o.researcher != "":
		return o.researcher
	case o.search != "":
		return web.Name
	case len(o.library) > 0 || o.embedded:
		return files.Name
	case c.text(setResearcher) != "":
		return c.text(setResearcher)
	}
	return files.Name
}

// openDesk opens a researcher for a command. The options are checked before
// anything is made.
func (a *app) openDesk(c *config, o deskOptions) (*desk, error) {
	name := c.researcherFor(o)
	if err := o.check(name); err != nil {
		return nil, err
	}
	deadline, err := c.deadline(o.timeout, name)
	if err != nil {
		return nil, err
	}
	model, err := a.openModel(c, c.chooseModel(o.model, name == web.Name), name == web.Name)
	if err != nil {
		return nil, err
	}
	lab := researcher.Lab{Version: programVersion(), Now: a.now, NewID: a.newID, Deadline: deadline, Model: model}
	if name == web.Name {
		return a.openWebDesk(c, o, lab)
	}
	return a.openFilesDesk(c, o, lab)
}

// check refuses options that do not go together.
func (o deskOptions) check(name string) error {
	if !slices.Contains([]string{files.Name, web.Name}, name) {
		return invalid("--researcher", "", fmt.Sprintf("must be %s or %s, not %q", files.Name, web.Name, clip(name, 40)))
	}
	if name == web.Name && (len(o.library) > 0 || o.embedded) {
		return invalid("--library", "leave out --search and --researcher to search folders", "is not for the web researcher, which reads no files")
	}
	if name == files.Name && o.search != "" {
		return invalid("--search", "use --researcher web", "is for the web researcher")
	}
	if name == files.Name && o.render != "" {
		return invalid("--render", "use --researcher web", "is for the web researcher")
	}
	if o.render != "" && o.render != renderAuto && o.render != renderNever {
		return invalid("--render", "", fmt.Sprintf("must be %s or %s, not %q", renderAuto, renderNever, clip(o.render, 40)))
	}
	return nil
}

// deadline is how long a research may take in all. One that reads local files has
// none unless it was asked for: a large folder may take long to index once.
func (c *config) deadline(flag, name string) (time.Duration, error) {
	if flag != "" {
		texts, problem := setting{kind: span}.read([]string{flag}, nil)
		if problem != "" {
			return 0, invalid("--timeout", "", problem)
		}
		return time.ParseDuration(texts[0])
	}
	if name == files.Name && c.values[setTimeout].origin == fromDefault {
		return 0, nil
	}
	return time.ParseDuration(c.text(setTimeout))
}

// openFilesDesk opens the researcher of local documents.
func (a *app) openFilesDesk(c *config, o deskOptions, lab researcher.Lab) (*desk, error) {
	library, err := a.openLibrary(c, o.library, o.embedded)
	if err != nil {
		return nil, err
	}
	d, err := a.newDesk(c, o, &lab)
	if err != nil {
		return nil, errors.Join(err, closeFolders(library))
	}
	x := a.extractor(c)
	r := files.New(files.Config{Lab: lab, Library: library, IndexPath: c.indexPath(), Extractor: x, Warn: o.warn})
	d.name, d.scope, d.researcher = files.Name, files.Scope, r
	d.close = []func() error{r.Close, x.Close, func() error { return closeFolders(library) }}
	return d, nil
}

// openWebDesk opens the researcher of the open web.
func (a *app) openWebDesk(c *config, o deskOptions, lab researcher.Lab) (*desk, error) {
	engine, err := a.openEngines(c, o.search)
	if err != nil {
		return nil, err
	}
	if _, err := c.fetchAllow(); err != nil {
		return nil, err
	}
	d, err := a.newDesk(c, o, &lab)
	if err != nil {
		return nil, err
	}
	x := a.extractor(c)
	fetcher, err := a.openWebFetcher(c, d.records, x, o.render)
	if err != nil {
		return nil, errors.Join(err, x.Close(), d.records.Close())
	}
	if problem := c.chromiumProblem(); problem != "" && c.renders(o.render) {
		o.warn(problem + "; pages that need JavaScript are read without it")
	}
	d.name, d.scope, d.openWorld = web.Name, web.Scope, true
	d.researcher = web.New(web.Config{Lab: lab, Engine: engine, Fetcher: fetcher, Secrets: c.secrets()})
	d.close = []func() error{fetcher.Close, x.Close}
	return d, nil
}

// newDesk opens the records and completes the lab with them.
func (a *app) newDesk(c *config, o deskOptions, lab *researcher.Lab) (*desk, error) {
	rec, err := a.openRecords(c)
	if err != nil {
		return nil, err
	}
	d := &desk{a: a, cfg: c, records: rec, warn: o.warn}
	lab.Traces, lab.Blobs = rec.traces, rec.blobs
	lab.Spent = func(call researcher.Call) { d.enter(call); o.told(call) }
	return d, nil
}

func (a *app) extractor(c *config) *extract.Extractor {
	return extract.New(extract.Config{CacheDir: c.cachePath()})
}

// Research asks the researcher. A call without a result is in the ledger too,
// unless its request was wrong.
func (d *desk) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	res, err := d.researcher.Research(ctx, req, sink)
	if err != nil && !errors.Is(err, marchwarden.CodeInvalid) {
		d.append(ledger.Entry{Time: d.a.now().UTC(), Researcher: d.name, Question: req.Question, Outcome: ledger.Failed})
	}
	return res, err
}

// enter puts a finished call into the ledger.
func (d *desk) enter(call researcher.Call) {
	e := ledger.EntryOf(d.a.now(), call.Start.Researcher, call.Start.Request.Question, call.Result)
	e.Searches = call.Searches
	f := d.facts(e.TraceID)
	e.Charge(f.tokens)
	if f.interrupted {
		e.Outcome = ledger.Interrupted
	}
	d.append(e)
}

// append writes to the ledger. A ledger that cannot be written is a warning: it
// never harms a result.
func (d *desk) append(e ledger.Entry) {
	if err := ledger.Open(d.cfg.text(setLedger)).Append(e); err != nil {
		d.warn("the call is not in the ledger: " + err.Error())
	}
}

// facts is what a trace tells about a run that its result does not.
type facts struct {
	read        int // documents
	interrupted bool
	tokens      map[string]ledger.Tokens // by model
}

// facts reads a trace. One that cannot be read tells nothing; 'verify' says why.
func (d *desk) facts(id marchwarden.TraceID) facts {
	f := facts{tokens: map[string]ledger.Tokens{}}
	log, err := d.records.traces.Load(id)
	if err != nil {
		return f
	}
	for _, s := range log.Steps {
		switch s := s.(type) {
		case *trace.FetchComplete:
			if s.Error == "" {
				f.read++
			}
		case *trace.ModelComplete:
			t := f.tokens[s.Model]
			f.tokens[s.Model] = ledger.Tokens{In: t.In + s.TokensIn, Out: t.Out + s.TokensOut, CacheRead: t.CacheRead + s.CacheRead, CacheWrite: t.CacheWrite + s.CacheWrite}
		case *trace.Complete:
			f.interrupted = s.Interrupted
		}
	}
	return f
}

// Close closes the researcher, then what it worked with.
func (d *desk) Close() error {
	var errs []error
	for _, c := range d.close {
		errs = append(errs, c())
	}
	return errors.Join(append(errs, d.records.Close())...)
}

// costWords is the estimated price of a call for people.
func (f facts) costWords(c marchwarden.CostMetadata) string {
	if c.TokensUsed == 0 {
		return "no cost"
	}
	e := ledger.Entry{}
	if usd, known := ledger.EstimateTotal(c.ModelID, c.TokensUsed); known {
		e.CostUSD = &usd
	}
	e.Charge(f.tokens)
	switch {
	case e.CostUSD == nil:
		return "cost unknown"
	case *e.CostUSD == 0:
		return "no cost"
	}
	return fmt.Sprintf("about $%.4f", *e.CostUSD)
}
