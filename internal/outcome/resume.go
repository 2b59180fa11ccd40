package outcome

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Desk is where a run that goes on finds what it left.
type Desk struct {
	Traces  *trace.Dir
	Blobs   blob.Store
	Version string // of the program that goes on
	Now     func() time.Time
}

// Run is a run that goes on. Close it when done.
type Run struct {
	*replay.Recorder
	// Start is what the run depends on, with all that was added to it. It is the
	// caller's to change.
	Start *trace.Start
	// Log is the record as it was when the run went on.
	Log *trace.Log
	// Clock is how long the run has worked; the time in between does not count.
	Clock func() time.Duration

	w    *trace.Writer
	step *trace.Resume
}

// Resume opens the run that a request wants to go on with. What the request's
// constraints say is added to what the run had. There is nothing to go on with, and
// a result instead of a run, if it had ended of itself, or at a cap of which nothing
// is added. A request that repeats the question must mean the same one.
func (d Desk) Resume(ctx context.Context, req marchwarden.Request, more time.Duration, sink marchwarden.Sink) (*Run, *marchwarden.Result, error) {
	id, err := marchwarden.ParseTraceID(req.Resume)
	if err != nil {
		return nil, nil, err
	}
	log, err := d.Traces.Load(id)
	if err != nil {
		return nil, nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, nil, err
	}
	if req.Question != "" && strings.TrimSpace(req.Question) != strings.TrimSpace(start.Request.Question) {
		return nil, nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resume",
			Message: fmt.Sprintf("run %s was about another question", id), Hint: "leave out question, or resume"}
	}
	if foreign, err := d.Traces.Foreign(id); err != nil || foreign {
		if err == nil && log.Complete() != nil {
			res, err := Recorded(ctx, d.Blobs, log)
			return nil, res, err
		}
		return nil, nil, errors.Join(err, &marchwarden.Error{Code: marchwarden.CodeDenied, Field: "resume",
			Message: fmt.Sprintf("run %s was imported: how it was begun, somebody else has chosen", id), Hint: "ask the question anew"})
	}
	if res, err := d.ended(ctx, log, additions(req, more)); res != nil || err != nil {
		return nil, res, err
	}
	w, log, err := d.Traces.Append(id)
	if err != nil {
		return nil, nil, err
	}
	if log.Complete() != nil { // perhaps another process went on with it while this one waited
		if foreign, err := d.Traces.Foreign(id); err != nil || foreign {
			if err == nil && log.Complete() != nil {
				res, err := Recorded(ctx, d.Blobs, log)
				return nil, res, err
			}
			return nil, nil, errors.Join(err, &marchwarden.Error{Code: marchwarden.CodeDenied, Field: "resume",
				Message: fmt.Sprintf("run %s was imported: how it was begun, somebody else has chosen", id), Hint: "ask the question anew"})
		}
		if res, err := d.ended(ctx, log, additions(req, more)); res != nil || err != nil {
			return nil, res, errors.Join(err, w.Close())
		}
	}
	run, err := d.goOn(w, log, additions(req, more), sink)
	if err != nil {
		return nil, nil, fmt.Errorf("%w%s", err, closing(w))
	}
	return run, nil, nil
}

// ended is the result of a run that has nothing to go on with, or nil.
func (d Desk) ended(ctx context.Context, log *trace.Log, more trace.Extension) (*marchwarden.Result, error) {
	done := log.Complete()
	if done == nil {
		return nil, nil
	}
	res, err := Recorded(ctx, d.Blobs, log)
	if err != nil {
		return nil, err
	}
	if done.Interrupted || res.CostMetadata.BudgetExhausted && more != (trace.Extension{}) {
		return nil, nil
	}
	return res, nil
}

// additions are what a request adds to the limits of the run that it resumes.
func additions(req marchwarden.Request, more time.Duration) trace.Extension {
	e := trace.Extension{Wall: more}
	if c := req.Constraints; c != nil {
		for _, add := range []struct {
			from *int
			to   *int
		}{{c.TokenBudget, &e.Tokens}, {c.MaxIterations, &e.Iterations}, {c.MaxSources, &e.Sources}} {
			if add.from != nil {
				*add.to = *add.from
			}
		}
	}
	return e
}

// goOn makes the run of a log that is open for writing.
func (d Desk) goOn(w *trace.Writer, log *trace.Log, more trace.Extension, sink marchwarden.Sink) (*Run, error) {
	recorded, err := log.Start()
	if err != nil {
		return nil, err
	}
	start := *recorded
	step := &trace.Resume{Version: d.Version, Worked: log.Worked(), Head: trace.Head{Decision: "go on where the run was cut off"}}
	if done := log.Complete(); done != nil {
		more.Spent = done.TokensUsed
		step.Extension, step.Decision = &more, "go on past the end"
	} else if more != (trace.Extension{}) {
		step.Extension = &more
	}
	began := d.Now()
	run := &Run{Start: &start, Log: log, w: w, step: step}
	run.Clock = func() time.Duration { return step.Worked + max(0, d.Now().Sub(began)) }
	run.Recorder, err = replay.Resume(w, log, d.Blobs, run.Clock, sink)
	return run, err
}

// Minds are those that go on with a run.
type Minds struct{ Mind, Version, Planner string }

// Begin writes down that the run goes on, with which minds if they are others than
// those that began, and what is searched now if that has changed; nil says nothing of
// it. It returns what a person should know about that.
func (r *Run) Begin(now Minds, found *trace.Found) (said []string, err error) {
	was := r.Start
	mind, mindVersion, planner := now.Mind, now.Version, now.Planner
	if found != nil && (found.Fingerprint != was.Fingerprint || !slices.Equal(found.Gaps, was.Gaps)) {
		r.step.Found = found
		if found.Fingerprint != was.Fingerprint && was.Fingerprint != "" {
			said = append(said, "what is searched has changed since the run was begun")
		}
	}
	if mind != was.Mind || mindVersion != was.MindVersion {
		r.step.Mind, r.step.MindVersion = mind, mindVersion
		said = append(said, fmt.Sprintf("the run was begun by %s and goes on with %s: what was asked before may be asked again", named(was.Mind, was.MindVersion), named(mind, mindVersion)))
	}
	if inv := was.Investigation; inv != nil && inv.Planner != planner {
		r.step.Planner = planner
		said = append(said, fmt.Sprintf("the run was planned by %s and goes on with %s: what was asked before may be asked again", inv.Planner, planner))
	}
	if was.Version != r.step.Version {
		said = append(said, fmt.Sprintf("the run was begun by version %s and goes on with version %s", was.Version, r.step.Version))
	}
	if err := r.Note(r.step); err != nil {
		return nil, err
	}
	if err := r.Lost(); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "go on with run %s", was.TraceID)
	}
	r.Start.Resumed(r.step)
	return said, nil
}

func named(mind, version string) string {
	if version == "" {
		return mind
	}
	return version + " with " + mind
}

// Before is what the run had used when it ended before; 0 for one that did not.
func (r *Run) Before() int {
	if r.step.Extension == nil {
		return 0
	}
	return r.step.Extension.Spent
}

// Close ends the writing.
func (r *Run) Close() error { return r.w.Close() }

// closing closes a writer after a failure, and says if that fails too.
func closing(w *trace.Writer) string {
	if err := w.Close(); err != nil {
		return "; " + err.Error()
	}
	return ""
}

// SameModel refuses to go on with a run by another model than it began with.
func SameModel(was, has string) error {
	if was == has {
		return nil
	}
	words := func(id string) string {
		if id == "" {
			return "no model"
		}
		return id
	}
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "model", Message: fmt.Sprintf("the run was begun with %s, and cannot go on with %s", words(was), words(has)),
		Hint: "set the model that it was begun with"}
}

// Unrecorded is the warning of a result whose record was lost; "" if err is nil.
func Unrecorded(err error) string {
	if err == nil {
		return ""
	}
	var why syscall.Errno // says it in a few words; the rest names files of no interest
	if errors.As(err, &why) {
		err = why
	}
	return fmt.Sprintf("this answer is not recorded: %v; it cannot be verified or replayed later", err)
}
