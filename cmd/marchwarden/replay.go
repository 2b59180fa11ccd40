package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

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
	raw    bool
	rerun  bool
	follow bool
}

func newReplay(a *app) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay [flags] ID", Short: "show a recorded run, follow one under way, or run it again offline",
		Args: argCount(1, 1, "one trace id"),
		RunE: a.onRun(func(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID) error {
			return runReplay(ctx, a, c, o, rec, id)
		}),
	}
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the lines of the trace as they are (JSONL)")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "show a run that goes on as it happens, until it ends")
	cmd.Flags().BoolVar(&o.rerun, "rerun", false, "execute the run again on its record and compare the bytes")
	return cmd
}

func runReplay(ctx context.Context, a *app, c *settings.Settings, o replayOptions, rec *network.Records, id marchwarden.TraceID) error {
	switch {
	case o.raw && o.rerun:
		return invalid("--raw", "", "cannot be used together with --rerun")
	case o.follow && o.rerun:
		return invalid("--follow", "a run can be run again once it has ended", "cannot be used together with --rerun")
	}
	if o.follow {
		return followRun(ctx, a, rec.Traces, id, o.raw)
	}
	if o.raw {
		_, err := printFrom(a, rec.Traces, id, 0, math.MaxInt64)
		return err
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

// followRun shows the steps of a run, or the lines of its trace, as they are written by whichever
// process, until it ends.
func followRun(ctx context.Context, a *app, from *trace.Dir, id marchwarden.TraceID, raw bool) error {
	seen, shown, idle, whole := int64(0), 0, false, false
	tell := func(size int64) error {
		if raw {
			n, err := printFrom(a, from, id, seen, size)
			seen += n
			return err
		}
		log, err := from.Load(id)
		if err != nil {
			return err
		}
		rows := stepRows(log)
		for _, row := range rows[shown:] {
			line := fmt.Sprintf("%4s  %11s  %-16s  %s", row[0], row[1], row[2], term.CleanLine(row[3]))
			if err := a.print("%s\n", term.Fit(line, a.outStyle().Width)); err != nil {
				return err
			}
		}
		seen, shown, whole = size, len(rows), log.Complete() != nil
		return nil
	}
	err := poll(ctx, func() (bool, error) {
		size, ended, err := from.Size(ctx, id)
		if err == nil && size > seen {
			err = tell(size)
		}
		// Between its making and its lock a trace is empty, and seems to have no writer.
		over := ended && (seen > 0 || idle)
		idle = ended
		return over, err
	})
	switch {
	case err != nil || raw:
	case whole:
		a.note("the answer with its evidence: marchwarden show %s", shortID(id))
	default:
		a.note("the run was cut off; to resume it: marchwarden resume %s", shortID(id))
	}
	return err
}

// followEvery is how often a record is looked at.
const followEvery = 250 * time.Millisecond

// poll calls look until it says that it is over, fails, or ctx ends. What is looked at continues.
func poll(ctx context.Context, look func() (over bool, err error)) error {
	for {
		over, err := look()
		if ctx.Err() != nil {
			return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "stopped following; the run goes on", Err: errInterrupted}
		}
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(followEvery):
		}
	}
}

func printFrom(a *app, records *trace.Dir, id marchwarden.TraceID, from, to int64) (int64, error) {
	f, err := records.Raw(id)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if s, ok := f.(io.Seeker); ok {
		_, err = s.Seek(from, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, from)
	}
	if err != nil {
		return 0, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
	}
	n, err := io.Copy(a.forPrograms(), io.LimitReader(f, to-from))
	return n, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "print trace %s", id)
}
