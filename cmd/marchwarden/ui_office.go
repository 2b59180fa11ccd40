package main

import (
	"context"
	"errors"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

var _ web.Office = (*bureau)(nil)

// clerk is the researcher behind the page. Every question has a desk of its own, since
// each may choose other researchers; a run that goes on is opened as it was begun.
type clerk struct{ *bureau }

// Research asks at a desk that it opens and closes.
func (k clerk) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
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
func (k clerk) options(ctx context.Context, req marchwarden.Request) (network.Options, error) {
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
func (k clerk) withDatabase(o network.Options) network.Options {
	if o.DB == "" && (o.Researcher == database.Name || slices.Contains(o.Researchers, database.Name)) {
		o.DB = k.base.DB
	}
	return o
}

// Members are those who can be asked. Whom the settings keep off the network can be
// chosen, if all that is missing is a word that questions may leave this machine.
func (b *bureau) Members() []web.Member {
	var out []web.Member
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
func (b *bureau) Ask(ctx context.Context, q web.Question) (marchwarden.TraceID, error) {
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
func (b *bureau) begin(ctx context.Context, req marchwarden.Request, choice *marchwarden.Choice) (marchwarden.TraceID, error) {
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
func (b *bureau) Resume(ctx context.Context, id marchwarden.TraceID, tokens int) error {
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
func (b *bureau) Remove(ctx context.Context, id marchwarden.TraceID) error {
	plan, err := homeOf(b.records, b.c).PlanCollection(ctx, record.CollectOptions{Now: b.a.Now(), Runs: []marchwarden.TraceID{id}})
	if err != nil {
		return err
	}
	gone, err := plan.Run(ctx)
	if err == nil && gone.Families == 0 { // since the plan was made
		return trace.Going(id)
	}
	return errors.Join(err, forgetDrift(b.records, b.c, plan), b.runs.Forget(ctx, id))
}
