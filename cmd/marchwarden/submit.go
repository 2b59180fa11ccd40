package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

type submitOptions struct {
	desk      network.Options
	cons      marchwarden.Constraints
	file, out string
	priority  string
	window    int
	parallel  int
	records   bool
	quiet     bool
}

func newSubmit(a *app) *cobra.Command {
	var o submitOptions
	cmd := a.verb("submit --file QUESTIONS.jsonl", "ask all questions of a file; safe to run again", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		return runSubmit(ctx, a, c, o)
	})
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "the `FILE` of questions, one JSON object a line")
	f.StringVar(&o.out, "out", "", "the `FILE` of results (default beside the questions, as NAME.results.jsonl)")
	f.StringVar(&o.priority, "priority", priorityNames[dispatch.Normal], "`HOW` urgent: "+strings.Join(priorityNames, ", "))
	countFlag(f, &o.window, "window", 64, 1, 10_000, "submit at most `N` questions that are not done")
	countFlag(f, &o.parallel, "parallel", 4, 1, network.MaxParallel, "work on `N` questions at once, where the work is done here")
	f.BoolVar(&o.records, "records", false, "bring the records of a cluster home, too")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "show no progress")
	engineFlag(f)
	f.Func("max-cost", "let models cost at most `USD` for one question that has no cap of its own", dollars(&o.cons.MaxCostUSD))
	f.StringVar(&o.cons.Since, "since", "", "for questions that name no dates: use nothing that is known to be published before `DATE`")
	f.StringVar(&o.cons.Until, "until", "", "the same, after `DATE`")
	optionFlags(cmd, &o.desk, append(workOptions, "researcher", "researchers", "allow-egress", "max-rihlas", "timeout")...)
	complete(cmd, "priority", priorityNames...)
	return cmd
}

var priorityNames = []string{"urgent", "normal", "low"}

// check refuses what is wrong with the options by themselves, and gives what all tasks have in common.
func (o *submitOptions) check(a *app, c *settings.Settings) (like dispatch.Task, err error) {
	if o.file == "" {
		return like, invalid("--file", "for example: marchwarden submit --file questions.jsonl", "is missing")
	}
	if like, err = taskFor(a, c, o.desk); err != nil {
		return like, err
	}
	if like.Priority = dispatch.Priority(slices.Index(priorityNames, o.priority)); like.Priority < 0 {
		return like, invalid("--priority", "", fmt.Sprintf("must be %s, not %q", settings.Either(priorityNames), plaintext.Clip(o.priority, 40)))
	}
	if o.out == "" {
		o.out = strings.TrimSuffix(o.file, filepath.Ext(o.file)) + ".results.jsonl"
	}
	return like, settings.CheckOut(o.out)
}

func runSubmit(ctx context.Context, a *app, c *settings.Settings, o submitOptions) error {
	like, err := o.check(a, c)
	if err != nil {
		return err
	}
	at := c.Text(settings.Engine)
	var means []string
	if at == "" {
		means, err = o.desk.Means(&a.Host, c)
	} else if err = workElsewhere(c, o.desk, "this"); err == nil {
		like.Within, err = flagTime("--timeout", o.desk.Timeout, false)
	}
	if err != nil {
		return err
	}
	all, err := readQuestions(a, c, o, like, means)
	if err != nil {
		return err
	}
	done, err := submit.OpenResults(o.out)
	if err != nil {
		return err
	}
	defer done.Close()
	left := slices.DeleteFunc(slices.Clone(all), func(q submit.Question) bool { return done.Has(q.Task) })
	n := len(all)
	if len(left) == 0 {
		return submissionOver(a, n, done.FailedOf(all), o)
	}
	work := submit.Submission{Out: done, Window: o.window}
	var end func() error
	if at == "" {
		work.Window = min(o.window, o.parallel)
		o.desk.Warn, o.desk.Log = network.Once(a.warn), a.logger(c)
		work.Ask, end, err = a.OpenHere(c, o.desk, o.parallel)
	} else {
		work.Ask, end, err = openThere(ctx, a, c, o, like)
	}
	if err != nil {
		return errors.Join(err, done.Discard())
	}
	progress, answered := submitProgress(a, c, o, n-len(left), n), n-len(left)
	work.Count = func(l submit.Line) {
		if answered++; l.Status != dispatch.Done {
			progress.Fail()
		}
		progress.Step(answered, n)
	}
	err = work.Run(ctx, left)
	progress.Close()
	if err := errors.Join(err, end()); ctx.Err() == nil && err != nil || ctx.Err() != nil && answered < n {
		return submissionCut(ctx, at, fmt.Sprintf("%d of %d questions are done", answered, n), err)
	}
	return submissionOver(a, n, done.FailedOf(all), o)
}

// submitProgress shows how many of all questions are done, nothing when quiet.
func submitProgress(a *app, c *settings.Settings, o submitOptions, done, all int) *term.Bar {
	if o.quiet {
		return term.NewBar(io.Discard, "", term.ProgressConfig{Now: a.Now})
	}
	if done > 0 {
		a.note("going on: %d of %d questions are done", done, all)
	}
	bar := term.NewBar(a.Stderr, "questions", a.liveOn(c, a.Stderr))
	bar.Begin(done)
	return bar
}

// submissionCut is the error of a submission that ended before all was answered: by its user, or by err.
func submissionCut(ctx context.Context, at, done string, err error) error {
	again := "run the same command again to go on"
	if ctx.Err() == nil {
		return &marchwarden.Error{Code: marchwarden.CodeOf(err), Message: done, Err: err, Hint: cmp.Or(marchwarden.HintOf(err), again)}
	}
	if at != "" {
		again += "; what was submitted continues in the cluster"
	}
	return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: done, Err: errInterrupted, Hint: again}
}

// submissionOver says how a submission ended that has a line for every question, whichever
// run wrote it.
func submissionOver(a *app, all, failed int, o submitOptions) error {
	a.note("%s in %s", term.Plural(all, "result"), o.out)
	if failed > 0 {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("%d of %d questions failed", failed, all), Hint: "their lines in " + o.out + " say why"}
	}
	return nil
}

func readQuestions(a *app, c *settings.Settings, o submitOptions, like dispatch.Task, means []string) ([]submit.Question, error) {
	f, err := durable.OpenRegular(o.file)
	if err != nil {
		return nil, invalid("--file", "", fmt.Sprintf("%q cannot be read: %s", o.file, durable.Cause(err)))
	}
	defer f.Close()
	all, other, err := submit.ReadQuestions(f, o.file)
	if err != nil {
		return nil, err
	}
	if len(other) > 0 {
		a.warn("these fields of the questions are ignored: " + plaintext.Clip(strings.Join(other, ", "), 200))
	}
	for i := range all {
		if all[i].Request.Depth == "" {
			all[i].Request.Depth = marchwarden.Depth(c.Text(settings.Depth))
		}
		if err := byFlag(all[i].Bound(o.cons)); err != nil {
			return nil, err
		}
		all[i].Request.Question, all[i].Request.Context = a.Hide.Text(all[i].Request.Question), a.Hide.Text(all[i].Request.Context)
	}
	return all, submit.NameTasks(all, like, means)
}

func openThere(ctx context.Context, a *app, c *settings.Settings, o submitOptions, like dispatch.Task) (ask submit.Ask, end func() error, err error) {
	engine, err := a.openCluster(ctx, c, a.logger(c))
	if err != nil {
		return nil, nil, err
	}
	there := &submit.There{Engine: engine, Like: like}
	if !o.records {
		return there.Ask, engine.Close, nil
	}
	rec, err := a.OpenRecords(c)
	if err != nil {
		return nil, nil, errors.Join(err, engine.Close())
	}
	there.Home = (&network.Runner{Host: &a.Host, Settings: c, Records: rec, Warn: a.warn}).HomeOnce(engine)
	return there.Ask, func() error { return errors.Join(engine.Close(), rec.Close()) }, nil
}
