package record

import (
	"context"
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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// Files are the paths of what is neither a trace nor evidence, and how those of them are
// read that other packages own.
type Files struct {
	Ledger, Pins, Folders, Index, Drift, Watch string
	// Damaged is the folder to which damaged files are moved.
	Damaged string
	// ReadPins reads the pins, and says what is wrong with them.
	ReadPins func(path string) error
	// FolderFile is the file in dir that holds the path of a folder of the library.
	FolderFile func(dir, path string) string
}

// Check checks all of them, adds what it finds to a report, and counts the lines of the
// ledger. What cannot be read does not keep it from the rest.
func (f Files) Check(ctx context.Context, o CheckOptions, report *Report) (lines int, err error) {
	lines, bad, err := ledger.Check(f.Ledger)
	f.lines(report, f.Ledger, bad, "costs.lines")
	f.pins(report)
	for _, check := range []func(context.Context, *Report) error{f.folders, f.index, f.reports, f.watched} {
		if ctx.Err() != nil {
			return lines, ctx.Err()
		}
		err = errors.Join(err, check(ctx, report))
	}
	unfinished, globErr := filepath.Glob(filepath.Join(f.Folders, ".new-*"))
	if n := report.sweep(o, append(unfinished, f.Pins+".tmp")); n > 0 {
		report.Done = append(report.Done, fmt.Sprintf("files of broken-off writes of pins and folders removed: %d", n))
	}
	if err = errors.Join(err, globErr); o.Repair {
		err = errors.Join(err, report.mend(ctx))
	}
	return lines, err
}

// lines notes the bad lines of a file. A repair takes them out and keeps a copy.
func (f Files) lines(report *Report, path string, bad []durable.BadLine, aside string) {
	aside = filepath.Join(f.Damaged, aside)
	for _, line := range bad {
		found := Finding{Kind: DamagedFile, Object: fmt.Sprintf("%s line %d", path, line.N), Problem: line.Problem, mend: func(f *Finding) error {
			if err := durable.AppendLine(aside, append(line.Text[:len(line.Text):len(line.Text)], '\n')); err != nil {
				return err
			}
			f.Done, f.Fixed = "moved to "+aside, true
			_, err := line.Strike(path)
			return err
		}}
		if line.Later {
			found.Kind, found.Remedy, found.mend = LaterFormat, remedyLater, nil
		}
		report.found(found)
	}
}

// pins has the pins read. A repair leaves them: without them every tool is trusted anew.
func (f Files) pins(report *Report) {
	err := f.ReadPins(f.Pins)
	if err == nil {
		return
	}
	found := Finding{Kind: DamagedFile, Object: f.Pins, Problem: err.Error(), Remedy: marchwarden.HintOf(err)}
	if errors.Is(err, marchwarden.CodeUnsupported) {
		found.Kind, found.Remedy = LaterFormat, remedyLater
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
			report.found(Finding{Kind: DamagedFile, Object: name, mend: moveAside(f.Damaged, name),
				Problem: "it does not hold the path that its name stands for; add the folder again: marchwarden library add DIR"})
		}
	}
	return nil
}

// index has the library's index checked by its maker. A new one can be made.
func (f Files) index(ctx context.Context, report *Report) error {
	problem, err := local.Problem(ctx, f.Index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || problem == "" {
		return err
	}
	report.found(Finding{Kind: DamagedFile, Object: f.Index, Problem: problem, mend: func(found *Finding) error {
		for _, side := range []string{"-wal", "-shm", ".damaged", ""} {
			if err := os.Remove(f.Index + side); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		found.Done, found.Fixed = "removed: the next search makes it again", true
		return nil
	}})
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
		f.lines(report, path, bad, e.Name()+".lines")
	}
	return nil
}

// watched has the files of watched questions read. A repair moves a damaged one aside: what it was
// compared with is then not known, and 'gc' would not know what to keep.
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
			report.found(Finding{Kind: LaterFormat, Object: path, Problem: problem.Error(), Remedy: remedyLater})
		default:
			report.found(Finding{Kind: DamagedFile, Object: path, Problem: problem.Error() + "; watch the question again: marchwarden watch add", mend: moveAside(f.Damaged, path)})
		}
	}
	return err
}
