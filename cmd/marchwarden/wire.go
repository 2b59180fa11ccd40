package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// logger writes structured logs to stderr. It is silent below warnings unless
// MARCHWARDEN_DEBUG is on. No setting is ever given to it.
func (a *app) logger(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelWarn) }

// serverLog is logger for programs that run long, where people want to see that something
// happens: connections come and go, and tasks are taken up again.
func (a *app) serverLog(c *settings.Settings) *slog.Logger { return a.logFrom(c, slog.LevelInfo) }

func (a *app) logFrom(c *settings.Settings, level slog.Level) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if c.On(settings.Debug) {
		opts.Level = slog.LevelDebug
	}
	if c.Text(settings.LogFormat) == "json" || a.reader == program {
		return slog.New(slog.NewJSONHandler(a.stderr, opts))
	}
	return slog.New(slog.NewTextHandler(a.stderr, opts))
}

// records is the evidence and the traces in the home folder. Close it when done.
type records struct {
	traces *trace.Dir
	blobs  *discreet
	held   *trace.Held // where a worker's runs are recorded instead; nil elsewhere
}

// book is where runs are recorded.
func (r *records) book() trace.Book {
	if r.held != nil {
		return r.held
	}
	return r.traces
}

// discreet is the evidence store behind its door: what is put is stored without the
// secrets of the settings, and its reference is that of what is stored. So a page that
// repeats a key is evidence like any other, with a mark in place of the key, and a run
// and its rerun read the same, since both read what was stored.
type discreet struct {
	*blobdir.Store
	hide *secret.Redactor
	kept blob.Store // what the store cannot take is kept in memory
}

// Put stores content without secrets.
func (d *discreet) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	return d.kept.Put(ctx, d.hide.Bytes(content))
}

func (d *discreet) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	return d.kept.Get(ctx, ref)
}

func (d *discreet) Stat(ctx context.Context, ref blob.Ref) (blob.Info, error) {
	return d.kept.Stat(ctx, ref)
}

// Settle says whether what was put is on disk.
func (d *discreet) Settle(ctx context.Context, refs ...blob.Ref) error {
	return blob.Settle(ctx, d.kept, refs...)
}

// openRecords opens them, making what is missing.
func (a *app) openRecords(c *settings.Settings) (*records, error) {
	const hint = "set MARCHWARDEN_HOME to a folder that can be written"
	if err := durable.MakeDir(c.Home()); err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "make the home folder " + c.Home(), Err: err, Hint: hint}
	}
	traces, err := trace.OpenDir(c.Text(settings.TraceDir), a.now)
	if err != nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open the traces", Hint: hint, Err: err}
	}
	traces.Clean = a.hide.Bytes
	blobs, err := blobdir.Open(c.BlobPath())
	if err != nil {
		return nil, errors.Join(&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "open the evidence store", Hint: hint, Err: err}, traces.Close())
	}
	return &records{traces: traces, blobs: &discreet{blobs, a.hide, blob.Rescue(blobs)}}, nil
}

// openWorking is openRecords for a research, which is worth its answer even where
// nothing can be written: then it works in memory, and its result says that there is
// no record of it.
func (a *app) openWorking(c *settings.Settings) (*records, error) {
	rec, err := a.openRecords(c)
	if err == nil || !unwritable(err) {
		return rec, err
	}
	return &records{traces: trace.Nowhere(c.Text(settings.TraceDir), err), blobs: &discreet{nil, a.hide, blob.NewMem()}}, nil
}

// unwritable reports whether a place cannot be written for a reason that lies with
// the disk or the system, and not with a wrong setting.
func unwritable(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EPERM, syscall.EIO, syscall.EMFILE, syscall.ENFILE},
		func(why error) bool { return errors.Is(err, why) })
}

// openKept is openRecords for commands that only look: where nothing was kept
// yet, it makes nothing and says so with CodeNotFound.
func (a *app) openKept(c *settings.Settings) (*records, error) {
	for _, path := range []string{c.Text(settings.TraceDir), c.BlobPath()} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("nothing is recorded yet: %s does not exist", path),
				Hint: `ask something first: marchwarden ask "…"`}
		}
	}
	return a.openRecords(c)
}

func (r *records) Close() error {
	if r.blobs.Store == nil {
		return r.traces.Close()
	}
	return errors.Join(r.traces.Close(), r.blobs.Close())
}

// openLibrary opens what a research searches: the folders given here or by the
// setting, those added by 'library add', and the embedded library if asked for
// or if there is nothing else. The caller closes the folders.
func (a *app) openLibrary(c *settings.Settings, given []string, embedded bool) ([]*fetch.Folder, error) {
	if len(given) == 0 {
		given = c.List(settings.Library)
	}
	var open []*fetch.Folder
	add := func(f *fetch.Folder) {
		if slices.ContainsFunc(open, func(o *fetch.Folder) bool { return o.Name == f.Name }) {
			_ = f.Close() // read-only, and open a second time
			return
		}
		open = append(open, f)
	}
	for _, path := range given {
		f, err := a.openFolder("--library", path)
		if err != nil {
			return nil, errors.Join(err, closeFolders(open))
		}
		add(f)
	}
	kept, err := keptFolders(c.FoldersPath())
	if err != nil {
		return nil, errors.Join(err, closeFolders(open))
	}
	for _, path := range kept {
		f, err := fetch.OpenFolder(path)
		if err != nil {
			a.warn(fmt.Sprintf("%v; 'marchwarden library remove %s' forgets it", err, path))
			continue
		}
		add(f)
	}
	if len(open) == 0 && len(kept) > 0 && !embedded {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "none of the folders of the library can be opened",
			Hint: "use --embedded to search the embedded library"}
	}
	if embedded || len(open) == 0 {
		add(files.Embedded())
	}
	return open, nil
}

// openFolder opens a folder that the user named in field. A blank name is an
// error: it comes from a variable that is not set, and is not meant to be the
// working directory.
func (a *app) openFolder(field, path string) (*fetch.Folder, error) {
	if strings.TrimSpace(path) == "" {
		return nil, invalid(field, "use . for the working directory", "must not be blank")
	}
	return fetch.OpenFolder(a.source().Absolute(path, a.dir))
}

func closeFolders(fs []*fetch.Folder) error {
	var errs []error
	for _, f := range fs {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// inZone shows a time in the zone of the user's clock.
func (a *app) inZone(t time.Time) string {
	return t.In(a.now().Location()).Format("2006-01-02 15:04")
}

// readStdin is readLimited for stdin, which may be a person who never ends it:
// it gives up when ctx ends.
func (a *app) readStdin(ctx context.Context, most int64, what string) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := readLimited(a.stdin, most, what)
		done <- outcome{data, err}
	}()
	select {
	case o := <-done:
		return o.data, o.err
	case <-ctx.Done():
		return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "read %s", what)
	}
}

// readLimited reads everything, or fails when it is more than most bytes.
func readLimited(r io.Reader, most int64, what string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read %s", what)
	}
	if int64(len(data)) > most {
		return nil, invalid(what, "", fmt.Sprintf("must be at most %d bytes", most))
	}
	return data, nil
}
