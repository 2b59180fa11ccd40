package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// homeward brings the records of tasks that ended somewhere else into the home folder,
// where they can be shown, verified and run again like those of a run that was made
// here.
type homeward struct {
	engine dispatch.Client
	from   blob.Store
	home   *network.Records
	// here says that both have one evidence store.
	here bool
}

// brought is a record that was brought home.
type brought struct {
	id    marchwarden.TraceID
	lines []byte
	log   *trace.Log
	start *trace.Start // of the run that it is the record of; nil if that is not known
	parts []brought
}

// bring brings an ended task with its rihlas: the documents that they name first, then the
// traces, the task's own last. So if it is interrupted, no trace is there without its documents,
// and a second call brings the rest. A rihla without a known record, as of a researcher that keeps
// its own, is passed over.
func (h *homeward) bring(ctx context.Context, id marchwarden.TraceID, end *dispatch.End) (brought, error) {
	b, err := h.read(ctx, id, end.Trace, map[marchwarden.TraceID]bool{})
	if err != nil {
		return b, err
	}
	if !h.here {
		if err := h.evidence(ctx, b, map[blob.Ref]bool{}); err != nil {
			return b, err
		}
	}
	unlock, err := durable.LockFile(filepath.Join(h.home.Traces.Path(), record.ImportLock))
	if err != nil {
		return b, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for another record to come home")
	}
	root, err := os.OpenRoot(h.home.Traces.Path())
	if err == nil {
		err = errors.Join(h.place(root, b), durable.SyncDir(root.Open(".")), root.Close())
	}
	return b, marchwarden.Wrap(errors.Join(err, unlock()), marchwarden.CodeUnavailable, "bring run %s home", id)
}

// read gets the lines of a task and of the rihlas that it names.
func (h *homeward) read(ctx context.Context, id marchwarden.TraceID, ref blob.Ref, seen map[marchwarden.TraceID]bool) (brought, error) {
	b := brought{id: id}
	seen[id] = true
	if !ref.Valid() {
		return b, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is recorded of run %s", id)
	}
	var err error
	if b.lines, err = h.from.Get(ctx, ref); err != nil {
		return b, fmt.Errorf("get the record of run %s: %w", id, err)
	}
	if b.log, err = trace.Read(bytes.NewReader(b.lines)); err != nil {
		return b, fmt.Errorf("read the record of run %s: %w", id, err)
	}
	start, err := b.log.Start()
	if err != nil {
		return b, fmt.Errorf("read the record of run %s: %w", id, err)
	}
	if start.TraceID != id {
		return b, marchwarden.Errorf(marchwarden.CodeCorrupt, "the record of run %s is of another run", id)
	}
	b.start = start
	for _, part := range run.FactsOf(b.log.Steps).Parts {
		if seen[part] {
			continue
		}
		state, err := h.engine.Look(ctx, part)
		switch {
		case errors.Is(err, marchwarden.CodeNotFound), err == nil && (state.End == nil || !state.End.Trace.Valid()):
			seen[part] = true
			continue
		case err != nil:
			return b, fmt.Errorf("look for rihla %s: %w", part, err)
		}
		child, err := h.read(ctx, part, state.End.Trace, seen)
		if err != nil {
			return b, err
		}
		b.parts = append(b.parts, child)
	}
	return b, nil
}

// evidence copies the documents that a record names, as they are: a secret that only
// this machine knows cannot be in them, and one that was taken out of them would not be
// what the traces name.
func (h *homeward) evidence(ctx context.Context, b brought, done map[blob.Ref]bool) error {
	for _, step := range b.log.Steps {
		for _, ref := range trace.Refs(step) {
			if done[ref] || !ref.Valid() {
				continue
			}
			done[ref] = true
			if _, err := h.home.Blobs.Store.Stat(ctx, ref); err == nil {
				continue
			}
			content, err := h.from.Get(ctx, ref)
			if errors.Is(err, blob.ErrNotFound) {
				continue // it was never stored, and the record says so; verify tells
			}
			if err != nil {
				return fmt.Errorf("get %s: %w", ref, err)
			}
			if _, err := h.home.Blobs.Store.Put(ctx, content); err != nil {
				return fmt.Errorf("keep %s: %w", ref, err)
			}
		}
	}
	for _, part := range b.parts {
		if err := h.evidence(ctx, part, done); err != nil {
			return err
		}
	}
	return nil
}

// place writes the traces that are missing or shorter than what was brought: a run that
// went on since is brought again. One that is here with other lines stays as it is.
func (h *homeward) place(root *os.Root, b brought) error {
	for _, part := range b.parts {
		if err := h.place(root, part); err != nil {
			return err
		}
	}
	have, err := h.kept(b.id)
	switch {
	case err != nil:
		return err
	case bytes.Equal(have, b.lines) || len(have) > len(b.lines) && bytes.HasPrefix(have, b.lines):
		return nil
	case have != nil && !bytes.HasPrefix(b.lines, have):
		return marchwarden.Errorf(marchwarden.CodeDenied, "there is another run %s here already", b.id)
	}
	name := b.id.String() + ".jsonl"
	return durable.Replace(root, name, "."+name+"."+rand.Text()+".tmp", b.lines) // what a crash leaves, a check removes
}

// kept are the lines of a run that is here, or nil.
func (h *homeward) kept(id marchwarden.TraceID) ([]byte, error) {
	f, err := h.home.Traces.Raw(id)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
