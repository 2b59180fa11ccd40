package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Records is the evidence and the traces in the home folder. Close it when done.
type Records struct {
	Traces *trace.Dir
	Blobs  *Evidence
	held   *trace.Held // where a worker's runs are recorded instead; nil elsewhere
}

// Store is where they are read.
func (r *Records) Store() run.Store { return run.Store{Traces: r.Traces, Blobs: r.Blobs} }

// Home is the records as those see them who check and clear them.
func (r *Records) Home(c *settings.Settings) record.Home {
	return record.Home{Store: run.Store{Traces: r.Traces, Blobs: r.Blobs.Folder}, Shelf: r.Blobs.Folder, Folder: c.Home()}
}

// book is where runs are recorded.
func (r *Records) book() trace.Book {
	if r.held != nil {
		return r.held
	}
	return r.Traces
}

// Evidence is the evidence store behind its door: what is put is stored without the
// secrets of the settings, and its reference is that of what is stored. So a page that
// repeats a key is evidence like any other, with a mark in place of the key, and a run
// and its rerun read the same, since both read what was stored.
type Evidence struct {
	blob.Store                // what the folder cannot take is kept in memory
	Folder     *blobdir.Store // nil for none
	hide       *secret.Redactor
}

// NewEvidence is the evidence in a folder, or in memory without one.
func NewEvidence(store *blobdir.Store, hide *secret.Redactor) *Evidence {
	if store == nil {
		return &Evidence{blob.NewMem(), nil, hide}
	}
	return &Evidence{blob.Rescue(store), store, hide}
}

// Put stores content without secrets.
func (d *Evidence) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	return d.Store.Put(ctx, d.hide.Bytes(content))
}

// Settle says whether what was put is on disk.
func (d *Evidence) Settle(ctx context.Context, refs ...blob.Ref) error {
	return blob.Settle(ctx, d.Store, refs...)
}

// OpenRecords opens them, making what is missing.
func (h *Host) OpenRecords(c *settings.Settings) (*Records, error) {
	const hint = "set MARCHWARDEN_HOME to a folder that can be written"
	if err := durable.MakeDir(c.Home()); err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "make the home folder " + c.Home(), Err: err, Hint: hint}
	}
	traces, err := trace.OpenDir(c.Text(settings.TraceDir), h.Now)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open the traces", Hint: hint, Err: err}
	}
	traces.Clean = h.Hide.Bytes
	blobs, err := blobdir.Open(c.BlobPath())
	if err != nil {
		return nil, errors.Join(&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open the evidence store", Hint: hint, Err: err}, traces.Close())
	}
	return &Records{Traces: traces, Blobs: NewEvidence(blobs, h.Hide)}, nil
}

// OpenWorking is OpenRecords for a research, which is worth its answer even where
// nothing can be written: then it works in memory, and its result says that there is
// no record of it.
func (h *Host) OpenWorking(c *settings.Settings) (*Records, error) {
	rec, err := h.OpenRecords(c)
	if err == nil || !Unwritable(err) {
		return rec, err
	}
	return &Records{Traces: trace.Nowhere(c.Text(settings.TraceDir), err), Blobs: NewEvidence(nil, h.Hide)}, nil
}

// Unwritable reports whether a place cannot be written for a reason that lies with
// the disk or the system, and not with a wrong setting.
func Unwritable(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.EMFILE, syscall.ENFILE},
		func(why error) bool { return errors.Is(err, why) })
}

// OpenKept is OpenRecords for commands that only look: where nothing was kept
// yet, it makes nothing and says so with CodeNotFound.
func (h *Host) OpenKept(c *settings.Settings) (*Records, error) {
	for _, path := range []string{c.Text(settings.TraceDir), c.BlobPath()} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("nothing is recorded yet: %s does not exist", path),
				Hint: `ask something first: marchwarden ask "…"`}
		}
	}
	return h.OpenRecords(c)
}

func (r *Records) Close() error {
	if r.Blobs.Folder == nil {
		return r.Traces.Close()
	}
	return errors.Join(r.Traces.Close(), r.Blobs.Folder.Close())
}

// Trace gives the whole lines of a trace.
func (r *Records) Trace(_ context.Context, id marchwarden.TraceID) ([]byte, error) {
	return r.Traces.Text(id)
}

// Size says how long a trace is, and whether it is complete.
func (r *Records) Size(ctx context.Context, id marchwarden.TraceID) (int64, bool, error) {
	return r.Traces.Size(ctx, id)
}

// Result gives the result of a run that has ended.
func (r *Records) Result(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	log, err := r.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return run.Recorded(ctx, r.Blobs, log)
}

// SoFar gives what a run that goes on has found.
func (r *Records) SoFar(ctx context.Context, id marchwarden.TraceID) (*marchwarden.Result, error) {
	log, err := r.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return run.SoFar(ctx, r.Blobs, log)
}

// CalibrationOf is the table that answers are scored with, as runs record it: the user's own, or the
// one that comes with the program.
func CalibrationOf(c *settings.Settings) (json.RawMessage, error) {
	path := c.CalibrationPath()
	b, err := readTable(path)
	var t *confidence.Table
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t, err = confidence.Shipped()
	case err == nil:
		t, err = confidence.ParseTable(b)
	}
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: path, Message: "the calibration table cannot be used",
			Hint: "remove the file to use the table that comes with the program, or make it anew with 'marchwarden-lab calibrate'", Err: err}
	}
	return json.Marshal(t)
}

// readTable reads a table, which is a regular file of modest size: it goes into the
// record of every run.
func readTable(path string) ([]byte, error) {
	f, err := durable.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return settings.ReadLimited(f, 1<<20, "the table")
}
