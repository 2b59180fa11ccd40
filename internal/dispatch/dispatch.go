// Package dispatch is the boundary between an investigator and the researchers
// that it sends on journeys: who there is, and how one of them is asked. Where a
// researcher runs (in this process, in a child process, behind an address) is the
// affair of an implementation such as package pool; an investigator cannot tell.
//
// The package owns the words of the boundary and does nothing itself.
package dispatch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
)

// Member is one researcher of a network, as its owner described it.
type Member struct {
	Name  string `json:"name"`
	Scope string `json:"scope"` // one sentence on what it covers
	// Transport says for people where it runs: "in process", a command, an address.
	Transport string `json:"transport,omitempty"`
	// Share is its weight when a budget is split; 0 counts as 1.
	Share float64 `json:"share,omitempty"`
	Trust Trust   `json:"trust,omitempty"`
	// Private says that what it reports comes from sources of the user's own, such
	// as files or a database, which others must not learn of.
	Private bool `json:"private,omitempty"`
	// OpenWorld says that what it is asked leaves this machine.
	OpenWorld bool `json:"open_world,omitempty"`
}

// Trust is how far a researcher's own word on its sources goes.
type Trust string

// The degrees of trust.
const (
	// Own is a researcher of this program, which stores what it cites where every process can look.
	Own Trust = "own"
	// Known is an external researcher whose stored documents are taken for what they say they are,
	// if it hands them over by hash. The default.
	Known Trust = "known"
	// Unknown is one whose documents are fetched again, whatever it hands over.
	Unknown Trust = "unknown"
)

// Dispatcher asks members. It is safe for concurrent use.
type Dispatcher interface {
	// Members are all that may be asked, in the order of their configuration. A
	// member may be out of order all the same; asking it says so.
	Members() []Member
	// Dispatch asks one member. It keeps the promises of
	// marchwarden.Researcher.Research; beyond them, a researcher that is not there,
	// died, or gave no result that can be read is an error with CodeUnavailable,
	// CodeMalformed or CodeUnsupported, and says who. The deadline of ctx is the
	// member's too: one that can hand over a partial result in time does.
	Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error)
	// Evidence is the stored content that a member cited, by its hash
	// ("sha256:…"), checked against it. CodeNotFound and CodeUnsupported say that
	// the member has none to give.
	Evidence(ctx context.Context, member, hash string) ([]byte, error)
}

// ErrNotAsked is in the chain of an error after which nothing can have been spent:
// the member was not reached.
var ErrNotAsked = errors.New("not asked")

// NotAsked puts ErrNotAsked into the chain of err, whose words stay as they are.
func NotAsked(err error) error {
	if err == nil {
		return nil
	}
	return notAsked{err}
}

type notAsked struct{ error }

func (n notAsked) Unwrap() error      { return n.error }
func (notAsked) Is(target error) bool { return target == ErrNotAsked }

// Said is a failure in the words of a researcher, which may hold anything: a stack, a
// path, a secret. They are for those who run the researcher. What callers of an external
// one are told is Plain.
type Said struct {
	Words error
	Plain *marchwarden.Error
}

// Error gives the words.
func (s *Said) Error() string { return s.Words.Error() }

// Unwrap exposes the code, which both have.
func (s *Said) Unwrap() error { return s.Words }

// An Engine carries tasks from those who have questions to those who work on them,
// keeps a record of each, and outlives both. Package cluster is one of JetStream; package
// dispatchtest holds it to the promises made here. All of it is safe for concurrent use.
type Engine interface {
	Client
	// Work takes tasks from a queue and has h work on them, until ctx ends. Then it
	// takes no more, waits job.Drain for those under way, hands back what is left, and
	// returns nil. A job that Job.Check refuses is CodeInvalid. A task is worked on at
	// least once, and by one worker at a time as far as its record can tell: one whose
	// lease has passed to another cannot write.
	Work(ctx context.Context, job Job, h Handler) error
	// Limit is what all users of the engine share of a provider, by its key, such as
	// "anthropic/requests" or "host:example.org/requests". A key without a limit never waits.
	Limit(key string) Limiter
	// Blobs is the evidence, the same for all.
	Blobs() blob.Store
	// Close gives up what is open. Tasks stay.
	Close() error
}

// A Client submits tasks and looks at what becomes of them.
type Client interface {
	// Submit submits a task, completed as Task.Completed does; one that Task.Check
	// refuses is CodeInvalid. It is kept when Submit returns, and may be repeated: a task
	// whose id is known changes nothing, whatever became of it.
	Submit(ctx context.Context, t Task) error
	// Watch gives the events of a task, those that are kept first and then as they happen,
	// until ctx ends, a yield says no, or the task has ended. An unknown task is CodeNotFound.
	Watch(ctx context.Context, w Watching) iter.Seq2[Event, error]
	// Cancel says that an investigation, or one task of it, is no longer wanted.
	// What is under way ends as at a deadline, with what there is; what waits is not
	// begun. Canceling an investigation cancels whatever of it is open by then, though the
	// task that it began with has ended, and nothing that is submitted later to resume it. It may
	// be repeated, and changes nothing about what has ended.
	Cancel(ctx context.Context, id marchwarden.TraceID, reason string) error
	// Look says how a task is. An unknown one is CodeNotFound.
	Look(ctx context.Context, id marchwarden.TraceID) (State, error)
}

// Task is one piece of work: a question for an investigator, or a rihla. The same id is
// the same task.
type Task struct {
	ID marchwarden.TraceID `json:"id"`
	// Record is the run that the task makes or resumes; its own id unless it resumes an earlier
	// task's.
	Record marchwarden.TraceID `json:"record"`
	// Investigation is the task that this one is part of; its own id if there is none.
	Investigation marchwarden.TraceID `json:"investigation"`
	Queue         string              `json:"queue"` // who is to work on it: a researcher's name, or "pi"
	Priority      Priority            `json:"priority"`
	// Owner is for whom it is: the tasks of one owner do not keep those of another
	// waiting. "" is an owner like any other.
	Owner   string              `json:"owner,omitempty"`
	Request marchwarden.Request `json:"request"`
	// Within is how long it may take from when it is begun, which its handler sees to; 0
	// leaves that to the worker.
	Within time.Duration `json:"within_ns,omitempty"`
	Wishes Wishes        `json:"wishes,omitzero"`
}

// Wishes are what the caller wants of an investigation, apart from the question.
type Wishes struct {
	Only        []string `json:"only,omitempty"` // researchers that may be sent; none is all there are
	Parallel    int      `json:"parallel,omitempty"`
	MaxRihlas   int      `json:"max_rihlas,omitempty"`
	AllowEgress []string `json:"allow_egress,omitempty"`
	PlanOnly    bool     `json:"plan_only,omitempty"`
}

// Priority is a band of a queue: all of a lower number goes first.
type Priority int

// The bands.
const (
	Urgent Priority = iota
	Normal
	Low
)

// Job is what one call of Work takes on.
type Job struct {
	Queue string
	Slots int // tasks at once
	// Drain is how long those under way may go on when the work ends.
	Drain time.Duration
}

// A Handler works on a task. lines is the task's record; progress goes to sink, which
// keeps the promises of marchwarden.Sink. When ctx ends because of Cancel, what there is
// may still be handed over. When it ends with ErrReleased as its cause, whatever is returned is
// dropped: another worker resumes the record.
type Handler func(ctx context.Context, t Task, lines Lines, sink marchwarden.Sink) (*marchwarden.Result, error)

// Lines is the record of one task while a worker has it: the lines of a trace, each ending with its
// newline.
type Lines interface {
	// Read is all that is written, in order.
	Read(ctx context.Context) ([]byte, error)
	// Append adds a line. It is kept when Append returns. ErrReleased says that another worker has
	// the task by now, and that nothing was written.
	Append(ctx context.Context, line []byte) error
	// Begun reports whether a line was written for this task, in whatever attempt, and
	// not only for an earlier one that it resumes.
	Begun() bool
}

// ErrReleased is in the chain of a worker's error when another may have its task: its lease ended,
// or it was handed back.
var ErrReleased = errors.New("the task is not held any more")

// Watching is what is watched.
type Watching struct {
	Task  marchwarden.TraceID
	After uint64 // the last event that is known already; 0 for none
}

// Event is what happened to a task.
type Event struct {
	// Seq orders the events that are kept, and says where to go on; 0 is one that is not.
	Seq  uint64              `json:"seq,omitempty"`
	Task marchwarden.TraceID `json:"task"`
	Kind EventKind           `json:"kind"`
	// Taken.
	Worker  string `json:"worker,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	// Line is a line of the record, as it is in a trace.
	Line []byte `json:"line,omitempty"`
	// Progress is not kept.
	Progress marchwarden.Event `json:"progress,omitzero"`
	End      *End              `json:"end,omitempty"`
}

// EventKind says which fields of an event count.
type EventKind string

// The kinds.
const (
	Taken    EventKind = "taken"    // Worker, Attempt
	Written  EventKind = "written"  // Line
	Progress EventKind = "progress" // Progress
	Ended    EventKind = "ended"    // End
)

// End is how a task ended. There is one for each, ever.
type End struct {
	Status Status `json:"status"`
	// Result is the encoded result in Blobs; zero if there is none.
	Result blob.Ref `json:"result,omitzero"`
	// Trace is the whole record in Blobs.
	Trace blob.Ref `json:"trace,omitzero"`
	// Code, Message and Hint say why there is no result.
	Code    marchwarden.Code `json:"code,omitempty"`
	Message string           `json:"message,omitempty"`
	Hint    string           `json:"hint,omitempty"`
	// NotAsked says that nothing can have been spent: no researcher was reached.
	NotAsked bool `json:"not_asked,omitempty"`
	// Warned says that the result carries warnings.
	Warned  bool      `json:"warned,omitempty"`
	Worker  string    `json:"worker,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// Fail makes it the end of a task that gave no result, because of err, in words that are
// not too long to be passed on.
func (e *End) Fail(err error) {
	e.Status, e.Code, e.Message, e.Hint = Failed, marchwarden.CodeOf(err), Words(err.Error()), Words(marchwarden.HintOf(err))
	e.NotAsked = errors.Is(err, ErrNotAsked)
}

// maxWords is the longest text, in bytes, by which an engine passes on why something is.
const maxWords = 4 << 10

// Words is a text as an engine passes it on: without what is too long of it, and without
// half a letter at its end.
func Words(text string) string {
	if len(text) <= maxWords {
		return text
	}
	return strings.ToValidUTF8(text[:maxWords], "") + " …"
}

// Status is where a task stands.
type Status string

// The states; the last three are ends.
const (
	Waiting  Status = "waiting"
	Working  Status = "working"
	Done     Status = "done"
	Failed   Status = "failed"
	Canceled Status = "canceled" // there may be a result all the same
)

// State is a task as it is now.
type State struct {
	Task   Task   `json:"task"`
	Status Status `json:"status"`
	Worker string `json:"worker,omitempty"` // who has it, or had it
	// Attempts is how often it was begun.
	Attempts int  `json:"attempts,omitempty"`
	End      *End `json:"end,omitempty"`
}

// MaxAttempts is how often a task is begun whose workers die, before it is given up as failed: it
// may be what kills them.
const MaxAttempts = 8

// A Limiter is a share of what a provider allows, for all who use one engine together.
type Limiter interface {
	// Take returns when n more may be used, or with an error, that of ctx among others,
	// having used nothing. settle is told how much was used in the end, which may be more;
	// what was not is given back as far as others can still use it. It counts once, and a use that
	// is not settled counts in full.
	Take(ctx context.Context, n int) (settle func(used int), err error)
	// Limited reports whether it has a limit. Without one, Take waits only after Slow.
	Limited() bool
	// Slow says that the provider accepts no calls before a time. Said by many at once it counts
	// once.
	Slow(until time.Time)
}

// ValidName is what a researcher, and its queue, may be called: it is typed on command lines and is
// a key in files.
var ValidName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)

func checkQueue(name string) error {
	if !ValidName.MatchString(name) {
		return invalid("queue", "%.60q is no queue: it has 1 to 40 of a-z, 0-9, _ and -, and begins with a letter", name)
	}
	return nil
}

func invalid(field, format string, args ...any) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Completed is t with what it leaves open filled in: a record and an investigation of its
// own.
func (t Task) Completed() Task {
	if !t.Record.Valid() {
		t.Record = t.ID
	}
	if !t.Investigation.Valid() {
		t.Investigation = t.ID
	}
	return t
}

// Check says what is wrong with a task, as CodeInvalid. Engines check what is submitted,
// as Completed; workers check what they run, which may have come by another way.
func (t Task) Check() error {
	switch {
	case !t.ID.Valid():
		return invalid("id", "the task has none")
	case !t.Record.Valid():
		return invalid("record", "task %s has none", t.ID)
	case !t.Investigation.Valid():
		return invalid("investigation", "task %s is part of none", t.ID)
	case t.Priority < Urgent || t.Priority > Low:
		return invalid("priority", "%d is not from %d to %d", t.Priority, Urgent, Low)
	case t.Within < 0:
		return invalid("within_ns", "%s is less than 0", t.Within)
	case t.ID == t.Record && t.Request.Resume != "":
		return invalid("request.resume", "a task that makes its own run resumes none")
	case t.ID != t.Record && t.Request.Resume != t.Record.String():
		return invalid("request.resume", "a task that resumes run %s asks for %.60q", t.Record, t.Request.Resume)
	}
	if err := checkQueue(t.Queue); err != nil {
		return err
	}
	return t.Request.Validate()
}

// Check says what is wrong with a job, as CodeInvalid.
func (j Job) Check() error {
	if j.Slots < 1 {
		return invalid("slots", "%d is too few: want at least 1", j.Slots)
	}
	return checkQueue(j.Queue)
}

// CanceledEnd is the end of a task that no worker has when it is found to be canceled.
func CanceledEnd(reason string) End {
	message := "canceled while no worker had it"
	if reason != "" {
		message += ": " + reason
	}
	return End{Status: Canceled, Code: marchwarden.CodeCanceled, Message: message}
}

// GivenUp is the end of a task that n workers began and none of them survived.
func GivenUp(n int) End {
	return End{Status: Failed, Code: marchwarden.CodeUnavailable,
		Message: fmt.Sprintf("given up: of %d workers that began it none was heard of again", n),
		Hint:    "look at the workers' logs; what they were doing last is in the record"}
}
