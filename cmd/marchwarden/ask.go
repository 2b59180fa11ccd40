package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type askOptions struct {
	desk       network.Options
	cons       marchwarden.Constraints
	req        marchwarden.Request
	follow     string // the run whose conversation goes on: an id, the beginning of one, or last
	jsonEvents bool
	out        string
	verbose    bool
	quiet      bool
	plain      bool // progress in plain lines, also on a terminal
	away       bool // it was asked of a cluster
}

func newAsk(a *app) *cobra.Command {
	var o askOptions
	cmd := a.verb("ask [flags] QUESTION… | -", "answer a question from documents, with citations", nil, func(ctx context.Context, c *settings.Settings, args []string) error {
		question, err := questionOf(ctx, a, args)
		if err != nil {
			return err
		}
		req, err := requestOf(a, &o, c, question)
		if err != nil {
			return err
		}
		if err := settings.CheckOut(o.out); err != nil {
			return err
		}
		if c.Text(settings.Engine) != "" {
			return askCluster(ctx, a, c, o, req)
		}
		return research(ctx, a, c, o, req)
	})
	o.questionFlags(cmd)
	cmd.Flags().StringVar(&o.follow, "follow", "", "continue the conversation of the run `ID`; last is the newest run")
	cmd.Flags().BoolVar(&o.desk.PlanOnly, "plan", false, "print the plan, and what it may cost, and stop")
	o.showFlags(a, cmd.Flags())
	engineFlag(cmd.Flags())
	return cmd
}

// questionFlags say what is asked, of whom and with what.
func (o *askOptions) questionFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	settingFlag(f, "depth", settings.Depth, "`DEPTH` of the research: shallow, balanced or deep (default balanced)")
	f.Func("budget", fmt.Sprintf("use at most `N` tokens for the whole research, at least %d", marchwarden.MinTokenBudget), number(&o.cons.TokenBudget))
	f.Func("max-iterations", fmt.Sprintf("search at most `N` times, %d to %d", marchwarden.MinIterations, marchwarden.MaxIterations), number(&o.cons.MaxIterations))
	f.Func("max-sources", fmt.Sprintf("read at most `N` documents, at least %d", marchwarden.MinSources), number(&o.cons.MaxSources))
	f.Func("max-cost", "let models cost at most `USD` for the whole research, such as 0.50", dollars(&o.cons.MaxCostUSD))
	f.StringVar(&o.cons.SourceFilter, "source-filter", "", "use nothing but this `LIST` of domains or suffixes, such as .gov,.edu,.md; !example.com excludes")
	f.StringVar(&o.cons.Since, "since", "", "use nothing that is known to be published before `DATE`, such as 2024-05-31")
	f.StringVar(&o.cons.Until, "until", "", "use nothing that is known to be published after `DATE`")
	f.StringVar(&o.req.Context, "context", "", fmt.Sprintf("`TEXT` that you know already, at most %d characters", marchwarden.MaxContextChars))
	f.StringVar((*string)(&o.req.Format), "format", "", "`FORM` of the answer: brief, answer, report or table (default by depth: brief, answer or report)")
	f.IntVar(&o.req.Length, "length", 0, fmt.Sprintf("write about `N` words, %d to %d", marchwarden.MinLength, marchwarden.MaxLength))
	f.StringVar(&o.req.Audience, "audience", "", "for `WHOM` a model writes, such as \"a town council\"")
	f.StringVar(&o.req.Instructions, "instructions", "", "`TEXT` that says how a model writes, never what is true")
	optionFlags(cmd, &o.desk, append(workOptions, "researcher", "researchers", "allow-egress", "parallel", "max-rihlas", "timeout", "isolate")...)
	complete(cmd, "format", string(marchwarden.Brief), string(marchwarden.Plain), string(marchwarden.Report), string(marchwarden.Table))
	complete(cmd, "depth", string(marchwarden.Shallow), string(marchwarden.Balanced), string(marchwarden.Deep))
}

func (o *askOptions) showFlags(a *app, f *pflag.FlagSet) {
	f.BoolVar(&a.json, "json", false, "print the result as JSON and nothing else")
	f.BoolVar(&o.jsonEvents, "json-events", false, "print progress, warnings and errors on stderr as JSON, one object a line, for programs")
	f.StringVar(&o.out, "out", "", "also write the result to `FILE`: JSON if it ends in .json, else all that 'show' prints")
	f.BoolVar(&o.verbose, "verbose", false, "show all that is known: the passages in their place, who was asked what, hashes, times")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	f.BoolVar(&o.plain, "plain", false, "show progress in plain lines, on a terminal too: for logs and screen readers")
}

// research asks a researcher and shows its result.
func research(ctx context.Context, a *app, c *settings.Settings, o askOptions, req marchwarden.Request) error {
	watch := newWatch(a, c, o)
	defer watch.close()
	var told network.Finished
	o.desk.Told, o.desk.Warn = func(f network.Finished) {
		if f.Start.Investigation != nil || told.Start == nil { // of an investigation in this process, its own
			told = f
		}
	}, watch.warn
	d, err := a.Open(c, o.desk)
	if err != nil {
		return err
	}
	ctx, done := stoppable(ctx, a, c, req.Resume)
	defer done()
	res, err := d.Research(ctx, req, watch.event)
	err = byFlag(err)
	interrupted := ctx.Err() != nil
	watch.close()
	start := told.Start
	if err == nil && start == nil { // an earlier run had nothing left to do
		if start, err = d.Complete(res); err == nil {
			a.note("%s", network.NothingLeft(req, o.desk.More > 0, res))
		}
	}
	partial := false
	if err == nil {
		partial, err = showResult(context.WithoutCancel(ctx), a, o, d, res, start)
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if interrupted && partial { // one that came too late has cost nothing
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the result is partial", Err: errInterrupted, Hint: "to resume it: marchwarden resume " + shortID(res.TraceID)}
	}
	return nil
}

// showResult shows the result of a run that is recorded here, and reports whether its record
// says that it was interrupted, or nothing.
func showResult(ctx context.Context, a *app, o askOptions, d *network.Runner, res *marchwarden.Result, start *trace.Start) (partial bool, err error) {
	store := d.Records.Store()
	f, searched := spentOf(store, res, start)
	partial = f.Interrupted || !f.Known
	out := outcome{res: res, start: start}
	out.Cost, out.Searched = report.Price(res.CostMetadata.CostUSD), strings.Join(searched, ", ")
	if o.desk.PlanOnly {
		out.Cost = pi.Forecast(start, len(res.Rihlas))
	}
	lost := slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.Contains(w, trace.Unrecorded) })
	out.kept = f.Known && !lost
	if res.CostMetadata.BudgetExhausted && !partial && !lost {
		out.Hints = append(out.Hints, "to continue with more: marchwarden resume "+network.AsMuchAgain(f.Exhausted, start)+" last")
	}
	if !o.away { // what is searched there, its workers decide
		out.Hints = append(out.Hints, network.Hint(start, searched)...)
	}
	out.page = func() *report.Report {
		if past, err := store.Load(res.TraceID); err == nil && !lost {
			if r, err := report.Gather(ctx, store, past); err == nil {
				return r
			}
		}
		return &report.Report{Question: cmp.Or(res.CompletedQuestion, start.Request.Question), Researcher: start.Researcher, Version: start.Version, StartedAt: start.StartedAt, Limits: start.LimitsNow(), Result: res}
	}
	return partial, deliver(a, o, out)
}

// spentOf is what a run has used, with its rihlas, and what was searched.
func spentOf(store run.Store, res *marchwarden.Result, start *trace.Start) (spent run.Spent, searched []string) {
	spent, searched = run.SpentIn(store.Traces.Load, res, run.Whole)
	if start.Investigation == nil {
		searched = start.Library
	}
	return spent, searched
}

// outcome is a result and what is to be said with it.
type outcome struct {
	report.Options
	res   *marchwarden.Result
	start *trace.Start
	kept  bool                  // it can be shown again
	page  func() *report.Report // with the stored evidence, if it can be read
}

// requestOf makes a valid request of flags, settings and a question. Its errors name the flag
// that is wrong. A question that follows is asked of those who were asked before, unless flags
// say of whom.
func requestOf(a *app, o *askOptions, c *settings.Settings, question string) (marchwarden.Request, error) {
	req := o.req
	req.Question, req.Depth = question, marchwarden.Depth(c.Text(settings.Depth))
	if o.cons != (marchwarden.Constraints{}) {
		req.Constraints = &o.cons
	}
	var err error
	if o.follow != "" {
		o.desk, req.Follow, err = o.desk.Following(&a.Host, c, o.follow)
	}
	return req, byFlag(cmp.Or(err, req.Validate()))
}

// byFlag names in an error about a request the flag that filled the field.
func byFlag(err error) error { return settings.Renamed(err, flagNames) }

// flagNames says which flag fills which field of a request.
var flagNames = map[string]string{
	"context":                    "--context",
	"depth":                      "--depth",
	"follow":                     "--follow",
	"format":                     "--format",
	"length":                     "--length",
	"audience":                   "--audience",
	"instructions":               "--instructions",
	"constraints.max_iterations": "--max-iterations",
	"constraints.token_budget":   "--budget",
	"constraints.max_sources":    "--max-sources",
	"constraints.source_filter":  "--source-filter",
	"constraints.max_cost_usd":   "--max-cost",
	"constraints.since":          "--since",
	"constraints.until":          "--until",
}

// questionOf is the arguments, or all of stdin when they are "-".
func questionOf(ctx context.Context, a *app, args []string) (string, error) {
	if len(args) == 0 {
		return "", invalid("question", `for example: marchwarden ask "What grows in Utah?", or - to read it from stdin`, "is missing")
	}
	if !slices.Contains(args, "-") {
		return strings.Join(args, " "), nil
	}
	if len(args) > 1 {
		return "", invalid("question", "", `must be either words or "-" for stdin, not both`)
	}
	data, err := a.readStdin(ctx, marchwarden.MaxRequestBytes, "question")
	if errors.Is(err, marchwarden.CodeInvalid) { // there is more, and what counts is the question's own limit
		err = invalid("question", "put what you already know into --context", fmt.Sprintf("must be at most %d characters, has more than %d bytes", marchwarden.MaxQuestionChars, marchwarden.MaxRequestBytes))
	}
	return strings.TrimSpace(string(data)), err
}

// deliver writes the result to the file that was asked for and prints it, even
// when the file cannot be written.
func deliver(a *app, o askOptions, out outcome) (err error) {
	// The same terminal may show the warnings above the answer.
	if shown := !a.json && !o.desk.PlanOnly && a.reader != program && a.outStyle().Width > 0 && a.errStyle().Width > 0; !shown {
		for _, warning := range out.res.Warnings {
			a.warn(warning)
		}
	}
	if o.out != "" {
		failed := settings.WriteOut(o.out, func(w io.Writer) error {
			if strings.HasSuffix(strings.ToLower(o.out), ".json") {
				return printJSON(w, out.res)
			}
			written := out
			written.Hints = nil
			return written.show(w, term.Style{}, o.desk.PlanOnly, true)
		})
		defer func() { err = errors.Join(failed, err) }()
	}
	if a.json {
		return printJSON(a.forPrograms(), out.res)
	}
	out.Verbose = true
	return out.show(a.stdout, a.outStyle(), o.desk.PlanOnly, o.verbose)
}

// show writes a result for people: the plan if that is all there is, else the first screen, or
// all of it.
func (out outcome) show(w io.Writer, st term.Style, planned, all bool) error {
	switch {
	case planned:
		return report.Plan(w, st, out.start.Request.Question, out.Cost, out.res.Rihlas)
	case all:
		return report.Reading(w, st, out.page(), out.Options)
	}
	if out.kept {
		out.Hints = slices.Insert(slices.Clone(out.Hints), 0, "to see each passage in its place: marchwarden show last")
	}
	return report.Screen(w, st, out.res, out.Options)
}

// number is a flag for a whole number that may be left out, dollars one for an amount.
func number(to **int) func(string) error { return optional(to, strconv.Atoi) }
func dollars(to **float64) func(string) error {
	return optional(to, func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
}

func optional[T any](to **T, parse func(string) (T, error)) func(string) error {
	return func(s string) error {
		v, err := parse(s)
		if err == nil {
			*to = &v
		}
		return err // flagError words it
	}
}

func newResume(a *app) *cobra.Command {
	var o askOptions
	resume := func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
		err := settings.CheckOut(o.out)
		if err != nil {
			return err
		}
		var log *trace.Log
		if o.desk, log, err = o.desk.Resumed(c, rec, id); err != nil {
			return err
		}
		a.reportTorn(id, log)
		req := marchwarden.Request{Resume: id.String()}
		if o.cons != (marchwarden.Constraints{}) {
			req.Constraints = &o.cons
		}
		if err := byFlag(req.Validate()); err != nil {
			return err
		}
		switch done := log.Complete(); {
		case done == nil:
			a.note("going on after step %d, where the run was cut off", len(log.Steps))
		case done.Interrupted:
			a.note("going on where the run was stopped")
		}
		return research(ctx, a, c, o, req)
	}
	cmd := a.verb("resume [flags] ID", "resume a run that was cut off, stopped, or ran out of budget", oneRun, a.onRun(resume))
	f := cmd.Flags()
	f.Func("budget", fmt.Sprintf("add `N` tokens to what the run had, at least %d", marchwarden.MinTokenBudget), number(&o.cons.TokenBudget))
	f.Func("max-iterations", "add `N` iterations", number(&o.cons.MaxIterations))
	f.Func("max-sources", "add `N` documents", number(&o.cons.MaxSources))
	f.Func("max-cost", "add `USD` to what its models may cost", dollars(&o.cons.MaxCostUSD))
	f.StringVar(&o.desk.Timeout, "timeout", "", "add this `TIME`, such as 90s")
	f.StringVar(&o.desk.DB, "db", "", "the database at `URL`, if the run had one with a password")
	o.showFlags(a, f)
	return cmd
}

// stoppable lets the page stop a run that a terminal began, as Ctrl-C does. The run is a new
// one with an id of its own, or the one that resumes.
func stoppable(ctx context.Context, a *app, c *settings.Settings, resume string) (context.Context, func()) {
	id, err := marchwarden.ParseTraceID(resume)
	if err != nil {
		id = a.NewID()
		ctx = marchwarden.WithTraceID(ctx, id)
	}
	ctx, stop := context.WithCancelCause(ctx)
	go runs.HeedStop(ctx, c.RunsPath(), id, func() { stop(errInterrupted) })
	return ctx, func() { stop(nil) }
}
