package researcher

import (
	"bytes"
	"context"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	vectors "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/metered"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Rerun is what re-executing a recorded run gave.
type Rerun struct {
	Start *trace.Start
	Want  []byte // the result as it was recorded
	Got   []byte // the result of the rerun
}

// Same reports whether the two results are equal to the byte.
func (r Rerun) Same() bool { return bytes.Equal(r.Want, r.Got) }

// Again re-executes a complete run on its record: no engine, no fetcher and no
// model is made. Every blob that the trace names is checked first; a damaged or
// missing one is an error that names it. vectorsOf finds the embedder of an id; nil finds
// none, and a run whose vectors would have to be computed again is CodeUnsupported.
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) (embed.Embedder, error)) (Rerun, error) {
	var e embed.Embedder
	start, want, err := run.Again(ctx, log, blobs, func(start *trace.Start) (err error) {
		if err = run.SameMind(start, Mind(start.Model)); err == nil {
			e, err = vectors.Recall(start, vectorsOf)
		}
		return err
	})
	if err != nil {
		return Rerun{}, err
	}
	out := Rerun{Start: start, Want: want}
	// The rerun stores nothing: what it would store, its result, is compared.
	again := *start
	res, err := loop.New(loop.Config{Reasoner: Mind(start.Model), Vectors: e, Blobs: blob.NamesOnly(blobs)}).Run(ctx, replay.Rerun(log, blobs), &again, noClock)
	if err != nil {
		return Rerun{}, fmt.Errorf("rerun %s: %w", start.TraceID, err)
	}
	out.Got, err = marchwarden.EncodeResult(res)
	return out, err
}

// noClock is never called: a rerun takes its times from the record.
func noClock() time.Duration { return 0 }
