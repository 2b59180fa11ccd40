package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const resumeHelp = `Go on with a run: after a crash, a reboot or Ctrl-C, or with more budget after
it has ended at a cap. What the run did before is taken from its record, and
nothing that was paid for is asked again. A call that was under way when the run
was cut off is made once more, and marked in the trace.

A run that was cut off goes on with what is left of its limits. One that ended at
a cap needs more of what it ran out of: --budget, --max-iterations,
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
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	if err := checkOut(o.out); err != nil {
		return err
	}
	rec, err := a.openKept(c)
	if err != nil {
		return err
	}
	defer rec.Close()
	id, err := findTrace(rec.traces, arg)
	if err != nil {
		return err
	}
	log, err := rec.traces.Load(id)
	if err != nil {
		return err
	}
	a.reportTorn(id, log)
	start, err := log.Start()
	if err != nil {
		return err
	}
	if start.PartOf {
		return invalid("ID", "go on with the investigation that sent it: 'marchwarden traces' lists it", fmt.Sprintf("run %s is a rihla of an investigation", id))
	}
	if foreign, err := rec.traces.Foreign(id); err != nil || foreign { // its flags are somebody else's
		return errors.Join(err, invalid("ID", "ask the question anew", fmt.Sprintf("run %s was imported: how it was begun, somebody else has chosen", id)))
	}
	if err := o.asBegun(c, start); err != nil {
		return err
	}
	cons := marchwarden.Constraints{MaxIterations: o.iterations.v, TokenBudget: o.budget.v, MaxSources: o.sources.v}
	req := marchwarden.Request{Resume: id.String()}
	if cons != (marchwarden.Constraints{}) {
		req.Constraints = &cons
	}
	if err := byFlag(req.Validate()); err != nil {
		return err
	}
	a.tellResume(log, cons, o)
	return a.research(ctx, c, o, req)
}

// asBegun fills in how the run was begun, and what is added to its time.
func (o *askOptions) asBegun(c *config, start *trace.Start) error {
	var err error
	if o.desk.timeout != "" {
		if o.desk.more, err = c.deadline(o.desk.timeout, false); err != nil {
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
	if o.desk.researcher == "" {
		o.desk.researcher = start.Researcher
	}
	if o.desk.model == "" {
		o.desk.model = start.Model
		if start.Model == "" {
			o.desk.model = noModel
		}
	}
	return nil
}

// tellResume says what is gone on with, and what is missing for that.
func (a *app) tellResume(log *trace.Log, cons marchwarden.Constraints, o askOptions) {
	done := log.Complete()
	switch {
	case done == nil:
		a.note("going on after step %d, where the run was cut off", len(log.Steps))
	case done.Interrupted:
		a.note("going on where the run was stopped")
	case cons == (marchwarden.Constraints{}) && o.desk.more == 0:
		a.note("the run has ended; to go on past a cap, add --budget N, --max-iterations N, --max-sources N or --timeout TIME")
	}
}

// recordable are the flags that going on with a run needs: who works, and with what.
// A database's address with a password stays out.
func (a *app) recordable(given *pflag.FlagSet) []string {
	wanted := pflag.NewFlagSet("recorded", pflag.ContinueOnError)
	(&askOptions{}).deskFlags(wanted)
	var out []string
	given.Visit(func(f *pflag.Flag) {
		if wanted.Lookup(f.Name) == nil || slices.Contains([]string{"plan", "timeout"}, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := unnamed(f.Value).(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			switch f.Name {
			case "library":
				v = a.absolute(v, a.dir)
			case "db":
				if u, err := url.Parse(v); err != nil || u.User != nil && strings.Contains(u.User.String(), ":") || strings.Contains(strings.ToLower(u.RawQuery), "pass") {
					continue
				}
			}
			out = append(out, "--"+f.Name+"="+v)
		}
	})
	return out
}

// unnamed is a flag's value without the name that help texts show for it.
func unnamed(v pflag.Value) pflag.Value {
	if n, ok := v.(named); ok {
		return n.Value
	}
	return v
}
