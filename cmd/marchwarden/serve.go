package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpdoor"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

func newServe(a *app) *cobra.Command {
	return group(&cobra.Command{Use: "serve", Short: "let other programs ask a researcher, over MCP"},
		newServed(a, settings.PI, "the investigator", "Its network is chosen as for 'marchwarden ask'; with --engine, the workers of a\ncluster are.",
			"marchwarden serve pi --online --library ~/papers", networkFlags, libraryFlags, databaseFlags),
		newServed(a, researcher.FilesName, "your folders, or the embedded library,", "What is searched is chosen as for 'marchwarden ask'.",
			"marchwarden serve files --library ~/notes", libraryFlags),
		newServed(a, database.Name, "a database, read-only,", "The database is the one of --db or MARCHWARDEN_DB; nothing in it can be changed.",
			"MARCHWARDEN_DB=postgres://me@localhost/trials marchwarden serve database", databaseFlags),
		newServed(a, researcher.WebName, "the open web", "Search engines and model are chosen as for 'marchwarden ask --researcher web'.",
			"marchwarden serve web --search searxng --model ollama/qwen3", webFlags),
		newServed(a, researcher.ArxivName, "scientific papers", "It asks arXiv, OpenAlex, Crossref and Semantic Scholar, which need no key.",
			"marchwarden serve arxiv --model ollama/qwen3"))
}

// newServed is the command of one researcher, with the flags that all of them have and its own.
// The help says what it serves in short, and one line that is particular to it.
func newServed(a *app, researcher, short, particular, example string, flags ...func(*cobra.Command, *network.Options)) *cobra.Command {
	o := &network.Options{Choice: marchwarden.Choice{Researcher: researcher}}
	who := "the " + o.Researcher + " researcher"
	if o.Researcher == settings.PI {
		who = "the investigator"
	}
	var how serveOptions
	cmd := &cobra.Command{
		Use: o.Researcher, Short: "serve " + short + " over MCP", Args: noArgs,
		Long:    "Serve " + who + " over MCP: one tool, research.\n" + particular + "\n\n'marchwarden help mcp' says how it is served, and to whom.",
		Example: "  " + example + "\n  marchwarden serve " + o.Researcher + " --http 127.0.0.1:8642",
		PreRunE: func(*cobra.Command, []string) (err error) {
			how.as, err = how.check()
			if o.PartOf {
				a.reader = investigator
			}
			return err
		},
		RunE: a.run(func(ctx context.Context, c *settings.Settings, _ []string) error {
			return runServe(ctx, a, c, *o, &how)
		}),
	}
	f := cmd.Flags()
	if o.Researcher == settings.PI {
		engineFlag(f)
	}
	f.StringVar(&o.Model, "model", "", "language `MODEL` that plans and writes; extractive for none")
	f.BoolVar(&o.PartOf, "part-of-investigation", false, "leave the ledger to the investigator that started this server")
	_ = f.MarkHidden("part-of-investigation") // the flag is there
	f.StringVar(&o.Timeout, "timeout", "", "end a call after this `TIME`, such as 90s (default 10m where the network is used, else none)")
	how.flags(f)
	for _, add := range flags {
		add(cmd, o)
	}
	return cmd
}

func networkFlags(cmd *cobra.Command, o *network.Options) {
	f := cmd.Flags()
	f.StringSliceVar(&o.Researchers, "researchers", nil, "`LIST` of the researchers that the investigator may send")
	f.BoolVar(&o.Online, "online", false, "let questions leave this machine: ask the web and arXiv, too")
	f.StringVar(&o.Search, "search", "", "search the web by this `LIST` of engines; implies --online")
	f.StringSliceVar(&o.AllowEgress, "allow-egress", nil, "`LIST` of researchers whose findings others may be told")
	isolateFlag(f, o)
}

func runServe(ctx context.Context, a *app, c *settings.Settings, o network.Options, how *serveOptions) error {
	log := a.logger(c)
	o.Log = log
	o.Warn = network.Once(func(message string) { log.Warn(message) })
	if how.http != "" { // refused before anything is opened, and read again when it is
		if _, err := doorkeeper(a, c, how, "http://"+how.as.listen+httpdoor.Path, log); err != nil {
			return err
		}
	}
	d, err := openServed(ctx, a, c, o, how)
	if err != nil {
		return err
	}
	server, err := newMCPServer(a, c, d, how, log)
	if err != nil {
		return errors.Join(err, d.Close())
	}
	if how.http != "" {
		err = serveHTTP(ctx, a, c, how, d.Name, server, log)
	} else {
		err = server.ServeStdio(ctx, a.stdin, a.stdout)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // told to end, which is how a server ends
	}
	return errors.Join(err, server.Close(), d.Close())
}

// openServed opens the researcher that is served: of this machine, or a cluster.
func openServed(ctx context.Context, a *app, c *settings.Settings, o network.Options, how *serveOptions) (*network.Runner, error) {
	at := c.Text(settings.Engine)
	if o.Researcher != settings.PI || at == "" {
		return a.Open(c, o)
	}
	if err := workElsewhere(c, o, "it"); err != nil {
		return nil, err
	}
	if len(o.Researchers) > 0 || len(o.AllowEgress) > 0 {
		return nil, invalid("--engine", "leave out --researchers and --allow-egress", "leaves it to the workers of the cluster who is asked, and what they are told")
	}
	e, err := a.openCluster(ctx, c, at, o.Log)
	if err != nil {
		return nil, err
	}
	limit, err := flagTime("--timeout", o.Timeout, false)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	d := a.OpenCluster(c, o, e, limit)
	d.Closers = append(d.Closers, e.Close)
	return d, nil
}

func newMCPServer(a *app, c *settings.Settings, d *network.Runner, how *serveOptions, log *slog.Logger) (*mcpkit.Server, error) {
	cfg := mcpkit.Config{
		Name: d.Name, Version: programVersion(), Scope: d.Scope, OpenWorld: d.OpenWorld, Private: d.Private, Researcher: d, Evidence: d.Evidence,
		Now: a.Now, RunsDir: c.RunsPath(), MaxConcurrent: how.maxCalls, Records: d.Shown, MaxWall: how.as.wall, Log: log,
		App: &mcpkit.App{Page: report.AppPage(), Body: report.AppBody},
	}
	if d.Shown == nil {
		cfg.Records = d.Records
	}
	if d.PartOf { // its investigation keeps it, and says how much goes on at once
		cfg.RunsDir, cfg.MaxConcurrent = "", maxCalls
	}
	return mcpkit.NewServer(cfg)
}
