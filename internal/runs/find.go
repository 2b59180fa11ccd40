package runs

import (
	"context"
	"errors"
	"slices"

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
	if who.ID == "" || !id.Valid() {
		return false
	}
	d.mu.Lock()
	r := d.runs[id]
	d.mu.Unlock()
	if r != nil && r.visibleTo(who) {
		return true
	}
	if !who.SeesAll() {
		_, _ = d.records.read(id) // another process may have written it a moment ago
	}
	return d.hasRecord(who, func(rec record) bool { return rec.ID == id || slices.Contains(rec.Traces, id) })
}

// MaySee reports whether the principal of ctx may read a stored document, named by
// "sha256:" and 64 hex digits: whether a result of a run of theirs cites it. The local
// user may read all.
func (d *Desk) MaySee(ctx context.Context, hash string) bool {
	who := access.From(ctx)
	return who.ID != "" && isHash(hash) && d.hasRecord(who, func(rec record) bool { return slices.Contains(rec.Evidence, hash) })
}

// hasRecord reports whether a principal has a record of which something holds, as who sees all has.
func (d *Desk) hasRecord(who access.Principal, holds func(record) bool) bool {
	return who.SeesAll() || d.records.has(who.ID, holds) || d.records.look(d.cfg.Now()) && d.records.has(who.ID, holds)
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
	err = d.records.remove(r.snapshot())
	switch {
	case errors.Is(err, durable.ErrLocked):
		return goingOn(id)
	case err != nil:
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "remove the record of run %s", id)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if there := d.runs[id]; there != nil && there.over() {
		delete(d.runs, id)
	}
	return nil
}

// prune removes the records whose time is over, unless that was done a while ago or another process
// has them.
func (d *Desk) prune() {
	now := d.cfg.Now()
	d.mu.Lock()
	due := now.Sub(d.pruned) >= pruneEvery
	if due {
		d.pruned = now
	}
	d.mu.Unlock()
	if !due {
		return
	}
	for _, old := range d.records.expired(d.cfg.Name, now.Add(-d.cfg.Retention)) {
		d.mu.Lock()
		r := d.runs[old.ID]
		d.mu.Unlock()
		if r != nil && !r.over() {
			continue
		}
		err := d.records.remove(old)
		if err != nil && !errors.Is(err, durable.ErrLocked) {
			d.cfg.Log.Error("an old record could not be removed", "run", old.ID.String(), "error", err)
		}
	}
}
