package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// evalLab is what all suites of one command share.
type evalLab struct {
	a         *app
	model     llm.Model
	vectors   *network.Vectors
	embed     embed.Embedder
	table     json.RawMessage
	extractor *extract.Extractor
	depth     marchwarden.Depth
	mind      string
	build     string
}

// reader is the one that comes with the program, with the store of the vectors; nil
// without vectors or a model.
func (l *evalLab) reader() reader.Reader {
	r, err := reader.New()
	if err != nil || l.embed == nil {
		return nil
	}
	if s, ok := l.embed.(interface{ Store() embed.Store }); ok {
		return reader.Cached(r, s.Store())
	}
	return r
}

func (a *app) openEvalLab(c *settings.Settings, o evalRunOptions) (*evalLab, error) {
	l := &evalLab{a: a, depth: marchwarden.Depth(cmp.Or(o.depth, c.Text(settings.Depth)))}
	var err error
	// A model is used when it was named for this run; a setting for one's own questions
	// is not meant to pay for thousands of others.
	if o.model != "" {
		if l.model, err = a.OpenModel(c, network.ChooseModel(c, o.model, false), false); err != nil {
			return nil, err
		}
	}
	if !o.noVectors {
		if l.vectors, err = a.OpenVectors(c); err != nil {
			return nil, err
		}
		l.embed = l.vectors.Embedder
	}
	if !o.uncalibrated {
		if l.table, err = network.CalibrationOf(c); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	if l.build, err = a.buildID(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if l.table != nil { // rows that another table scored are not gone on with
		sum := sha256.Sum256(l.table)
		l.build += " " + hex.EncodeToString(sum[:])
	}
	l.extractor = a.Extractor(c)
	d, err := evaldesk.New(evaldesk.Config{Extractor: l.extractor, Model: l.model})
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.mind = d.Mind()
	return l, nil
}

func (l *evalLab) close() error {
	var errs []error
	if l.extractor != nil {
		errs = append(errs, l.extractor.Close())
	}
	if l.vectors != nil {
		errs = append(errs, l.vectors.Close())
	}
	return errors.Join(errs...)
}

// settings are what the rows of a run depend on.
func (l *evalLab) settings(o evalRunOptions, suite eval.Suite) eval.Settings {
	s := eval.Settings{Researcher: o.researcher, Mind: l.mind, Depth: string(l.depth), Part: o.part, Limit: o.limit, Seed: o.seed, Uncalibrated: o.uncalibrated}
	if suite.OnDisk && !o.researcherGiven {
		s.Researcher = settings.PI // as 'ask' does
	}
	if l.embed != nil {
		s.Embedder = l.embed.ID()
	}
	return s
}

// keepsTraces reports whether the traces of questions are kept.
func (l *evalLab) keepsTraces(o evalRunOptions) bool {
	return o.traces || !o.tracesGiven && l.model != nil
}

// enter puts what models were paid for a suite into the ledger, in one line: its
// questions are not the user's. A ledger that cannot be written is a warning.
func (l *evalLab) enter(c *settings.Settings, s eval.Suite, d *evaldesk.Desk) {
	used := d.Used()
	if len(used) == 0 {
		return
	}
	e := ledger.Entry{Time: l.a.Now().UTC(), Researcher: "eval", Question: "suite " + s.Name, Model: l.mind, Outcome: ledger.Answered}
	for _, t := range used {
		e.TokensUsed += t.In + t.Out
	}
	e.Charge(used)
	if err := ledger.Open(c.Text(settings.Ledger)).Append(e); err != nil {
		l.a.warn("the run is not in the ledger: " + err.Error())
	}
}

// evalRecords are the traces of one suite, or none.
type evalRecords struct {
	records *evaldesk.Records
	traces  *trace.Dir
	blobs   *blobdir.Store
	scratch string       // removed in the end
	folders *evalFolders // nil where the suite asks none on disk
}

// asker asks folders on disk; nil where the suite asks none.
func (k *evalRecords) asker() eval.Folders {
	if k.folders == nil {
		return nil
	}
	return k.folders
}

// open makes the desk of one suite. Where traces are kept, they are in the folder home.
func (l *evalLab) open(o evalRunOptions, home string) (*evaldesk.Desk, *evalRecords, error) {
	keep := l.keepsTraces(o)
	k := &evalRecords{}
	if keep || o.researcher == settings.PI {
		if err := k.open(l.a, home, keep); err != nil {
			return nil, nil, err
		}
	}
	d, err := evaldesk.New(evaldesk.Config{Extractor: l.extractor, Model: l.model, Embed: l.embed, Calibration: l.table, Depth: l.depth, Records: k.records, Pi: o.researcher == settings.PI})
	if err != nil {
		return nil, nil, errors.Join(err, k.close())
	}
	return d, k, nil
}

// open makes a home folder for the traces; one that is not to be kept is removed in the
// end.
func (k *evalRecords) open(a *app, home string, keep bool) (err error) {
	if !keep { // an investigator cannot work without
		if home, err = os.MkdirTemp("", "marchwarden-eval-"); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a folder for traces")
		}
		k.scratch = home
	}
	if err := durable.MakeDir(home); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a folder for traces")
	}
	now := evaldesk.OnToday(a.Now)
	if k.traces, err = trace.OpenDir(filepath.Join(home, "traces"), now); err != nil {
		return errors.Join(err, k.close())
	}
	k.traces.Clean = a.Hide.Bytes
	if k.blobs, err = blobdir.Open(filepath.Join(home, "blobs")); err != nil {
		return errors.Join(err, k.close())
	}
	k.records = &evaldesk.Records{
		Traces: k.traces, Blobs: network.NewEvidence(k.blobs, a.Hide), Version: programVersion(), Now: now, NewID: a.NewID,
	}
	return nil
}

func (k *evalRecords) close() error {
	var errs []error
	if k.traces != nil {
		errs = append(errs, k.traces.Close())
	}
	if k.blobs != nil {
		errs = append(errs, k.blobs.Close())
	}
	if k.scratch != "" {
		errs = append(errs, os.RemoveAll(k.scratch))
	}
	return errors.Join(append(errs, k.folders.close())...)
}
