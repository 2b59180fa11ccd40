package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	living "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

func newWatched(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "watch", Short: "ask a question again on schedule, and say what changed"},
		newWatchAdd(a), newWatchList(a), newWatchShow(a), newWatchRun(a),
		onWatched(a, "remove", "stop watching a question; its answers stay", func(b living.Book, q living.Question) error { return b.Remove(q.ID) }))
}

func newWatchAdd(a *app) *cobra.Command {
	var o askOptions
	var every, notify string
	cmd := a.verb("add [flags] QUESTION… | -", "watch a question", nil, func(ctx context.Context, c *settings.Settings, args []string) error {
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
		if q, err = o.desk.Watched(&a.Host, c, q); err != nil {
			return err
		}
		if err := living.In(c.Home()).Add(q); err != nil {
			return settings.Renamed(err, map[string]string{"every": "--every"})
		}
		a.note("watched as %s; 'marchwarden watch run' asks it", shortID(q.ID))
		return a.print("%s\n", q.ID)
	})
	o.questionFlags(cmd)
	cmd.Flags().StringVar(&every, "every", "7d", "ask again after this `TIME`, 1h to 366d")
	cmd.Flags().StringVar(&notify, "notify", "", "`COMMAND` that gets each report with news as JSON on its standard input")
	return cmd
}

func newWatchList(a *app) *cobra.Command {
	return a.listing("list", "list the watched questions", noArgs, func(_ context.Context, c *settings.Settings, _ []string) error {
		all, err := living.In(c.Home()).List("")
		var rows [][]string
		for _, q := range all {
			rows = append(rows, []string{shortID(q.ID), q.Request.Question, q.Interval(), a.inZone(q.Due), q.Latest()})
		}
		return errors.Join(err, a.show(append([]living.Question{}, all...), []string{"id", "question", "every", "due", "last"}, rows, "no question is watched; 'marchwarden watch add' adds one"))
	})
}

func newWatchShow(a *app) *cobra.Command {
	cmd := onWatched(a, "show", "show the reports on a watched question", func(_ living.Book, q living.Question) error {
		if a.json {
			return printJSON(a.forPrograms(), q)
		}
		return a.print("%s", q.Text(a.inZone))
	})
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// onWatched is a command that does something with one watched question.
func onWatched(a *app, name, short string, do func(living.Book, living.Question) error) *cobra.Command {
	return a.verb(name+" ID", short, oneTask, func(_ context.Context, c *settings.Settings, args []string) error {
		book := living.In(c.Home())
		q, err := book.Find(args[0])
		if err != nil {
			return err
		}
		return do(book, q)
	})
}

func newWatchRun(a *app) *cobra.Command {
	return a.verb("run", "ask what is due", noArgs, func(ctx context.Context, c *settings.Settings, _ []string) error {
		rec, err := a.OpenRecords(c)
		if err != nil {
			return err
		}
		defer rec.Close()
		p := network.PerQuestion{Host: &a.Host, Settings: c, Records: rec, Base: network.Options{Warn: network.Once(a.warn), Told: func(network.Finished) {}, Log: a.logger(c)}}
		w := p.Watcher(func(q living.Question, r living.Report) {
			_ = a.print("%s\n%s", term.CleanLine(q.Request.Question), r.Text()) // what is not read now is kept
		})
		if err = w.Run(ctx); errors.Is(err, durable.ErrLocked) {
			a.note("another process asks the watched questions")
			return nil
		}
		return err
	})
}
