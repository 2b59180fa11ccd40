package runs

import (
	"context"
	"errors"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Find gives a run: one that goes on, one that waits to, or one that has ended and has a
// record or is remembered. A run that is not the caller's is CodeNotFound with the same
// words as one that there is not.
func (d *Desk) Find(ctx context.Context, id marchwarden.TraceID) (*Run, error) {
	who := access.From(ctx)
	if who.ID == "" || !id.Valid() {
		return nil, unknown(id.String())
	}
	r, err := d.find(id)
	if err != nil {
		return nil, err
	}
	if r == nil || !r.visibleTo(who) {
		return nil, unknown(id.String())
	}
	return r, nil
}

// find gives a run to any caller, or nil.
func (d *Desk) find(id marchwarden.TraceID) (*Run, error) {
	d.mu.Lock()
	d.sweep()
	r := d.runs[id]
	d.mu.Unlock()
	if r != nil {
		r.catchUp()
		return r, nil
	}
	rec, err := d.records.read(id)
	switch {
	case errors.Is(err, errNone), err == nil && rec.Researcher != d.cfg.Name:
		return nil, nil
	case err != nil:
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the record of run %s", id)
	case rec.over():
		return d.past(rec), nil
	}
	return d.follow(rec), nil
}

// Owns reports whether the principal of ctx may see the trace and the result of a run:
// those of their own runs, and those of the rihlas of their own investigations once
// these have ended. The local user sees all.
func (d *Desk) Owns(ctx context.Context, id marchwarden.TraceID) bool {
	who := access.From(ctx)
	switch {
	case who.ID == "" || !id.Valid():
		return false
	case who.SeesAll():
		return true
	}
	d.mu.Lock()
	r := d.runs[id]
	d.mu.Unlock()
	if r != nil && r.visibleTo(who) {
		return true
	}
	owns := func() bool { return d.records.owns(who.ID, id) }
	if owns() {
		return true
	}
	_, _ = d.records.read(id) // if another process has written it by now
	return owns() || (d.records.look(d.cfg.Now()) && owns())
}

// MaySee reports whether the principal of ctx may read a stored document, named by
// "sha256:" and 64 hex digits: whether a result of a run of theirs cites it. The local
// user may read all.
func (d *Desk) MaySee(ctx context.Context, hash string) bool {
	who := access.From(ctx)
	switch {
	case who.ID == "" || !isHash(hash):
		return false
	case who.SeesAll():
		return true
	}
	cites := func() bool { return d.records.cites(who.ID, hash) }
	return cites() || (d.records.look(d.cfg.Now()) && cites())
}

// Forget removes all that is known here of a run that has ended, for a caller that removes its
// trace: what was asked, and whose it was. One that has not ended is CodeUnavailable. That there is
// nothing to forget is no error.
func (d *Desk) Forget(ctx context.Context, id marchwarden.TraceID) error {
	r, err := d.Find(ctx, id)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !r.over() {
		return goingOn(id)
	}
	if err := d.records.remove(r.snapshot()); err != nil {
		if errors.Is(err, durable.ErrLocked) || errors.Is(err, errChanged) { // another process resumed it meanwhile
			return goingOn(id)
		}
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remove the record of run %s", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if there := d.runs[id]; there != nil && there.over() {
		delete(d.runs, id)
	}
	return nil
}

// pruneSometimes prunes if that was long ago.
func (d *Desk) pruneSometimes() {
	d.mu.Lock()
	now := d.cfg.Now()
	due := now.Sub(d.pruned) >= pruneEvery
	if due {
		d.pruned = now
	}
	d.mu.Unlock()
	if due {
		d.prune()
	}
}

// prune removes the records whose time is over, unless another process does.
func (d *Desk) prune() {
	if !d.pruning.TryLock() {
		return
	}
	defer d.pruning.Unlock()
	for _, old := range d.records.expired(d.cfg.Name, d.cfg.Now().Add(-d.cfg.Retention)) {
		d.mu.Lock()
		r := d.runs[old.ID]
		d.mu.Unlock()
		if r != nil && !r.over() {
			continue
		}
		err := d.records.remove(old)
		if err != nil && !errors.Is(err, durable.ErrLocked) && !errors.Is(err, errChanged) { // else another process has it, or had it
			d.cfg.Log.Error("an old record could not be removed", "run", old.ID.String(), "error", err)
		}
	}
}
