package main

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/relay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// rollCall is how long an investigation waits for somebody to ask: workers that start
// together announce themselves one after the other.
const rollCall = 3 * time.Second

// investigate has the investigator work on a task. It asks its researchers by the
// engine, wherever they are.
func (s *staff) investigate(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	members, err := s.present(ctx, t.Wishes.Only)
	if err != nil {
		return nil, err
	}
	cfg, err := s.investigator(t, req, members)
	if err != nil {
		return nil, err
	}
	req.Question, req.Context = s.a.hide.Text(req.Question), s.a.hide.Text(req.Context) // as a desk does
	return s.a.tracer.Research(pi.New(cfg), settings.PI).Research(ctx, req, sink)
}

// present waits until there is somebody to ask, and those who were named are there.
func (s *staff) present(ctx context.Context, names []string) ([]dispatch.Member, error) {
	patience, done := context.WithTimeout(ctx, rollCall)
	defer done()
	for {
		members := only(s.network(), names)
		if len(members) > 0 && len(members) >= len(names) {
			return members, nil
		}
		select {
		case <-time.After(rollCall / 30):
			continue
		case <-patience.Done():
		}
		if ctx.Err() != nil {
			return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for researchers")
		}
		if len(members) > 0 {
			return members, nil
		}
		e := &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "no worker has a researcher to ask", Hint: "start one: marchwarden worker --engine URL"}
		if len(names) > 0 {
			e.Message = "no worker has the researcher " + strings.Join(names, " or ")
		}
		return nil, e
	}
}

// investigator is how a task is investigated.
func (s *staff) investigator(t dispatch.Task, req marchwarden.Request, members []dispatch.Member) (pi.Config, error) {
	terms := termsFor(s.c, members, s.o, s.begunBy(t, req))
	deadline, err := s.c.Deadline(s.o.timeout, terms.outside || s.forOthers)
	if err != nil {
		return pi.Config{}, err
	}
	model, err := s.model(terms.model)
	if err != nil {
		return pi.Config{}, err
	}
	blobs := s.place.records(s.c).blobs
	cfg := pi.Config{
		Traces: s.place.held, Blobs: blobs, Version: programVersion(), Now: s.a.now, NewID: s.a.newID,
		Dispatcher: relay.New(relay.Config{
			Engine: s.place.engine, Blobs: s.place.engine.Blobs(), Investigation: t.Record, Asker: t.ID, Owner: t.Owner, Priority: t.Priority,
			Members: func() []dispatch.Member { return slices.Clone(members) }, Now: s.a.now, Span: s.a.tracer.Carry,
		}),
		Minds: minds(s.vectors.of), Model: model, Vectors: s.vectors.embedder, Calibration: s.table,
		Options: pi.Options{
			Parallel: min(t.Wishes.Parallel, maxParallel), MaxRihlas: min(t.Wishes.MaxRihlas, maxRihlas), Deadline: deadline, PlanOnly: t.Wishes.PlanOnly,
			AllowEgress: s.allowEgress(t), ModelSeesPrivate: terms.seesPrivate, Flags: s.o.flags,
		},
		Say: s.o.warn,
	}
	if offline(s.a, s.c, s.o) == "" && slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Trust != dispatch.Own }) {
		cfg.Refetch, err = s.refetch()
	}
	return cfg, err
}

// egressOf are the members whose findings others may be told. Of a cluster's worker, its
// owner says whose at most: the sources are not those of whoever asks.
func (s *staff) allowEgress(t dispatch.Task) []string {
	own := egressOf(s.c, s.o)
	switch {
	case !s.forOthers:
		return append(own, t.Wishes.AllowEgress...)
	case len(t.Wishes.AllowEgress) > 0:
		return slices.DeleteFunc(own, func(name string) bool { return !slices.Contains(t.Wishes.AllowEgress, name) })
	}
	return own
}

// begunBy is the model of a run that goes on, which goes on with that one; "" for a new
// run.
func (s *staff) begunBy(t dispatch.Task, req marchwarden.Request) string {
	if req.Resume == "" {
		return ""
	}
	log, err := s.place.held.Load(t.Record)
	if err != nil {
		return ""
	}
	start, err := log.Start()
	if err != nil {
		return ""
	}
	return cmp.Or(start.Model, noModel)
}

// model opens a model once.
func (s *staff) model(m chosenFor) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if model, open := s.minds[m]; open {
		return model, nil
	}
	model, err := s.a.openModel(s.c, m.chosenModel, m.public)
	if err == nil {
		s.minds[m] = model
	}
	return model, err
}

// refetch is who gets documents again that a stranger cites.
func (s *staff) refetch() (func(context.Context, string) (pi.Document, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		return s.again, nil
	}
	d := &desk{a: s.a, cfg: s.c, records: s.place.records(s.c), warn: s.o.warn}
	again, err := s.a.refetcher(s.c, s.o, d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	s.again, s.files = again, append(s.files, d.Close)
	return again, nil
}
