package network

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/pdf"
	webfetch "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Runner is one researcher with all that it works with, opened for one command,
// and with a line in the ledger for every call.
type Runner struct {
	Name       string
	Scope      string
	OpenWorld  bool // reaches outside this machine
	Private    bool // reports what is the user's own
	PartOf     bool // works for an investigation, whose line in the ledger it is part of
	Silent     bool // works for a caller that keeps its own ledger
	Researcher marchwarden.Researcher
	Pool       *pool.Pool // the members of an investigation; nil for a single researcher
	Host       *Host
	Settings   *settings.Settings
	Records    *Records
	Shown      mcpkit.Records // the runs that a server shows; nil for those of the records
	Warn       func(string)
	Told       func(Finished)
	Caller     string         // of the calls that do not say whose they are
	Closers    []func() error // in the order of closing, before the records
}

var _ marchwarden.Researcher = (*Runner)(nil)

// Finished is a call that gave a result.
type Finished struct {
	Start  *trace.Start
	Result *marchwarden.Result
	Before marchwarden.CostMetadata // of which an earlier line of the ledger tells
	Caller string                   // as package access knows them
}

// ResearcherFor is the researcher that the options mean: the named one, else the
// investigator.
func ResearcherFor(c *settings.Settings, o Options) string {
	return cmp.Or(o.Researcher, c.Text(settings.Researcher), settings.PI)
}

// Open opens a researcher for a command. The options are checked before
// anything is made.
func (h *Host) Open(c *settings.Settings, o Options) (*Runner, error) {
	name := ResearcherFor(c, o)
	if err := o.Check(c, name); err != nil {
		return nil, err
	}
	if o.Begun == nil && !o.PartOf && o.shared == nil {
		o.Begun = o.Recorded(h, c)
	}
	if name, o.Researchers = WorkerFor(name, o.Researchers); name == settings.PI {
		return h.openInvestigator(c, o)
	}
	lab, err := h.labFor(c, o, name == researcher.WebName || name == researcher.ArxivName)
	if err != nil {
		return nil, err
	}
	return builtins[name].open(h, c, o, lab)
}

// labFor is where a researcher works, before there are records; public says that it reads what is not the user's own.
func (h *Host) labFor(c *settings.Settings, o Options, public bool) (lab researcher.Lab, err error) {
	model, err := h.OpenModel(c, ChooseModel(c, cmp.Or(o.BegunBy, o.Model), public))
	if err != nil {
		return lab, err
	}
	return h.labWith(c, o, public, model, h.OpenVectors(c))
}

// labWith is where a researcher or an investigator works with a model and vectors.
func (h *Host) labWith(c *settings.Settings, o Options, public bool, model llm.Model, vs *Vectors) (researcher.Lab, error) {
	deadline, err := c.Deadline(o.Timeout, public)
	prices, wrong := pricesOf(c)
	return researcher.Lab{Version: h.Version, Now: h.Now, NewID: h.NewID, Deadline: deadline, Model: model, Choice: o.Begun, More: o.More, Say: o.Warn,
		Vectors: vs.Embedder, VectorsOf: vs.Of, Prices: prices}, cmp.Or(err, wrong)
}

// The most that an investigation may be told to do.
const (
	MaxParallel = 64
	MaxRihlas   = 200
)

// openFiles opens the researcher of local documents.
func (h *Host) openFiles(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	library, err := h.OpenLibrary(c, o.Library, o.Embedded)
	if err != nil {
		return nil, err
	}
	d, err := h.newRunner(c, o, &lab)
	if err != nil {
		return nil, errors.Join(err, CloseFolders(library))
	}
	x := h.Extractor(c)
	r := researcher.NewFiles(researcher.FilesConfig{Lab: lab, Library: library, IndexPath: c.IndexPath(), Extractor: x, Warn: o.Warn})
	d.Name, d.Scope, d.Researcher, d.Private = researcher.FilesName, researcher.FilesScope, r, hasFolders(c, o)
	d.Closers = []func() error{r.Close, x.Close, func() error { return CloseFolders(library) }}
	return d, nil
}

// openWeb opens the researcher of the open web.
func (h *Host) openWeb(c *settings.Settings, o Options, lab researcher.Lab) (*Runner, error) {
	engine, err := h.openEngines(c, o.Search)
	if err != nil {
		return nil, err
	}
	d, fetcher, err := h.newPagesRunner(c, o, &lab)
	if err != nil {
		return nil, err
	}
	d.Name, d.Scope, d.OpenWorld = researcher.WebName, researcher.WebScope, true
	d.Researcher = researcher.NewWeb(researcher.WebConfig{Lab: lab, Engine: engine, Fetcher: fetcher, Secrets: c.Secrets()})
	return d, nil
}

// newRunner opens the records and completes the lab with them.
func (h *Host) newRunner(c *settings.Settings, o Options, lab *researcher.Lab) (d *Runner, err error) {
	var rec *Records
	if o.shared != nil {
		rec = o.shared.Records(c)
	} else if rec, err = h.OpenWorking(c); err != nil {
		return nil, err
	}
	d = &Runner{Host: h, Settings: c, Records: rec, Warn: o.Warn, Told: o.Told, PartOf: o.PartOf, Silent: o.shared != nil}
	lab.Traces, lab.Blobs, lab.PartOf = rec.book(), rec.Blobs, o.PartOf
	lab.Spent = func(ctx context.Context, call researcher.Call) {
		d.Enter(Finished{call.Start, call.Result, call.Before, access.From(ctx).ID})
	}
	return d, nil
}

// newPagesRunner is newRunner for a researcher that reads pages of the open web, which
// the runner closes.
func (h *Host) newPagesRunner(c *settings.Settings, o Options, lab *researcher.Lab) (*Runner, *webfetch.Fetcher, error) {
	allow, err := fetchAllow(c)
	if err != nil {
		return nil, nil, err
	}
	d, err := h.newRunner(c, o, lab)
	if err != nil {
		return nil, nil, err
	}
	x := h.Extractor(c)
	pages := h.openWebFetcher(allow, d.Records, x)
	d.Closers = []func() error{pages.Close, x.Close}
	return d, pages, nil
}

// Evidence is stored content by its hash, for checks.
func (d *Runner) Evidence(ctx context.Context, hash string) ([]byte, error) {
	return blob.Evidence(ctx, d.Records.Blobs, hash)
}

func (h *Host) Extractor(c *settings.Settings) *extract.Extractor {
	ocr, err := exec.LookPath("tesseract")
	if err != nil { // also where a file of the working directory is meant, which is not run
		ocr = ""
	}
	return extract.New(extract.Config{PDF: pdf.New(pdf.Config{CacheDir: c.CachePath(), OCR: ocr})})
}

// Research asks the researcher. A call without a result is in the ledger too,
// unless its request was wrong.
func (d *Runner) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	req.Question, req.Context = d.Host.Hide.Text(req.Question), d.Host.Hide.Text(req.Context) // who pastes a key does not mean to ask about it
	if !d.PartOf {
		done, err := d.Host.allow(ctx, d.Settings, &req)
		if err != nil {
			return nil, err
		}
		defer done()
	}
	res, err := d.Researcher.Research(ctx, req, sink)
	if who := access.From(ctx); err == nil && d.Silent && who.MaxCostDay > 0 { // what a cluster keeps is not here, and the day is
		e := ledger.EntryOf(d.Host.Now(), d.Name, req.Question, res)
		e.Caller, e.CostUSD = who.ID, res.CostMetadata.CostUSD
		d.append(e)
	}
	if err != nil && !errors.Is(err, marchwarden.CodeInvalid) && !d.PartOf && !d.Silent && req.Resume == "" { // what a run that goes on has cost is in its trace
		d.append(ledger.Entry{Time: d.Host.Now().UTC(), Researcher: d.Name, Question: req.Question, Caller: cmp.Or(access.From(ctx).ID, access.Local().ID), Outcome: ledger.Failed})
	}
	return res, err
}

// Enter puts a finished call into the ledger and passes it on. The rihlas of an
// investigation are part of its line: they were one question.
func (d *Runner) Enter(call Finished) {
	if d.Told != nil {
		defer d.Told(call)
	}
	if d.PartOf || d.Silent {
		return
	}
	e := ledger.EntryOf(d.Host.Now(), call.Start.Researcher, call.Start.Request.Question, call.Result)
	f, _ := run.SpentIn(d.Records.Traces.Load, call.Result, run.SinceItsEnd)
	e.Caller = cmp.Or(call.Caller, d.Caller, access.Local().ID)
	e.TokensUsed -= call.Before.TokensUsed
	e.Iterations -= call.Before.IterationsRun
	e.WallTimeSec -= call.Before.WallTimeSec
	e.Searches = f.Searches
	e.Charge(f.Tokens)
	switch now, before := call.Result.CostMetadata.CostUSD, call.Before.CostUSD; {
	case f.Unpriced: // what external researchers charge is unknown
		e.CostUSD = nil
	case now != nil && before != nil:
		e.CostUSD = new(*now - *before)
	case now != nil && call.Before.TokensUsed == 0:
		e.CostUSD = now
	}
	if f.Interrupted {
		e.Outcome = ledger.Interrupted
	}
	d.append(e)
}

// append writes to the ledger. A ledger that cannot be written is a warning: it
// never harms a result.
func (d *Runner) append(e ledger.Entry) {
	if err := ledger.Append(d.Settings.Text(settings.Ledger), e); err != nil {
		d.Warn("the call is not in the ledger: " + err.Error())
	}
}

// Close closes the researcher, then what it worked with.
func (d *Runner) Close() error {
	var errs []error
	for _, c := range d.Closers {
		errs = append(errs, c())
	}
	if d.Records != nil {
		errs = append(errs, d.Records.Close())
	}
	return errors.Join(errs...)
}

// Complete looks at a run that had ended before: the process that ended it may have died before it
// told the ledger. It returns its start.
func (d *Runner) Complete(res *marchwarden.Result) (*trace.Start, error) {
	log, err := d.Records.Traces.Load(res.TraceID)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil || d.PartOf {
		return start, err
	}
	entries, _, err := ledger.Read(d.Settings.Text(settings.Ledger))
	if err != nil {
		return start, nil // a ledger that cannot be read costs no answer
	}
	told := len(slices.DeleteFunc(entries, func(e ledger.Entry) bool { return e.TraceID != res.TraceID }))
	if ends := run.FactsOf(log.Steps).Ends; told < len(ends) {
		call := Finished{Start: start, Result: res}
		if n := len(ends); n > 1 { // what it had cost before, which is no reason to tell nothing
			if _, was, err := run.ResultOf(context.Background(), d.Records.Blobs, ends[n-2].Result); err == nil {
				call.Before = was.CostMetadata
			}
		}
		d.Enter(call)
	}
	return start, nil
}

// BringHome brings the record of a task that ended in a cluster home and into the ledger, and
// returns how the run was started, as far as that is known. A record that cannot be read or kept
// costs no answer.
func (d *Runner) BringHome(ctx context.Context, e dispatch.Engine, id marchwarden.TraceID, end *dispatch.End, res *marchwarden.Result) *trace.Start {
	start := &trace.Start{Researcher: d.Name}
	if !end.Trace.Valid() || res.TraceID != id { // of a researcher that keeps its own
		return start
	}
	h := submit.Home{Engine: e, Traces: d.Records.Traces, Blobs: d.Records.Blobs.Folder}
	var read *trace.Start
	var err error
	if d.Records.Blobs.Folder == nil {
		if read, err = h.Read(ctx, id, end); err == nil {
			d.Warn("the record cannot be kept here; it is in the cluster")
		}
	} else if read, err = h.Bring(ctx, id, end); err == nil {
		_, err = d.Complete(res)
	}
	if err != nil {
		d.Warn("the record could not be brought home: " + err.Error())
	}
	return cmp.Or(read, start)
}

// HomeOnce brings the records of tasks that ended in a cluster home, and enters them into the
// ledger, unless it knew them before.
func (d *Runner) HomeOnce(e dispatch.Engine) func(context.Context, marchwarden.TraceID, *dispatch.End, *marchwarden.Result) error {
	known := map[marchwarden.TraceID]bool{}
	entries, _, _ := ledger.Read(d.Settings.Text(settings.Ledger)) // a ledger that cannot be read costs no answer
	for _, e := range entries {
		known[e.TraceID] = true
	}
	home := submit.Home{Engine: e, Traces: d.Records.Traces, Blobs: d.Records.Blobs.Folder}
	return func(ctx context.Context, id marchwarden.TraceID, end *dispatch.End, res *marchwarden.Result) error {
		start, err := home.Bring(ctx, id, end)
		if err == nil && res != nil && !known[id] {
			d.Enter(Finished{Start: start, Result: res})
		}
		return err
	}
}

// Once passes on what was not said before: an unreadable file is worth one line, not one line a call.
func Once(say func(message string)) func(message string) {
	var seen sync.Map
	return func(message string) {
		if _, said := seen.LoadOrStore(message, true); !said {
			say(message)
		}
	}
}
