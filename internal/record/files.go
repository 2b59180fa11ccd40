package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// Files are the paths of what is neither a trace nor evidence, and how those of them are
// read that other packages own.
type Files struct {
	Ledger, Pins, Folders, Index, Drift, Watch string
	// ReadPins reads the pins, and says what is wrong with them.
	ReadPins func(path string) error
	// FolderFile is the file in dir that holds the path of a folder of the library.
	FolderFile func(dir, path string) string
}

// Check checks all of them, adds what it finds to a report, and counts the lines of the
// ledger. What cannot be read does not keep it from the rest.
func (f Files) Check(ctx context.Context, report *Report) (lines int, err error) {
	lines, bad, err := ledger.Check(f.Ledger)
	report.lines(f.Ledger, bad)
	f.pins(report)
	for _, check := range []func(context.Context, *Report) error{f.folders, f.index, f.reports, f.watched} {
		if ctx.Err() != nil {
			return lines, ctx.Err()
		}
		err = errors.Join(err, check(ctx, report))
	}
	return lines, err
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

// pins has the pins read.
func (f Files) pins(report *Report) {
	err := f.ReadPins(f.Pins)
	if err == nil {
		return
	}
	found := Finding{Kind: DamagedFile, Object: f.Pins, Problem: err.Error(), Remedy: marchwarden.HintOf(err)}
	if errors.Is(err, marchwarden.CodeUnsupported) {
		found.Kind = LaterFormat
	}
	report.found(found)
}

// folders checks that each file holds the path that its name says; else it is ignored.
func (f Files) folders(_ context.Context, report *Report) error {
	names, err := filepath.Glob(filepath.Join(f.Folders, "*"+filepath.Ext(f.FolderFile("", ""))))
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case f.FolderFile(f.Folders, string(data)) != name:
			report.found(Finding{Kind: DamagedFile, Object: name, Problem: "it does not hold the path that its name stands for",
				Remedy: "remove the file, and add the folder again: marchwarden library add DIR"})
		}
	}
	return nil
}

// index has the library's index checked by its maker.
func (f Files) index(ctx context.Context, report *Report) error {
	problem, err := local.Problem(ctx, f.Index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || problem == "" {
		return err
	}
	report.found(Finding{Kind: DamagedFile, Object: f.Index, Problem: problem, Remedy: "remove the file: the next search makes it again"})
	return nil
}

func (f Files) reports(_ context.Context, report *Report) error {
	entries, err := os.ReadDir(f.Drift)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(f.Drift, e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if _, err := marchwarden.ParseTraceID(name); !ok || err != nil || !e.Type().IsRegular() {
			report.Strays = append(report.Strays, path)
			continue
		}
		bad, err := drift.Damage(path)
		if err != nil {
			return err
		}
		report.lines(path, bad)
	}
	return nil
}

// watched has the files of watched questions read.
func (f Files) watched(_ context.Context, report *Report) error {
	entries, err := os.ReadDir(f.Watch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		path := filepath.Join(f.Watch, e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if _, notID := marchwarden.ParseTraceID(name); !ok || notID != nil {
			if !watch.Own(e.Name()) {
				report.Strays = append(report.Strays, path)
			}
			continue
		}
		_, problem := watch.Read(path)
		switch {
		case problem == nil, errors.Is(problem, fs.ErrNotExist):
		case errors.Is(problem, marchwarden.CodeUnsupported):
			report.found(Finding{Kind: LaterFormat, Object: path, Problem: problem.Error()})
		default:
			report.found(Finding{Kind: DamagedFile, Object: path, Problem: problem.Error(), Remedy: "remove the file, and watch the question again: marchwarden watch add"})
		}
	}
	return err
}

const traceSuffix = ".jsonl"

// brokenOff is the name of a file that an import was about to rename. gc removes it when it is old.
var brokenOff = regexp.MustCompile(`^\.` + idShape.String() + `(\.jsonl|\.imported)\.[A-Z2-7]{26}\.tmp$`)

// strays finds what is in the folder of traces and does not belong there.
func (c *checker) strays(ctx context.Context) error {
	entries, err := os.ReadDir(c.Traces.Path())
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.stray(e, names)
	}
	return nil
}

// stray looks at an entry of the folder of traces, which has these names.
func (c *checker) stray(e fs.DirEntry, names map[string]bool) {
	path, ext, regular := filepath.Join(c.Traces.Path(), e.Name()), filepath.Ext(e.Name()), e.Type().IsRegular()
	id, err := marchwarden.ParseTraceID(strings.TrimSuffix(e.Name(), ext))
	isTrace := err == nil && ext == traceSuffix
	switch {
	case (isTrace || e.Name() == trace.ImportLock) && regular:
	case err == nil && ext == trace.ForeignSuffix && names[id.String()+traceSuffix]: // the mark of an import
	case isTrace:
		c.report.found(Finding{Kind: DamagedTrace, Object: "trace " + id.String(), Problem: "what stands in its place is " + typeOf(e.Type()), Remedy: "remove " + path})
	case brokenOff.MatchString(e.Name()) && regular:
		if info, err := e.Info(); err == nil && info.ModTime().Before(c.o.Now.Add(-grace)) {
			c.report.Leftovers++
		}
	default:
		c.report.Strays = append(c.report.Strays, path)
	}
}

func typeOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "no regular file"
}

// sound says what is wrong with a trace. What a crash left at its end is no damage: it was
// never acknowledged.
func (c *checker) sound(id marchwarden.TraceID, log *trace.Log, busy bool) error {
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
	text, err := c.Traces.Text(id)
	if err != nil {
		return err
	}
	if len(text) > int(log.Good) && json.Valid(text[log.Good:len(text)-1]) { // a crash leaves no line that lacks only its end
		return errors.New("the end of its last line is damaged")
	}
	c.report.Torn++
	return nil
}

// missing finds the rihlas whose traces are gone although the investigation's is not.
func (c *checker) missing() {
	for _, r := range c.reported {
		of := c.rihlaOf[r.TraceID]
		_, err := c.Traces.Stat(r.TraceID)
		if _, gone := c.Traces.Stat(of); gone != nil || marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
			continue
		}
		c.report.found(Finding{Kind: MissingTrace, Object: "trace " + r.TraceID.String(), Problem: "it is not there", runs: []marchwarden.TraceID{of},
			NeededBy: []Need{{Run: of, Step: r.Step, Action: r.Action, What: r.Researcher}}})
	}
}
