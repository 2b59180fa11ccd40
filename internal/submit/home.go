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

// Bring brings an ended task with its rihlas: the documents that they name first, then the
// traces, the task's own last. So if it is interrupted, no trace is there without its documents,
// and a second call brings the rest. A rihla without a known record, as of a researcher that keeps
// its own, is passed over. start is there as soon as the record could be read.
func (h *Home) Bring(ctx context.Context, id marchwarden.TraceID, end *dispatch.End) (start *trace.Start, err error) {
	all, start, err := h.read(ctx, id, end.Trace, map[marchwarden.TraceID]bool{})
	if err == nil {
		err = h.putDocuments(ctx, all)
	}
	if err == nil {
		err = h.putTraces(all)
	}
	return start, err
}

// Read says how an ended task was started, and keeps nothing.
func (h *Home) Read(ctx context.Context, id marchwarden.TraceID, end *dispatch.End) (*trace.Start, error) {
	_, start, err := h.read(ctx, id, end.Trace, map[marchwarden.TraceID]bool{})
	return start, err
}

// record is the record of one task.
type record struct {
	id    marchwarden.TraceID
	lines []byte
	log   *trace.Log
}

// read gets the records of the rihlas that a task names, and then its own.
func (h *Home) read(ctx context.Context, id marchwarden.TraceID, ref blob.Ref, seen map[marchwarden.TraceID]bool) (all []record, start *trace.Start, err error) {
	seen[id] = true
	if !ref.Valid() {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is recorded of run %s", id)
	}
	own := record{id: id}
	if own.lines, err = h.Engine.Blobs().Get(ctx, ref); err != nil {
		return nil, nil, fmt.Errorf("get the record of run %s: %w", id, err)
	}
	if own.log, err = trace.Read(bytes.NewReader(own.lines)); err == nil {
		start, err = own.log.Start()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the record of run %s: %w", id, err)
	}
	if start.TraceID != id {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the record of run %s is of another run", id)
	}
	for _, part := range run.FactsOf(own.log.Steps).Parts {
		if seen[part] {
			continue
		}
		state, err := h.Engine.Look(ctx, part)
		switch {
		case errors.Is(err, marchwarden.CodeNotFound), err == nil && (state.End == nil || !state.End.Trace.Valid()):
			seen[part] = true
			continue
		case err != nil:
			return nil, start, fmt.Errorf("look for rihla %s: %w", part, err)
		}
		below, _, err := h.read(ctx, part, state.End.Trace, seen)
		if err != nil {
			return nil, start, err
		}
		all = append(all, below...)
	}
	return append(all, own), start, nil
}

// putDocuments copies the documents that records name, as they are: a secret that only
// this machine knows cannot be in them, and one that was taken out of them would not be
// what the traces name.
func (h *Home) putDocuments(ctx context.Context, all []record) error {
	for _, r := range all {
		for _, ref := range r.log.Refs() {
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
	return nil
}

// putTraces writes the traces of records, while no other process does. One is written that is
// missing or shorter than these lines: a run that went on since is brought again. One that is here with
// other lines stays as it is, which is CodeDenied.
func (h *Home) putTraces(all []record) error {
	err := h.Traces.Import(func(put func(string, []byte) error) error {
		for _, r := range all {
			have, err := h.Traces.Text(r.id)
			switch {
			case errors.Is(err, marchwarden.CodeNotFound), err == nil && len(have) < len(r.lines) && bytes.HasPrefix(r.lines, have):
				err = put(r.id.String()+".jsonl", r.lines)
			case err == nil && !bytes.HasPrefix(have, r.lines):
				err = marchwarden.Errorf(marchwarden.CodeDenied, "there is another run %s here already", r.id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "bring a record home")
}
