package network

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

// rollCall is how long an investigation waits for a member to ask: workers that start
// together announce themselves one after the other.
const rollCall = 3 * time.Second

// investigate has the investigator work on a task. It asks its researchers by the
// engine, wherever they are.
func (s *Worker) investigate(ctx context.Context, t dispatch.Task, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	members, err := s.present(ctx, t.Wishes.Only)
	if err != nil {
		return nil, err
	}
	cfg, err := s.investigator(t, req, members)
	if err != nil {
		return nil, err
	}
	req.Question, req.Context = s.Host.Hide.Text(req.Question), s.Host.Hide.Text(req.Context) // as a desk does
	return s.Host.Tracer.Research(pi.New(cfg), settings.PI).Research(ctx, req, sink)
}

// present waits until there is a member to ask, and those that were named are there.
func (s *Worker) present(ctx context.Context, names []string) ([]dispatch.Member, error) {
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
func (s *Worker) investigator(t dispatch.Task, req marchwarden.Request, members []dispatch.Member) (pi.Config, error) {
	terms := TermsFor(s.Settings, members, s.Options, s.begunBy(t, req))
	deadline, err := s.Settings.Deadline(s.Options.Timeout, terms.Outside || s.ForOthers)
	if err != nil {
		return pi.Config{}, err
	}
	model, err := s.model(terms.Model)
	if err != nil {
		return pi.Config{}, err
	}
	blobs := s.Place.Records(s.Settings).Blobs
	cfg := pi.Config{
		Traces: s.Place.held, Blobs: blobs, Version: s.Host.Version, Now: s.Host.Now, NewID: s.Host.NewID,
		Dispatcher: relay.New(relay.Config{
			Engine: s.Place.engine, Blobs: s.Place.engine.Blobs(), Investigation: t.Record, Asker: t.ID, Owner: t.Owner, Priority: t.Priority,
			Members: func() []dispatch.Member { return slices.Clone(members) }, Now: s.Host.Now, Span: s.Host.Tracer.Carry,
		}),
		Minds: Minds(s.Vectors.Of), Model: model, Vectors: s.Vectors.Embedder, Calibration: s.table,
		Options: pi.Options{
			Parallel: min(t.Wishes.Parallel, MaxParallel), MaxRihlas: min(t.Wishes.MaxRihlas, MaxRihlas), Deadline: deadline, PlanOnly: t.Wishes.PlanOnly,
			AllowEgress: s.AllowEgress(t), ModelSeesPrivate: terms.SeesPrivate,
		},
		Say: s.Options.Warn,
	}
	if offline(s.Host, s.Settings, s.Options) == "" && slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Trust != dispatch.Own }) {
		cfg.Refetch, err = s.refetch()
	}
	return cfg, err
}

// AllowEgress are the members whose findings others may be told. Of a cluster's worker, its owner says
// whose at most: the sources are not the caller's.
func (s *Worker) AllowEgress(t dispatch.Task) []string {
	own := egressOf(s.Settings, s.Options)
	switch {
	case !s.ForOthers:
		return append(own, t.Wishes.AllowEgress...)
	case len(t.Wishes.AllowEgress) > 0:
		return slices.DeleteFunc(own, func(name string) bool { return !slices.Contains(t.Wishes.AllowEgress, name) })
	}
	return own
}

// begunBy is the model of a resumed run, which keeps it; "" for a new run.
func (s *Worker) begunBy(t dispatch.Task, req marchwarden.Request) string {
	if req.Resume == "" {
		return ""
	}
	log, err := s.Place.held.Load(t.Record)
	if err != nil {
		return ""
	}
	start, err := log.Start()
	if err != nil {
		return ""
	}
	return cmp.Or(start.Model, NoModel)
}

// model opens a model once.
func (s *Worker) model(m chosenFor) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if model, open := s.minds[m]; open {
		return model, nil
	}
	model, err := s.Host.OpenModel(s.Settings, m.chosenModel, m.Public)
	if err == nil {
		s.minds[m] = model
	}
	return model, err
}

// refetch gets documents again that an external researcher cites.
func (s *Worker) refetch() (func(context.Context, string) (pi.Document, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		return s.again, nil
	}
	d := &Runner{Host: s.Host, Settings: s.Settings, Records: s.Place.Records(s.Settings), Warn: s.Options.Warn}
	again, err := s.Host.refetcher(s.Settings, s.Options, d)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	s.again, s.files = again, append(s.files, d.Close)
	return again, nil
}
