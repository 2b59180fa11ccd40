package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

var chatHelp = `Ask questions one after the other. Each line is a question, and may leave out
what the ones before it named: "and in St George?", "what about 2023?", "when
was he born?". It is shown as it was understood. Pages that were fetched for the
conversation are read first, and fetched anew only where they do not answer.

Every question is a run of its own, with a record that can be shown, verified
and exported; it names the run that it follows. --follow goes on where an earlier
run ended.

On a terminal the arrow keys bring back earlier lines. /quit, Ctrl-D or Ctrl-C at
the prompt ends the conversation. While a question is answered the first Ctrl-C
ends the research with a partial result, and the second ends the program. Lines
of a pipe are asked in turn; empty ones are passed over.` + exits("0", "1 a question of a pipe has no result", "2", "130 interrupted")

const chatExamples = `  marchwarden chat --online
  marchwarden chat --library ~/papers --follow last
  printf 'Who wrote Dune?\nWhen was he born?\n' | marchwarden chat -q --online`

func newChat(a *app) *cobra.Command {
	cmd := asking(a, runChat)
	cmd.Use, cmd.Short, cmd.Long, cmd.Example, cmd.Args = "chat [flags]", "ask questions that follow one another", chatHelp, chatExamples, noArgs
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
	in, _ := a.stdin.(*os.File)
	prompt := term.NewPrompt(in, a.Stderr, a.errStyle())
	read := prompt.Line
	if prompt == nil {
		lines := bufio.NewReaderSize(a.stdin, marchwarden.MaxRequestBytes)
		read = func() (string, error) { return lines.ReadString('\n') }
	}
	var failed error
	for ctx.Err() == nil {
		line, err := read()
		if line = strings.TrimSpace(line); line == "/quit" || line == "/exit" {
			break
		}
		if line != "" {
			id, failure := turn(ctx, a, c, o, line)
			if id.Valid() {
				o.follow = id.String()
			}
			if failure != nil && prompt == nil && errors.Is(failure, errInterrupted) {
				return failure
			}
			if failure != nil {
				a.complain(settings.Advised(failure, a.home))
				failed = failure
			}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read the next question")
		}
	}
	if failed != nil && prompt == nil {
		return verdict(exitCode(ctx, failed))
	}
	return nil
}

// turn asks one question of a conversation. An interrupt ends it and not the conversation; a
// second one ends the program.
func turn(ctx context.Context, a *app, c *settings.Settings, o askOptions, question string) (marchwarden.TraceID, error) {
	req, err := requestOf(a, &o, c, question)
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	signals := make(chan os.Signal, 2)
	signal.Reset(os.Interrupt) // it would end the whole command
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for _, end := range []func(){func() { stop(errInterrupted) }, func() { os.Exit(exitInterrupted) }} {
			select {
			case <-signals:
				end()
			case <-over:
				return
			}
		}
	}()
	return research(ctx, a, c, o, req)
}
