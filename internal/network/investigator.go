package network

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Minds are how an investigator plans and writes: with a model, or without.
// vectorsOf finds the embedder of an earlier run.
func Minds(vectorsOf func(id string) embed.Embedder) pi.Minds {
	return pi.Minds{Planner: func(id string) pi.Planner { return pi.PlannerFor(id, derive.New()) }, Writer: researcher.Mind, Vectors: vectorsOf}
}

// Again runs a record again with the researcher that made it. vectorsOf finds the embedder of an id.
func Again(ctx context.Context, log *trace.Log, blobs blob.Store, vectorsOf func(id string) embed.Embedder) (researcher.Rerun, error) {
	start, err := log.Start()
	if err != nil || start.Investigation == nil {
		return researcher.Again(ctx, log, blobs, vectorsOf)
	}
	want, got, err := pi.Again(ctx, log, blobs, Minds(vectorsOf))
	return researcher.Rerun{Start: start, Want: want, Got: got}, err
}

// terms are what follows for an investigation from whom it may ask.
type terms struct {
	Private bool // a member reports what is the user's own
	Outside bool // a member reaches outside this machine
	Model   chosenModel
	// SeesPrivate says that the model may be told what is private: the user named it.
	SeesPrivate bool
}

// TermsFor finds the model of an investigation, and what it may see. begunBy is that of one
// that goes on.
func TermsFor(c *settings.Settings, members []dispatch.Member, o Options, begunBy string) terms {
	t := terms{
		Private:     slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Private }),
		Outside:     slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.OpenWorld }),
		SeesPrivate: ChooseModel(c, o.Model, false).Name != "",
	}
	t.Model = ChooseModel(c, cmp.Or(begunBy, o.Model), t.Outside)
	return t
}

// openInvestigator opens the investigator over the network that the options mean.
func (h *Host) openInvestigator(c *settings.Settings, o Options) (*Runner, error) {
	if err := h.checkBeforehand(c, o); err != nil {
		return nil, err
	}
	network, err := h.OpenPool(c, o)
	if err != nil {
		return nil, err
	}
	d := &Runner{Name: settings.PI, Scope: pi.Scope, Host: h, Settings: c, Warn: o.Warn, Told: o.Told, Pool: network, Closers: []func() error{network.Close}}
	if err := d.investigates(o, network); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// investigates makes the runner one of an investigator that asks by a dispatcher. Nothing is
// written before all of it is known to be right.
func (d *Runner) investigates(o Options, network dispatch.Dispatcher) error {
	members := network.Members()
	t := TermsFor(d.Settings, members, o, o.BegunBy)
	model, err := d.Host.OpenModel(d.Settings, t.Model)
	if err != nil {
		return err
	}
	cfg, err := d.Host.investigator(d.Settings, o, t, model, d.Host.OpenVectors(d.Settings))
	if err != nil {
		return err
	}
	if d.Records, err = d.Host.OpenWorking(d.Settings); err != nil {
		return err
	}
	cfg.Traces, cfg.Blobs, cfg.Dispatcher = d.Records.Traces, d.Records.Blobs, network
	cfg.Spent = func(ctx context.Context, call researcher.Call) {
		d.Enter(Finished{call.Start, call.Result, call.Before, access.From(ctx).ID})
	}
	if d.Host.mayRefetch(d.Settings, o, members) {
		var end func() error
		if cfg.Refetch, end, err = d.Host.refetcher(d.Settings, d.Records); err != nil {
			return err
		}
		d.Closers = append(d.Closers, end)
	}
	d.OpenWorld, d.Private, d.Researcher = t.Outside, t.Private, pi.New(cfg)
	return nil
}

// investigator is how a question is investigated, as far as it is the same for a command and
// for a worker of an engine.
func (h *Host) investigator(c *settings.Settings, o Options, t terms, model llm.Model, vs *Vectors) (pi.Config, error) {
	lab, err := h.labWith(c, o, t.Outside, model, vs)
	return pi.Config{Lab: lab, Minds: Minds(vs.Of),
		Options: pi.Options{Parallel: o.Parallel, MaxRihlas: o.MaxRihlas, PlanOnly: o.PlanOnly, AllowEgress: egressOf(c, o), ModelSeesPrivate: t.SeesPrivate},
	}, err
}

// mayRefetch reports whether documents that external researchers cite are fetched again.
func (h *Host) mayRefetch(c *settings.Settings, o Options, members []dispatch.Member) bool {
	return offline(c, o) == "" && slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Trust != dispatch.Own })
}

// egressOf are the members whose findings others may be told.
func egressOf(c *settings.Settings, o Options) []string {
	return append(slices.Clone(o.AllowEgress), c.List(settings.AllowEgress)...)
}

// checkBeforehand finds what is wrong with the options of a network's members
// before any of them is started: a child process could only fail with it.
func (h *Host) checkBeforehand(c *settings.Settings, o Options) error {
	library, err := h.OpenLibrary(c, o.Library, o.Embedded)
	if err != nil {
		return err
	}
	if err := CloseFolders(library); err != nil {
		return err
	}
	if _, err := h.openEngines(c, o.Search); err != nil && offline(c, o) == "" && o.wants(researcher.WebName) {
		return err
	}
	_, err = fetchAllow(c)
	return err
}

// refetcher gets documents again that an external researcher cites. The caller calls end.
func (h *Host) refetcher(c *settings.Settings, rec *Records) (again func(context.Context, string) (fetch.Page, error), end func() error, err error) {
	allow, err := fetchAllow(c)
	if err != nil {
		return nil, nil, err
	}
	x := h.Extractor(c)
	pages := h.openWebFetcher(allow, rec, x)
	return pages.Fetch, func() error { return errors.Join(pages.Close(), x.Close()) }, nil
}

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
	req.Question, req.Context = s.Host.Hide.Text(req.Question), s.Host.Hide.Text(req.Context) // as a Runner does
	return pi.New(cfg).Research(ctx, req, sink)
}

// present waits until there is a member to ask, and those that were named are there: workers that
// start together announce themselves one after the other.
func (s *Worker) present(ctx context.Context, names []string) ([]dispatch.Member, error) {
	const rollCall = 3 * time.Second
	members := only(s.network(), names)
	for began := s.Host.Now(); len(members) < max(1, len(names)) && s.Host.Now().Sub(began) < rollCall; members = only(s.network(), names) {
		select {
		case <-time.After(rollCall / 30):
		case <-ctx.Done():
			return nil, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "wait for researchers")
		}
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

// investigator is how a task is investigated.
func (s *Worker) investigator(t dispatch.Task, req marchwarden.Request, members []dispatch.Member) (pi.Config, error) {
	o := s.Options
	o.Parallel, o.MaxRihlas, o.PlanOnly = min(t.Wishes.Parallel, MaxParallel), min(t.Wishes.MaxRihlas, MaxRihlas), t.Wishes.PlanOnly
	terms := TermsFor(s.Settings, members, o, s.begunBy(t, req))
	model, err := once(&s.mu, s.minds, terms.Model, func(m chosenModel) (llm.Model, error) { return s.Host.OpenModel(s.Settings, m) })
	if err != nil {
		return pi.Config{}, err
	}
	terms.Outside = true // a member on another host may not come back
	cfg, err := s.Host.investigator(s.Settings, o, terms, model, s.Vectors)
	if err != nil {
		return pi.Config{}, err
	}
	cfg.Traces, cfg.Blobs = s.Place.held, s.Place.Records(s.Settings).Blobs
	cfg.Dispatcher = &submit.Dispatcher{
		Engine: s.Place.engine, Blobs: s.Place.engine.Blobs(), Investigation: t.Record, Asker: t.ID, Owner: t.Owner, Priority: t.Priority,
		Network: func() []dispatch.Member { return slices.Clone(members) }, Now: s.Host.Now,
	}
	cfg.Options.AllowEgress = s.AllowEgress(t)
	if s.Host.mayRefetch(s.Settings, s.Options, members) {
		cfg.Refetch, err = s.refetch()
	}
	return cfg, err
}

// AllowEgress are the members whose findings others may be told. The owner of the worker says
// whose at most, since the sources are not the caller's; a caller can wish for less.
func (s *Worker) AllowEgress(t dispatch.Task) []string {
	own := egressOf(s.Settings, s.Options)
	if len(t.Wishes.AllowEgress) == 0 {
		return own
	}
	return slices.DeleteFunc(own, func(name string) bool { return !slices.Contains(t.Wishes.AllowEgress, name) })
}

// begunBy is the model of a resumed run, which keeps it; "" for a new run.
func (s *Worker) begunBy(t dispatch.Task, req marchwarden.Request) string {
	if req.Resume != "" {
		if start, err := startOf(s.Place.held.Load(t.Record)); err == nil {
			return cmp.Or(start.Model, NoModel)
		}
	}
	return ""
}

// refetch gets documents again that an external researcher cites.
func (s *Worker) refetch() (func(context.Context, string) (fetch.Page, error), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		return s.again, nil
	}
	again, end, err := s.Host.refetcher(s.Settings, s.Place.Records(s.Settings))
	if err == nil {
		s.again, s.files = again, append(s.files, end)
	}
	return again, err
}
