package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

type runOptions struct {
	data        string
	limit       int
	seed        uint64
	parallel    int // 0 is as many as there are processors
	model       string
	researcher  string
	depth       string
	part        string
	details     string
	heldAnswers bool
	noVectors   bool
	traces      bool
	tracesGiven bool
	program     string // that the suite folders starts
	// researcherGiven says that --researcher is more than its default.
	researcherGiven bool
	noResume        bool
	out             string
	json            bool
	quiet           bool
}

const runHelp = `Run suites, by name, or 'all' whose data is found. A table goes to stdout, and a
report with every row to a file: NAME-….json in the folder eval of the home
folder, or what --out says (a file, or a folder, which gets a file for each
suite). Two runs of one program give the same report, but for the times at its
end.

Every case is kept as soon as it is done. A run that was broken off, by Ctrl-C
too, goes on where it was when the same command is given again; --no-resume
starts from nothing. A run of a program that was built anew starts from nothing,
too.

Questions are asked with the reasoner that needs no model, or with --model, as
'marchwarden ask' does. --researcher pi lets an investigator ask; else the
researcher of files is asked straight. Costs are estimates by the program's
price table.

With --traces every question leaves a trace and its evidence beside the report,
in a folder that is a home folder of its own:
  MARCHWARDEN_HOME=<folder> marchwarden verify <trace id of a row>
They are kept by default with --model, and not without: every step of a trace is
synced to disk, which takes longer than an answer without a model does.

The suite folders asks folders on disk by the program itself (--program), with
the investigator, as 'marchwarden ask --library' does. --part open runs the half
of its questions that is there to be studied, --part held the half that nothing
is tuned on. --details writes a line of JSON for each question: scores,
confidence, answer, citations. Of questions that are held out it has the scores
alone.`

func newRun(l *lab) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use: "run NAME… | all", Short: "run suites and report", Long: runHelp, Args: cobra.MinimumNArgs(1),
		Example: "  marchwarden-lab run squad2 --limit 500\n  marchwarden-lab run all --out reports\n  marchwarden-lab run squad2 --model ollama/qwen3 --limit 50 --parallel 2 --out qwen.json\n  marchwarden-lab run folders --part open --details open.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			const most = 64
			switch f := cmd.Flags(); {
			case f.Changed("limit") && o.limit < 1:
				return invalid("--limit", "leave it out to run all", "must be at least 1, not %d", o.limit)
			case f.Changed("parallel") && (o.parallel < 1 || o.parallel > most):
				return invalid("--parallel", "", "must be from 1 to %d, not %d", most, o.parallel)
			}
			o.tracesGiven, o.researcherGiven = cmd.Flags().Changed("traces"), cmd.Flags().Changed("researcher")
			if o.part == "all" {
				o.part = ""
			}
			return l.run(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	dataFlag(cmd, &o.data)
	f.IntVar(&o.limit, "limit", 0, "run a sample of `N` cases, spread evenly (default all)")
	f.Uint64Var(&o.seed, "seed", 1, "`NUMBER` that decides the sample")
	f.IntVar(&o.parallel, "parallel", 0, "run `N` cases at once (default one for each processor, or 4 with a model)")
	f.StringVar(&o.model, "model", "", "language `MODEL` that plans and writes, as for 'marchwarden ask'; extractive for none (default none)")
	f.StringVar(&o.researcher, "researcher", researcher.FilesName, "`NAME` of who is asked: files, or pi for an investigator")
	f.StringVar(&o.depth, "depth", string(marchwarden.Balanced), "`DEPTH` of the research: shallow, balanced or deep")
	f.StringVar(&o.part, "part", "", "run just the `PART` open or held of a suite that has them (default all)")
	f.StringVar(&o.details, "details", "", "write what a developer wants to know of each case to `FILE`; runs all cases anew")
	f.BoolVar(&o.heldAnswers, "held-answers", false, "tell in --details the answers to held-out questions, too, which spoils them")
	f.BoolVar(&o.noVectors, "no-vectors", false, "work with words alone, without sentence vectors")
	f.BoolVar(&o.traces, "traces", false, "keep a trace of every question (default only with a model)")
	f.BoolVar(&o.noResume, "no-resume", false, "start from nothing, and not where a broken-off run was")
	f.StringVar(&o.program, "program", "", "`FILE` of the marchwarden that the suite folders starts (default the one beside this program, or in PATH)")
	f.StringVar(&o.out, "out", "", "write the report to `FILE`, or those of several suites to a folder")
	f.BoolVar(&o.json, "json", false, "print the numbers as JSON; the rows are in the report")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	return cmd
}

// summary is the form of 'run --json'. Fields are only ever added.
type summary struct {
	Reports []report `json:"reports"`
}

type report struct {
	File string `json:"file"`
	*eval.Report
	Rows int `json:"rows"` // how many the file has
}

func (l *lab) run(ctx context.Context, o runOptions, names []string) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	chosen, data, err := l.chosenWithData(names, o.data)
	if err != nil {
		return err
	}
	if err := o.suits(chosen); err != nil {
		return err
	}
	if slices.ContainsFunc(chosen, func(s eval.Suite) bool { return s.OnDisk }) {
		if o.program, err = productPath(o.program); err != nil {
			return err
		}
	}
	b, err := l.open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	var done summary
	many := len(names) > 1 || names[0] == "all"
	for _, s := range chosen {
		r, err := b.one(ctx, o, s, data, many)
		if err != nil {
			return err
		}
		done.Reports = append(done.Reports, *r)
		if o.json {
			continue
		}
		if err := l.printReport(r); err != nil {
			return err
		}
	}
	for _, r := range done.Reports { // only now: a command that is broken off finds all it had done
		if err := eval.Forget(rowsOf(r.File)); err != nil {
			return err
		}
	}
	if o.json {
		return l.json(done)
	}
	return nil
}

// rowsOf is where the rows of a run are kept until its report is there for good.
func rowsOf(report string) string { return report + ".rows" }

// check refuses flags that cannot be meant.
func (o runOptions) check() error {
	if o.researcher != researcher.FilesName && o.researcher != piName {
		return invalid("--researcher", "a suite brings its own documents, and others cannot be asked about them", "must be %s or %s, not %.40q", researcher.FilesName, piName, o.researcher)
	}
	var e *marchwarden.Error
	if err := (marchwarden.Request{Question: "?", Depth: marchwarden.Depth(o.depth)}).Validate(); errors.As(err, &e) {
		return invalid("--depth", e.Hint, "%s", e.Message)
	}
	return nil
}

// one runs one suite and writes its report.
func (b *bench) one(ctx context.Context, o runOptions, s eval.Suite, data eval.Data, many bool) (*report, error) {
	settings := b.settings(o, s)
	path, err := b.reportPath(o, s, settings, many)
	if err != nil {
		return nil, err
	}
	build := b.build
	if s.OnDisk { // the program that is asked decides the rows, too
		asked, err := hashOf(o.program)
		if err != nil {
			return nil, err
		}
		build += " " + asked
	}
	d, kept, err := b.deskFor(o, s, strings.TrimSuffix(path, ".json")+".kept")
	if err != nil {
		return nil, err
	}
	progress, details := b.progress(s.Name, o.quiet), &details{path: o.details}
	env := eval.Env{
		Data: data, Embed: b.embed, Reader: b.reader(), Desk: d, Folders: kept.asker(), Part: o.part, Details: details.taker(o.heldAnswers),
		Seed: o.seed, Now: evaldesk.Today(), Say: progress.Say,
	}
	r, err := eval.Run(ctx, s, env, eval.Options{
		Settings: settings, Parallel: b.parallel(o), Journal: rowsOf(path), Fresh: o.noResume || o.details != "",
		Version: version(), Build: build, Progress: progress.Step, Now: time.Now,
	})
	progress.Close()
	b.enter(s, d)
	if err = errors.Join(err, kept.close()); err != nil {
		return nil, err
	}
	encoded, err := r.Encode()
	if err = errors.Join(err, details.write()); err != nil {
		return nil, err
	}
	if err := write(path, encoded); err != nil {
		return nil, err
	}
	return &report{File: path, Report: r, Rows: len(r.Rows)}, nil
}

// reportPath is where the report of a suite goes. A name of the lab's own tells runs with
// different settings apart.
func (b *bench) reportPath(o runOptions, s eval.Suite, settings eval.Settings, many bool) (string, error) {
	if o.out == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "marchwarden eval report/1 %+v", settings))
		dir := filepath.Join(b.config.Home(), "eval")
		return filepath.Join(dir, s.Name+"-"+hex.EncodeToString(sum[:4])+".json"), makeDir(dir)
	}
	info, err := os.Stat(o.out)
	isDir := err == nil && info.IsDir()
	switch {
	case many && err == nil && !isDir:
		return "", invalid("--out", "give a folder, which gets a report for each suite", "%q is a file", o.out)
	case isDir || many || os.IsPathSeparator(o.out[len(o.out)-1]):
		return filepath.Join(o.out, s.Name+".json"), makeDir(o.out)
	}
	return o.out, nil
}

func makeDir(dir string) error {
	return marchwarden.Wrap(durable.MakeDir(dir), marchwarden.CodeUnavailable, "make the folder of the reports")
}

// parallel is how many cases run at once.
func (b *bench) parallel(o runOptions) int {
	switch {
	case o.parallel > 0:
		return o.parallel
	case b.model != nil:
		return 4
	}
	return runtime.GOMAXPROCS(0)
}
