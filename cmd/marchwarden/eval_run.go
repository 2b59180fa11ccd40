package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	evaldesk "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/desk"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term/live"
)

type evalRunOptions struct {
	data         string
	limit        int
	seed         uint64
	parallel     optionalInt
	model        string
	researcher   string
	depth        string
	part         string
	details      string
	heldAnswers  bool
	uncalibrated bool
	noVectors    bool
	traces       bool
	tracesGiven  bool
	// researcherGiven says that --researcher is more than its default.
	researcherGiven bool
	noResume        bool
	out             string
	json            bool
	quiet           bool
}

const evalRunHelp = `Run suites, by name, or 'all' whose data is found. A table goes to stdout, and a
report with every row to a file: NAME-….json in the folder eval of the home
folder, or what --out says (a file, or a folder, which gets a file for each
suite). Two runs of one program give the same report, but for the times at its
end.

Every case is kept as soon as it is done. A run that was broken off, by Ctrl-C
too, goes on where it was when the same command is given again; --no-resume
starts from nothing. A run of a program that was built anew starts from nothing,
too.

Questions are asked with the mind that needs no model, or with --model, as 'ask'
does. --researcher pi lets an investigator ask; else the researcher of files is
asked straight. Vectors are made as the settings say. Costs are estimates by the
program's price table.

With --traces every question leaves a trace and its evidence beside the report,
in a folder that is a home folder of its own:
  MARCHWARDEN_HOME=<folder> marchwarden verify <trace id of a row>
They are kept by default with --model, and not without: every step of a trace is
synced to disk, which takes longer than an answer without a model does.

The suite folders asks folders on disk by this program itself, with the
investigator, as 'ask --library' does. --part open runs the half of its
questions that is there to be studied, --part held the half that nothing is
tuned on. --details writes a line of JSON for each question: scores, confidence,
answer, citations. Of questions that are held out it has the scores alone.`

func newEvalRun(a *app) *cobra.Command {
	var o evalRunOptions
	cmd := &cobra.Command{
		Use: "run NAME… | all", Short: "run suites and report", Long: evalRunHelp,
		Example: "  marchwarden eval run squad2 --limit 500\n  marchwarden eval run all --out reports\n  marchwarden eval run squad2 --model ollama/qwen3 --limit 50 --parallel 2 --out qwen.json\n  marchwarden eval run folders --part open --details open.jsonl",
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			if len(args) == 0 {
				return invalid("suite", "for example: marchwarden eval run squad2; 'marchwarden eval list' shows all", "is missing")
			}
			if cmd.Flags().Changed("limit") && o.limit < 1 {
				return invalid("--limit", "leave it out to run all", fmt.Sprintf("must be at least 1, not %d", o.limit))
			}
			o.tracesGiven, o.researcherGiven = cmd.Flags().Changed("traces"), cmd.Flags().Changed("researcher")
			if o.part == "all" {
				o.part = ""
			}
			return a.runEval(cmd.Context(), o, args)
		},
	}
	f := cmd.Flags()
	dataFlag(cmd, &o.data)
	f.IntVar(&o.limit, "limit", 0, "run a sample of `N` cases, spread evenly (default all)")
	f.Uint64Var(&o.seed, "seed", 1, "`NUMBER` that decides the sample")
	f.Var(&o.parallel, "parallel", "run `N` cases at once (default one for each processor, or 4 with a model)")
	f.StringVar(&o.model, "model", "", "language `MODEL` that plans and writes, as for 'ask'; extractive for none (default none)")
	f.StringVar(&o.researcher, "researcher", files.Name, "`NAME` of who is asked: files, or pi for an investigator")
	f.StringVar(&o.depth, "depth", "", "`DEPTH` of the research: shallow, balanced or deep (default balanced)")
	f.StringVar(&o.part, "part", "", "run just the `PART` open or held of a suite that has them (default all)")
	f.StringVar(&o.details, "details", "", "write what a developer wants to know of each case to `FILE`; runs all cases anew")
	f.BoolVar(&o.heldAnswers, "held-answers", false, "tell in --details the answers to held-out questions, too, which spoils them")
	f.BoolVar(&o.uncalibrated, "uncalibrated", false, "leave confidence as the rubric scores it, for 'marchwarden calibrate'")
	f.BoolVar(&o.noVectors, "no-vectors", false, "work with words alone, without sentence vectors")
	f.BoolVar(&o.traces, "traces", false, "keep a trace of every question (default only with a model)")
	f.BoolVar(&o.noResume, "no-resume", false, "start from nothing, and not where a broken-off run was")
	f.StringVar(&o.out, "out", "", "write the report to `FILE`, or those of several suites to a folder")
	f.BoolVar(&o.json, "json", false, "print the numbers as JSON; the rows are in the report")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	complete(cmd, "researcher", files.Name, settings.PI)
	complete(cmd, "part", "all", "open", "held")
	complete(cmd, "depth", string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep))
	return cmd
}

// evalSummary is the form of 'eval run --json'. Fields are only ever added.
type evalSummary struct {
	Reports []evalReport `json:"reports"`
}

type evalReport struct {
	File string `json:"file"`
	*eval.Report
	Rows int `json:"rows"` // how many the file has
}

func (a *app) runEval(ctx context.Context, o evalRunOptions, names []string) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	chosen, data, err := a.chosenWithData(names, o.data)
	if err != nil {
		return err
	}
	if err := o.suits(chosen); err != nil {
		return err
	}
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	lab, err := a.openEvalLab(c, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.close()) }()
	var done evalSummary
	many := len(names) > 1 || names[0] == "all"
	for _, s := range chosen {
		r, err := a.evalOne(ctx, c, o, lab, s, data, many)
		if err != nil {
			return evalStopped(ctx, err)
		}
		done.Reports = append(done.Reports, *r)
		if o.json {
			continue
		}
		if err := a.printReport(r); err != nil {
			return err
		}
	}
	for _, r := range done.Reports { // only now: a command that is broken off finds all it had done
		if err := eval.Forget(rowsOf(r.File)); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(a.forPrograms(), done)
	}
	return nil
}

// rowsOf is where the rows of a run are kept until its report is there for good.
func rowsOf(report string) string { return report + ".rows" }

// check refuses flags that cannot be meant.
func (o *evalRunOptions) check() error {
	const most = 64
	switch {
	case o.parallel.v != nil && (*o.parallel.v < 1 || *o.parallel.v > most):
		return invalid("--parallel", "", fmt.Sprintf("must be from 1 to %d, not %d", most, *o.parallel.v))
	case o.researcher != files.Name && o.researcher != settings.PI:
		return invalid("--researcher", "a suite brings its own documents, and others cannot be asked about them", fmt.Sprintf("must be %s or %s, not %q", files.Name, settings.PI, plaintext.Clip(o.researcher, 40)))
	}
	return byFlag(marchwarden.Request{Question: "?", Depth: marchwarden.Depth(o.depth)}.Validate())
}

// evalOne runs one suite and writes its report.
func (a *app) evalOne(ctx context.Context, c *settings.Settings, o evalRunOptions, lab *evalLab, s eval.Suite, data eval.Data, many bool) (*evalReport, error) {
	settings := lab.settings(o, s)
	path, err := o.reportPath(c, s, settings, many)
	if err != nil {
		return nil, err
	}
	d, kept, err := lab.openFor(c, o, s, strings.TrimSuffix(path, ".json")+".kept")
	if err != nil {
		return nil, err
	}
	progress, details := a.newEvalProgress(c, s.Name, o.quiet), &evalDetails{path: o.details}
	env := eval.Env{
		Data: data, Embed: lab.embed, Reader: lab.reader(), Desk: d, Folders: kept.asker(), Part: o.part, Details: details.taker(o.heldAnswers),
		Seed: o.seed, Now: evaldesk.Today(), Say: progress.say,
	}
	r, err := eval.Run(ctx, s, env, eval.Options{
		Settings: settings, Parallel: lab.parallel(o), Journal: rowsOf(path), Fresh: o.noResume || o.details != "",
		Version: programVersion(), Build: lab.build, Progress: progress.step, Now: a.Now,
	})
	progress.close()
	lab.enter(c, s, d)
	if err = errors.Join(err, kept.close()); err != nil {
		return nil, err
	}
	encoded, err := r.Encode()
	if err = errors.Join(err, details.write()); err != nil {
		return nil, err
	}
	if err := durable.ReplaceFile(path, encoded); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the report")
	}
	return &evalReport{File: path, Report: r, Rows: len(r.Rows)}, nil
}

// reportPath is where the report of a suite goes. A name of the program's own tells
// runs with different settings apart.
func (o evalRunOptions) reportPath(c *settings.Settings, s eval.Suite, settings eval.Settings, many bool) (string, error) {
	if o.out == "" {
		sum := sha256.Sum256(fmt.Appendf(nil, "marchwarden eval report/1 %+v", settings))
		dir := filepath.Join(c.Home(), "eval")
		return filepath.Join(dir, s.Name+"-"+hex.EncodeToString(sum[:4])+".json"), makeEvalDir(dir)
	}
	info, err := os.Stat(o.out)
	isDir := err == nil && info.IsDir()
	switch {
	case isDir || many || os.IsPathSeparator(o.out[len(o.out)-1]):
		if err == nil && !isDir {
			return "", invalid("--out", "give a folder, which gets a report for each suite", fmt.Sprintf("%q is a file", o.out))
		}
		return filepath.Join(o.out, s.Name+".json"), makeEvalDir(o.out)
	}
	return o.out, checkOut(o.out)
}

func makeEvalDir(dir string) error {
	return marchwarden.Wrap(durable.MakeDir(dir), marchwarden.CodeUnavailable, "make the folder of the reports")
}

// buildID names this very program: rows that another build made are not its own.
func (a *app) buildID() (string, error) {
	path, err := a.Self()
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "find this program")
	}
	f, err := durable.OpenRegular(path)
	if err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read this program")
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read this program")
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// evalProgress shows how far a suite or a submission is: a bar on a terminal, now and
// then a line elsewhere.
type evalProgress struct {
	name     string
	progress *live.Progress // nil when quiet
	live     bool           // on a terminal
	bar      [2]string      // what a bar is drawn with: the part that is done, and the rest
	now      func() time.Time
	began    time.Time
	first    int // cases that were there when it began; -1 until it has
	failed   int // of those since
}

func (a *app) newEvalProgress(c *settings.Settings, name string, quiet bool) *evalProgress {
	p := &evalProgress{name: name, now: a.Now, first: -1, bar: [2]string{"█", "░"}}
	if !quiet {
		cfg := a.liveOn(c, a.Stderr)
		cfg.Single, p.live = true, cfg.Live
		if cfg.ASCII {
			p.bar = [2]string{"#", "."}
		}
		p.progress = live.New(a.Stderr, cfg)
	}
	return p
}

func (p *evalProgress) say(message string) {
	if p.progress != nil {
		p.progress.Event(marchwarden.Event{Stage: marchwarden.Stage(p.name), Message: message})
	}
}

// begin says how many were there when it began.
func (p *evalProgress) begin(done int) { p.first, p.began = done, p.now() }

func (p *evalProgress) step(done, total int) {
	if p.first < 0 {
		p.begin(done)
	}
	if p.progress == nil {
		return
	}
	message := p.pace(done, total)
	if p.live {
		const cells = 20
		full := done * cells / max(1, total)
		message = strings.Repeat(p.bar[0], full) + strings.Repeat(p.bar[1], cells-full) + " " + message
	}
	p.progress.Event(marchwarden.Event{Stage: marchwarden.Stage(p.name), Iteration: 0, Done: done, Total: total, Message: message})
}

// pace is how many failed, how many a second or a minute are done, and how long the rest
// takes, as far as there is something to say.
func (p *evalProgress) pace(done, total int) string {
	var parts []string
	if p.failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.failed))
	}
	if took, ran := p.now().Sub(p.began), done-p.first; took > 0 && ran > 0 && done < total {
		rate, unit := float64(ran)/took.Seconds(), "s"
		if rate < 1 {
			rate, unit = rate*60, "min"
		}
		left := time.Duration(float64(took) / float64(ran) * float64(total-done))
		parts = append(parts, fmt.Sprintf("%.1f/%s", rate, unit), term.Duration(left.Round(time.Second))+" left")
	}
	return strings.Join(parts, ", ")
}

func (p *evalProgress) close() {
	if p.progress != nil {
		p.progress.Close()
	}
}

// parallel is how many cases run at once.
func (l *evalLab) parallel(o evalRunOptions) int {
	switch {
	case o.parallel.v != nil:
		return *o.parallel.v
	case l.model != nil:
		return 4
	}
	return runtime.GOMAXPROCS(0)
}

// evalStopped is the error of a run that the user ended, in plain words.
func evalStopped(ctx context.Context, err error) error {
	var e *marchwarden.Error
	if !errors.Is(context.Cause(ctx), errInterrupted) || !errors.As(err, &e) {
		return err
	}
	return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: e.Message, Err: errInterrupted, Hint: e.Hint}
}
