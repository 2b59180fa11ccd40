package submit

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Home brings the records of tasks that ended in a cluster into the home folder, where they
// can be shown, verified and run again like those of local runs.
type Home struct {
	Engine dispatch.Engine
	Traces *trace.Dir
	Blobs  blob.Store
}

// Brought is a record that came home.
type Brought struct {
	ID    marchwarden.TraceID
	Start *trace.Start // nil if the record cannot be read

	lines []byte
	log   *trace.Log
	parts []Brought
}

// Bring brings an ended task with its rihlas: the documents that they name first, then the
// traces, the task's own last. So if it is interrupted, no trace is there without its documents,
// and a second call brings the rest. A rihla without a known record, as of a researcher that keeps
// its own, is passed over.
func (h *Home) Bring(ctx context.Context, id marchwarden.TraceID, end *dispatch.End) (Brought, error) {
	b, err := h.Read(ctx, id, end)
	if err != nil {
		return b, err
	}
	if err := h.evidence(ctx, b, map[blob.Ref]bool{}); err != nil {
		return b, err
	}
	return b, putTraces(h.Traces, b.put)
}

// Read gets the record of an ended task, and keeps nothing.
func (h *Home) Read(ctx context.Context, id marchwarden.TraceID, end *dispatch.End) (Brought, error) {
	return h.read(ctx, id, end.Trace, map[marchwarden.TraceID]bool{})
}

// read gets the lines of a task and of the rihlas that it names.
func (h *Home) read(ctx context.Context, id marchwarden.TraceID, ref blob.Ref, seen map[marchwarden.TraceID]bool) (Brought, error) {
	b := Brought{ID: id}
	seen[id] = true
	if !ref.Valid() {
		return b, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is recorded of run %s", id)
	}
	var err error
	if b.lines, err = h.Engine.Blobs().Get(ctx, ref); err != nil {
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
	b.Start = start
	for _, part := range run.FactsOf(b.log.Steps).Parts {
		if seen[part] {
			continue
		}
		state, err := h.Engine.Look(ctx, part)
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
func (h *Home) evidence(ctx context.Context, b Brought, done map[blob.Ref]bool) error {
	for _, step := range b.log.Steps {
		for _, ref := range trace.Refs(step) {
			if done[ref] || !ref.Valid() {
				continue
			}
			done[ref] = true
			if _, err := h.Blobs.Stat(ctx, ref); err == nil {
				continue
			}
			content, err := h.Engine.Blobs().Get(ctx, ref)
			if errors.Is(err, blob.ErrNotFound) {
				continue // it was never stored, and the record says so; verify tells
			}
			if err != nil {
				return fmt.Errorf("get %s: %w", ref, err)
			}
			if _, err := h.Blobs.Put(ctx, content); err != nil {
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

// put puts the traces of the parts and then the own one.
func (b Brought) put(one func(marchwarden.TraceID, []byte) error) error {
	for _, part := range b.parts {
		if err := part.put(one); err != nil {
			return err
		}
	}
	return one(b.ID, b.lines)
}

// putTraces lets all put traces into a folder, while no other process does.
func putTraces(to *trace.Dir, all func(put func(marchwarden.TraceID, []byte) error) error) error {
	unlock, err := durable.LockFile(filepath.Join(to.Path(), trace.ImportLock))
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for another record to come home")
	}
	root, err := os.OpenRoot(to.Path())
	if err == nil {
		put := func(id marchwarden.TraceID, lines []byte) error { return putTrace(root, to, id, lines) }
		err = errors.Join(all(put), durable.SyncDir(root.Open(".")), root.Close())
	}
	return marchwarden.Wrap(errors.Join(err, unlock()), marchwarden.CodeUnavailable, "bring a record home")
}

// putTrace writes a trace that is missing or shorter than these lines: a run that went on since
// is brought again. One that is here with other lines stays as it is, which is CodeDenied.
func putTrace(root *os.Root, to *trace.Dir, id marchwarden.TraceID, lines []byte) error {
	have, err := kept(to, id)
	switch {
	case err != nil:
		return err
	case bytes.Equal(have, lines) || len(have) > len(lines) && bytes.HasPrefix(have, lines):
		return nil
	case have != nil && !bytes.HasPrefix(lines, have):
		return marchwarden.Errorf(marchwarden.CodeDenied, "there is another run %s here already", id)
	}
	name := id.String() + ".jsonl"
	return durable.Replace(root, name, "."+name+"."+rand.Text()+".tmp", lines) // what a crash leaves, a check removes
}

// kept are the lines of a run that is here, or nil.
func kept(in *trace.Dir, id marchwarden.TraceID) ([]byte, error) {
	f, err := in.Raw(id)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
