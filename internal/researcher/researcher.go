// Package researcher has the researchers of this program that read documents: files.go of
// local folders and the embedded library, web.go of the open web, arxiv.go of scientific
// papers. What they share is here: one research call under a trace of its own, the return of
// an earlier one, and the rerun of a record.
package researcher

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/loop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/model"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Lab is where a researcher works. The caller closes what it passes in.
type Lab struct {
	Traces   trace.Book
	Blobs    blob.Store
	Version  string // of the program, for the trace
	Now      func() time.Time
	NewID    func() marchwarden.TraceID
	Deadline time.Duration  // how long a run may take in all, the writing included; zero is no limit
	Model    llm.Model      // the language model that plans and writes; nil leaves both to the extractive reasoner
	Vectors  embed.Embedder // makes the sentence vectors of new runs; nil is to do without
	// VectorsOf finds what made the vectors of a run that goes on, by its id; nil knows Vectors alone.
	VectorsOf   func(id string) (embed.Embedder, error)
	Prices      ledger.Prices               // that the user has set, before those of the program
	Calibration json.RawMessage             // the table by which confidence is calibrated; nil leaves the scores as they are
	PartOf      bool                        // marks the runs as rihlas of an investigation
	Choice      *marchwarden.Choice         // who was asked with what, by which the run resumes
	More        time.Duration               // added to the time of a run that goes on
	Spent       func(context.Context, Call) // told of every finished call, for the ledger; nil: unused
	Say         func(string)                // told what a person should know about a run under way; nil: unused
}

// Call is a finished call as a ledger sees it.
type Call struct {
	Start  *trace.Start
	Result *marchwarden.Result
	Before marchwarden.CostMetadata // what an earlier call for the same run has told of
}

// gatherShare is the part of the deadline that gathering may use.
const gatherShare = 0.7

// Setup is what one call works with.
type Setup struct {
	Where       string // what is searched, for people
	Engine      search.Engine
	Ranked      func(embed.Embedder) search.Engine // engine with an embedder, under the same name; nil for one that cannot use it
	Fetcher     fetch.Fetcher
	Given       []string // the addresses that the caller named and that may be read
	Library     []string // library, Fingerprint and Gaps describe what is searched, as it was found
	Fingerprint string
	Gaps        []marchwarden.Gap
	Outside     bool   // what is read is public, and costs a way out: what a conversation has stored is read first
	Guide       string // tells a reasoner with a model what its searches may ask for

	kept search.Engine // of the conversation; nil for none
}

// Prepared is a researcher that prepares what each call works with. It is safe for concurrent use if Prepare is.
type Prepared struct {
	Lab     Lab
	Name    string // in the network, in traces and in costs
	Prepare Preparing
}

var _ marchwarden.Researcher = Prepared{}

// Preparing prepares what a call works with, for the request as it is or, of a run that goes on, as it was.
type Preparing func(context.Context, marchwarden.Request) (Setup, error)

// Research answers a request: under a new trace, or as the run that it wants to
// resume, which goes on, or gives its result if it had nothing left to do.
func (p Prepared) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if req.Resume != "" {
		return p.resume(ctx, req, sink)
	}
	l, started := &p.Lab, p.Lab.Now()
	s, err := p.Prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	talking, err := p.continues(ctx, req, &s)
	if err != nil {
		return nil, err
	}
	clock := func() time.Duration { return l.Now().Sub(started) }
	deadline := replay.Patience(ctx, l.Deadline, started)
	start := &trace.Start{
		Head:   trace.Head{Decision: fmt.Sprintf("research %q in %s", req.Question, s.Where)},
		Format: trace.Format, TraceID: l.id(ctx), Researcher: p.Name, Engine: s.Engine.Name(),
		Version: l.Version, Request: req, Limits: req.Limits(), StartedAt: started.UTC(),
		Wall: time.Duration(float64(deadline) * gatherShare), Deadline: deadline,
		Pointers: trace.Pointers{Given: s.Given, Talk: talking}, Library: s.Library, Fingerprint: s.Fingerprint, Gaps: s.Gaps, Guide: s.Guide, PartOf: l.PartOf, Choice: l.Choice,
		Instruments: trace.Instruments{Calibration: l.Calibration, Gate: verify.Rules},
	}
	if l.Model != nil {
		start.Model, start.MindVersion = l.Model.ID(), model.Version
	}
	start.Mind = Mind(start.Model).ID()
	reader.Describe(start, l.Vectors)
	if err := start.Price(l.Prices, llm.ID(l.Model)); err != nil {
		return nil, err
	}
	w, err := l.Traces.Create(start.TraceID)
	if errors.Is(err, fs.ErrExist) { // it was begun before, and could not be resumed
		start.TraceID = l.NewID()
		w, err = l.Traces.Create(start.TraceID)
	}
	j := replay.Record(w, l.Blobs, clock, sink)
	if err != nil {
		j.Lose(err) // the answer is worth having all the same
	}
	res, err := l.loop(s, start.Model, l.Vectors).Run(ctx, j, start, clock)
	_ = w.Close() // every line is synced already: there is nothing to lose, least of all the answer
	return l.finish(ctx, j, Call{Start: start, Result: res}, err)
}

// id is the id of a new run: the one that its caller has chosen, if it has.
func (l *Lab) id(ctx context.Context) marchwarden.TraceID {
	if id, ok := marchwarden.ChosenTraceID(ctx); ok {
		return id
	}
	return l.NewID()
}

func (l *Lab) loop(s Setup, model string, e embed.Embedder) *loop.Loop {
	if s.Ranked != nil && e != nil {
		s.Engine = s.Ranked(e)
	}
	return loop.New(loop.Config{Engine: s.Engine, Fetcher: s.Fetcher, Kept: s.kept, Reasoner: Mind(model), Model: l.Model, Vectors: e, Blobs: l.Blobs})
}

func (l *Lab) vectorsOf(id string) (embed.Embedder, error) {
	if l.VectorsOf != nil {
		return l.VectorsOf(id)
	}
	return l.Vectors, nil
}

// finish ends a call: a result of which there is no record says so.
func (l *Lab) finish(ctx context.Context, j *replay.Recorder, c Call, err error) (*marchwarden.Result, error) {
	if err != nil {
		return nil, fmt.Errorf("research %s: %w", c.Start.TraceID, err)
	}
	if warning := run.Unrecorded(j.Lost()); warning != "" {
		c.Result.Warnings = append(c.Result.Warnings, warning)
	}
	if l.Spent != nil {
		l.Spent(ctx, c)
	}
	return c.Result, nil
}

func (p Prepared) resume(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	l := &p.Lab
	resumer := run.Resumer{Traces: l.Traces, Blobs: l.Blobs, Version: l.Version, Now: l.Now, Researcher: p.Name, PartOf: l.PartOf, More: l.More}
	on, res, err := resumer.Resume(ctx, req, sink)
	if on == nil {
		return res, err
	}
	defer func() { _ = on.Close() }() // every line is synced already
	start := on.Start
	if err := run.SameModel(start.Model, llm.ID(l.Model)); err != nil {
		return nil, err
	}
	e, err := reader.VectorsOf(start, l.vectorsOf)
	if err != nil {
		return nil, err
	}
	s, err := p.Prepare(ctx, start.Request)
	if err != nil {
		return nil, err
	}
	if start.Talk != nil {
		if _, err := p.continues(ctx, start.Request, &s); err != nil { // what is gone meanwhile is fetched
			s.kept = nil
		}
	}
	if now := s.Engine.Name(); now != start.Engine {
		return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "run %s searched by %s, and cannot go on by %s", start.TraceID, start.Engine, now)
	}
	version := ""
	if start.Model != "" {
		version = model.Version
	}
	said, err := on.Begin(run.Minds{Mind: Mind(start.Model).ID(), Version: version}, &trace.Found{Library: s.Library, Fingerprint: s.Fingerprint, Gaps: s.Gaps})
	if err != nil {
		return nil, err
	}
	res, err = l.loop(s, start.Model, e).Run(ctx, on, start, on.Clock)
	if where := on.Diverged(); where != "" && err == nil {
		said = append(said, where)
	}
	for _, s := range said {
		if l.Say != nil {
			l.Say(s)
		}
	}
	return l.finish(ctx, on.Recorder, Call{Start: start, Result: res, Before: on.Before()}, err)
}

// Mind makes the reasoner of one run: the one that asks the model of this id, or, for "", the one that needs none.
func Mind(id string) reason.Reasoner {
	if id != "" {
		return model.New(id)
	}
	return extractive.New()
}

// Rerun is what re-executing a recorded run gave.
type Rerun struct {
	Start *trace.Start
	Want  []byte // the result as it was recorded
	Got   []byte // the result of the rerun
}

// Same reports whether the two results are equal to the byte.
func (r Rerun) Same() bool { return bytes.Equal(r.Want, r.Got) }

// Again re-executes a complete run on its record, without engine, fetcher and model. Every blob that the trace names is
// checked first. vectorsOf finds the embedder of an id, or is nil; vectors that cannot be had are CodeUnsupported.
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) (embed.Embedder, error)) (Rerun, error) {
	var e embed.Embedder
	start, want, err := run.Again(ctx, log, blobs, func(start *trace.Start) (err error) {
		if err = run.SameMind(start, Mind(start.Model)); err == nil {
			e, err = reader.VectorsOf(start, vectorsOf)
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
