package run

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Recorded is the result of a run that is complete, as it left the process. It is
// held against the stored bytes once more: what no longer stands is CodeCorrupt
// and stays in. A run that did not end is CodeUnsupported.
func Recorded(ctx context.Context, blobs blob.Store, log *trace.Log) (*marchwarden.Result, error) {
	done := log.Complete()
	if done == nil {
		return nil, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "the run has not ended", Hint: "resume it first: marchwarden resume"}
	}
	_, res, err := ResultOf(ctx, blobs, done.Result)
	if err != nil {
		return nil, err
	}
	report, err := verify.Check(ctx, blobs, res)
	if err != nil {
		return nil, err
	}
	if !report.OK() {
		return nil, marchwarden.Errorf(marchwarden.CodeCorrupt, "the result of %s no longer stands: %s", res.TraceID, report)
	}
	return res, nil
}

// SoFar is what a run has found that has not ended: what it cost, and, of an
// investigation, the reports that have come in, one after the other. Each report is held
// against the stored bytes as a result is, and one that does not stand is left out. Its
// answer is "" if there is nothing to tell yet. It is no conclusion: confidence is
// the least that a report has.
func SoFar(ctx context.Context, blobs blob.Store, log *trace.Log) (*marchwarden.Result, error) {
	start, err := log.Start()
	if err != nil {
		return nil, err
	}
	facts, unlisted := FactsOf(log.Steps), false
	out := &marchwarden.Result{
		TraceID:           start.TraceID,
		ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority},
		CostMetadata: marchwarden.CostMetadata{TokensUsed: facts.Paid, IterationsRun: facts.Iterations, SourcesRead: facts.Read,
			WallTimeSec: log.Worked().Seconds(), ModelID: cmp.Or(start.Model, start.Mind)},
	}
	for _, s := range facts.Latest() {
		report, err := replay.Outcome[*marchwarden.Result](ctx, blobs, s)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil || report == nil {
			continue // the rihla failed
		}
		checked, err := verify.Check(ctx, blobs, report)
		if err != nil {
			return nil, err
		}
		if checked.OK() && report.Answer != "" {
			add(out, report)
			unlisted = unlisted || len(report.Citations) > 0 && len(report.Claims) == 0
		}
	}
	if unlisted { // a list that lacks some would say that they are no claims
		out.Claims = nil
	}
	out.Normalize()
	return out, nil
}

// add appends a report, whose markers and claims then index the citations of all.
func add(out, report *marchwarden.Result) {
	if len(report.Citations) == 0 {
		out.Gaps = append(out.Gaps, report.Gaps...)
		return
	}
	first := len(out.Citations) == 0
	offset := len(out.Citations)
	out.Answer = strings.TrimSpace(out.Answer + "\n\n" + shift(report.Answer, offset, len(report.Citations)))
	out.Citations = append(out.Citations, report.Citations...)
	out.Gaps = append(out.Gaps, report.Gaps...)
	for _, c := range report.Claims {
		shifted := make([]int, len(c.Citations))
		for i, n := range c.Citations {
			shifted[i] = n + offset
		}
		c.Citations = shifted
		out.Claims = append(out.Claims, c)
	}
	if first || report.Confidence < out.Confidence {
		out.Confidence, out.ConfidenceFactors = report.Confidence, report.ConfidenceFactors
	}
}

var marker = regexp.MustCompile(`\[(\d{1,9})\]`)

// shift makes the markers of an answer with so many citations index them further on.
func shift(answer string, by, citations int) string {
	return marker.ReplaceAllStringFunc(answer, func(m string) string {
		n, err := strconv.Atoi(m[1 : len(m)-1])
		if err != nil || n < 1 || n > citations {
			return m
		}
		return "[" + strconv.Itoa(n+by) + "]"
	})
}

// Document is a document that a run, or one of its rihlas, read and stored.
type Document struct {
	fetch.Page
	// Step and Run say where it was recorded.
	Step int
	Run  *Run
	// How is how an investigator got hold of a document that a researcher cited;
	// see replay.Held.
	How string
}

// Documents are the documents that a run and its rihlas read, in the order of
// their traces, each pair of locator and text once. A document that a stranger
// cited and that was only got hold of has no Raw bytes. A damaged record is an
// error that names the blob.
func (s Store) Documents(ctx context.Context, r *Run) ([]Document, error) {
	type key struct {
		locator string
		text    blob.Ref
	}
	var docs []Document
	seen := map[key]bool{}
	all := r.All()
	// Rihlas first: they know more about what they read than who asked them.
	for _, run := range append(all[1:len(all):len(all)], r) {
		for _, step := range run.Log.Steps {
			p, err := s.page(ctx, step)
			if err != nil {
				return nil, err
			}
			d := Document{Page: p, Step: step.Header().Step, Run: run}
			if e, ok := step.(*trace.Evidence); ok {
				d.How = e.How
			}
			if k := (key{d.Locator, d.Hash()}); k.text.Valid() && !seen[k] {
				seen[k] = true
				docs = append(docs, d)
			}
		}
	}
	return docs, nil
}

func (s Store) page(ctx context.Context, step trace.Step) (fetch.Page, error) {
	switch step := step.(type) {
	case *trace.FetchComplete:
		if step.Error != "" {
			return fetch.Page{}, nil
		}
		return replay.Outcome[fetch.Page](ctx, s.Blobs, step)
	case *trace.Evidence:
		if step.Error != "" || !step.ContentHash.Valid() {
			return fetch.Page{}, nil
		}
		held, err := replay.Outcome[replay.Held](ctx, s.Blobs, step)
		at := held.FetchedAt
		if at.IsZero() {
			at = step.Timestamp
		}
		return fetch.Page{Locator: step.Locator, Text: held.Text, Title: held.Title, Published: held.Published,
			Unchecked: held.How == "reported", FetchedAt: at.Truncate(time.Second)}, err
	}
	return fetch.Page{}, nil
}

// Ending is how a run ended, without its result.
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
	if err := may(start); err != nil {
		return nil, nil, err
	}
	if !verify.KnowsRules(start.Gate) {
		return nil, nil, MadeBy(cmp.Or(start.Gate, "the first rules"), verify.Rules)
	}
	if err := asScored(start.Calibration); err != nil {
		return nil, nil, err
	}
	if err := replay.CheckBlobs(ctx, log, blobs); err != nil {
		return nil, nil, err
	}
	want, err = blobs.Get(ctx, done.Result)
	return start, want, err
}

// asScored refuses a run whose confidence a table of calibration changed, as earlier
// versions did. The table that came with them leaves every score as it is.
func asScored(calibration json.RawMessage) error {
	if len(calibration) == 0 {
		return nil
	}
	var table struct {
		Isotonic struct{ X, Y []float64 } `json:"isotonic"`
	}
	same := []float64{0, 1}
	if err := json.Unmarshal(calibration, &table); err == nil && slices.Equal(table.Isotonic.X, same) && slices.Equal(table.Isotonic.Y, same) {
		return nil
	}
	return marchwarden.Errorf(marchwarden.CodeUnsupported, "the confidence of the run was scored with a table of calibration of its own, which this program does not apply")
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
