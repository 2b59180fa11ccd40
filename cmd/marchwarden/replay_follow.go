package main

import (
	"context"
	"io"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// followRun shows a run as it is recorded, by whichever process, until it ends.
func (a *app) followRun(ctx context.Context, c *settings.Settings, rec *network.Records, id marchwarden.TraceID, raw bool) error {
	if raw {
		return a.followRaw(ctx, rec.Traces, id)
	}
	var last *run.Board
	tell, end := a.boards(c)
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

// boards shows boards on stdout: as lanes on a terminal, where the last one stays, and as
// plain lines elsewhere.
func (a *app) boards(c *settings.Settings) (tell func(*run.Board) error, end func()) {
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
func (a *app) followRaw(ctx context.Context, from *trace.Dir, id marchwarden.TraceID) error {
	var printed int64
	idle := false
	return poll(ctx, func() (bool, error) {
		size, ended, err := from.Size(ctx, id)
		if err != nil {
			return true, err
		}
		if size > printed {
			n, err := a.printFrom(from, id, printed, size)
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

// printFrom prints a part of a trace.
func (a *app) printFrom(records *trace.Dir, id marchwarden.TraceID, from, to int64) (int64, error) {
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
