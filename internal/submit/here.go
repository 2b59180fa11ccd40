package submit

import (
	"context"
	"errors"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// HereName is the researcher that the runs of local submissions are kept under, so that no
// server resumes them with other options.
const HereName = "submit"

// Here asks a researcher of this process. Each question is a kept run of the home folder,
// under the id of its task: a later submission resumes it, and the page can stop it.
type Here struct {
	Runs   *runs.Desk
	Traces *trace.Dir
	// Earlier sees the result of a run that an earlier process began: the ledger may not know it.
	Earlier func(res *marchwarden.Result)
}

// Ask begins the run of a question, or resumes it, and waits for its end.
func (w *Here) Ask(ctx context.Context, q Question) (Answer, error) {
	ctx = access.With(ctx, access.Local())
	run, earlier, err := w.begin(ctx, q)
	if err != nil {
		return Answer{}, err
	}
	select {
	case <-run.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the run is kept
		return Answer{}, context.Cause(ctx)
	}
	a := Answer{Status: dispatch.Failed}
	switch run.State().Status {
	case runs.Cancelled:
		a.Status = dispatch.Canceled
	case runs.Completed:
		a.Status = dispatch.Done
	}
	if a.Result, a.Err = run.Outcome(); a.Err == nil && earlier {
		w.Earlier(a.Result)
	}
	return a, nil
}

// begin gives the run of a question, and whether an earlier process began it. One that has
// ended is given as it is.
func (w *Here) begin(ctx context.Context, q Question) (run *runs.Run, earlier bool, err error) {
	if run, err = w.Runs.Find(ctx, q.Task); err == nil && run.State().Status != runs.Working {
		return run, true, nil
	}
	known := err == nil
	if err != nil && !errors.Is(err, marchwarden.CodeNotFound) {
		return nil, false, err
	}
	asked := runs.Asked{Request: q.Request, Keep: true}
	if !known {
		log, err := w.Traces.Load(q.Task)
		if err != nil && !errors.Is(err, marchwarden.CodeNotFound) {
			return nil, false, err
		}
		known = err == nil && len(log.Steps) > 0
	}
	if known {
		asked.Request = marchwarden.Request{Resume: q.Task.String()}
	}
	visit, err := w.Runs.Begin(marchwarden.WithTraceID(ctx, q.Task), asked)
	if err != nil {
		return nil, false, err
	}
	visit.End()
	return visit.Run, known, nil
}
