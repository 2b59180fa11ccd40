// Package network opens researchers as the settings and the options of a question say: the
// built-in ones inside the program or in processes of their own, external ones by MCP, and
// the investigator over them, with their models, engines, vectors, records and ledger. It
// also has them work for the tasks of an engine. What a research does is in the packages
// that it opens; which flags there are, and what is printed, is the command's.
package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Host is the world outside, as researchers see it.
type Host struct {
	Env      func(string) (string, bool)
	Environ  func() []string
	Self     func() (string, error) // the path of this program
	Dir      string                 // the working directory, where .env is
	UserHome func() (string, error) // the home folder of the user
	Now      func() time.Time
	NewID    func() marchwarden.TraceID
	Stderr   io.Writer
	Version  string
	// Say tells people what did not stop the work; note tells what a child logs.
	Say, Note func(string)
	// Log is the log of a command.
	Log func(*settings.Settings) *slog.Logger
	// Hide knows the secrets of the settings, and takes them out of what is printed
	// and stored. Nil knows none.
	Hide *secret.Redactor
	// Limits are what this process shares of providers with the others that work for its
	// engine; nil where there is none.
	Limits func(key string) dispatch.Limiter
}

// Source is where the settings of this program are read from.
func (h *Host) Source() settings.Source {
	return settings.Source{Env: h.Env, Dir: h.Dir, UserHome: h.UserHome, Warn: h.Say}
}

// allowed is what calls of this process that are under way have set aside of what their callers
// may spend in a day. Servers in one process share what is in one ledger.
var allowed = struct {
	sync.Mutex
	open map[[2]string]float64 // USD by ledger and caller
}{open: map[[2]string]float64{}}

// allow gives a call its part of what its caller may spend in a day, as the cap of its cost. What
// is spent is in the ledger, and what others under way may spend is set aside until they call done.
// A run that is resumed has its cap. With less than a hundredth left the call is refused: CodeExhausted.
func (h *Host) allow(ctx context.Context, c *settings.Settings, req *marchwarden.Request) (done func(), err error) {
	who := access.From(ctx)
	if who.MaxCostDay <= 0 {
		return func() {}, nil
	}
	allowed.Lock()
	defer allowed.Unlock()
	today := h.Now().UTC().Truncate(24 * time.Hour)
	key := [2]string{c.Text(settings.Ledger), who.ID}
	entries, _, err := ledger.Read(key[0])
	if err != nil {
		return nil, err
	}
	left := who.MaxCostDay - ledger.SpentBy(entries, who.ID, today) - allowed.open[key]
	if left < who.MaxCostDay/100 {
		return nil, &marchwarden.Error{Code: marchwarden.CodeExhausted, Message: fmt.Sprintf("the $%v that %s may spend in a day are spent, or set aside for calls under way", who.MaxCostDay, who.ID),
			Hint: "there is more from " + today.AddDate(0, 0, 1).Format(time.RFC3339) + "; a call under way returns what it does not need"}
	}
	share := min(left, who.MaxCostDay/4) // so that a caller can ask several questions at once
	if req.Resume == "" {
		var cons marchwarden.Constraints
		if req.Constraints != nil {
			cons = *req.Constraints
		}
		if cons.MaxCostUSD != nil {
			share = min(left, *cons.MaxCostUSD)
		}
		cons.MaxCostUSD, req.Constraints = &share, &cons
	}
	allowed.open[key] += share
	return func() {
		allowed.Lock()
		defer allowed.Unlock()
		if allowed.open[key] -= share; allowed.open[key] < 1e-9 {
			delete(allowed.open, key)
		}
	}, nil
}

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
	failed := func(what string, err error) error {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: what, Err: err, Hint: "set MARCHWARDEN_HOME to a folder that can be written"}
	}
	if err := durable.MakeDir(c.Home()); err != nil {
		return nil, failed("make the home folder "+c.Home(), err)
	}
	traces, err := trace.OpenDir(c.Text(settings.TraceDir), h.Now)
	if err != nil {
		return nil, failed("open the traces", err)
	}
	traces.Clean = h.Hide.Bytes
	blobs, err := blobdir.Open(c.BlobPath())
	if err != nil {
		return nil, errors.Join(failed("open the evidence store", err), traces.Close())
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
