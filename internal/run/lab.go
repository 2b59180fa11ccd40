package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Lab is where a researcher or an investigator works. The caller closes what it passes in.
type Lab struct {
	Traces   trace.Book
	Blobs    blob.Store
	Version  string // of the program, for the trace
	Now      func() time.Time
	NewID    func() marchwarden.TraceID
	Deadline time.Duration  // how long a run may take in all, the writing included; zero is no limit
	Model    llm.Model      // the language model that plans and writes; nil leaves both to minds that need none
	Vectors  embed.Embedder // makes the sentence vectors of new runs; nil is to do without
	// VectorsOf finds what made the vectors of a run that is resumed, by its id; nil knows Vectors alone.
	VectorsOf func(id string) embed.Embedder
	Prices    ledger.Prices               // that the user has set, before those of the program
	PartOf    bool                        // marks the runs as rihlas of an investigation
	Choice    *marchwarden.Choice         // who was asked with what, by which the run resumes
	More      time.Duration               // added to the time of a run that is resumed
	Spent     func(context.Context, Call) // told of every finished call, for the ledger; nil: unused
	Say       func(string)                // told what a person should know about a run that resumes; nil: unused
}

// Call is a finished call as a ledger sees it.
type Call struct {
	Start  *trace.Start
	Result *marchwarden.Result
	Before marchwarden.CostMetadata // what an earlier call for the same run has told of
}

// Work makes the result of a run.
type Work func(j replay.Journal, clock func() time.Duration) (*marchwarden.Result, error)

// Start is the start of a run as far as it is the same for all: share is the part of its time that gathering may use, and
// mind reasons in it.
func (l *Lab) Start(ctx context.Context, name string, req marchwarden.Request, began time.Time, share float64, mind Mind) (*trace.Start, error) {
	deadline := replay.Patience(ctx, l.Deadline, began)
	id, chosen := marchwarden.ChosenTraceID(ctx)
	if !chosen {
		id = l.NewID()
	}
	start := &trace.Start{
		Format: trace.Format, TraceID: id, Researcher: name, Version: l.Version, Request: req, Limits: req.Limits(), StartedAt: began.UTC(),
		Wall: time.Duration(float64(deadline) * share), Deadline: deadline, PartOf: l.PartOf, Choice: l.Choice,
		Model: llm.ID(l.Model), Mind: mind.ID(), MindVersion: VersionOf(mind), Instruments: trace.Instruments{Gate: verify.Rules},
	}
	reader.Describe(start, l.Vectors)
	return start, start.Price(l.Prices, start.Model)
}

// Run makes a new run under a record of its own. An id that is taken is not used again.
func (l *Lab) Run(ctx context.Context, start *trace.Start, sink marchwarden.Sink, began time.Time, work Work) (*marchwarden.Result, error) {
	clock := func() time.Duration { return l.Now().Sub(began) }
	w, err := l.Traces.Create(start.TraceID)
	if errors.Is(err, fs.ErrExist) {
		start.TraceID = l.NewID()
		w, err = l.Traces.Create(start.TraceID)
	}
	j := replay.Record(w, l.Blobs, clock, sink)
	if err != nil {
		j.Lose(err) // the answer is worth having all the same
	}
	res, err := work(j, clock)
	_ = w.Close() // every line is synced already: there is nothing to lose, least of all the answer
	return l.finish(ctx, j, Call{Start: start, Result: res}, err)
}

// Resume resumes the run that a request names, or returns its result if it has nothing left to do.
func (l *Lab) Resume(ctx context.Context, name string, req marchwarden.Request, sink marchwarden.Sink,
	prepare func(*trace.Start) (Ready, error), work func(*Resumed, embed.Embedder) (*marchwarden.Result, error)) (*marchwarden.Result, error) {
	on, res, err := l.GoOn(ctx, name, req, sink)
	if on == nil {
		return res, err
	}
	defer func() { _ = on.Close() }() // every line is synced already
	start := on.Start
	if now := llm.ID(l.Model); now != start.Model {
		return nil, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: "model", Hint: "set the model that it was begun with",
			Message: fmt.Sprintf("the run was begun with %s, and cannot be resumed with %s", cmp.Or(start.Model, "no model"), cmp.Or(now, "no model"))}
	}
	vectorsOf := l.VectorsOf
	if vectorsOf == nil {
		vectorsOf = func(string) embed.Embedder { return l.Vectors }
	}
	vectors, err := reader.VectorsOf(start, vectorsOf)
	if err != nil {
		return nil, err
	}
	ready, err := prepare(start)
	if err != nil {
		return nil, err
	}
	said, err := on.Begin(ready)
	if err != nil {
		return nil, err
	}
	said = append(said, ready.Said...)
	res, err = work(on, vectors)
	for _, s := range said {
		if l.Say != nil {
			l.Say(s)
		}
	}
	return l.finish(ctx, on.Recorder, Call{Start: start, Result: res, Before: on.Before()}, err)
}

// finish ends a call: a result of which there is no record says so.
func (l *Lab) finish(ctx context.Context, j *replay.Recorder, c Call, err error) (*marchwarden.Result, error) {
	if err != nil {
		what := "research"
		if c.Start.Investigation != nil {
			what = "investigation"
		}
		return nil, fmt.Errorf("%s %s: %w", what, c.Start.TraceID, err)
	}
	if warning := Unrecorded(j.Lost()); warning != "" {
		same := func(w string) bool { return strings.HasSuffix(w, warning) } // a researcher's, on the same disk
		c.Result.Warnings = append(slices.DeleteFunc(c.Result.Warnings, same), warning)
	}
	if l.Spent != nil {
		l.Spent(ctx, c)
	}
	return c.Result, nil
}
