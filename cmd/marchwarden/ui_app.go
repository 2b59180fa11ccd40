package main

import (
	"context"
	"errors"
	"io"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

var _ web.App = (*uiApp)(nil)

// uiResearcher is the researcher behind the page. It opens the network for every question,
// since each may choose other researchers; a run that is resumed is opened as it was begun.
type uiResearcher struct{ *uiApp }

// Research asks the cluster, or a network that it opens and closes. A run of this machine
// resumes here.
func (k uiResearcher) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if k.cluster != nil {
		res, err := k.cluster.Research(ctx, req, sink)
		if err == nil {
			d := &network.Runner{Name: settings.PI, Host: &k.a.Host, Settings: k.c, Records: k.records, Warn: k.base.Warn}
			_, err = d.Complete(res)
			return res, err
		}
		if req.Resume == "" || !errors.Is(err, dispatch.ErrNotAsked) || !errors.Is(err, marchwarden.CodeNotFound) {
			return nil, err
		}
	}
	o, err := k.options(ctx, req)
	if err != nil {
		return nil, err
	}
	d, err := k.a.Open(k.c, o)
	if err != nil {
		return nil, err
	}
	res, err := d.Research(ctx, req, sink)
	if closed := d.Close(); closed != nil {
		k.log.Warn("a researcher did not close", "error", closed)
	}
	return res, err
}

// options are what a run is asked with. A run whose record names no choice, as earlier
// versions wrote it, is not asked: another researcher could learn the question.
func (k uiResearcher) options(ctx context.Context, req marchwarden.Request) (network.Options, error) {
	if req.Resume == "" {
		choice := runs.ChoiceOf(ctx)
		if choice == nil {
			return network.Options{}, &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the server ended before the run had begun", Hint: "ask again"}
		}
		o := k.base
		o.Choice = *choice
		if len(o.Researchers) > 0 {
			o = o.Narrowed(o.Researchers)
		}
		return k.withDatabase(o), nil
	}
	id, err := marchwarden.ParseTraceID(req.Resume)
	if err != nil {
		return network.Options{}, err
	}
	var o askOptions
	if _, err := o.goingOn(k.c, k.records, id); err != nil {
		return o.desk, err
	}
	o.desk.Warn, o.desk.Told, o.desk.Log = k.base.Warn, k.base.Told, k.base.Log
	return k.withDatabase(o.desk), nil
}

// withDatabase adds the database of the server if it is asked and its address, which holds a
// password, is not recorded.
func (k uiResearcher) withDatabase(o network.Options) network.Options {
	if o.DB == "" && (o.Researcher == database.Name || slices.Contains(o.Researchers, database.Name)) {
		o.DB = k.base.DB
	}
	return o
}

// Members are those who can be asked. Whom the settings keep off the network can be
// chosen, if all that is missing is a word that questions may leave this machine.
func (b *uiApp) Members() []web.Member {
	var out []web.Member
	if b.cluster != nil {
		ctx, done := context.WithTimeout(context.Background(), dialTime)
		defer done()
		members, err := b.engine.Members(ctx)
		if err != nil {
			b.log.Warn("the cluster does not say who can be asked", "error", err)
		}
		for _, m := range members {
			out = append(out, web.Member{Name: m.Name, Scope: m.Scope, OpenWorld: m.OpenWorld, On: true})
		}
		return out
	}
	open := b.base
	open.Online = true
	for _, name := range settings.Builtin {
		kind := network.BuiltinNamed(name)
		m := web.Member{Name: name, Scope: kind.Outline(), OpenWorld: kind.OpenWorld, On: b.a.WhyOff(b.c, b.base, name) == ""}
		chosen := open
		chosen.Researchers = []string{name}
		if !m.On {
			m.Down = b.a.WhyOff(b.c, chosen, name)
		}
		out = append(out, m)
	}
	for _, m := range b.c.Members {
		if !m.External() {
			continue
		}
		one := web.Member{Name: m.Name, Scope: m.Scope, OpenWorld: true, On: !m.Off}
		if m.Off {
			one.Down = network.OffInFile
		}
		out = append(out, one)
	}
	return out
}

// Ask begins a run that is kept.
func (b *uiApp) Ask(ctx context.Context, q web.Question) (marchwarden.TraceID, error) {
	if b.cluster != nil {
		return b.begin(ctx, q.Request, &marchwarden.Choice{Researchers: q.Researchers, AllowEgress: b.base.AllowEgress})
	}
	o := b.base
	if len(q.Researchers) > 0 {
		if err := b.c.AreMembers("--researchers", q.Researchers); err != nil {
			return marchwarden.TraceID{}, err
		}
		o.Online = true // for those of them that need it: to name one is to mean it
		o = o.Narrowed(q.Researchers)
		o.Researchers = q.Researchers
	}
	if err := o.Check(&b.a.Host, b.c, settings.PI); err != nil {
		return marchwarden.TraceID{}, err
	}
	if _, err := b.a.Seats(b.c, o); err != nil {
		return marchwarden.TraceID{}, err
	}
	return b.begin(ctx, q.Request, o.Recorded(&b.a.Host, b.c))
}

// begin starts a run, or resumes one, and leaves it.
func (b *uiApp) begin(ctx context.Context, req marchwarden.Request, choice *marchwarden.Choice) (marchwarden.TraceID, error) {
	if b.unkept != nil {
		return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "nothing can be asked here, since nothing can be kept", Hint: "the log of the server says why"}
	}
	visit, err := b.runs.Begin(ctx, runs.Asked{Request: req, Choice: choice, Kind: runs.Task})
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	visit.End()
	return visit.ID(), nil
}

// Resume resumes a run, with more tokens if it ended for want of them.
func (b *uiApp) Resume(ctx context.Context, id marchwarden.TraceID, tokens int) error {
	var o askOptions
	if _, err := o.goingOn(b.c, b.records, id); err != nil {
		return err
	}
	req := marchwarden.Request{Resume: id.String()}
	if tokens > 0 {
		req.Constraints = &marchwarden.Constraints{TokenBudget: &tokens}
	}
	_, err := b.begin(ctx, req, nil)
	return err
}

// Remove removes a run with all that only it needed.
func (b *uiApp) Remove(ctx context.Context, id marchwarden.TraceID) error {
	plan, err := homeOf(b.records, b.c).PlanCollection(ctx, record.CollectOptions{Now: b.a.Now(), Runs: []marchwarden.TraceID{id}})
	if err != nil {
		return err
	}
	gone, err := plan.Run(ctx)
	if err == nil && gone.Families == 0 { // since the plan was made
		return trace.Going(id)
	}
	return errors.Join(err, b.runs.Forget(ctx, id))
}

// openCluster has a cluster answer what is asked on the page.
func (b *uiApp) openCluster(ctx context.Context, at string) error {
	limit, err := flagTime("--timeout", b.base.Timeout, false)
	if err != nil {
		return err
	}
	if b.engine, err = b.a.openCluster(ctx, b.c, at, b.log); err != nil {
		return err
	}
	b.cluster = &submit.Cluster{Engine: b.engine, NewID: b.a.NewID, Now: b.a.Now, Timeout: limit, Wishes: func(ctx context.Context) dispatch.Wishes {
		choice := runs.ChoiceOf(ctx)
		if choice == nil {
			return dispatch.Wishes{}
		}
		return dispatch.Wishes{Only: choice.Researchers, AllowEgress: choice.AllowEgress}
	}}
	return nil
}

func (b *uiApp) closeCluster() error {
	if b.engine == nil {
		return nil
	}
	return b.engine.Close()
}

// Rerun executes a run again on its record.
func (b *uiApp) Rerun(ctx context.Context, id marchwarden.TraceID) (same bool, words string, err error) {
	log, err := b.records.Traces.Load(id)
	if err != nil {
		return false, "", err
	}
	vs, err := b.a.OpenVectors(b.c)
	if err != nil {
		return false, "", err
	}
	again, err := rerunOf(ctx, log, b.records.Blobs, vs.Of)
	if err != nil || again.Same() {
		return err == nil, "", err
	}
	return false, replay.Difference(again.Want, again.Got), nil
}

// Drift fetches the sources of a run again and keeps what came of it.
func (b *uiApp) Drift(ctx context.Context, id marchwarden.TraceID, told func()) (drift.Report, error) {
	o := driftOptions{quiet: true, context: usualContext, timeout: usualPatience, library: b.base.Library, told: func(drift.Source) { told() }}
	rep, err := b.a.checkDrift(ctx, b.c, o, b.records.Store(), id)
	if err != nil {
		return rep, err
	}
	return rep, drift.Keep(b.c.Home(), rep)
}

// Drifted is what the last check found.
func (b *uiApp) Drifted(id marchwarden.TraceID) (drift.Report, string, bool) {
	last, ok, err := drift.Last(b.c.Home(), id)
	if err != nil {
		b.log.Warn("a check of sources cannot be read", "error", err)
	}
	if !ok || err != nil {
		return drift.Report{}, "", false
	}
	return last, last.Summary(b.a.inZone(last.CheckedAt)), true
}

// Formats are the forms in which a run can leave.
func (b *uiApp) Formats() []web.Format {
	var out []web.Format
	for _, f := range bundle.Formats() {
		out = append(out, web.Format{Name: f.Name, About: f.About, Suffix: f.Suffixes[0], Type: f.Type})
	}
	return out
}

// Export writes a run in one of them.
func (b *uiApp) Export(ctx context.Context, id marchwarden.TraceID, format string, w io.Writer) error {
	f, err := formatOf(exportOptions{format: format})
	if err != nil {
		return err
	}
	past, err := b.records.Store().Load(id)
	if err != nil {
		return err
	}
	return f.Write(ctx, b.a.exportOf(b.c, b.records.Store(), past), w)
}
