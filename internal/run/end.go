package run

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Ending is how a run ended, besides its result.
type Ending struct {
	Exhausted   []string // the caps that ended the work
	Interrupted bool     // by the caller
}

// Seal checks the result, as anybody could, stores it and ends the trace. A result
// that does not stand is a bug and does not leave the process.
func Seal(ctx context.Context, j replay.Journal, blobs blob.Store, res *marchwarden.Result, e Ending) error {
	report, err := verify.Check(ctx, blobs, res)
	if err != nil {
		return StoreError(err)
	}
	if !report.OK() {
		return marchwarden.Errorf(marchwarden.CodeInternal, "the result does not stand: %s", report)
	}
	if len(e.Exhausted) > 0 {
		why := strings.Join(e.Exhausted, " and the ")
		if err := j.Note(&trace.BudgetExhausted{Head: trace.Head{Decision: "ended at the " + why}, What: e.Exhausted}); err != nil {
			return err
		}
	}
	encoded, err := marchwarden.EncodeResult(res)
	if err != nil {
		return err
	}
	ref, err := blobs.Put(ctx, encoded)
	if err != nil {
		return StoreError(err)
	}
	if err := blob.Settle(ctx, blobs, ref); err != nil { // a run is complete when all of it is stored
		j.Lose(err)
	}
	return j.Note(&trace.Complete{
		Head:   trace.Head{Decision: fmt.Sprintf("answered with %d citations and confidence %.2f", len(res.Citations), res.Confidence)},
		Result: ref, TokensUsed: res.CostMetadata.TokensUsed, Iterations: res.CostMetadata.IterationsRun,
		Citations: len(res.Citations), Confidence: res.Confidence, Interrupted: e.Interrupted,
	})
}

// StoreError says that the evidence store failed, which ends a run: a result whose
// evidence is not stored cannot be given.
func StoreError(err error) error {
	return fmt.Errorf("%w: evidence store: %w", replay.ErrJournal, err)
}

// Again opens the record of a run that is to be run again: what it began with and the
// result that it had. may refuses a record that this program cannot run; it is asked
// before any blob is read. Every blob that the trace names is checked; a damaged or
// missing one is an error that names it.
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, may func(*trace.Start) error) (start *trace.Start, want []byte, err error) {
	if start, err = log.Start(); err != nil {
		return nil, nil, err
	}
	done := log.Complete()
	if done == nil {
		return nil, nil, marchwarden.Errorf(marchwarden.CodeUnsupported, "run %s did not end, so there is no result to compare with", start.TraceID)
	}
	if !verify.KnowsRules(start.Gate) {
		err = MadeBy(start.Gate, verify.Rules)
	}
	if err := cmp.Or(err, may(start)); err != nil {
		return nil, nil, err
	}
	if err := replay.CheckBlobs(ctx, log, blobs); err != nil {
		return nil, nil, err
	}
	want, err = blobs.Get(ctx, done.Result)
	return start, want, err
}

// MadeBy refuses a record that something else made than this program has.
func MadeBy(made, has string) error {
	if made == has {
		return nil
	}
	return marchwarden.Errorf(marchwarden.CodeUnsupported, "the run was made by %s; this program has %s", made, has)
}

// Mind is what reasons in a run.
type Mind interface{ ID() string }

// SameMind refuses a run of a mind that this program does not have.
func SameMind(start *trace.Start, has Mind) error {
	if version := VersionOf(has); start.Model != "" && start.MindVersion != version {
		return marchwarden.Errorf(marchwarden.CodeUnsupported, "the run was made by %s of the mind that asks a model; this program has %s", cmp.Or(start.MindVersion, "an earlier version"), version)
	}
	return MadeBy(start.Mind, has.ID())
}

// VersionOf is the version of a mind whose id does not hold it, or "".
func VersionOf(mind Mind) string {
	if v, ok := mind.(interface{ Version() string }); ok {
		return v.Version()
	}
	return ""
}
