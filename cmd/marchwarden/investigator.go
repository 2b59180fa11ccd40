package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/advise"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi/derive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/web"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// minds are how an investigator plans and writes: with a model, or without.
// vectorsOf finds the embedder of an earlier run.
func minds(vectorsOf func(id string) (embed.Embedder, error)) pi.Minds {
	return pi.Minds{Planner: func(id string) pi.Planner { return advise.For(id, derive.New()) }, Writer: researcher.Mind, Vectors: vectorsOf}
}

// termsFor are what follows for an investigation from whom it may ask.
type terms struct {
	private bool // somebody reports what is the user's own
	outside bool // somebody reaches outside this machine
	model   chosenFor
	// seesPrivate says that the model may be told what is private: somebody named it.
	seesPrivate bool
}

// termsFor finds the model of an investigation, and what it may see. begunBy is that of one
// that goes on.
func termsFor(c *settings.Settings, members []dispatch.Member, o deskOptions, begunBy string) terms {
	t := terms{
		private:     slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Private }),
		outside:     slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.OpenWorld }),
		seesPrivate: chooseModel(c, o.model, false).name != "",
	}
	t.model = chosenFor{chooseModel(c, cmp.Or(begunBy, o.model), t.outside), !t.private || !t.seesPrivate}
	return t
}

// openPIDesk opens the investigator over the network that the options mean.
func (a *app) openPIDesk(c *settings.Settings, o deskOptions) (*desk, error) {
	if err := a.checkBeforehand(c, o); err != nil {
		return nil, err
	}
	network, err := a.openPool(c, o)
	if err != nil {
		return nil, err
	}
	members := network.Members()
	t := termsFor(c, members, o, o.begunBy)
	deadline, err := c.Deadline(o.timeout, t.outside)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	model, err := a.openModel(c, t.model.chosenModel, t.model.public)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	table, err := calibrationOf(c)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	vs, err := a.openVectors(c)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	rec, err := a.openWorking(c)
	if err != nil {
		return nil, errors.Join(err, vs.Close(), network.Close())
	}
	d := &desk{name: settings.PI, scope: pi.Scope, openWorld: t.outside, private: t.private, a: a, cfg: c, records: rec, warn: o.warn, told: o.told}
	cfg := pi.Config{
		Traces: rec.traces, Blobs: rec.blobs, Version: programVersion(), Now: a.now, NewID: a.newID,
		Dispatcher: network, Minds: minds(vs.of), Model: model, Vectors: vs.embedder, Calibration: table,
		Options: pi.Options{
			Parallel: o.parallel, MaxRihlas: o.maxRihlas, Deadline: deadline, PlanOnly: o.planOnly,
			AllowEgress: egressOf(c, o), ModelSeesPrivate: t.seesPrivate, Flags: o.flags, More: o.more,
		},
		Spent: func(call pi.Call) { d.enter(finished{call.Start, call.Result, call.Before}) },
		Say:   o.warn,
	}
	d.close = []func() error{network.Close, vs.Close}
	if offline(a, c, o) == "" && slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Trust != dispatch.Own }) {
		if cfg.Refetch, err = a.refetcher(c, o, d); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	d.researcher = pi.New(cfg)
	return d, nil
}

// egressOf are the members whose findings others may be told.
func egressOf(c *settings.Settings, o deskOptions) []string {
	return append(slices.Clone(o.allowEgress), c.List(settings.AllowEgress)...)
}

// checkBeforehand finds what is wrong with the options of a network's members
// before any of them is started: a child process could only fail with it.
func (a *app) checkBeforehand(c *settings.Settings, o deskOptions) error {
	library, err := a.openLibrary(c, o.library, o.embedded)
	if err != nil {
		return err
	}
	if err := closeFolders(library); err != nil {
		return err
	}
	if _, err := a.openEngines(c, o.search); err != nil && offline(a, c, o) == "" && o.wants(web.Name) {
		return err
	}
	_, err = fetchAllow(c)
	return err
}

// refetcher gets documents again that a stranger cites.
func (a *app) refetcher(c *settings.Settings, o deskOptions, d *desk) (func(context.Context, string) (pi.Document, error), error) {
	x := a.extractor(c)
	pages, err := a.openWebFetcher(c, d.records, x, o.render)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	d.close = append(d.close, d.closing(pages), x.Close)
	return func(ctx context.Context, locator string) (pi.Document, error) {
		p, err := pages.Fetch(ctx, locator)
		if err != nil {
			return pi.Document{}, err
		}
		if p.NonText {
			return pi.Document{}, marchwarden.Errorf(marchwarden.CodeUnsupported, "%s has no text", locator)
		}
		return pi.Document{Text: p.Text, Title: p.Title, Published: p.Published, FetchedAt: p.FetchedAt}, nil
	}, nil
}
