package record

import (
	"context"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Family is a run with its rihlas: they are kept and removed together. A rihla
// that no investigation here names is a family of its own.
type Family struct {
	// IDs are the traces, the investigation first.
	IDs      []marchwarden.TraceID `json:"trace_ids"`
	Question string                `json:"question"`
	Last     time.Time             `json:"last_written"`
	Bytes    int64                 `json:"trace_bytes"`
	// Finished says that the run has its result. One that has not could be resumed.
	Finished bool `json:"finished"`
	// Unreadable says that one of its traces cannot be read.
	Unreadable bool `json:"unreadable,omitempty"`

	busy   bool // somebody writes one of its traces
	orphan bool // a rihla whose investigation is not known
	sealed bool // a trace of it, or one that mentions it, cannot be read
}

// member is what the survey keeps of one trace.
type member struct {
	id       marchwarden.TraceID
	question string
	parts    []marchwarden.TraceID
	started  time.Time
	last     time.Time
	bytes    int64
	finished bool
	busy     bool
	rihla    bool
	sealed   bool
	// mentioned says that a trace that cannot be read mentions it.
	mentioned bool
}

// families reads all traces and puts them together, the least recently written
// family first. mention is told of every hash in every trace.
func (h Home) families(ctx context.Context, mention func(blob.Ref)) (all []Family, began time.Time, err error) {
	ids, err := h.Traces.List()
	if err != nil {
		return nil, began, err
	}
	members := map[marchwarden.TraceID]*member{}
	named := map[marchwarden.TraceID]bool{} // by traces that can be read
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, began, err
		}
		m, err := h.member(id, mention)
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			continue // removed since
		}
		if err != nil {
			return nil, began, err
		}
		members[id] = m
		for _, part := range m.parts {
			named[part] = named[part] || !m.sealed
		}
		if m.busy && (began.IsZero() || m.started.Before(began)) {
			began = m.started
		}
	}
	for _, id := range ids {
		if m := members[id]; m != nil && m.sealed {
			m.claim(members, named)
		}
	}
	for _, id := range ids {
		if m := members[id]; m != nil && !named[id] {
			all = append(all, familyOf(m, members))
		}
	}
	slices.SortFunc(all, func(a, b Family) int {
		if c := a.Last.Compare(b.Last); c != 0 {
			return c
		}
		return strings.Compare(a.IDs[0].String(), b.IDs[0].String())
	})
	return all, began, nil
}

// claim makes those traces parts of one that cannot be read which it mentions and
// which are rihlas that no other investigation names. The rest of what it mentions
// may be what it needs, and stays as long as nobody can tell.
func (m *member) claim(members map[marchwarden.TraceID]*member, named map[marchwarden.TraceID]bool) {
	m.parts = slices.DeleteFunc(m.parts, func(id marchwarden.TraceID) bool {
		other := members[id]
		if other == nil || other.rihla && !named[id] {
			return other == nil
		}
		other.mentioned = true
		return true
	})
	for _, id := range m.parts {
		named[id] = true
	}
}

func (h Home) member(id marchwarden.TraceID, mention func(blob.Ref)) (*member, error) {
	info, err := h.Traces.Stat(id)
	if err != nil {
		return nil, err
	}
	m := &member{id: id, last: info.ModTime(), started: info.ModTime(), bytes: info.Size()}
	// First the lock and then the lines: a run that ends in between is held to be
	// busy, and one that begins in between has not put anything yet.
	if m.busy, err = h.Traces.Busy(id); err != nil {
		return nil, err
	}
	log, err := h.read(id, mention)
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		return nil, err
	}
	if err != nil {
		m.sealed = true
		m.parts, err = h.idsIn(id)
		return m, err
	}
	m.parts, m.finished = Parts(log), log.Complete() != nil
	if start, err := log.Start(); err == nil {
		m.question, m.rihla, m.started = start.Request.Question, start.PartOf, earliest(start)
	}
	return m, nil
}

var idShape = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// idsIn are the traces that one mentions which cannot be read: its rihlas are among
// them.
func (h Home) idsIn(id marchwarden.TraceID) (ids []marchwarden.TraceID, err error) {
	f, err := h.Traces.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
	}
	for _, text := range idShape.FindAll(data, -1) {
		other, err := marchwarden.ParseTraceID(string(text))
		if err == nil && other != id && !slices.Contains(ids, other) {
			ids = append(ids, other)
		}
	}
	return ids, nil
}

// earliest is when a run can have used its first blob: it is stamped when it comes
// in, before its trace is made.
func earliest(start *trace.Start) time.Time {
	if start.StartedAt.Before(start.Timestamp) {
		return start.StartedAt
	}
	return start.Timestamp
}

func familyOf(m *member, members map[marchwarden.TraceID]*member) Family {
	f := Family{Question: m.question, Finished: m.finished, orphan: m.rihla}
	var add func(m *member)
	add = func(m *member) {
		if slices.Contains(f.IDs, m.id) {
			return
		}
		f.IDs = append(f.IDs, m.id)
		f.Bytes += m.bytes
		f.busy, f.Unreadable = f.busy || m.busy, f.Unreadable || m.sealed
		f.sealed = f.sealed || m.sealed || m.mentioned
		if m.last.After(f.Last) {
			f.Last = m.last
		}
		for _, part := range m.parts {
			if p := members[part]; p != nil {
				add(p)
			}
		}
	}
	add(m)
	return f
}
