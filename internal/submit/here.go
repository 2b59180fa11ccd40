package submit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
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
	// Old is the queue folder of earlier versions, which kept the records of unfinished
	// questions there.
	Old string
	// Earlier sees the result of a run that an earlier process began: the ledger may not know it.
	Earlier func(res *marchwarden.Result)
}

// Ask begins the run of a question, or resumes it, and waits for its end.
func (w *Here) Ask(ctx context.Context, q Question) (Line, error) {
	ctx = access.With(ctx, access.Local())
	run, earlier, err := w.begin(ctx, q)
	if err != nil {
		return Line{}, err
	}
	select {
	case <-run.Done():
	case <-ctx.Done():
	}
	if ctx.Err() != nil { // the run is kept
		return Line{}, context.Cause(ctx)
	}
	line := Line{Line: q.Line, ID: q.name(), TraceID: q.Task}
	switch run.State().Status {
	case runs.Cancelled:
		line.Status = dispatch.Canceled
	case runs.Completed:
		line.Status = dispatch.Done
	default:
		line.Status = dispatch.Failed
	}
	res, err := run.Outcome()
	if err != nil {
		line.fail(err)
		return line, nil
	}
	if earlier {
		w.Earlier(res)
	}
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		return line, err
	}
	return line, line.answer(encoded)
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
		if known, err = w.recorded(q.Task); err != nil {
			return nil, false, err
		}
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

// recorded reports whether anything is recorded of a run.
func (w *Here) recorded(id marchwarden.TraceID) (bool, error) {
	if err := w.adopt(id); err != nil {
		return false, err
	}
	log, err := w.Traces.Load(id)
	if errors.Is(err, marchwarden.CodeNotFound) {
		return false, nil
	}
	return err == nil && len(log.Steps) > 0, err
}

// oldEntry is a line in queue/log/…/ID.jsonl, as earlier versions wrote it: a task, or a line
// of the record of one.
type oldEntry struct {
	Kind string              `json:"kind"`
	Task marchwarden.TraceID `json:"task,omitzero"`
	Spec *dispatch.Task      `json:"spec,omitempty"`
	Line []byte              `json:"line,omitempty"`
}

const oldKind = "marchwarden investigation/1"

// adopt makes traces of what an earlier version recorded of a question and its rihlas.
func (w *Here) adopt(id marchwarden.TraceID) error {
	data, err := os.ReadFile(filepath.Join(w.Old, "log", id.String()[34:], id.String()+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what an earlier version recorded: %w", err)
	}
	of, lines := map[marchwarden.TraceID]marchwarden.TraceID{}, map[marchwarden.TraceID][]byte{}
	for text := range bytes.Lines(data) {
		body, _, err := durable.CheckLine(bytes.TrimSuffix(text, []byte("\n")), oldKind)
		var e oldEntry
		if err != nil || json.Unmarshal(append(bytes.Clone(body), '}'), &e) != nil {
			break // a crash cut it short
		}
		switch {
		case e.Kind == "task" && e.Spec != nil:
			of[e.Task] = e.Spec.Record
		case e.Kind == "line" && of[e.Task].Valid():
			lines[of[e.Task]] = append(lines[of[e.Task]], e.Line...)
		}
	}
	return putTraces(w.Traces, func(put func(marchwarden.TraceID, []byte) error) error {
		for record, text := range lines {
			if record != id {
				if err := put(record, text); err != nil {
					return err
				}
			}
		}
		if len(lines[id]) == 0 {
			return nil
		}
		return put(id, lines[id])
	})
}
