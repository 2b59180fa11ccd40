package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
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
	for _, ref := range b.log.Refs() {
		if done[ref] {
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

// putTraces lets all put traces into a folder, while no other process does. A trace is written that is
// missing or shorter than these lines: a run that went on since is brought again. One that is here with
// other lines stays as it is, which is CodeDenied.
func putTraces(to *trace.Dir, all func(put func(marchwarden.TraceID, []byte) error) error) error {
	err := to.Import(func(put func(string, []byte) error) error {
		return all(func(id marchwarden.TraceID, lines []byte) error {
			have, err := to.Text(id)
			switch {
			case errors.Is(err, marchwarden.CodeNotFound), err == nil && len(have) < len(lines) && bytes.HasPrefix(lines, have):
				return put(id.String()+".jsonl", lines)
			case err == nil && !bytes.HasPrefix(have, lines):
				return marchwarden.Errorf(marchwarden.CodeDenied, "there is another run %s here already", id)
			}
			return err
		})
	})
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "bring a record home")
}
