package main

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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// fileCheck checks what is neither a trace nor evidence.
type fileCheck struct {
	ctx    context.Context
	config *settings.Settings
	repair bool
	now    time.Time
	report *record.Report
}

// add notes a finding. If it is repairable and a repair is wanted, mend does it and
// says what it did; an error of it ends nothing.
func (f *fileCheck) add(found record.Finding, mend func() (done string, err error)) {
	if mend != nil {
		found.Repairable = true
		if f.repair {
			done, err := mend()
			if found.Done, found.Fixed = done, err == nil; err != nil {
				found.Done = "could not be repaired: " + err.Error()
				f.report.Fail(err)
			}
		}
	}
	f.report.Findings = append(f.report.Findings, found)
}

// all checks all of it. What cannot be read does not keep it from the rest.
func (f *fileCheck) all() (lines int, err error) {
	path := f.config.Text(settings.Ledger)
	lines, bad, err := ledger.Check(path)
	f.lines(path, bad, "costs.lines")
	f.pins()
	for _, check := range []func() error{f.folders, f.index, f.drift, f.leftovers} {
		if f.ctx.Err() != nil {
			return lines, f.ctx.Err()
		}
		err = errors.Join(err, check())
	}
	return lines, err
}

const remedyLater = "use the version of the program that wrote it"

// lines notes the bad lines of a file. A repair takes them out and keeps a copy.
func (f *fileCheck) lines(path string, bad []durable.BadLine, aside string) {
	aside = filepath.Join(f.config.DamagedPath(), aside)
	for _, line := range bad {
		found := record.Finding{Kind: record.DamagedFile, Object: fmt.Sprintf("%s line %d", path, line.N), Problem: line.Problem}
		if line.Later {
			found.Kind, found.Remedy = record.LaterFormat, remedyLater
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
func (f *fileCheck) pins() {
	_, _, err := pool.FilePins(f.config.PinsPath()).Get("-")
	if err == nil {
		return
	}
	found := record.Finding{Kind: record.DamagedFile, Object: f.config.PinsPath(), Problem: err.Error(), Remedy: marchwarden.HintOf(err)}
	if errors.Is(err, marchwarden.CodeUnsupported) {
		found.Kind, found.Remedy = record.LaterFormat, remedyLater
	}
	f.add(found, nil)
}

// folders checks that each file of a folder holds the path that its name says. One that does not is
// ignored everywhere.
func (f *fileCheck) folders() error {
	dir := f.config.FoldersPath()
	names, err := filepath.Glob(filepath.Join(dir, "*"+network.FolderSuffix))
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
		if network.FolderFile(dir, string(data)) == name {
			continue
		}
		f.add(record.Finding{Kind: record.DamagedFile, Object: name, Problem: "it does not hold the path that its name stands for; add the folder again: marchwarden library add DIR"}, func() (string, error) {
			aside := filepath.Join(f.config.DamagedPath(), filepath.Base(name))
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
func (f *fileCheck) index() error {
	path := f.config.IndexPath()
	problem, err := local.Problem(f.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || problem == "" {
		return err
	}
	f.add(record.Finding{Kind: record.DamagedFile, Object: path, Problem: problem}, func() (string, error) {
		for _, side := range []string{"-wal", "-shm", ".damaged", ""} {
			if err := os.Remove(path + side); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return "", err
			}
		}
		return "removed: the next search makes it again", nil
	})
	return nil
}

// drift checks the reports of drift.
func (f *fileCheck) drift() error {
	dir := filepath.Join(f.config.Home(), "drift")
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
func (f *fileCheck) leftovers() error {
	paths, err := filepath.Glob(filepath.Join(f.config.FoldersPath(), ".new-*"))
	if err != nil {
		return err
	}
	n := 0
	for _, path := range append(paths, f.config.PinsPath()+".tmp") {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.ModTime().After(f.now.Add(-time.Hour)) {
			continue // gone, or another process may still write it
		}
		if !f.repair {
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
