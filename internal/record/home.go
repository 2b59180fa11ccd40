// Package record looks after all records of one place: it finds what is damaged or
// missing and who needs it, and removes what is old. What is in the
// record of one run is package run's, the files of the store are package blob's.
//
//	home.go    all records of one place, what their traces mention, and which belong together
//	check.go   the report; what is damaged or missing, and who needs it
//	files.go   the folder of traces, and the other files of a home
//	gc.go      removing old families, and blobs that nothing mentions
//	text.go    a report for people
package record

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Home is all records of one place, for those who check and clear them.
type Home struct {
	run.Store
	Shelf Shelf // the files behind Store.Blobs
	// Folder is the home folder, in which checks of sources are kept; "" has none.
	Folder string
}

// Shelf is the files behind a Store, for checking and clearing it.
type Shelf interface {
	// Files calls fn for every file of the store, leftovers of broken-off writes
	// included, in a fixed order. Files that come or go meanwhile may be met or not.
	// The first error of fn ends the walk and is returned as it is.
	Files(ctx context.Context, fn func(blob.File) error) error
	// Inspect is Get without a mark that the blob was used.
	Inspect(ctx context.Context, ref blob.Ref) ([]byte, error)
	// Remove removes those of refs that were last used before a time and that are not
	// among those that needed gives, which is asked again and again while no other process can
	// write. It is safe beside writers. It returns what is gone, also with an error.
	Remove(ctx context.Context, refs []blob.Ref, before time.Time, needed func() (map[blob.Ref]bool, error)) ([]blob.File, error)
	// Sweep removes leftovers that were last written before a time and returns how
	// many.
	Sweep(ctx context.Context, before time.Time) (int, error)
}

var refShape = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// read reads a trace and calls mention for every hash in its bytes, also where it
// cannot be decoded. What a trace mentions is more than what its steps need, as far as this
// program understands them: a step of an action that only a later version knows, and a line
// that is damaged, still keep what they mention.
func (h Home) read(id marchwarden.TraceID, mention func(blob.Ref)) (log *trace.Log, text []byte, err error) {
	text, err = h.Traces.Text(id)
	for _, hash := range refShape.FindAll(text, -1) {
		if ref, err := blob.Parse(string(hash)); err == nil {
			mention(ref)
		}
	}
	if err != nil {
		return nil, text, err
	}
	log, err = trace.Read(bytes.NewReader(text))
	return log, text, err
}

// Family is a run with its rihlas: they are kept and removed together. A rihla
// that no investigation here names, or more than one, is a family of its own, and so
// is a run that was no rihla, whatever an investigation says that was
// imported. They go no earlier than what names them.
type Family struct {
	// IDs are the traces, the investigation first.
	IDs      []marchwarden.TraceID `json:"trace_ids"`
	Question string                `json:"question"`
	Last     time.Time             `json:"last_written"` // or what names it was
	Bytes    int64                 `json:"trace_bytes"`
	// Finished says that the run has its result. One that has not could be resumed.
	Finished bool `json:"finished"`
	// Unreadable says that one of its traces cannot be read.
	Unreadable bool `json:"unreadable,omitempty"`

	busy   bool // a process writes one of its traces
	rihla  bool // of an investigation that is not known
	sealed bool // a trace of it, or one that mentions it, cannot be read
}

// member is one trace: the family that it is by itself, and what it may belong to.
type member struct {
	Family
	parts   []marchwarden.TraceID // that it names
	by      []*member             // that name it
	started time.Time             // when it can have used its first blob
	whole   bool                  // known to be no rihla
}

// owner is the trace whose part one is: that which alone names it, unless it is known to be no rihla.
// One that cannot be read owns what is known to be a rihla, if no other names that.
func (m *member) owner() *member {
	readable := slices.DeleteFunc(slices.Clone(m.by), func(by *member) bool { return by.sealed })
	switch {
	case len(readable) == 1 && !m.whole:
		return readable[0]
	case len(readable) == 0 && len(m.by) > 0 && m.rihla:
		return m.by[0]
	}
	return nil
}

// root is the trace that heads the family of one; nil for traces that are parts of one another.
func (m *member) root() *member {
	const deepest = 1000
	for range deepest {
		owner := m.owner()
		if owner == nil {
			return m
		}
		m = owner
	}
	return nil
}

// families reads all traces and puts them together, the least recently written family first.
// began is when the first run began that is going on.
func (h Home) families(ctx context.Context) (all []Family, began time.Time, err error) {
	ids, err := h.Traces.List()
	if err != nil {
		return nil, began, err
	}
	var members []*member
	at := map[marchwarden.TraceID]*member{}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, began, err
		}
		m, err := h.member(id)
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			continue // removed since
		}
		if err != nil {
			return nil, began, err
		}
		members, at[id] = append(members, m), m
		if m.busy && (began.IsZero() || m.started.Before(began)) {
			began = m.started
		}
	}
	for _, m := range members {
		for _, part := range m.parts {
			if other := at[part]; other != nil {
				other.by = append(other.by, m)
			}
		}
	}
	for _, f := range join(members) {
		all = append(all, *f)
	}
	slices.SortFunc(all, func(a, b Family) int {
		return cmp.Or(a.Last.Compare(b.Last), strings.Compare(a.IDs[0].String(), b.IDs[0].String()))
	})
	return all, began, nil
}

// join puts traces together. A family stays as long as every other that names a trace of it, and may
// need it.
func join(members []*member) map[*member]*Family {
	families := map[*member]*Family{} // by their roots
	for _, m := range members {
		root := m.root()
		if root == nil {
			continue
		}
		f := families[root]
		if f == nil {
			f = &Family{IDs: slices.Clone(root.IDs), Question: root.Question, Finished: root.Finished, rihla: root.rihla}
			families[root] = f
		}
		if m != root {
			f.IDs = append(f.IDs, m.IDs...)
		}
		f.Bytes += m.Bytes
		f.busy, f.Unreadable, f.sealed = f.busy || m.busy, f.Unreadable || m.sealed, f.sealed || m.sealed
		if m.Last.After(f.Last) {
			f.Last = m.Last
		}
	}
	for _, m := range members {
		f := families[m.root()]
		for _, by := range m.by {
			other := families[by.root()]
			if f == nil || other == nil || f == other {
				continue
			}
			f.busy, f.sealed = f.busy || other.busy, f.sealed || other.sealed
			if !f.Last.After(other.Last) {
				f.Last = other.Last.Add(1) // the other goes first
			}
		}
	}
	return families
}

func (h Home) member(id marchwarden.TraceID) (*member, error) {
	info, err := h.Traces.Stat(id)
	if err != nil {
		return nil, err
	}
	m := &member{Family: Family{IDs: []marchwarden.TraceID{id}, Last: info.ModTime(), Bytes: info.Size()}, started: info.ModTime()}
	// First the lock and then the lines: a run that ends in between is held to be
	// busy, and one that begins in between has not put anything yet.
	if m.busy, err = h.Traces.Busy(id); err != nil {
		return nil, err
	}
	log, text, err := h.read(id, func(blob.Ref) {})
	switch {
	case marchwarden.CodeOf(err) == marchwarden.CodeNotFound, errors.Is(err, marchwarden.CodeUnavailable):
		return nil, err
	case err != nil:
		m.sealed, m.parts = true, idsIn(text, id)
		return m, nil
	}
	facts := run.FactsOf(log.Steps)
	m.parts, m.Finished = facts.Parts, facts.Ended
	if start := facts.Start; start != nil {
		m.Question, m.rihla, m.whole, m.started = start.Request.Question, start.PartOf, !start.PartOf, start.Timestamp
		if start.StartedAt.Before(m.started) { // it is stamped when it comes in, before its trace is made
			m.started = start.StartedAt
		}
	}
	return m, nil
}

var idShape = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// idsIn are the traces, its rihlas among them, that the text of an unreadable one mentions.
func idsIn(text []byte, id marchwarden.TraceID) (ids []marchwarden.TraceID) {
	for _, match := range idShape.FindAll(text, -1) {
		other, err := marchwarden.ParseTraceID(string(match))
		if err == nil && other != id && !slices.Contains(ids, other) {
			ids = append(ids, other)
		}
	}
	return ids
}
