package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// piName is who is asked for an investigation.
const piName = "pi"

// bench is what all suites of one command share. Close it when done.
type bench struct {
	*lab
	config    *settings.Settings
	model     llm.Model // nil for none
	vectors   *network.Vectors
	embed     embed.Embedder // nil for none
	extractor *extract.Extractor
	mind      string
	build     string
}

func (l *lab) open(o runOptions) (b *bench, err error) {
	b = &bench{lab: l}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if b.config, err = l.load(); err != nil {
		return b, err
	}
	// A model is used when it was named for this run; a setting for one's own questions
	// is not meant to pay for thousands of others.
	if o.model != "" {
		if b.model, err = l.OpenModel(b.config, network.ChooseModel(b.config, o.model, false)); err != nil {
			return b, err
		}
	}
	if !o.noVectors {
		b.vectors = l.OpenVectors(b.config)
		b.embed = b.vectors.Embedder
	}
	self, err := os.Executable()
	if err != nil {
		return b, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find this program")
	}
	if b.build, err = hashOf(self); err != nil {
		return b, err
	}
	b.extractor = l.Extractor(b.config)
	d, err := evaldesk.New(evaldesk.Config{Extractor: b.extractor, Model: b.model})
	if err != nil {
		return b, err
	}
	b.mind = d.Mind()
	return b, nil
}

func (b *bench) close() error {
	var errs []error
	if b.extractor != nil {
		errs = append(errs, b.extractor.Close())
	}
	return errors.Join(errs...)
}

// hashOf names a program by its content: rows of another build are not its own.
func hashOf(program string) (string, error) {
	f, err := os.Open(program)
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the program")
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the program")
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// reader is the one that comes with the program; nil without vectors.
func (b *bench) reader() reader.Reader {
	if b.embed == nil {
		return nil
	}
	return reader.New()
}

// settings are what the rows of a run depend on.
func (b *bench) settings(o runOptions, suite eval.Suite) eval.Settings {
	s := eval.Settings{Researcher: o.researcher, Mind: b.mind, Depth: o.depth, Part: o.part, Limit: o.limit, Seed: o.seed}
	if suite.OnDisk && !o.researcherGiven {
		s.Researcher = piName // as 'ask' does
	}
	if b.embed != nil {
		s.Embedder = b.embed.ID()
	}
	return s
}

// keepsTraces reports whether the traces of questions are kept.
func (b *bench) keepsTraces(o runOptions) bool {
	return o.traces || !o.tracesGiven && b.model != nil
}

// enter puts what models were paid for a suite into the ledger, in one line: its
// questions are not the user's. A ledger that cannot be written is a warning.
func (b *bench) enter(s eval.Suite, d *evaldesk.Desk) {
	used := d.Used()
	if len(used) == 0 {
		return
	}
	e := ledger.Entry{Time: time.Now().UTC(), Researcher: "eval", Question: "suite " + s.Name, Model: b.mind, Outcome: ledger.Answered}
	for _, t := range used {
		e.TokensUsed += t.In + t.Out
	}
	e.Charge(used)
	if err := ledger.Append(b.config.Text(settings.Ledger), e); err != nil {
		b.note("warning: the run is not in the ledger: %v", err)
	}
}

// kept are the traces of one suite, or none. Close it when done.
type kept struct {
	records *evaldesk.Records
	traces  *trace.Dir
	blobs   *blobdir.Store
	scratch string   // removed in the end
	folders *folders // nil where the suite asks none on disk
}

// asker asks folders on disk; nil where the suite asks none.
func (k *kept) asker() eval.Folders {
	if k.folders == nil {
		return nil
	}
	return k.folders
}

// desk makes the desk of one suite. Where traces are kept, they are in the folder home.
func (b *bench) desk(o runOptions, home string) (*evaldesk.Desk, *kept, error) {
	keep := b.keepsTraces(o)
	k := &kept{}
	if keep || o.researcher == piName {
		if err := k.open(b.Hide, home, keep); err != nil {
			return nil, nil, errors.Join(err, k.close())
		}
	}
	d, err := evaldesk.New(evaldesk.Config{
		Extractor: b.extractor, Model: b.model, Embed: b.embed, Depth: marchwarden.Depth(o.depth), Records: k.records, Pi: o.researcher == piName,
	})
	if err != nil {
		return nil, nil, errors.Join(err, k.close())
	}
	return d, k, nil
}

// open makes a home folder for the traces; one that is not to be kept is removed in the
// end.
func (k *kept) open(hide *secret.Redactor, home string, keep bool) (err error) {
	if !keep { // an investigator cannot work without
		if home, err = os.MkdirTemp("", "marchwarden-lab-"); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a folder for traces")
		}
		k.scratch = home
	}
	if err := durable.MakeDir(home); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make a folder for traces")
	}
	now := evaldesk.OnToday(time.Now)
	if k.traces, err = trace.OpenDir(filepath.Join(home, "traces"), now); err != nil {
		return err
	}
	k.traces.Clean = hide.Bytes
	if k.blobs, err = blobdir.Open(filepath.Join(home, "blobs")); err != nil {
		return err
	}
	k.records = &evaldesk.Records{Traces: k.traces, Blobs: network.NewEvidence(k.blobs, hide), Version: version(), Now: now, NewID: serve.NewTraceID}
	return nil
}

func (k *kept) close() error {
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
