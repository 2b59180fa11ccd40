// Package researcher is what the researchers of this program share: one research
// call under a trace of its own, the return of an earlier one, and the rerun of a
// record. Which engines and fetchers a researcher has is in the packages below.
package researcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/outcome"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/model"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Lab is where a researcher works. The caller closes what it passes in.
type Lab struct {
	Traces  *trace.Dir
	Blobs   blob.Store
	Version string // of the program, for the trace
	Now     func() time.Time
	NewID   func() marchwarden.TraceID
	// Deadline is how long a run may take in all; zero is no limit. Some of it is
	// kept for the writing.
	Deadline time.Duration
	// Model is the language model that plans and writes; nil leaves both to the
	// extractive mind, which needs none.
	Model llm.Model
	// PartOf marks the runs as rihlas of an investigation.
	PartOf bool
	// Spent is told of every finished call, for the ledger; nil for nobody.
	Spent func(Call)
}

// Call is a finished call as a ledger sees it.
type Call struct {
	Start  *trace.Start
	Result *marchwarden.Result
}

// gatherShare is the part of the deadline that gathering may use.
const gatherShare = 0.7

// Setup is what one call works with.
type Setup struct {
	Name    string    // of the researcher
	Started time.Time // when the call came in
	Where   string    // what is searched, for people
	Engine  search.Engine
	Fetcher fetch.Fetcher
	// Given are the addresses that the caller named and that may be read.
	Given []string
	// Library, Fingerprint and Gaps describe what is searched, as it was found.
	Library     []string
	Fingerprint string
	Gaps        []marchwarden.Gap
	// Guide tells a mind with a model what its searches may ask for.
	Guide string
}

// Run answers a valid request under a new trace.
func (l *Lab) Run(ctx context.Context, req marchwarden.Request, s Setup, sink marchwarden.Sink) (*marchwarden.Result, error) {
	clock := func() time.Duration { return l.Now().Sub(s.Started) }
	deadline := replay.Patience(ctx, l.Deadline, s.Started)
	start := &trace.Start{
		Head:   trace.Head{Decision: fmt.Sprintf("research %q in %s", req.Question, s.Where)},
		Format: trace.Format, TraceID: l.NewID(), Researcher: s.Name, Engine: s.Engine.Name(),
		Version: l.Version, Request: req, Limits: req.Limits(), StartedAt: s.Started.UTC(),
		Wall: time.Duration(float64(deadline) * gatherShare), Deadline: deadline,
		Given: s.Given, Library: s.Library, Fingerprint: s.Fingerprint, Gaps: s.Gaps, Guide: s.Guide, PartOf: l.PartOf,
	}
	if l.Model != nil {
		start.Model, start.MindVersion = l.Model.ID(), model.Version
	}
	mind := Mind(start.Model)
	start.Mind = mind.ID()
	w, err := l.Traces.Create(start.TraceID)
	if err != nil {
		return nil, err
	}
	run := loop.New(loop.Config{Engine: s.Engine, Fetcher: s.Fetcher, Reasoner: mind, Model: l.Model, Blobs: l.Blobs})
	res, err := run.Run(ctx, replay.Record(w, l.Blobs, clock, sink), start, clock)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("research %s: %w", start.TraceID, err)
	}
	if l.Spent != nil {
		l.Spent(Call{Start: start, Result: res})
	}
	return res, nil
}

// Mind makes the mind of one run: the one that asks the model of this id, or, for
// "", the one that needs none.
func Mind(id string) reason.Reasoner {
	if id != "" {
		return model.New(id)
	}
	return extractive.New()
}

// Earlier returns the result of a run that is complete. A request that repeats
// the question must mean the same one.
func (l *Lab) Earlier(ctx context.Context, req marchwarden.Request) (*marchwarden.Result, error) {
	return outcome.Earlier(ctx, l.Traces, l.Blobs, req)
}
