package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Result checks what the trace of a run stored, then its result: res, or, if that is nil,
// the recorded one. A given result without a trace here is checked alone.
func (a *Audit) Result(ctx context.Context, rec Records, id marchwarden.TraceID, res *marchwarden.Result) error {
	if err := a.result(ctx, rec, id, res); err != nil {
		return err
	}
	return a.close(ctx, id)
}

func (a *Audit) result(ctx context.Context, rec Records, id marchwarden.TraceID, res *marchwarden.Result) error {
	log, err := rec.Load(id)
	switch {
	case err == nil:
		if torn := log.TornWords(id); torn != "" {
			a.Warn(torn)
		}
		a.blobs(ctx, "the run", log, rec.Blobs)
	case res != nil && errors.Is(err, marchwarden.CodeNotFound):
		a.Warn("the run of this result is not recorded here; only its citations are checked")
	default:
		return err
	}
	if log != nil {
		kept := a.recorded(ctx, id, log, rec.Blobs)
		if kept != nil && res != nil {
			a.compare(kept, res)
		}
		if res == nil {
			res = kept
		}
	}
	if res == nil {
		return nil
	}
	report, err := verify.Check(ctx, rec.Blobs, res)
	if err == nil {
		err = verify.CheckSupport(ctx, reader.New(), res, &report)
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeCanceled, "check the citations and claims")
	}
	a.report(report)
	if log != nil {
		wrong, err := verify.CheckPlaces(ctx, rec.Blobs, log, res)
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeCanceled, "check the places")
		}
		for _, f := range append(verify.CheckFetched(log, res), wrong...) {
			a.check(f.Name()+" "+f.Locator, f.Problem)
		}
		a.rihlas(ctx, rec, log, res)
	}
	return nil
}

// blobs reads every stored piece that a trace needs, and names those that are damaged.
func (a *Audit) blobs(ctx context.Context, what string, log *trace.Log, store blob.Store) {
	read, bad := 0, 0
	for s, ref := range log.Refs() {
		if ctx.Err() != nil {
			return
		}
		read++
		if _, err := store.Get(ctx, ref); err != nil && ctx.Err() == nil {
			bad++
			a.check(fmt.Sprintf("%s, step %d (%s)", what, s.Header().Step, s.Header().Action), err.Error())
		}
	}
	if bad == 0 && ctx.Err() == nil {
		a.check(fmt.Sprintf("%s stored pieces of %s match their hashes", term.Count(read), what), "")
	}
}

// rihlas checks the runs of an investigation's researchers that are recorded here.
func (a *Audit) rihlas(ctx context.Context, rec Records, whole *trace.Log, res *marchwarden.Result) {
	own := run.FactsOf(whole.Steps).Own(ctx, rec.Blobs)
	for i, r := range res.Rihlas {
		what := fmt.Sprintf("question %d (%s)", i+1, r.Researcher)
		log, err := rec.Load(r.TraceID)
		ours := slices.ContainsFunc(own, func(o *trace.RihlaComplete) bool { return o.TraceID == r.TraceID })
		if !r.TraceID.Valid() || errors.Is(err, marchwarden.CodeNotFound) && !ours {
			continue // of a researcher that is not ours, or that did not come back
		}
		if err != nil {
			a.check(what, err.Error())
			continue
		}
		a.blobs(ctx, what, log, rec.Blobs)
		wrong, err := verify.CheckPlaces(ctx, rec.Blobs, log, res)
		for _, f := range wrong {
			a.check(f.Name()+" "+f.Locator, f.Problem)
		}
		if err != nil {
			return // ctx is over, and the caller finds out
		}
		if log.Latest() == nil {
			a.check(what, "its run did not end")
		}
	}
}

// recorded is the result that the run ended with, or nil after saying why not.
func (a *Audit) recorded(ctx context.Context, id marchwarden.TraceID, log *trace.Log, store blob.Store) *marchwarden.Result {
	done := log.Latest()
	if done == nil {
		a.check("result", "the run did not end, so there is none to check")
		return nil
	}
	if log.Complete() == nil {
		a.print("- the run went on after this result, and was cut off: 'marchwarden resume' resumes it")
	}
	data, err := store.Get(ctx, done.Result)
	if err != nil {
		return nil // said with the stored pieces
	}
	res, err := marchwarden.DecodeResult(data)
	if err != nil {
		a.check("result", err.Error())
		return nil
	}
	if res.TraceID != id {
		a.check("result", fmt.Sprintf("the one recorded is of another run, %s", res.TraceID))
	}
	cost := res.CostMetadata
	if done.Citations != len(res.Citations) || done.Confidence != res.Confidence || done.TokensUsed != cost.TokensUsed || done.Iterations != cost.IterationsRun {
		a.check("result", "the last step of the trace has other numbers than the result")
	}
	return res
}

// compare holds a given result against the recorded one.
func (a *Audit) compare(kept, given *marchwarden.Result) {
	want, err := marchwarden.EncodeResult(kept)
	if err != nil {
		a.check("result", err.Error())
		return
	}
	handed := *given
	handed.CheckedAt = nil // was added since
	got, err := marchwarden.EncodeResult(&handed)
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case !bytes.Equal(want, got):
		problem = "it is not: " + replay.Difference(want, got)
	}
	a.check("the result is the one that was recorded", problem)
}

// report prints the citations, the claims and the answer's own problems.
func (a *Audit) report(r verify.Report) {
	for _, f := range r.Excerpts {
		a.check(f.Name()+" "+f.Locator+" "+f.Hash, f.Problem)
	}
	for _, c := range r.Claims {
		a.check(fmt.Sprintf("claim %s %s: %s", markersOf(c.Citations), c.Support, plaintext.Clip(c.Text, 100)), c.Problem)
	}
	for _, problem := range r.Answer {
		a.check("answer", problem)
	}
}

func markersOf(citations []int) string {
	marks := ""
	for _, n := range citations {
		marks += fmt.Sprintf("[%d]", n)
	}
	return marks
}
