package runs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

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

const (
	// maxRecords bounds the folder and the memory: of more records of one owner the oldest
	// ended ones are removed before their time.
	maxRecords = 10_000
	// What one record tells of its result at most. Beyond that only the local user sees
	// traces and evidence.
	maxTraces   = 1024
	maxEvidence = 4096
)

// isHash reports whether a text is "sha256:" and 64 hex digits.
func isHash(s string) bool {
	digits, ok := strings.CutPrefix(s, "sha256:")
	return ok && len(digits) == 64 && strings.Trim(digits, "0123456789abcdef") == ""
}

// known is a record as it is in memory, without what only its run needs. The stamp tells one
// version of its file from another; one that was written here has that of the version before.
type known struct {
	record
	modified time.Time
	size     int64
}

// add takes in a record, in the place of an earlier version of it.
func (s *shelf) add(rec known) {
	rec.Request, rec.Message, rec.Failure = marchwarden.Request{}, "", nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.records[rec.ID]; rec.modified.IsZero() {
		rec.modified, rec.size = old.modified, old.size
	}
	s.records[rec.ID] = rec
}

// has reports whether a principal has a record of which something holds.
func (s *shelf) has(owner string, holds func(record) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rec := range s.records {
		if rec.Owner == owner && holds(rec.record) {
			return true
		}
	}
	return false
}

// of are the records of a researcher that are to go on, or are not, from the first to the last by a time.
func (s *shelf) of(researcher string, toGoOn bool, by func(record) time.Time) []record {
	s.mu.Lock()
	defer s.mu.Unlock()
	var recs []record
	for _, rec := range s.records {
		if rec.Researcher == researcher && rec.toGoOn() == toGoOn {
			recs = append(recs, rec.record)
		}
	}
	slices.SortFunc(recs, func(a, b record) int {
		return cmp.Or(by(a).Compare(by(b)), strings.Compare(a.ID.String(), b.ID.String()))
	})
	return recs
}

// expired are the records of a researcher that are to be removed: those that ended before a
// time, calls that never ended, which began before it, and what an owner has beyond maxRecords.
func (s *shelf) expired(researcher string, before time.Time) []record {
	all := s.of(researcher, false, record.lastSign)
	slices.Reverse(all)
	has := map[string]int{}
	return slices.DeleteFunc(all, func(rec record) bool {
		has[rec.Owner]++
		return has[rec.Owner] <= maxRecords && !rec.lastSign().Before(before)
	})
}

// lookEvery is how often the folder is looked through for what other processes have
// written there.
const lookEvery = time.Second

// look takes in what other processes have written, and reports whether it looked.
func (s *shelf) look(now time.Time) bool {
	s.mu.Lock()
	age := now.Sub(s.looked)
	due := s.dir != "" && (age < 0 || age >= lookEvery)
	if due {
		s.looked = now
	}
	s.mu.Unlock()
	if !due {
		return false
	}
	if err := s.refresh(); err != nil {
		s.log.Error("the folder of the runs could not be read", "error", err)
		return false
	}
	return true
}

// refresh reads the records that are new or have changed, and forgets those that are gone. A
// folder is of use without one that cannot be read now, which is tried again next time.
func (s *shelf) refresh() error {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	there := map[marchwarden.TraceID]bool{}
	for _, entry := range entries {
		text, ok := strings.CutSuffix(entry.Name(), recordSuffix)
		id, err := marchwarden.ParseTraceID(text)
		info, gone := entry.Info()
		if !ok || err != nil || id.String() != text || gone != nil {
			continue
		}
		there[id] = true
		s.mu.Lock()
		old := s.records[id]
		s.mu.Unlock()
		if old.modified.Equal(info.ModTime()) && old.size == info.Size() {
			continue
		}
		if _, err := s.read(id); err != nil && !errors.Is(err, errNone) {
			s.log.Error("the record of a run could not be read: for now it has no owner", "run", id.String(), "error", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.records, func(id marchwarden.TraceID, old known) bool { return !there[id] && !old.modified.IsZero() })
	return nil
}
