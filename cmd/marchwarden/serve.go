package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/files"
)

type serveOptions struct {
	library  []string
	embedded bool
}

func newServe(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "serve a researcher over MCP", Args: needCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newServeFiles(a))
	return cmd
}

const serveFilesHelp = `Serve the files researcher over MCP on stdin and stdout: one tool, research.

Stdout carries the protocol and nothing else; logs go to stderr. What is
searched is chosen as for 'marchwarden ask'. The server ends when stdin does, or
at SIGINT or SIGTERM; calls that run then hand over what they have.

EXIT STATUS
  0    served until it was told to end
  1    failed
  2    wrong usage or bad input`

func newServeFiles(a *app) *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "files", Short: "serve your folders, or the embedded library, over MCP on stdio", Long: serveFilesHelp, Args: noArgs,
		Example: "  marchwarden serve files --library ~/notes",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.runServeFiles(cmd.Context(), o) },
	}
	cmd.Flags().StringArrayVar(&o.library, "library", nil, "search the folder `DIR`; may be given several times")
	cmd.Flags().BoolVar(&o.embedded, "embedded", false, "search the embedded library too")
	return cmd
}

func (a *app) runServeFiles(ctx context.Context, o serveOptions) error {
	c, err := a.loadConfig()
	if err != nil {
		return err
	}
	library, err := a.openLibrary(c, o.library, o.embedded)
	if err != nil {
		return err
	}
	log := a.logger(c)
	seen := &once{}
	warn := func(message string) {
		if seen.first(message) {
			log.Warn(message)
		}
	}
	d, err := a.openDesk(c, library, func(files.Call) {}, warn)
	if err != nil {
		return err
	}
	server, err := mcpkit.NewServer(mcpkit.Config{
		Name: files.Name, Version: programVersion(), Scope: files.Scope, Researcher: d, Log: log,
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
