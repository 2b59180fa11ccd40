package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	living "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

const watchHelp = `Ask questions again on a schedule, and say what changed since the last answer:
claims that are new, gone, changed or contradicted, and sources that drifted or
were retracted. What stands as it did is quiet.

'watch run' asks what is due and ends, for cron; with --loop it stays. The page
of 'marchwarden ui' asks, too, while it runs. Each answer is a run of its own,
and gc keeps the one that the next is compared with. News is in watch/feed.xml in
the home folder, an Atom feed, and on the page.`

const watchAddHelp = `Watch a question. It is asked for the first time by the next 'watch run', and
then every TIME, with the same flags as 'marchwarden ask' has. --budget is for
each answer.

--notify names a program that gets each report with news as JSON on its standard
input. It is run without a shell: spaces separate its arguments, and quotes mean
nothing.`

const watchRunHelp = `Ask the watched questions that are due, one after the other, and end. What was
broken off is resumed, and nothing is asked twice; while another process asks,
nothing is done.`

func newWatched(a *app) *cobra.Command {
	cmd := group(&cobra.Command{Use: "watch", Short: "ask a question again on schedule, and say what changed", Long: watchHelp},
		newWatchAdd(a), newWatchList(a), newWatchShow(a), newWatchRemove(a), newWatchRun(a))
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && (args[0] == "last" || len(args[0]) >= 4 && strings.Trim(args[0], "0123456789abcdef-") == "") {
			return invalid("", "to follow a research in a cluster: marchwarden follow "+args[0], `"watch" is for questions that are asked again`)
		}
		return needCommand(cmd, args)
	}
	return cmd
}

func newWatchAdd(a *app) *cobra.Command {
	var o askOptions
	var every, notify string
	cmd := &cobra.Command{
		Use: "add [flags] QUESTION… | -", Short: "watch a question", Long: watchAddHelp,
		Example: "  marchwarden watch add --every 7d --online \"Which trials of drug X were stopped?\"\n  marchwarden watch add --every 1d --library ~/notes --notify ~/bin/tell-me \"What did we decide about the roof?\"",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, args []string) error {
			q := living.Question{Timeout: o.desk.Timeout, Notify: strings.Fields(notify)}
			var problem string
			if q.Every, problem = settings.ParseTerm(every); problem != "" {
				return invalid("--every", "for example 7d", problem)
			}
			question, err := questionOf(ctx, a, args)
			if err != nil {
				return err
			}
			if q.Request, err = requestOf(a, &o, c, question); err != nil {
				return err
			}
			if q, err = a.Watched(c, o.desk, q); err != nil {
				return err
			}
			if err := living.In(c.Home()).Add(q); err != nil {
				return settings.Renamed(err, map[string]string{"every": "--every"})
			}
			a.note("watched as %s; 'marchwarden watch run' asks it", shortID(q.ID))
			return a.print("%s\n", q.ID)
		}),
	}
	o.questionFlags(cmd)
	cmd.Flags().StringVar(&every, "every", "7d", "ask again after this `TIME`, 1h to 366d")
	cmd.Flags().StringVar(&notify, "notify", "", "`COMMAND` that gets each report with news as JSON on its standard input")
	return cmd
}

func newWatchList(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "list the watched questions", Args: noArgs,
		RunE: a.run(func(_ context.Context, c *settings.Settings, _ []string) error {
			all, err := living.In(c.Home()).List("")
			if asJSON {
				return errors.Join(err, printJSON(a.forPrograms(), append([]living.Question{}, all...)))
			}
			var rows [][]string
			for _, q := range all {
				rows = append(rows, []string{shortID(q.ID), q.Request.Question, q.Interval(), a.inZone(q.Due), q.Latest()})
			}
			return errors.Join(err, a.outStyle().Table(a.stdout, []string{"id", "question", "every", "due", "last"}, rows))
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newWatchShow(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Aliases: []string{"log"}, Short: "show the reports on a watched question", Args: argCount(1, 1, "one id"),
		RunE: a.run(func(_ context.Context, c *settings.Settings, args []string) error {
			q, err := living.In(c.Home()).Find(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.forPrograms(), q)
			}
			err = a.print("%s\nevery %s, next at %s\n", q.Request.Question, q.Interval(), a.inZone(q.Due))
			for _, r := range q.Reports {
				err = errors.Join(err, a.print("\n%s  %s\n%s", a.inZone(r.At), r.TraceID, r.Text()))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newWatchRemove(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "stop watching a question; its answers stay", Args: argCount(1, 1, "one id"),
		RunE: a.run(func(_ context.Context, c *settings.Settings, args []string) error {
			q, err := living.In(c.Home()).Find(args[0])
			if err != nil {
				return err
			}
			return living.In(c.Home()).Remove(q.ID)
		}),
	}
}

func newWatchRun(a *app) *cobra.Command {
	var loop bool
	cmd := &cobra.Command{
		Use: "run", Short: "ask what is due", Args: noArgs,
		Long:    watchRunHelp + exits("0 everything that was due has its report", "1 some failed", "2", "130 interrupted; the next run resumes"),
		Example: "  marchwarden watch run\n  marchwarden watch run --loop\n  17 * * * * marchwarden watch run",
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			rec, err := a.OpenRecords(c)
			if err != nil {
				return err
			}
			defer rec.Close()
			w := a.watcher(c, rec)
			w.Told = func(q living.Question, r living.Report) {
				_ = a.print("%s\n%s", q.Request.Question, r.Text()) // what is not read now is kept
			}
			if loop {
				say := network.Once(func(m string) { a.note("%s", m) })
				return w.Loop(ctx, func(ctx context.Context, d time.Duration) error {
					say("waiting for what is due next; Ctrl-C ends")
					return sleepFor(ctx, d)
				}, func(err error) { a.warn(err.Error()) })
			}
			if err = w.Run(ctx); errors.Is(err, durable.ErrLocked) {
				a.note("another process asks the watched questions")
				return nil
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&loop, "loop", false, "stay, and ask when questions are due, until Ctrl-C")
	return cmd
}

func (a *app) watcher(c *settings.Settings, rec *network.Records) *living.Runner {
	return a.Watcher(c, rec, network.Options{Warn: network.Once(a.warn), Told: func(network.Finished) {}, Log: a.logger(c)})
}

func sleepFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return marchwarden.Wrap(context.Cause(ctx), marchwarden.CodeCanceled, "wait for the next question")
	}
}
