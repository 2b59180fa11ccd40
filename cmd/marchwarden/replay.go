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
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

type replayOptions struct {
	raw    bool
	rerun  bool
	follow bool
}

var replayHelp = `Show a recorded run step by step, follow one under way, or run one again.

With --follow a run that goes on, in whichever process, is shown as it happens:
a line a rihla on a terminal, plain lines elsewhere, and with --raw the lines of
the trace as they are written. It ends with the run; Ctrl-C ends the following,
and the run goes on. One that has ended is shown at once.

With --rerun the run is executed again on its record: nothing is searched,
fetched or asked, and the result must be the same to the byte.

` + idHelp + exits("0 shown, or followed to its end; with --rerun: the result is byte-identical",
	"1 failed; with --rerun: the result differs, or stored bytes are damaged", "2", "130")

func newReplay(a *app) *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay [flags] ID", Short: "show a recorded run, follow one under way, or run it again offline", Long: replayHelp,
		Example: "  marchwarden replay last\n  marchwarden replay --raw last | jq .action\n  marchwarden replay --rerun 0198c0de\n  marchwarden replay --follow last",
		Args:    argCount(1, 1, "one trace id"),
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
		return followRun(ctx, a, c, rec, id, o.raw)
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
		vs, err := a.OpenVectors(c)
		if err != nil {
			return err
		}
		return rerunTrace(ctx, a, log, rec.Blobs, vs.Of, id)
	}
	return printJourney(a, log)
}

func (a *app) reportTorn(id marchwarden.TraceID, log *trace.Log) {
	if torn := log.TornWords(id); torn != "" {
		a.warn(torn)
	}
}

// printJourney writes a line a step: number, time since the start, action and
// decision.
func printJourney(a *app, log *trace.Log) error {
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
		rows[i] = []string{strconv.Itoa(h.Step), fmt.Sprintf("+%.3f s", h.Timestamp.Sub(began).Seconds()), string(h.Action), h.Decision}
	}
	return a.outStyle().Table(a.stdout, []string{"step", "at", "action", "decision"}, rows)
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

// followRun shows a run as it is recorded, by whichever process, until it ends.
func followRun(ctx context.Context, a *app, c *settings.Settings, rec *network.Records, id marchwarden.TraceID, raw bool) error {
	if raw {
		return followRaw(ctx, a, rec.Traces, id)
	}
	var last *run.Board
	tell, end := boardsOn(a, c)
	run := run.Follow(rec.Traces, rec.Blobs, id)
	err := poll(ctx, func() (over bool, err error) {
		board, changed, over, err := run.Read(ctx)
		if changed && board != nil {
			last = board
			if err := tell(board); err != nil {
				return true, err
			}
		}
		if err != nil && !over && marchwarden.CodeOf(err) == marchwarden.CodeUnavailable {
			err = nil // for a moment
		}
		return over, err
	})
	end()
	if err != nil {
		return err
	}
	if last != nil && !last.Ended {
		a.note("the run was cut off; to resume it: marchwarden resume %s", shortID(id))
		return nil
	}
	a.note("the answer with its evidence: marchwarden show %s", shortID(id))
	return nil
}

// boardsOn shows boards on stdout: as lanes on a terminal, where the last one stays, and as
// plain lines elsewhere.
func boardsOn(a *app, c *settings.Settings) (tell func(*run.Board) error, end func()) {
	cfg := a.liveOn(c, a.stdout)
	if !cfg.Live {
		return term.NewLines(a.stdout).Board, func() {}
	}
	p := term.NewProgress(a.stdout, cfg)
	return func(b *run.Board) error { p.Board(b); return nil }, p.Leave
}

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

// followRaw prints the lines of a trace as they are written.
func followRaw(ctx context.Context, a *app, from *trace.Dir, id marchwarden.TraceID) error {
	var printed int64
	idle := false
	return poll(ctx, func() (bool, error) {
		size, ended, err := from.Size(ctx, id)
		if err != nil {
			return true, err
		}
		if size > printed {
			n, err := printFrom(a, from, id, printed, size)
			if printed += n; err != nil {
				return true, err
			}
		}
		// Between its making and its lock a trace is empty, and seems to have no writer.
		over := ended && (printed > 0 || idle)
		idle = ended
		return over, nil
	})
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
