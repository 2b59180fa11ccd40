package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// Files are what is neither a trace nor evidence: the ledger, and in the home folder the reports of
// drift and the watched questions.
type Files struct{ Ledger, Home string }

// Check checks all of them, adds what it finds to a report, and counts the lines of the
// ledger. What cannot be read does not keep it from the rest.
func (f Files) Check(ctx context.Context, report *Report) (lines int, err error) {
	entries, bad, err := ledger.Read(f.Ledger)
	report.lines(f.Ledger, bad)
	return len(entries), errors.Join(err, ctx.Err(), f.reports(report), f.watched(report))
}

// lines notes the bad lines of a file.
func (r *Report) lines(path string, bad []durable.BadLine) {
	for _, line := range bad {
		kind := DamagedFile
		if line.Later {
			kind = LaterFormat
		}
		r.found(Finding{Kind: kind, Object: fmt.Sprintf("%s line %d", path, line.N), Problem: line.Problem, Remedy: "it is passed over; take the line out of the file to hear no more of it"})
	}
}

// named calls fn with every entry of a folder that is named by the id of a run.
func named(folder, suffix string, fn func(path string, e fs.DirEntry) error) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), suffix)
		if _, notID := marchwarden.ParseTraceID(name); ok && notID == nil {
			err = errors.Join(err, fn(filepath.Join(folder, e.Name()), e))
		}
	}
	return err
}

func (f Files) reports(report *Report) error {
	return named(filepath.Join(f.Home, "drift"), ".jsonl", func(path string, _ fs.DirEntry) error {
		bad, err := drift.Damage(path)
		report.lines(path, bad)
		return err
	})
}

// watched has the files of watched questions read.
func (f Files) watched(report *Report) error {
	return named(watch.In(f.Home).Dir, ".json", func(path string, _ fs.DirEntry) error {
		_, problem := watch.Read(path)
		switch {
		case problem == nil, errors.Is(problem, fs.ErrNotExist):
		case errors.Is(problem, marchwarden.CodeUnsupported):
			report.found(Finding{Kind: LaterFormat, Object: path, Problem: problem.Error()})
		default:
			report.found(Finding{Kind: DamagedFile, Object: path, Problem: problem.Error(), Remedy: "remove the file, and watch the question again: marchwarden watch add"})
		}
		return nil
	})
}

// places looks for what stands in the place of a trace and is none.
func (c *checker) places(ctx context.Context) error {
	err := named(c.Traces.Path(), ".jsonl", func(path string, e fs.DirEntry) error {
		if !e.Type().IsRegular() {
			c.report.found(Finding{Kind: DamagedTrace, Object: "trace " + strings.TrimSuffix(e.Name(), ".jsonl"), Problem: "what stands in its place is no file", Remedy: "remove " + path})
		}
		return nil
	})
	return errors.Join(err, ctx.Err())
}

// sound says what is wrong with a trace. What a crash left at its end is no damage: it was
// never acknowledged.
func (c *checker) sound(id marchwarden.TraceID, log *trace.Log, text []byte, busy bool) error {
	switch {
	case log.Damaged:
		return fmt.Errorf("its last line is damaged: %d bytes after step %d carry no step", log.Torn, len(log.Steps))
	case len(log.Steps) == 0:
		if !busy { // else a run is about to begin in it
			c.report.Empty++
		}
		return nil
	}
	start, err := log.Start()
	switch {
	case err != nil:
		return err
	case start.TraceID != id:
		return errors.New("it holds another run, " + start.TraceID.String())
	case start.Format < 2:
		c.report.Unsummed++
	}
	if !start.PartOf {
		c.whole = append(c.whole, id)
	}
	if log.Torn == 0 || busy {
		return nil
	}
	if len(text) > int(log.Good) && json.Valid(text[log.Good:len(text)-1]) { // a crash leaves no line that lacks only its end
		return errors.New("the end of its last line is damaged")
	}
	c.report.Torn++
	return nil
}
