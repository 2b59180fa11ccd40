package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/outcome"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/arxiv"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const resumeHelp = `Go on with a run: after a crash, a reboot or Ctrl-C, or with more budget after
it has ended at a cap. What the run did before is taken from its record, and
nothing that was paid for is asked again. A call that was under way when the run
was cut off is made once more, and marked in the trace.

A run that was cut off goes on with what is left of its limits. One that ended
at a cap needs more of what it ran out of: --budget, --max-iterations,
--max-sources or --timeout, each of which adds to what it had. A run that had
nothing left to do is shown as it is.

It goes on with the researchers, folders and engines that it was begun with. A
database whose address has a password is given again: --db, or MARCHWARDEN_DB.

` + idHelp + ` 'marchwarden traces
--status interrupted' lists what can be gone on with.

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
		Use: "resume [flags] ID", Short: "go on with a run that was cut off, stopped, or ran out of budget",
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
	f.StringVar(&o.desk.timeout, "timeout", "", "add this `TIME`, such as 90s")
	f.StringVar(&o.desk.db, "db", "", "the database at `URL`, if the run had one with a password")
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

// goingOn reads a run that is to be gone on with and fills in how it was begun. A rihla,
// a run that was imported and one that somebody is at work on are refused.
func (o *askOptions) goingOn(c *settings.Settings, rec *records, id marchwarden.TraceID) (*trace.Log, error) {
	log, err := rec.traces.Load(id)
	if err != nil {
		return nil, err
	}
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	if start.PartOf {
		return nil, invalid("ID", "go on with the investigation that sent it: 'marchwarden traces' lists it", fmt.Sprintf("run %s is a rihla of an investigation", id))
	}
	if foreign, err := rec.traces.Foreign(id); err != nil {
		return nil, err
	} else if foreign { // its flags are somebody else's
		return nil, outcome.Imported(id)
	}
	if busy, err := rec.traces.Busy(id); err != nil {
		return nil, err
	} else if busy {
		return nil, trace.Going(id)
	}
	db := o.desk.db // as it is named now, which is refused if nobody asks it
	if err := o.asBegun(c, start); err != nil {
		return nil, err
	}
	// What is recorded is all that the settings had to give, whoever was asked.
	names := o.desk.only
	if len(names) == 0 && o.desk.researcher != settings.PI {
		names = []string{o.desk.researcher}
	}
	if len(names) > 0 {
		o.desk = o.desk.narrowed(names)
		o.desk.db = cmp.Or(db, o.desk.db)
	}
	return log, nil
}

// asBegun fills in how the run was begun, and what is added to its time.
func (o *askOptions) asBegun(c *settings.Settings, start *trace.Start) error {
	var err error
	if o.desk.timeout != "" {
		if o.desk.more, err = c.Deadline(o.desk.timeout, false); err != nil {
			return err
		}
	}
	db := o.desk.db
	begun := askOptions{}
	flags := pflag.NewFlagSet("recorded", pflag.ContinueOnError)
	begun.deskFlags(flags)
	if err := flags.Parse(start.Flags); err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "read how run %s was begun", start.TraceID)
	}
	if err := begun.bounds(); err != nil {
		return err
	}
	more := o.desk.more
	o.desk = begun.desk
	o.desk.more, o.desk.flags = more, start.Flags
	if db != "" {
		o.desk.db = db
	}
	if err := o.sameMembers(c, start); err != nil {
		return err
	}
	// Members choose as they did; the model of the run itself is the one that it had,
	// and is no model that the user has named for them.
	o.desk.begunBy = cmp.Or(start.Model, noModel)
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
		o.desk.only = names
	}
	if o.desk.researcher == "" && start.Investigation == nil {
		o.desk.researcher = start.Researcher
	}
	outside := slices.Contains(names, web.Name) || slices.Contains(names, arxiv.Name)
	if outside && c.Given(settings.Online) && !c.On(settings.Online) {
		return invalid(c.Label(settings.Online), "unset it to go on with this run", "is false, and the run asks the web")
	}
	o.desk.online = o.desk.online || outside && start.Investigation != nil
	return nil
}

// tellResume says what is gone on with.
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

// recordable are the options as flags, for going on with a run: who works, and with
// what, wherever that was set. A database's address with a password stays out.
func (o deskOptions) recordable(a *app, c *settings.Settings) []string {
	var out []string
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				out = append(out, "--"+flag+"="+v)
			}
		}
	}
	switchOn := func(flag string, on bool) {
		if on {
			out = append(out, "--"+flag)
		}
	}
	number := func(flag string, n int) {
		if n > 0 {
			add(flag, strconv.Itoa(n))
		}
	}
	library := o.library
	if len(library) == 0 {
		library = c.List(settings.Library)
	}
	for _, dir := range library {
		add("library", a.source().Absolute(dir, a.dir))
	}
	add("researcher", o.researcher)
	add("researchers", strings.Join(o.only, ","))
	add("allow-egress", strings.Join(o.allowEgress, ","))
	add("db", a.openAddress(databaseURL(c, o)))
	add("model", o.model)
	add("search", o.search)
	add("render", o.render)
	switchOn("online", o.online)
	switchOn("embedded", o.embedded)
	switchOn("allow-samples", o.allowSamples)
	switchOn("isolate", o.isolate)
	number("parallel", o.parallel)
	number("max-rihlas", o.maxRihlas)
	return out
}

// openAddress is the address of a database as anybody may know it: a file by its whole
// path, and "" for one that may hold a password.
func (a *app) openAddress(db string) string {
	if database.IsFile(db) {
		return a.source().Absolute(db, a.dir)
	}
	u, err := url.Parse(db)
	if err != nil || u.User != nil && strings.Contains(u.User.String(), ":") || strings.Contains(strings.ToLower(u.RawQuery), "pass") {
		return ""
	}
	return db
}
