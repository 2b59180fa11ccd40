package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type replayOptions struct {
	raw, rerun bool
}

func newReplay(a *app) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay [flags] ID", Short: "show a recorded run or run it again offline",
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runReplay(ctx, a, c, o, rec, id)
		}),
	}
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the lines of the trace as they are (JSONL)")
	cmd.Flags().BoolVar(&o.rerun, "rerun", false, "execute the run again on its record and compare the bytes")
	return cmd
}

func runReplay(ctx context.Context, a *app, c *settings.Settings, o replayOptions, rec *network.Records, id marchwarden.TraceID) error {
	if o.raw && o.rerun {
		return invalid("--raw", "", "cannot be used together with --rerun")
	}
	if o.raw {
		return printRaw(a, rec.Traces, id)
	}
	log, err := rec.Traces.Load(id)
	if err != nil {
		return err
	}
	a.reportTorn(id, log)
	if o.rerun {
		return rerunTrace(ctx, a, log, rec.Blobs, a.OpenVectors(c).Of, id)
	}
	return a.show(false, nil, []string{"step", "at", "action", "decision"}, stepRows(log), "the trace has no steps")
}

func (a *app) reportTorn(id marchwarden.TraceID, log *trace.Log) {
	if torn := log.TornWords(id); torn != "" {
		a.warn(torn)
	}
}

// stepRows are a row a step: number, time since the start, action and decision.
func stepRows(log *trace.Log) [][]string {
	var rows [][]string
	for _, s := range log.Steps {
		h := s.Header()
		began := log.Steps[0].Header().Timestamp
		if start, err := log.Start(); err == nil {
			began = start.StartedAt
		}
		rows = append(rows, []string{strconv.Itoa(h.Step), fmt.Sprintf("+%.3f s", h.Timestamp.Sub(began).Seconds()), string(h.Action), h.Decision})
	}
	return rows
}

func rerunTrace(ctx context.Context, a *app, log *trace.Log, blobs blob.Store, vectorsOf func(id string) (embed.Embedder, error), id marchwarden.TraceID) error {
	again, err := network.Again(ctx, log, blobs, vectorsOf)
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
	return a.print("the rerun of %s is identical: %s bytes, %s\n", again.Start.TraceID, term.Count(len(again.Got)), blob.Of(again.Got))
}

// printRaw prints the lines of a trace as they are.
func printRaw(a *app, records *trace.Dir, id marchwarden.TraceID) error {
	f, err := records.Raw(id)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(a.forPrograms(), f)
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print trace %s", id)
}
