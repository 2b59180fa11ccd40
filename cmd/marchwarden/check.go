package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/pool"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/local"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type checkOptions struct {
	json   bool
	repair bool
}

const homeCheckHelp = `Read everything in the home folder and say what is damaged or missing, and which
runs depend on it.

Every stored piece is held against its hash, every line of a trace against its
checksum, and every hash in a trace against the store; the ledger, the pins, the
folders of the library, its index and the drift reports are read as well. Pieces
that no run needs are counted, and are no damage: 'marchwarden gc' removes them.

With --repair it does what is safe. A line that a crash tore is cut off; damaged
pieces are moved to the folder "damaged" in the home folder and restored where
their content is found elsewhere in the store; an index that cannot be read is
removed, to be made again. A run that is going on is left alone. Nothing is
thrown away but the index and what broken-off writes left, and all is printed.

EXIT STATUS
  0    nothing is wrong, or not any more
  1    something is wrong, or the check failed
  2    wrong usage or bad input
  130  interrupted`

func newCheck(a *app) *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use: "check", Short: "find damaged and missing records", Long: homeCheckHelp, Args: noArgs,
		Example: "  marchwarden check\n  marchwarden check --repair\n  marchwarden check --json | jq '.findings[].object'",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runHomeCheck(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.repair, "repair", false, "do what is safe about it")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// checkReport is the form of 'check --json'. Fields are only ever added.
type checkReport struct {
	Home string `json:"home"`
	record.Report
	LedgerLines int `json:"ledger_lines"`
}

func (a *app) runHomeCheck(ctx context.Context, o checkOptions) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	r := checkReport{Home: c.home()}
	if err := a.checkRecords(ctx, c, o, &r.Report); err != nil {
		return err
	}
	f := fileCheck{ctx: ctx, config: c, repair: o.repair, report: &r.Report}
	if r.LedgerLines, err = f.all(); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "check %s", c.home())
	}
	r.Sort()
	if r.Findings == nil {
		r.Findings = []record.Finding{}
	}
	if o.json {
		err = printJSON(a.stdout, r)
	} else {
		err = a.printCheck(r)
	}
	if n := r.Wrong(); err == nil && n > 0 {
		problem := &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: term.Plural(n, "object") + " of " + c.home() + " " + verb(n) + " damaged or missing"}
		if !o.repair {
			problem.Hint = "'marchwarden check --repair' does what is safe"
		}
		return problem
	}
	return err
}

func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// signOfLife is after how many blobs a sign of life is given.
const signOfLife = 5000

// checkRecords checks traces and evidence, if there are any yet.
func (a *app) checkRecords(ctx context.Context, c *config, o checkOptions, into *record.Report) error {
	rec, err := a.openKept(c)
	if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
		a.note("%s", err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	defer rec.Close()
	r, err := rec.home(c).Check(ctx, record.CheckOptions{Now: a.now(), Repair: o.repair, Progress: func(n int) {
		if n%signOfLife == 0 {
			a.note("checking: %s stored pieces read", term.Count(n))
		}
	}})
	if err != nil {
		if ctx.Err() != nil {
			return marchwarden.Wrap(err, marchwarden.CodeCanceled, "check %s", c.home())
		}
		return err
	}
	*into = *r
	return nil
}

// home is the records as those see them who check and clear them.
func (r *records) home(c *config) record.Home {
	return record.Home{Store: record.Store{Traces: r.traces, Blobs: r.blobs.Store}, Shelf: r.blobs.Store, Damaged: filepath.Join(c.home(), "damaged")}
}

func (a *app) printCheck(r checkReport) error {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintln(&b, term.CleanLine(fmt.Sprintf(format, args...))) }
	for _, f := range r.Findings {
		mark := "✗"
		if f.Fixed {
			mark = "✓"
		}
		problem := strings.TrimPrefix(f.Problem, f.Object+": ")
		say("%s %s: %s", mark, f.Object, problem)
		for _, n := range f.NeededBy {
			fmt.Fprint(&b, "    ")
			say("needed by %s", n)
		}
		if f.More > 0 {
			fmt.Fprint(&b, "    ")
			say("and by %s", term.Plural(f.More, "other step"))
		}
		if f.Done != "" {
			fmt.Fprint(&b, "    ")
			say("%s", f.Done)
		}
	}
	for _, done := range r.Done {
		say("%s", done)
	}
	say("checked: %s (%d running), %s stored pieces of %s, %s of the ledger", term.Plural(r.Traces, "trace"), r.Running, term.Count(r.Blobs), term.Bytes(r.Bytes), term.Plural(r.LedgerLines, "line"))
	if r.Orphans > 0 {
		say("stored pieces that no run needs: %s, %s; 'marchwarden gc' removes them an hour after their last use", term.Count(r.Orphans), term.Bytes(r.OrphanBytes))
	}
	if r.Leftovers > 0 && len(r.Done) == 0 {
		say("files that broken-off writes left: %s; --repair removes them", term.Count(r.Leftovers))
	}
	if r.Unsummed > 0 {
		say("traces without checksums, by an earlier version: %s; not every flipped bit can be found in them", term.Count(r.Unsummed))
	}
	if r.Wrong() == 0 {
		say("nothing is wrong")
	}
	_, err := io.WriteString(a.stdout, b.String())
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the findings")
}

// fileCheck checks what is neither a trace nor evidence.
type fileCheck struct {
	ctx    context.Context
	config *config
	repair bool
	report *record.Report
}

func (f *fileCheck) found(kind record.Kind, object, problem string) *record.Finding {
	f.report.Findings = append(f.report.Findings, record.Finding{Kind: kind, Object: object, Problem: problem})
	return &f.report.Findings[len(f.report.Findings)-1]
}

func (f *fileCheck) all() (lines int, err error) {
	if lines, err = f.ledger(); err != nil {
		return lines, err
	}
	if _, _, err := pool.FilePins(f.config.pinsPath()).Get("-"); err != nil {
		kind := record.DamagedFile
		if errors.Is(err, marchwarden.CodeUnsupported) {
			kind = record.LaterFormat
		}
		f.found(kind, f.config.pinsPath(), err.Error())
	}
	for _, check := range []func() error{f.folders, f.index, f.drift} {
		if err := check(); err != nil {
			return lines, err
		}
	}
	return lines, nil
}

func (f *fileCheck) ledger() (int, error) {
	path := f.config.text(setLedger)
	good, bad, err := ledger.Check(path)
	if err != nil {
		return 0, err
	}
	for _, line := range bad {
		found := f.found(record.DamagedFile, fmt.Sprintf("%s line %d", path, line.Line), line.Problem)
		if line.Later {
			found.Kind = record.LaterFormat
			continue
		}
		if !f.repair {
			continue
		}
		text, err := ledger.Strike(path, line)
		if err != nil {
			return 0, err
		}
		if len(text) > 0 {
			aside := filepath.Join(f.config.home(), "damaged", "costs.lines")
			if err := appendAside(aside, text); err != nil {
				return 0, err
			}
			found.Done = "moved to " + aside
		}
		found.Fixed = true
	}
	return good, nil
}

func appendAside(path string, line []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return errors.Join(err, out.Sync(), out.Close())
}

// folders checks that each file of a folder holds the path that its name says.
func (f *fileCheck) folders() error {
	dir := f.config.foldersPath()
	names, err := filepath.Glob(filepath.Join(dir, "*"+folderSuffix))
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
		if folderFile(dir, string(data)) != name {
			f.found(record.DamagedFile, name, "it does not hold the path that its name stands for; add the folder again: marchwarden library add DIR")
		}
	}
	return nil
}

// index has the library's index checked by who made it. What is in it can be made
// again.
func (f *fileCheck) index() error {
	path := f.config.indexPath()
	problem, err := local.Problem(f.ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || problem == "" {
		return err
	}
	found := f.found(record.DamagedFile, path, problem)
	if !f.repair {
		return nil
	}
	for _, side := range []string{"-wal", "-shm", ".damaged", ""} {
		if err := os.Remove(path + side); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	found.Done, found.Fixed = "removed: the next search makes it again", true
	return nil
}

// drift checks that the reports of drift are JSON.
func (f *fileCheck) drift() error {
	names, err := filepath.Glob(filepath.Join(f.config.home(), "drift", "*.jsonl"))
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
		at, n := int64(0), 1
		for line := range bytes.Lines(data) {
			if text := bytes.TrimSpace(line); len(text) > 0 && !json.Valid(text) {
				found := f.found(record.DamagedFile, fmt.Sprintf("%s line %d", name, n), "it is torn or damaged")
				if f.repair {
					if err := f.blank(name, at, bytes.TrimSuffix(line, []byte("\n")), found); err != nil {
						return err
					}
				}
			}
			at, n = at+int64(len(line)), n+1
		}
	}
	return nil
}

// blank overwrites a line with blanks, which readers pass over, and keeps a copy.
// The file keeps its length, so that others may append meanwhile.
func (f *fileCheck) blank(path string, at int64, line []byte, found *record.Finding) error {
	aside := filepath.Join(f.config.home(), "damaged", filepath.Base(path)+".lines")
	if err := appendAside(aside, line); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(bytes.Repeat([]byte{' '}, len(line)), at)
	found.Done, found.Fixed = "moved to "+aside, true
	return errors.Join(err, file.Sync(), file.Close())
}
