package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type replayOptions struct {
	raw    bool
	rerun  bool
	follow bool
}

const replayHelp = `Show a recorded run step by step, follow one under way, or run one again.

With --follow a run that goes on, in whichever process, is shown as it happens:
a line a rihla on a terminal, plain lines elsewhere, and with --raw the lines of
the trace as they are written. It ends with the run; Ctrl-C ends the following,
and the run goes on. One that has ended is shown at once.

With --rerun the run is executed again on its record: nothing is searched,
fetched or asked, and the result must be the same to the byte.

` + idHelp + `

EXIT STATUS
  0    shown, or followed to its end; with --rerun: the result is byte-identical
  1    failed; with --rerun: the result differs, or stored bytes are damaged
  2    wrong usage or bad input
  130  interrupted`

func newReplay(a *app) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay [flags] ID", Short: "show a recorded run, follow one under way, or run it again offline", Long: replayHelp,
		Example: "  marchwarden replay last\n  marchwarden replay --raw last | jq .action\n  marchwarden replay --rerun 0198c0de\n  marchwarden replay --follow last",
		Args:    argCount(1, 1, "one trace id"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runReplay(cmd.Context(), o, args[0]) },
	}
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the lines of the trace as they are (JSONL)")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "show a run that goes on as it happens, until it ends")
	cmd.Flags().BoolVar(&o.rerun, "rerun", false, "execute the run again on its record and compare the bytes")
	return cmd
}

func (a *app) runReplay(ctx context.Context, o replayOptions, arg string) error {
	switch {
	case o.raw && o.rerun:
		return invalid("--raw", "", "cannot be used together with --rerun")
	case o.follow && o.rerun:
		return invalid("--follow", "a run can be run again once it has ended", "cannot be used together with --rerun")
	}
	c, rec, id, err := a.openTrace(arg)
	if err != nil {
		return err
	}
	defer rec.Close()
	if o.follow {
		return a.followRun(ctx, c, rec, id, o.raw)
	}
	if o.raw {
		return a.printRaw(rec.Traces, id)
	}
	log, err := rec.Traces.Load(id)
	if err != nil {
		return err
	}
	a.reportTorn(id, log)
	if o.rerun {
		vs, err := a.OpenVectors(c)
		if err != nil {
			return err
		}
		return a.rerun(ctx, log, rec.Blobs, vs.Of, id)
	}
	return a.printJourney(log)
}

func (a *app) printRaw(d *trace.Dir, id marchwarden.TraceID) error {
	f, err := d.Raw(id)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(a.forPrograms(), f)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print trace %s", id)
}

func (a *app) reportTorn(id marchwarden.TraceID, log *trace.Log) {
	if torn := log.TornWords(id); torn != "" {
		a.warn(torn)
	}
}

// printJourney writes a line a step: number, time since the start, action and
// decision.
func (a *app) printJourney(log *trace.Log) error {
	if len(log.Steps) == 0 {
		a.note("the trace has no steps")
		return nil
	}
	began := log.Steps[0].Header().Timestamp
	if start, err := log.Start(); err == nil {
		began = start.StartedAt
	}
	rows := make([][]string, len(log.Steps))
	for i, s := range log.Steps {
		h := s.Header()
		rows[i] = []string{strconv.Itoa(h.Step), offset(h.Timestamp.Sub(began)), string(h.Action), h.Decision}
	}
	return a.outStyle().Table(a.stdout, []string{"step", "at", "action", "decision"}, rows)
}

func offset(d time.Duration) string { return fmt.Sprintf("+%.3f s", d.Seconds()) }

func (a *app) rerun(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) (embed.Embedder, error), id marchwarden.TraceID) error {
	again, err := rerunOf(ctx, log, blobs, vectorsOf)
	if err != nil {
		return err
	}
	if again.Start.TraceID != id {
		return marchwarden.Errorf(marchwarden.CodeCorrupt, "trace %s holds another run, %s", id, again.Start.TraceID)
	}
	if v := again.Start.Version; v != programVersion() {
		a.warn(fmt.Sprintf("the run was made by version %s; this is version %s", v, programVersion()))
	}
	if !again.Same() {
		return marchwarden.Errorf(marchwarden.CodeInternal, "the rerun of %s gives another result: %s", again.Start.TraceID, replay.Difference(again.Want, again.Got))
	}
	_, err = fmt.Fprintf(a.stdout, "the rerun of %s is identical: %s bytes, %s\n", again.Start.TraceID, term.Count(len(again.Got)), blob.Of(again.Got))
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print the outcome")
}

// rerunOf runs a record again with the researcher that made it. vectorsOf finds the embedder of an
// id.
func rerunOf(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) (embed.Embedder, error)) (researcher.Rerun, error) {
	start, err := log.Start()
	if err != nil || start.Investigation == nil {
		return researcher.Again(ctx, log, blobs, vectorsOf)
	}
	want, got, err := pi.Again(ctx, log, blobs, network.Minds(vectorsOf))
	return researcher.Rerun{Start: start, Want: want, Got: got}, err
}
