// Package researcher has the researchers of this program that read documents: files.go of
// local folders and the embedded library, web.go of the open web, arxiv.go of scientific
// papers. What they share is here: one research call under a trace of its own, the return of
// an earlier one, and the rerun of a record.
package researcher

import (
	"bytes"
	"context"
	"fmt"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
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
)

// Lab is where a researcher works.
type Lab = run.Lab

// Call is a finished call as a ledger sees it.
type Call = run.Call

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
	Lab  Lab
	Name string // in the network, in traces and in costs
	// Prepare prepares what a call works with, for the request as it is or, of a run that is resumed, as it was.
	Prepare func(context.Context, marchwarden.Request) (Setup, error)
}

var _ marchwarden.Researcher = Prepared{}

// Research answers a request: under a new trace, or as the run that it wants to
// resume, which goes on, or gives its result if it had nothing left to do.
func (p Prepared) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	if req.Resume != "" {
		return p.resume(ctx, req, sink)
	}
	began := p.Lab.Now()
	s, err := p.Prepare(ctx, req)
	if err != nil {
		return nil, err
	}
	talking, err := p.continues(ctx, req, &s)
	if err != nil {
		return nil, err
	}
	start, err := p.Lab.Start(ctx, p.Name, req, began, gatherShare, Mind(llm.ID(p.Lab.Model)))
	if err != nil {
		return nil, err
	}
	start.Decision, start.Engine = fmt.Sprintf("research %q in %s", req.Question, s.Where), s.Engine.Name()
	start.Pointers = trace.Pointers{Given: s.Given, Talk: talking}
	start.Library, start.Fingerprint, start.Gaps, start.Guide = s.Library, s.Fingerprint, s.Gaps, s.Guide
	return p.Lab.Run(ctx, start, sink, began, func(j replay.Journal, clock func() time.Duration) (*marchwarden.Result, error) {
		return p.loop(s, start.Model, p.Lab.Vectors).Run(ctx, j, start, clock)
	})
}

func (p Prepared) loop(s Setup, model string, e embed.Embedder) *loop.Loop {
	if s.Ranked != nil && e != nil {
		s.Engine = s.Ranked(e)
	}
	return loop.New(loop.Config{Engine: s.Engine, Fetcher: s.Fetcher, Kept: s.kept, Reasoner: Mind(model), Model: p.Lab.Model, Vectors: e, Blobs: p.Lab.Blobs})
}

func (p Prepared) resume(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	var s Setup
	return p.Lab.Resume(ctx, p.Name, req, sink, func(start *trace.Start) (ready run.Ready, err error) {
		if s, err = p.Prepare(ctx, start.Request); err != nil {
			return ready, err
		}
		if start.Talk != nil {
			if _, err := p.continues(ctx, start.Request, &s); err != nil { // what is gone meanwhile is fetched
				s.kept = nil
			}
		}
		if now := s.Engine.Name(); now != start.Engine {
			return ready, marchwarden.Errorf(marchwarden.CodeInvalid, "run %s searched by %s, and cannot go on by %s", start.TraceID, start.Engine, now)
		}
		mind := Mind(start.Model)
		return run.Ready{Mind: mind.ID(), Version: run.VersionOf(mind), Found: &trace.Found{Library: s.Library, Fingerprint: s.Fingerprint, Gaps: s.Gaps}}, nil
	}, func(on *run.Resumed, e embed.Embedder) (*marchwarden.Result, error) {
		return p.loop(s, on.Start.Model, e).Run(ctx, on, on.Start, on.Clock)
	})
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
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) embed.Embedder) (Rerun, error) {
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
	res, err := loop.New(loop.Config{Reasoner: Mind(start.Model), Vectors: e, Blobs: blob.NamesOnly(blobs)}).Run(ctx, replay.Rerun(log, blobs), &again, nil)
	if err != nil {
		return Rerun{}, fmt.Errorf("rerun %s: %w", start.TraceID, err)
	}
	out.Got, err = marchwarden.EncodeResult(res)
	return out, err
}
