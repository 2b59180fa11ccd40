package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

const watchHelp = `Follow a research that a cluster works on: first what was done so far, then
what happens. At its end the record comes home and the result is shown, as
'marchwarden ask' shows it. Ctrl-C ends the following; the research continues.

An ID is the whole id of a task, the first four or more characters of one that
was submitted from here, or "last" for the newest of those.

EXIT STATUS
  0    answered, gaps and plain refusals included
  1    failed or canceled
  2    wrong usage or bad input
  130  interrupted; the research goes on`

func newWatchCommand(a *app) *cobra.Command {
	var o askOptions
	cmd := &cobra.Command{
		Use: "watch [flags] ID", Short: "follow a research in a cluster until its result", Long: watchHelp,
		Example: "  marchwarden watch last\n  marchwarden watch --engine nats://hub1:4222 0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10",
		Args:    argCount(1, 1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.jsonEvents {
				a.reader = program
			}
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runWatch(cmd.Context(), o, args[0])
		},
	}
	engineFlag(cmd.Flags(), &o.engine)
	o.showFlags(cmd.Flags())
	return cmd
}

func (a *app) runWatch(ctx context.Context, o askOptions, arg string) error {
	if err := checkOut(o.out); err != nil {
		return err
	}
	c, e, state, err := a.openSent(ctx, o.engine, arg)
	if err != nil {
		return err
	}
	defer e.Close()
	o.desk.PlanOnly = state.Task.Wishes.PlanOnly
	return a.follow(ctx, c, o, e, state.Task.ID)
}

const cancelHelp = `End a research that a cluster works on. What is under way ends as at a
deadline, with what there is; what waits is not begun. 'marchwarden watch ID'
shows what came of it. Canceling what has ended changes nothing.

An ID is as for 'marchwarden watch'.`

func newCancel(a *app) *cobra.Command {
	var engine string
	cmd := &cobra.Command{
		Use: "cancel [flags] ID", Short: "end a research in a cluster", Long: cancelHelp,
		Example: "  marchwarden cancel last\n  marchwarden cancel --engine nats://hub1:4222 0198c0de",
		Args:    argCount(1, 1, "one id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := notBlank(cmd); err != nil {
				return err
			}
			return a.runCancel(cmd.Context(), engine, args[0])
		},
	}
	engineFlag(cmd.Flags(), &engine)
	return cmd
}

func (a *app) runCancel(ctx context.Context, engine, arg string) error {
	_, e, state, err := a.openSent(ctx, engine, arg)
	if err != nil {
		return err
	}
	defer e.Close()
	id := state.Task.ID
	if state.End != nil {
		a.note("%s had ended: %s", id, state.End.Status)
		return nil
	}
	if err := e.Cancel(ctx, id, "canceled by "+cmp.Or(a.owner(), "its owner")); err != nil {
		return err
	}
	a.note("%s is canceled; marchwarden watch %s shows what there is", id, shortID(id))
	return nil
}

// remember writes down what was submitted. Where that cannot be, the whole id is needed.
func (a *app) remember(c *settings.Settings, s submit.Sent) {
	if err := s.Remember(c.SentPath()); err != nil {
		a.warn("what was submitted could not be written down: " + durable.Cause(err))
	}
}

// openSent opens the cluster that has the task that an argument means, and looks how it
// is: the cluster of the flag, else the one to which it was submitted, else that of the
// settings. The caller closes it.
func (a *app) openSent(ctx context.Context, flag, arg string) (c *settings.Settings, e *cluster.Engine, state dispatch.State, err error) {
	if c, err = a.loadConfig(); err != nil {
		return nil, nil, state, err
	}
	at, err := c.EngineURLFor(flag)
	if err != nil {
		return nil, nil, state, err
	}
	sent, err := a.findSent(c, arg)
	if err != nil {
		return nil, nil, state, err
	}
	if flag == "" {
		at = cmp.Or(sent.Engine, at)
	}
	if at == "" {
		if at, err = c.NeedEngine(flag); err != nil {
			return nil, nil, state, err
		}
	}
	if e, err = a.openCluster(ctx, c, at, a.logger(c)); err != nil {
		return nil, nil, state, err
	}
	if state, err = e.Look(ctx, sent.ID); err != nil {
		return nil, nil, state, errors.Join(err, e.Close())
	}
	return c, e, state, nil
}

// findSent finds the task that an argument means. Of a whole id it may know nothing more.
func (a *app) findSent(c *settings.Settings, arg string) (submit.Sent, error) {
	id, notWhole := marchwarden.ParseTraceID(arg)
	all, err := submit.ReadSent(c.SentPath())
	switch {
	case err != nil && notWhole == nil:
		a.warn("the list of what was submitted from here cannot be read: " + err.Error())
	case err != nil:
		return submit.Sent{}, err
	case arg == "last" && len(all) == 0:
		return submit.Sent{}, marchwarden.Errorf(marchwarden.CodeNotFound, "nothing was submitted from here yet")
	case arg == "last":
		id = all[0].ID
	case notWhole != nil:
		id, err = run.OneID(arg, "give the whole id", fmt.Sprintf("nothing that was submitted from here begins with %q", plaintext.Clip(arg, 40)), func() (ids []marchwarden.TraceID, _ error) {
			for _, s := range all {
				ids = append(ids, s.ID)
			}
			return ids, nil
		})
		if err != nil {
			return submit.Sent{}, err
		}
	}
	if i := slices.IndexFunc(all, func(s submit.Sent) bool { return s.ID == id }); i >= 0 {
		return all[i], nil
	}
	return submit.Sent{ID: id}, nil
}
