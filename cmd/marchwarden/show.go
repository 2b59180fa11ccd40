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
	pager   bool
	verbose bool
}

func newShow(a *app) *cobra.Command {
	var o showOptions
	cmd := &cobra.Command{
		Use: "show [flags] ID", Short: "show an answer with the evidence behind each sentence",
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runShow(ctx, a, c, o, rec, id)
		}),
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print the result as JSON, as 'ask --json' does")
	cmd.Flags().BoolVar(&o.pager, "pager", false, "show the page by a pager")
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
	_, searched := run.SpentIn(store.Traces.Load, r.Result, run.Whole)
	if past.Start.Investigation == nil {
		searched = past.Start.Library
	}
	what.Searched = strings.Join(searched, ", ")
	what.Cost = report.Price(r.Result.CostMetadata.CostUSD)
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
	return a.page(page.Bytes(), o.pager)
}

// page shows a page on stdout: on a terminal by a pager, if one is wanted.
func (a *app) page(text []byte, wanted bool) error {
	file := fileOf(a.stdout)
	if argv := a.pager(wanted); file != nil && a.outStyle().Width > 0 && len(argv) > 0 {
		shown, err := a.runPager(argv, file, a.Hide.Bytes(text))
		if shown {
			return nil
		}
		a.warn(fmt.Sprintf("the pager %s cannot be run: %s", argv[0], durable.Cause(err)))
	}
	_, err := a.stdout.Write(text)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the answer")
}

// pager is the command that shows pages, as words, where one is wanted by the flag or by its own
// variable; none for none.
func (a *app) pager(wanted bool) []string {
	own, _ := a.Env("MARCHWARDEN_PAGER")
	usual, _ := a.Env("PAGER")
	argv := strings.Fields(own)
	if len(argv) == 0 && wanted {
		argv = strings.Fields(usual)
	}
	if len(argv) > 0 && argv[0] != "cat" {
		return argv
	}
	if path, err := exec.LookPath("less"); err == nil && wanted && len(argv) == 0 {
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
