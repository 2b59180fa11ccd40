package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/corpus"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const resumeHelp = `Resume a run: after a crash, a reboot or Ctrl-C, or with more budget after it
has ended at a cap. What the run did before is taken from its record, and
nothing that was paid for is asked again. A call that was under way when the run
was cut off is made once more, and marked in the trace.

A run that was cut off continues with what is left of its limits. One that ended
at a cap needs more of what it ran out of: --budget, --max-iterations,
--max-sources or --timeout, each of which adds to what it had. A run that had
nothing left to do is shown as it is.

It keeps the researchers, folders and engines that it was begun with. A
database whose address has a password is given again: --db, or MARCHWARDEN_DB.

` + idHelp + ` 'marchwarden traces
--status interrupted' lists what can be resumed.

EXIT STATUS
  0    answered, gaps and plain refusals included
  1    failed: there is no result
  2    wrong usage or bad input
  130  interrupted; the partial result is printed`

const resumeExamples = `  marchwarden resume last
  marchwarden resume --budget 20000 0198c0de
  marchwarden resume --json 0198c0de | jq .answer`

func newResume(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "resume [flags] ID", Short: "resume a run that was cut off, stopped, or ran out of budget",
		Long: resumeHelp, Example: resumeExamples,
		Args: argCount(1, 1, "one trace id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.jsonEvents {
				a.reader = program
			}
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runResume(cmd.Context(), o, args[0])
		},
	}
	f := cmd.Flags()
	f.Var(&o.budget, "budget", fmt.Sprintf("add `N` tokens to what the run had, at least %d", marchwarden.MinTokenBudget))
	f.Var(&o.iterations, "max-iterations", "add `N` iterations")
	f.Var(&o.sources, "max-sources", "add `N` documents")
	f.StringVar(&o.desk.Timeout, "timeout", "", "add this `TIME`, such as 90s")
	f.StringVar(&o.desk.DB, "db", "", "the database at `URL`, if the run had one with a password")
	o.showFlags(f)
	return cmd
}

func (a *app) runResume(ctx context.Context, o askOptions, arg string) error {
	if err := checkOut(o.out); err != nil {
		return err
	}
	c, rec, id, err := a.openTrace(arg)
	if err != nil {
		return err
	}
	defer rec.Close()
	log, err := o.goingOn(c, rec, id)
	if err != nil {
		return err
	}
	a.reportTorn(id, log)
	cons := marchwarden.Constraints{MaxIterations: o.iterations.v, TokenBudget: o.budget.v, MaxSources: o.sources.v}
	req := marchwarden.Request{Resume: id.String()}
	if cons != (marchwarden.Constraints{}) {
		req.Constraints = &cons
	}
	if err := byFlag(req.Validate()); err != nil {
		return err
	}
	a.tellResume(log)
	return a.research(ctx, c, o, req)
}

// goingOn reads a run that is to be resumed and fills in how it was begun. A rihla, an imported run
// and one that another process works on are refused.
func (o *askOptions) goingOn(c *settings.Settings, rec *network.Records, id marchwarden.TraceID) (*trace.Log, error) {
	log, err := rec.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	if start.PartOf {
		return nil, invalid("ID", "resume the investigation that sent it: 'marchwarden traces' lists it", fmt.Sprintf("run %s is a rihla of an investigation", id))
	}
	if foreign, err := rec.Traces.Foreign(id); err != nil {
		return nil, err
	} else if foreign { // its flags are of another installation
		return nil, run.Imported(id)
	}
	if busy, err := rec.Traces.Busy(id); err != nil {
		return nil, err
	} else if busy {
		return nil, trace.Going(id)
	}
	db := o.desk.DB // as it is named now, which is refused if it is not asked
	if err := o.asBegun(c, start); err != nil {
		return nil, err
	}
	// What is recorded is all that the settings had to give, whichever researchers were asked.
	names := o.desk.Researchers
	if len(names) == 0 && o.desk.Researcher != settings.PI {
		names = []string{o.desk.Researcher}
	}
	if len(names) > 0 {
		o.desk = o.desk.Narrowed(names)
		o.desk.DB = cmp.Or(db, o.desk.DB)
	}
	return log, nil
}

// asBegun fills in how the run was begun, and what is added to its time.
func (o *askOptions) asBegun(c *settings.Settings, start *trace.Start) error {
	var err error
	if o.desk.Timeout != "" {
		if o.desk.More, err = c.Deadline(o.desk.Timeout, false); err != nil {
			return err
		}
	}
	db := o.desk.DB
	begun := askOptions{}
	if start.Choice != nil {
		begun.desk.Choice = *start.Choice
	} else {
		flags := pflag.NewFlagSet("recorded", pflag.ContinueOnError)
		begun.deskFlags(flags)
		if err := flags.Parse(start.Flags); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read how run %s was begun", start.TraceID)
		}
	}
	if err := begun.bounds(); err != nil {
		return err
	}
	choice := begun.desk.Choice
	o.desk = network.Options{Choice: choice, Begun: &choice, More: o.desk.More}
	if db != "" {
		o.desk.DB = db
	}
	if err := o.sameMembers(c, start); err != nil {
		return err
	}
	// Members choose as they did; the model of the run itself is the one that it had,
	// and is no model that the user has named for them.
	o.desk.BegunBy = cmp.Or(start.Model, network.NoModel)
	return nil
}

// sameMembers has those asked who were in the network when the run was begun,
// whatever the settings would make of it today.
func (o *askOptions) sameMembers(c *settings.Settings, start *trace.Start) error {
	names := []string{start.Researcher}
	if start.Investigation != nil {
		names = nil
		for _, m := range start.Investigation.Members {
			if slices.Contains(c.ResearcherNames(), m.Name) { // one that is gone is a gap
				names = append(names, m.Name)
			}
		}
		o.desk.Researchers = names
	}
	if o.desk.Researcher == "" && start.Investigation == nil {
		o.desk.Researcher = start.Researcher
	}
	outside := slices.Contains(names, researcher.WebName) || slices.Contains(names, researcher.ArxivName)
	if outside && c.Given(settings.Online) && !c.On(settings.Online) {
		return invalid(c.Label(settings.Online), "unset it to resume this run", "is false, and the run asks the web")
	}
	o.desk.Online = o.desk.Online || outside && start.Investigation != nil
	return nil
}

// tellResume says what is resumed.
func (a *app) tellResume(log *trace.Log) {
	switch done := log.Complete(); {
	case done == nil:
		a.note("going on after step %d, where the run was cut off", len(log.Steps))
	case done.Interrupted:
		a.note("going on where the run was stopped")
	}
}

// nothingLeft says why a run did not go on.
func nothingLeft(req marchwarden.Request, time bool, res *marchwarden.Result) string {
	switch {
	case !res.CostMetadata.BudgetExhausted && (req.Constraints != nil || time):
		return "no cap has cut the run short: there was nothing left to do with more"
	case res.CostMetadata.BudgetExhausted:
		return "the run has ended at a cap; its gaps say which: to go on, add --budget N, --max-iterations N, --max-sources N or --timeout TIME"
	}
	return "the run has ended, and nothing was left to do"
}

// asMuchAgain are the flags that give a run as much again of what it ran out of, by
// the names that its trace has for the caps.
func asMuchAgain(exhausted []string, start *trace.Start) string {
	had := start.LimitsNow()
	var flags []string
	for _, what := range exhausted {
		switch budget.LimitOf(what) {
		case budget.Tokens:
			flags = append(flags, fmt.Sprintf("--budget %d", had.TokenBudget))
		case budget.Iterations:
			flags = append(flags, fmt.Sprintf("--max-iterations %d", min(had.MaxIterations, marchwarden.MaxIterations)))
		case budget.Sources:
			flags = append(flags, fmt.Sprintf("--max-sources %d", had.MaxSources))
		case budget.Wall:
			flags = append(flags, fmt.Sprintf("--timeout %s", max(time.Second, start.Wall.Round(time.Second))))
		}
	}
	if len(flags) == 0 {
		return fmt.Sprintf("--budget %d", had.TokenBudget)
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

// stoppable lets the page stop a run that a terminal began, as Ctrl-C does. The run is a new
// one with an id of its own, or the one that resumes.
func (a *app) stoppable(ctx context.Context, c *settings.Settings, resume string) (context.Context, func()) {
	id, err := marchwarden.ParseTraceID(resume)
	if err != nil {
		id = a.NewID()
		ctx = marchwarden.WithTraceID(ctx, id)
	}
	ctx, stop := context.WithCancelCause(ctx)
	go runs.HeedStop(ctx, c.RunsPath(), id, func() { stop(errInterrupted) })
	return ctx, func() { stop(nil) }
}

// hints tell how to search more than what was searched, and what else would help.
func hintsFor(c *settings.Settings, start *trace.Start, o network.Options, searched []string) []string {
	var hints []string
	if start.Mind != "" && start.Model == "" && start.Reader == "" {
		hints = append(hints, "the reader is off: sentences were picked by their words alone; marchwarden doctor tells why")
	}
	names := []string{start.Researcher}
	if start.Investigation != nil {
		names = nil
		for _, m := range start.Investigation.Members {
			names = append(names, m.Name)
		}
	}
	if slices.Contains(names, researcher.WebName) || slices.Contains(names, researcher.ArxivName) {
		if slices.ContainsFunc(searched, func(where string) bool { return strings.HasSuffix(where, "by wikipedia") }) {
			hints = append(hints, "of the web, only Wikipedia was searched; TAVILY_API_KEY, BRAVE_API_KEY or SEARXNG_URL open the rest")
		}
		if start.Model == "" {
			hints = append(hints, "no model was asked; ANTHROPIC_API_KEY, OPENAI_API_KEY or --model ollama/MODEL add one")
		}
		return hints
	}
	if !slices.Contains(names, researcher.FilesName) { // one researcher was asked alone
		return nil
	}
	folders := "to search your own documents: marchwarden library add DIR"
	if slices.ContainsFunc(searched, func(name string) bool {
		return strings.Contains(name, " document") && !strings.HasPrefix(name, corpus.Name)
	}) {
		folders = "to search more folders: marchwarden library add DIR; --embedded adds our own"
	}
	return append(hints, folders, "to ask the web and arXiv, too: marchwarden ask --online; see marchwarden researchers")
}
