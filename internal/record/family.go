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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

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

	busy   bool                  // a process writes one of its traces
	orphan bool                  // a rihla whose investigation is not known
	sealed bool                  // a trace of it, or one that mentions it, cannot be read
	others []marchwarden.TraceID // traces that it names and that are not of it
}

// member is what the survey keeps of one trace.
type member struct {
	id       marchwarden.TraceID
	question string
	parts    []marchwarden.TraceID
	others   []marchwarden.TraceID // that it names and that are no parts of it
	started  time.Time
	last     time.Time
	bytes    int64
	finished bool
	busy     bool
	rihla    bool
	whole    bool // known to be no rihla
	sealed   bool
}

// families reads all traces and puts them together, the least recently written
// family first. mention is told of every hash in every trace.
func (h Home) families(ctx context.Context, mention func(blob.Ref)) (all []Family, began time.Time, err error) {
	ids, err := h.Traces.List()
	if err != nil {
		return nil, began, err
	}
	members := map[marchwarden.TraceID]*member{}
	named := map[marchwarden.TraceID]int{} // by how many traces that can be read
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
			if !m.sealed {
				named[part]++
			}
		}
		if m.busy && (began.IsZero() || m.started.Before(began)) {
			began = m.started
		}
	}
	claimed := map[marchwarden.TraceID]bool{}
	for _, id := range ids {
		if m := members[id]; m != nil {
			m.claim(members, named, claimed)
		}
	}
	for _, id := range ids {
		if m := members[id]; m != nil && !claimed[id] {
			all = append(all, familyOf(m, members))
		}
	}
	tie(all)
	slices.SortFunc(all, func(a, b Family) int {
		if c := a.Last.Compare(b.Last); c != 0 {
			return c
		}
		return strings.Compare(a.IDs[0].String(), b.IDs[0].String())
	})
	return all, began, nil
}

// claim leaves those traces as parts of one which it alone names and of which it is not
// known that they are no rihlas. What one mentions that cannot be read is a part only if
// it is known to be a rihla, and if no other names it.
func (m *member) claim(members map[marchwarden.TraceID]*member, named map[marchwarden.TraceID]int, claimed map[marchwarden.TraceID]bool) {
	by := 1
	if m.sealed {
		by = 0
	}
	m.parts = slices.DeleteFunc(m.parts, func(id marchwarden.TraceID) bool {
		other := members[id]
		if other == nil {
			return true
		}
		mine := (other.rihla || !other.whole && !m.sealed) && named[id] == by && !claimed[id]
		if claimed[id] = claimed[id] || mine; !mine {
			m.others = append(m.others, id)
		}
		return !mine
	})
}

// tie keeps a family as long as every other that names a trace of it: that may be what
// the other needs.
func tie(all []Family) {
	of := map[marchwarden.TraceID]*Family{}
	for i := range all {
		for _, id := range all[i].IDs {
			of[id] = &all[i]
		}
	}
	for i := range all {
		for _, id := range all[i].others {
			f := of[id]
			if f == nil || f == &all[i] {
				continue
			}
			f.busy, f.sealed = f.busy || all[i].busy, f.sealed || all[i].sealed
			if !f.Last.After(all[i].Last) {
				f.Last = all[i].Last.Add(1) // the other goes first
			}
		}
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
	facts := run.FactsOf(log.Steps)
	m.parts, m.finished = facts.Parts, facts.Ended
	if start := facts.Start; start != nil {
		m.question, m.rihla, m.whole, m.started = start.Request.Question, start.PartOf, !start.PartOf, earliest(start)
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
		f.sealed = f.sealed || m.sealed
		f.others = append(f.others, m.others...)
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
