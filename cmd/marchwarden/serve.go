package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
)

func newServe(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "serve a researcher over MCP", Args: needCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newServeFiles(a), newServeWeb(a))
	return cmd
}

const serveHelp = `Stdout carries the protocol and nothing else; logs go to stderr. The server ends
when stdin does, or at SIGINT or SIGTERM; calls that run then hand over what
they have.

EXIT STATUS
  0    served until it was told to end
  1    failed
  2    wrong usage or bad input`

func newServeFiles(a *app) *cobra.Command {
	o := deskOptions{researcher: files.Name}
	cmd := &cobra.Command{
		Use: "files", Short: "serve your folders, or the embedded library, over MCP on stdio", Args: noArgs,
		Long:    "Serve the files researcher over MCP on stdin and stdout: one tool, research.\nWhat is searched is chosen as for 'marchwarden ask'.\n\n" + serveHelp,
		Example: "  marchwarden serve files --library ~/notes",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	cmd.Flags().StringArrayVar(&o.library, "library", nil, "search the folder `DIR`; may be given several times")
	cmd.Flags().BoolVar(&o.embedded, "embedded", false, "search the embedded library too")
	serveFlags(cmd, &o)
	return cmd
}

func newServeWeb(a *app) *cobra.Command {
	o := deskOptions{researcher: web.Name}
	cmd := &cobra.Command{
		Use: "web", Short: "serve the open web over MCP on stdio", Args: noArgs,
		Long:    "Serve the web researcher over MCP on stdin and stdout: one tool, research.\nSearch engines and model are chosen as for 'marchwarden ask --researcher web'.\n\n" + serveHelp,
		Example: "  marchwarden serve web --search searxng --model ollama/qwen3",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.search, "search", "", "search by this `LIST` of engines: tavily, brave, searxng, wikipedia")
	cmd.Flags().StringVar(&o.render, "render", "", "`WHEN` to run pages that need JavaScript in a local Chromium: auto or never (default auto)")
	complete(cmd, "search", engineNames()...)
	complete(cmd, "render", renderAuto, renderNever)
	serveFlags(cmd, &o)
	return cmd
}

// serveFlags are for every researcher.
func serveFlags(cmd *cobra.Command, o *deskOptions) {
	cmd.Flags().StringVar(&o.model, "model", "", "language `MODEL` that plans and writes; extractive for none")
	cmd.Flags().StringVar(&o.timeout, "timeout", "", "end a call after this `TIME`, such as 90s (default 10m for the web, none for files)")
}

func (a *app) serve(ctx context.Context, o deskOptions) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	log := a.logger(c)
	seen := &once{}
	o.told = func(researcher.Call) {}
	o.warn = func(message string) {
		if seen.first(message) {
			log.Warn(message)
		}
	}
	d, err := a.openDesk(c, o)
	if err != nil {
		return err
	}
	server, err := mcpkit.NewServer(mcpkit.Config{
		Name: d.name, Version: programVersion(), Scope: d.scope, OpenWorld: d.openWorld, Researcher: d, Log: log,
	})
	if err == nil {
		err = server.ServeStdio(ctx, a.stdin, a.stdout)
	}
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil // told to end, which is how a server ends
	}
	return errors.Join(err, d.Close())
}

// once tells new messages from those that came before: an unreadable file is
// worth one line, not one line a call.
type once struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

func (o *once) first(message string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[message] {
		return false
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[message] = true
	return true
}
