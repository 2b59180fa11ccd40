package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
)

// Files are the paths of what is neither a trace nor evidence, and how those of them are
// read that other packages own.
type Files struct {
	Ledger, Pins, Folders, Index, Drift string
	// Damaged is the folder to which damaged files are moved.
	Damaged string
	// ReadPins reads the pins, and says what is wrong with them.
	ReadPins func(path string) error
	// FolderFile is the file in dir that holds the path of a folder of the library.
	FolderFile func(dir, path string) string
}

type fileChecker struct {
	Files
	ctx    context.Context
	o      CheckOptions
	report *Report
}

// add notes a finding. If it is repairable and a repair is wanted, mend does it and
// says what it did; an error of it ends nothing.
func (f *fileChecker) add(found Finding, mend func() (done string, err error)) {
	if mend != nil {
		found.Repairable = true
		if f.o.Repair {
			done, err := mend()
			if found.Done, found.Fixed = done, err == nil; err != nil {
				found.Done = "could not be repaired: " + err.Error()
				f.report.Fail(err)
			}
		}
	}
	f.report.Findings = append(f.report.Findings, found)
}

// Check checks all of them, adds what it finds to a report, and counts the lines of the
// ledger. What cannot be read does not keep it from the rest.
func (files Files) Check(ctx context.Context, o CheckOptions, report *Report) (lines int, err error) {
	f := &fileChecker{Files: files, ctx: ctx, o: o, report: report}
	lines, bad, err := ledger.Check(f.Ledger)
	f.lines(f.Ledger, bad, "costs.lines")
	f.pins()
	for _, check := range []func() error{f.folders, f.index, f.reports, f.leftovers} {
		if f.ctx.Err() != nil {
			return lines, f.ctx.Err()
		}
		err = errors.Join(err, check())
	}
	return lines, err
}

const remedyLater = "use the version of the program that wrote it"

// lines notes the bad lines of a file. A repair takes them out and keeps a copy.
func (f *fileChecker) lines(path string, bad []durable.BadLine, aside string) {
	aside = filepath.Join(f.Damaged, aside)
	for _, line := range bad {
		found := Finding{Kind: DamagedFile, Object: fmt.Sprintf("%s line %d", path, line.N), Problem: line.Problem}
		if line.Later {
			found.Kind, found.Remedy = LaterFormat, remedyLater
			f.add(found, nil)
			continue
		}
		f.add(found, func() (string, error) {
			if err := durable.AppendLine(aside, append(line.Text[:len(line.Text):len(line.Text)], '\n')); err != nil {
				return "", err
			}
			_, err := line.Strike(path)
			return "moved to " + aside, err
		})
	}
}

// pins has the pins read. A repair does not touch them: without them every tool
// would be trusted anew.
func (f *fileChecker) pins() {
	err := f.ReadPins(f.Pins)
	if err == nil {
		return
	}
	found := Finding{Kind: DamagedFile, Object: f.Pins, Problem: err.Error(), Remedy: marchwarden.HintOf(err)}
	if errors.Is(err, marchwarden.CodeUnsupported) {
		found.Kind, found.Remedy = LaterFormat, remedyLater
	}
	f.add(found, nil)
}

// folders checks that each file of a folder holds the path that its name says. One that does not is
// ignored everywhere.
func (f *fileChecker) folders() error {
	dir := f.Folders
	names, err := filepath.Glob(filepath.Join(dir, "*"+filepath.Ext(f.FolderFile("", ""))))
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if f.FolderFile(dir, string(data)) == name {
			continue
		}
		f.add(Finding{Kind: DamagedFile, Object: name, Problem: "it does not hold the path that its name stands for; add the folder again: marchwarden library add DIR"}, func() (string, error) {
			aside := filepath.Join(f.Damaged, filepath.Base(name))
			if err := durable.MakeDir(filepath.Dir(aside)); err != nil {
				return "", err
			}
			return "moved to " + aside, os.Rename(name, aside)
		})
	}
	return nil
}

// index has the library's index checked by who made it. What is in it can be made
// again.
func (f *fileChecker) index() error {
	path := f.Index
	problem, err := local.Problem(f.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || problem == "" {
		return err
	}
	f.add(Finding{Kind: DamagedFile, Object: path, Problem: problem}, func() (string, error) {
		for _, side := range []string{"-wal", "-shm", ".damaged", ""} {
			if err := os.Remove(path + side); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		return "removed: the next search makes it again", nil
	})
	return nil
}

// reports checks the reports of drift.
func (f *fileChecker) reports() error {
	dir := f.Drift
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if _, err := marchwarden.ParseTraceID(name); !ok || err != nil || !e.Type().IsRegular() {
			f.report.Strays = append(f.report.Strays, path)
			continue
		}
		bad, err := drift.Damage(path)
		if err != nil {
			return err
		}
		f.lines(path, bad, e.Name()+".lines")
	}
	return nil
}

// leftovers counts, or removes, old files that were never renamed.
func (f *fileChecker) leftovers() error {
	paths, err := filepath.Glob(filepath.Join(f.Folders, ".new-*"))
	if err != nil {
		return err
	}
	n := 0
	for _, path := range append(paths, f.Pins+".tmp") {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.ModTime().After(f.o.Now.Add(-time.Hour)) {
			continue // gone, or another process may still write it
		}
		if !f.o.Repair {
			f.report.Leftovers++
		} else if err := os.Remove(path); err != nil {
			f.report.Leftovers++
			f.report.Fail(err)
		} else {
			n++
		}
	}
	if n > 0 {
		f.report.Done = append(f.report.Done, fmt.Sprintf("files of broken-off writes of pins and folders removed: %d", n))
	}
	return nil
}
