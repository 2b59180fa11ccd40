package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Resumed is a run that goes on. Close it when done.
type Resumed struct {
	*replay.Recorder
	// Start is what the run depends on, with all that was added to it. It is the
	// caller's to change.
	Start *trace.Start
	// Log is the record as it was when the run went on.
	Log *trace.Log
	// Clock is how long the run has worked; the time in between does not count.
	Clock func() time.Duration

	w      *trace.Writer // nil where nothing can be written
	step   *trace.Resume
	before marchwarden.CostMetadata
}

// GoOn opens the run of a researcher that a request resumes: one that was cut off, or has ended. Runs of
// others are refused. What the request's constraints say is
// added to what the run had. A run that has ended of itself, or at a cap of which nothing
// is added, gives its result instead. A request that repeats the question must mean the same one. Where a trace
// can be read and not be written, the run goes on without a record.
func (l *Lab) GoOn(ctx context.Context, name string, req marchwarden.Request, sink marchwarden.Sink) (*Resumed, *marchwarden.Result, error) {
	id, err := marchwarden.ParseTraceID(req.Resume)
	if err != nil {
		return nil, nil, err
	}
	log, err := l.Traces.Load(id)
	if err == nil && len(log.Steps) == 0 && !log.Damaged {
		err = marchwarden.Errorf(marchwarden.CodeNotFound, "nothing is recorded of run %s", id)
	}
	if err != nil {
		return nil, nil, err
	}
	if err := l.may(log, name, req, id); err != nil {
		return nil, nil, err
	}
	add := additions(req, l.More)
	if res, err := l.ended(ctx, log, add); res != nil || err != nil {
		return nil, res, err
	}
	w, open, unwritable := l.open(ctx, id)
	if unwritable != nil && !errors.As(unwritable, new(syscall.Errno)) {
		return nil, nil, unwritable
	}
	if unwritable == nil {
		log = open
		// Another process may have resumed it while this one waited.
		if res, err := l.ended(ctx, log, add); res != nil || err != nil {
			return nil, res, errors.Join(err, w.Close())
		}
	}
	run, err := l.goOn(ctx, w, log, add, sink)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	if unwritable != nil {
		run.Lose(unwritable)
	}
	return run, nil, nil
}

// windUp is how long a rihla may take to wind up when its investigation has ended.
const windUp = 30 * time.Second

// open opens a trace. A rihla whose investigation died may still be winding up.
func (l *Lab) open(ctx context.Context, id marchwarden.TraceID) (*trace.Writer, *trace.Log, error) {
	began := l.Now()
	for {
		w, log, err := l.Traces.Append(id)
		if !errors.Is(err, trace.ErrGoing) || !l.PartOf || ctx.Err() != nil || l.Now().Sub(began) > windUp {
			return w, log, err
		}
	}
}

func (l *Lab) may(log *trace.Log, name string, req marchwarden.Request, id marchwarden.TraceID) error {
	start, err := log.Start()
	if err != nil {
		return err
	}
	if start.Researcher != name || start.PartOf != l.PartOf {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resume", Message: fmt.Sprintf("run %s is none of the researcher %s", id, name),
			Hint: "ask the researcher that made it"}
	}
	if req.Question != "" && strings.TrimSpace(req.Question) != strings.TrimSpace(start.Request.Question) {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resume",
			Message: fmt.Sprintf("run %s was about another question", id), Hint: "leave out question, or resume"}
	}
	foreign, err := l.Traces.Foreign(id)
	if err == nil && foreign && log.Complete() == nil {
		return Imported(id)
	}
	return err
}

// Imported is why a run from somewhere else is not resumed.
func Imported(id marchwarden.TraceID) error {
	return &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "resume",
		Message: fmt.Sprintf("run %s was imported: another person chose how it was begun", id), Hint: "ask the question anew"}
}

// ended is the result of a run in which nothing is left to do, or nil.
func (l *Lab) ended(ctx context.Context, log *trace.Log, more trace.Extension) (*marchwarden.Result, error) {
	done := log.Complete()
	if done == nil {
		return nil, nil
	}
	res, err := Recorded(ctx, l.Blobs, log)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	if foreign, err := l.Traces.Foreign(start.TraceID); err != nil || foreign {
		return res, err
	}
	if done.Interrupted || res.CostMetadata.BudgetExhausted && more != (trace.Extension{}) {
		return nil, nil
	}
	return res, nil
}

func additions(req marchwarden.Request, more time.Duration) trace.Extension {
	e := trace.Extension{Wall: more}
	if c := req.Constraints; c != nil {
		e.Tokens, e.Iterations, e.Sources, e.CostUSD = orZero(c.TokenBudget), orZero(c.MaxIterations), orZero(c.MaxSources), orZero(c.MaxCostUSD)
	}
	return e
}

func orZero[T any](v *T) (zero T) {
	if v == nil {
		return zero
	}
	return *v
}

func (l *Lab) goOn(ctx context.Context, w *trace.Writer, log *trace.Log, more trace.Extension, sink marchwarden.Sink) (*Resumed, error) {
	recorded, err := log.Start()
	if err != nil {
		return nil, err
	}
	worked, err := replay.Worked(ctx, log, l.Blobs)
	if err != nil {
		return nil, err
	}
	start := *recorded
	step := &trace.Resume{Version: l.Version, Worked: worked, Head: trace.Head{Decision: "go on where the run was cut off"}}
	began := l.Now()
	on := &Resumed{Start: &start, Log: log, w: w, step: step}
	if latest := log.Latest(); latest != nil {
		_, earlier, err := ResultOf(ctx, l.Blobs, latest.Result)
		if err != nil {
			return nil, err
		}
		on.before = earlier.CostMetadata
	}
	facts := FactsOf(log.Steps)
	more.SpentUSD = facts.PaidUSD
	more.SpentUSD = max(more.SpentUSD, orZero(on.before.CostUSD))
	done := log.Complete()
	more.Wall = l.time(ctx, &start, worked, more.Wall)
	switch {
	case done != nil:
		more.Spent = done.TokensUsed
		step.Extension, step.Decision = &more, "go on past the end"
	case more.Limits() == (marchwarden.Limits{}):
		step.Wall = more.Wall
	case given(&start, more):
		if l.More == 0 { // or that was given as well; what a caller waits is not
			step.Wall = more.Wall
		}
	default:
		more.Spent = facts.Paid // the meter sees only what leads up to an end
		step.Extension = &more
	}
	if step.Wall != 0 {
		step.Worked++ // later than all that the run has seen, which is judged as it was
	}
	on.Clock = func() time.Duration { return step.Worked + max(0, l.Now().Sub(began)) }
	on.Recorder, err = replay.Resume(w, log, l.Blobs, on.Clock, sink)
	return on, err
}

// time is what is added to the time of a run so that it may work for more from now on,
// or for as long as its caller waits if that is longer than what it has left. A run
// without a limit needs none.
func (l *Lab) time(ctx context.Context, start *trace.Start, worked, more time.Duration) time.Duration {
	if start.Wall <= 0 {
		return 0
	}
	left := start.Remains(start.Wall, worked)
	if end, ok := ctx.Deadline(); ok && more == 0 {
		more = max(0, end.Sub(l.Now())-max(0, left))
	}
	if more == 0 {
		return 0
	}
	return more - min(0, left)
}

// given reports whether a run was given the same before: a request that is repeated after a crash does not mean twice as much.
func given(start *trace.Start, more trace.Extension) bool {
	n := len(start.Extended)
	return n > 0 && start.Extended[n-1].Limits() == more.Limits()
}

// Ready is what a run that is resumed needs beyond its record.
type Ready struct {
	Mind, Version, Planner string       // the reasoners that go on
	Logic                  string       // how an investigator goes on that cannot work as it began; "" for one that can
	Found                  *trace.Found // what is searched now; nil says nothing of it
	Said                   []string     // what a person should know about that
}

// Begin writes down that the run goes on, with which minds if they are others than
// those that began, and what is searched now if that has changed. It returns what a
// person should know about that.
func (r *Resumed) Begin(now Ready) (said []string, err error) {
	was := r.Start
	if found := now.Found; found != nil && (found.Fingerprint != was.Fingerprint || !slices.Equal(found.Gaps, was.Gaps)) {
		r.step.Found = found
		if found.Fingerprint != was.Fingerprint && was.Fingerprint != "" {
			said = append(said, "what is searched has changed since the run was begun")
		}
	}
	if now.Mind != was.Mind || now.Version != was.MindVersion {
		r.step.Mind, r.step.MindVersion = now.Mind, now.Version
		said = append(said, fmt.Sprintf("the run was begun by %s and goes on with %s: what was asked before may be asked again", named(was.Mind, was.MindVersion), named(now.Mind, now.Version)))
	}
	if inv := was.Investigation; inv != nil && inv.Planner != now.Planner {
		r.step.Planner = now.Planner
		said = append(said, fmt.Sprintf("the run was planned by %s and goes on with %s: what was asked before may be asked again", inv.Planner, now.Planner))
	}
	r.step.Logic = now.Logic
	if !verify.KnowsRules(was.Gate) {
		r.step.Gate = verify.Rules
	}
	if was.Version != r.step.Version {
		said = append(said, fmt.Sprintf("the run was begun by version %s and goes on with version %s", was.Version, r.step.Version))
	}
	if err := r.Note(r.step); err != nil {
		return nil, err
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

// UnderWay are the runs of rihlas, by number, as far as the record names them.
func (r *Resumed) UnderWay() map[int]marchwarden.TraceID { return FactsOf(r.Log.Steps).UnderWay }

// Before is what the run had cost when it ended before; zero for one that did not.
func (r *Resumed) Before() marchwarden.CostMetadata { return r.before }

// Close ends the writing.
func (r *Resumed) Close() error { return r.w.Close() }

// DidNotWrite follows the name of the model in such a warning.
const DidNotWrite = " did not write this answer"

// Unwritten is the warning of a result that a model was asked for and another wrote.
func Unwritten(model, by, fault string) string {
	return fmt.Sprintf("%s%s; it is by %s, from sentences of the sources: %s", model, DidNotWrite, by, fault)
}

// GivenUp is the warning of a result for which n steps were not taken.
func GivenUp(n int) string {
	return fmt.Sprintf("given up: %d of the steps were under way each time the run was cut off and are not tried again; the answer may lack what they would have found (the gaps name them; ask again)", n)
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
	return fmt.Sprintf(trace.Unrecorded+": %v; it cannot be verified or replayed later", err)
}
