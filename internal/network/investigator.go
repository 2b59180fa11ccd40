package network

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

// Minds are how an investigator plans and writes: with a model, or without.
// vectorsOf finds the embedder of an earlier run.
func Minds(vectorsOf func(id string) (embed.Embedder, error)) pi.Minds {
	return pi.Minds{Planner: func(id string) pi.Planner { return advise.For(id, derive.New()) }, Writer: researcher.Mind, Vectors: vectorsOf}
}

// termsFor are what follows for an investigation from whom it may ask.
type terms struct {
	Private bool // a member reports what is the user's own
	Outside bool // a member reaches outside this machine
	Model   chosenFor
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
	t.Model = chosenFor{ChooseModel(c, cmp.Or(begunBy, o.Model), t.Outside), !t.Private || !t.SeesPrivate}
	return t
}

// openInvestigator opens the investigator over the network that the options mean.
func (a *Host) openInvestigator(c *settings.Settings, o Options) (*Runner, error) {
	if err := a.checkBeforehand(c, o); err != nil {
		return nil, err
	}
	network, err := a.OpenPool(c, o)
	if err != nil {
		return nil, err
	}
	members := network.Members()
	t := TermsFor(c, members, o, o.BegunBy)
	deadline, err := c.Deadline(o.Timeout, t.Outside)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	model, err := a.OpenModel(c, t.Model.chosenModel, t.Model.Public)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	table, err := CalibrationOf(c)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	vs, err := a.OpenVectors(c)
	if err != nil {
		return nil, errors.Join(err, network.Close())
	}
	rec, err := a.OpenWorking(c)
	if err != nil {
		return nil, errors.Join(err, vs.Close(), network.Close())
	}
	d := &Runner{Name: settings.PI, Scope: pi.Scope, OpenWorld: t.Outside, Private: t.Private, Host: a, Settings: c, Records: rec, Warn: o.Warn, Told: o.Told}
	cfg := pi.Config{
		Traces: rec.Traces, Blobs: rec.Blobs, Version: a.Version, Now: a.Now, NewID: a.NewID,
		Dispatcher: network, Minds: Minds(vs.Of), Model: model, Vectors: vs.Embedder, Calibration: table,
		Options: pi.Options{
			Parallel: o.Parallel, MaxRihlas: o.MaxRihlas, Deadline: deadline, PlanOnly: o.PlanOnly,
			AllowEgress: egressOf(c, o), ModelSeesPrivate: t.SeesPrivate, Choice: o.Begun, More: o.More,
		},
		Spent: func(call pi.Call) { d.Enter(Finished{call.Start, call.Result, call.Before}) },
		Say:   o.Warn,
	}
	d.Pool, d.Closers = network, []func() error{network.Close, vs.Close}
	if offline(a, c, o) == "" && slices.ContainsFunc(members, func(m dispatch.Member) bool { return m.Trust != dispatch.Own }) {
		if cfg.Refetch, err = a.refetcher(c, o, d); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	d.Researcher = pi.New(cfg)
	return d, nil
}

// egressOf are the members whose findings others may be told.
func egressOf(c *settings.Settings, o Options) []string {
	return append(slices.Clone(o.AllowEgress), c.List(settings.AllowEgress)...)
}

// checkBeforehand finds what is wrong with the options of a network's members
// before any of them is started: a child process could only fail with it.
func (a *Host) checkBeforehand(c *settings.Settings, o Options) error {
	library, err := a.OpenLibrary(c, o.Library, o.Embedded)
	if err != nil {
		return err
	}
	if err := CloseFolders(library); err != nil {
		return err
	}
	if _, err := a.openEngines(c, o.Search); err != nil && offline(a, c, o) == "" && o.wants(web.Name) {
		return err
	}
	_, err = FetchAllow(c)
	return err
}

// refetcher gets documents again that an external researcher cites.
func (a *Host) refetcher(c *settings.Settings, o Options, d *Runner) (func(context.Context, string) (pi.Document, error), error) {
	x := a.Extractor(c)
	pages, err := a.openWebFetcher(c, d.Records, x, o.Render)
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	d.Closers = append(d.Closers, d.closing(pages), x.Close)
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
