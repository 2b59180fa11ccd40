package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

type showOptions struct {
	json    bool
	noPager bool
	verbose bool
}

var showHelp = `Show the answer of a run with its evidence: each sentence, then every excerpt
that it rests on, at its place in the stored text; then contradictions, gaps and
what was done about them, what the confidence was computed from, and the cost.

The lines of an excerpt stand behind a heavy bar, between » and «; those around
it behind a light one.

On a terminal the page is shown by the program that MARCHWARDEN_PAGER names, or
PAGER, or else by less; a value of "cat" or --no-pager shows it without one.

` + idHelp + exits("0 shown", "1 failed, or the run has no result: it goes on, or was cut off", "2", "130")

func newShow(a *app) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use: "show [flags] ID", Short: "show an answer with the evidence behind each sentence", Long: showHelp,
		Example: "  marchwarden show last\n  marchwarden show --verbose 0198c0de\n  marchwarden show --json last | jq .citations",
		Args:    argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runShow(ctx, a, c, o, rec, id)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON, as 'ask --json' does")
	cmd.Flags().BoolVar(&o.noPager, "no-pager", false, "show the page without a pager")
	cmd.Flags().BoolVar(&o.verbose, "verbose", false, "show hashes, spans and how each text was got, too")
	return cmd
}

func runShow(ctx context.Context, a *app, c *settings.Settings, o showOptions, rec *network.Records, id marchwarden.TraceID) error {
	if busy, err := rec.Traces.Busy(id); err != nil {
		return err
	} else if busy {
		return &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is going on", id), Hint: "to watch it: marchwarden replay --follow " + shortID(id)}
	}
	store := rec.Store()
	past, err := store.Load(id)
	if err != nil {
		return err
	}
	if past.Log.Latest() == nil {
		return &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: fmt.Sprintf("run %s was cut off, and has no answer", id), Hint: "resume it: marchwarden resume " + shortID(id)}
	}
	r, err := report.Gather(ctx, store, past)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(a.forPrograms(), r.Result)
	}
	if last, ok, err := drift.Last(c.Home(), id); err != nil {
		a.warn(err.Error())
	} else if ok {
		r.Checked = last.Summary(a.inZone(last.CheckedAt))
	}
	what := report.ReadingOptions{Verbose: o.verbose}
	spent, _ := store.Spent(r.Result, run.Whole)
	what.Cost = report.Price(spent.Cost(r.Result.CostMetadata))
	switch end := past.Log.Complete(); {
	case end == nil:
		what.Notices = append(what.Notices, "the run went on after this result, and was cut off; to resume it: marchwarden resume "+shortID(id))
	case end.Interrupted:
		what.Notices = append(what.Notices, "the run was stopped, and the result is partial; to resume it: marchwarden resume "+shortID(id))
	}
	var page bytes.Buffer
	if err := report.Reading(&page, a.outStyle(), r, what); err != nil {
		return err
	}
	return a.page(page.Bytes(), o.noPager)
}

// page shows a page on stdout: on a terminal by a pager, if there is one.
func (a *app) page(text []byte, direct bool) error {
	file := fileOf(a.stdout)
	if argv := a.pager(); file != nil && a.outStyle().Width > 0 && !direct && len(argv) > 0 {
		shown, err := a.runPager(argv, file, a.Hide.Bytes(text))
		if shown {
			return nil
		}
		a.warn(fmt.Sprintf("the pager %s cannot be run: %s", argv[0], durable.Cause(err)))
	}
	_, err := a.stdout.Write(text)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the answer")
}

// pager is the command that shows pages, as words; none for none.
func (a *app) pager() []string {
	for _, name := range []string{"MARCHWARDEN_PAGER", "PAGER"} {
		if v, set := a.Env(name); set && strings.TrimSpace(v) != "" {
			if argv := strings.Fields(v); argv[0] != "cat" {
				return argv
			}
			return nil
		}
	}
	if path, err := exec.LookPath("less"); err == nil {
		return []string{path, "-FRX"}
	}
	return nil
}

// runPager has a pager show text, and reports whether it began. Text in a pager that is left early,
// or fails, counts as seen.
func (a *app) runPager(argv []string, to *os.File, text []byte) (shown bool, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), to, to
	cmd.Env = a.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // so that colours are shown, whichever it is
		if _, set := a.Env(name); !set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	// Ctrl-C is for the pager now. Only after it began: what is ignored before, it would
	// ignore, too.
	signal.Ignore(os.Interrupt)
	defer signal.Reset(os.Interrupt)
	_ = cmd.Wait()
	return true, nil
}
