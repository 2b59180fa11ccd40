package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func newChat(a *app) *cobra.Command {
	cmd := asking(a, runChat)
	cmd.Use, cmd.Short, cmd.Args = "chat [flags]", "ask questions that follow one another", noArgs
	return cmd
}

func runChat(ctx context.Context, a *app, c *settings.Settings, o askOptions, _ []string) error {
	at, err := c.EngineURLFor(o.engine)
	switch {
	case err != nil:
		return err
	case at != "":
		return invalid("--engine", "say --engine "+settings.NoEngine+" to have the conversation here", "is not for a conversation: the workers of a cluster do not have its earlier runs")
	case o.out != "" || o.desk.PlanOnly:
		return invalid("--out and --plan", "give them to 'marchwarden ask --follow last'", "are for one question")
	}
	if o.follow != "" { // before the first question is typed
		if _, _, err := o.desk.Following(&a.Host, c, o.follow); err != nil {
			return byFlag(err)
		}
	}
	next, person := term.Typed(a.stdin, a.Stderr, a.errStyle())
	if o.clarify {
		if _, err := o.typist(a, ""); err != nil {
			return err
		}
		o.typed = next
	}
	var failed error
	for ctx.Err() == nil {
		line, err := next()
		if errors.Is(err, io.EOF) || line == "/quit" || line == "/exit" {
			break
		}
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the next question")
		}
		if line == "" {
			continue
		}
		id, err := turn(ctx, a, c, o, line)
		if id.Valid() {
			o.follow = id.String()
		}
		if errors.Is(err, errInterrupted) && !person {
			return err
		}
		if err != nil {
			a.complain(settings.Advised(err, a.home))
			failed = err
		}
	}
	if failed != nil && !person {
		return verdict(exitCode(ctx, failed))
	}
	return nil
}

// turn asks one question of a conversation. An interrupt ends it, and not the conversation.
func turn(ctx context.Context, a *app, c *settings.Settings, o askOptions, question string) (marchwarden.TraceID, error) {
	req, err := requestOf(a, &o, c, question)
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	signal.Reset(os.Interrupt) // which would end the command
	ctx, stop := interruptible(ctx)
	defer stop()
	return research(ctx, a, c, o, req)
}
