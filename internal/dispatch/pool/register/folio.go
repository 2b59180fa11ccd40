// Package register is what the files of a local engine say about tasks: a log for each
// investigation, with everything that happened to its tasks, and one list of all tasks
// that wait, by queue, band and owner. Several processes read and write both.
//
// It owns the form of the entries and what follows from them. Who may work on a task,
// and what is done with one, is package pool's.
package register

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool/logbook"
)

// Entry is what happened to a task, in the log of its investigation.
type Entry struct {
	Kind   Kind                `json:"kind"`
	Task   marchwarden.TraceID `json:"task,omitzero"` // zero for a cancel of all
	Spec   *dispatch.Task      `json:"spec,omitempty"`
	Worker string              `json:"worker,omitempty"`
	// Attempt is which holder of the task wrote it.
	Attempt int           `json:"attempt,omitempty"`
	Line    []byte        `json:"line,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	End     *dispatch.End `json:"end,omitempty"`
}

// Kind is what an entry tells of.
type Kind string

// The kinds.
const (
	HandedIn   Kind = "task"   // Spec
	Taken      Kind = "taken"  // Worker, Attempt
	Written    Kind = "line"   // Line
	HandedBack Kind = "back"   // by its holder, who lives
	Canceled   Kind = "cancel" // Reason
	Ended      Kind = "end"    // End
)

// Folio is the log of one investigation, and what it says of its tasks. It is safe for
// concurrent use.
type Folio struct {
	book *logbook.Book

	mu      sync.Mutex // guards what follows
	tasks   map[marchwarden.TraceID]*Account
	order   []marchwarden.TraceID
	holders map[marchwarden.TraceID]holder // of records: who took each last
	changed chan struct{}                  // closed when something is new
}

// Account is what is known of a task.
type Account struct {
	dispatch.State
	Cancel *string // why it was canceled, if it was
	Backs  int     // attempts that were handed back
	Begun  bool    // a line was written for it
	EndSeq uint64  // of its end
	isBack bool    // the last attempt was handed back
}

type holder struct {
	task    marchwarden.TraceID
	attempt int
}

// OpenFolio names the log in a file, which need not exist. Refresh reads it.
func OpenFolio(path string) *Folio {
	f := &Folio{tasks: map[marchwarden.TraceID]*Account{}, holders: map[marchwarden.TraceID]holder{},
		changed: make(chan struct{})}
	f.book = logbook.Open(path, "marchwarden investigation/1", f.seen, nil)
	return f
}

// Refresh takes in what others have written.
func (f *Folio) Refresh() error { return f.book.Refresh() }

// seen takes an entry in.
func (f *Folio) seen(object []byte, end int64) {
	var e Entry
	if json.Unmarshal(object, &e) != nil {
		return // of a later version, sound as far as can be told
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
	if e.Kind == HandedIn && e.Spec != nil && f.tasks[e.Task] == nil {
		f.tasks[e.Task] = &Account{State: dispatch.State{Task: *e.Spec, Status: dispatch.Waiting}}
		f.order = append(f.order, e.Task)
	}
	if e.Kind == Canceled && !e.Task.Valid() { // what comes later, to go on, is not meant
		for _, t := range f.tasks {
			t.Cancel = &e.Reason
		}
	}
	t := f.tasks[e.Task]
	if t == nil || t.End != nil || e.Kind == Ended && e.End == nil {
		return
	}
	switch e.Kind {
	case Taken:
		t.Status, t.Worker, t.Attempts, t.isBack = dispatch.Working, e.Worker, e.Attempt, false
		f.holders[t.Task.Record] = holder{e.Task, e.Attempt}
	case Written:
		t.Begun = true
	case HandedBack:
		t.Status, t.isBack = dispatch.Waiting, true
		t.Backs++
	case Canceled:
		t.Cancel = &e.Reason
	case Ended:
		t.Status, t.End, t.EndSeq = e.End.Status, e.End, uint64(end)
	}
}

// Account is a copy of what is known of a task.
func (f *Folio) Account(id marchwarden.TraceID) (Account, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, ok := f.tasks[id]
	if !ok {
		return Account{}, false
	}
	return *t, true
}

// Beforehand is how a task ends that is not to be begun, or nil.
func (a Account) Beforehand() *dispatch.End {
	var end dispatch.End
	switch {
	case a.Cancel != nil:
		end = dispatch.CanceledEnd(*a.Cancel)
	case a.Attempts-a.Backs >= dispatch.MaxAttempts:
		end = dispatch.GivenUp(a.Attempts - a.Backs)
	default:
		return nil
	}
	end.Worker, end.Attempt = a.Worker, a.Attempts
	return &end
}

// Open are the tasks that have not ended, in the order in which they came.
func (f *Folio) Open() []marchwarden.TraceID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(f.order), func(id marchwarden.TraceID) bool { return f.tasks[id].End != nil })
}

// Empty reports whether there was never a task.
func (f *Folio) Empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.order) == 0
}

// News is closed when something is new.
func (f *Folio) News() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// ErrKnown says that there is nothing to write.
var ErrKnown = errors.New("known already")

// Write appends the entry that next gives when all that others wrote is known. It is
// kept when Write returns. ErrKnown of next is no error, others are returned.
func (f *Folio) Write(next func() (*Entry, error)) error {
	err := f.book.Append(false, func() (any, error) { return next() })
	if errors.Is(err, ErrKnown) {
		return nil
	}
	return err
}

// Holds reports whether an attempt at a task is the last that its record knows of.
func (f *Folio) Holds(t dispatch.Task, attempt int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holders[t.Record] == holder{t.ID, attempt} && f.tasks[t.ID].End == nil && !f.tasks[t.ID].isBack
}

// Lines are those of a record.
func (f *Folio) Lines(record marchwarden.TraceID) ([]byte, error) {
	out := []byte{}
	records := map[marchwarden.TraceID]marchwarden.TraceID{}
	err := f.book.Scan(0, func(object []byte, _ int64) bool {
		var e Entry
		if json.Unmarshal(object, &e) != nil {
			return true
		}
		switch {
		case e.Kind == HandedIn && e.Spec != nil:
			records[e.Task] = e.Spec.Record
		case e.Kind == Written && records[e.Task] == record:
			out = append(out, e.Line...)
		}
		return true
	})
	return out, err
}

// Events tells of what watchers see, after an event, until fn has enough.
func (f *Folio) Events(after uint64, fn func(dispatch.Event) (more bool)) error {
	return f.book.Scan(int64(after), func(object []byte, end int64) bool {
		var e Entry
		if json.Unmarshal(object, &e) != nil {
			return true
		}
		ev := dispatch.Event{Seq: uint64(end), Task: e.Task}
		switch e.Kind {
		case Taken:
			ev.Kind, ev.Worker, ev.Attempt = dispatch.Taken, e.Worker, e.Attempt
		case Written:
			ev.Kind, ev.Line = dispatch.Written, e.Line
		case Ended:
			ev.Kind, ev.End = dispatch.Ended, e.End
		default:
			return true
		}
		return fn(ev)
	})
}

// Nudge wakes those that wait for News, though nothing is new in the log.
func (f *Folio) Nudge() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}
