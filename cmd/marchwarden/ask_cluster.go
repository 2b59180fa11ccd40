package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// workFlags are the flags that say with what researchers work, wherever they do.
func workFlags(f *pflag.FlagSet, o *network.Options) {
	f.BoolVar(&o.Online, "online", false, "let questions leave this machine: ask the web and arXiv, too")
	databaseFlags(f, o)
	f.StringVar(&o.Model, "model", "", "language `MODEL` that plans and writes; extractive for none")
	f.StringVar(&o.Search, "search", "", "search the web by this `LIST` of engines; implies --online")
	f.StringVar(&o.Render, "render", "", "`WHEN` to run pages that need JavaScript in a local Chromium: auto or never (default auto)")
	f.StringArrayVar(&o.Library, "library", nil, "search the folder `DIR`; may be given several times")
	f.BoolVar(&o.Embedded, "embedded", false, "search the embedded library too")
}

// databaseFlags are the flags of who may ask a database.
func databaseFlags(f *pflag.FlagSet, o *network.Options) {
	f.StringVar(&o.DB, "db", "", "ask the database at `URL`: postgres://…, mysql://…, or an SQLite file; read-only")
	f.BoolVar(&o.AllowSamples, "allow-samples", false, "show the model a few values of the database's tables before it asks for any")
}

// isolateFlag is the flag of processes. Earlier versions recorded its opposite, which is the default now.
func isolateFlag(f *pflag.FlagSet, o *network.Options) {
	f.BoolVar(&o.Isolate, "isolate", false, "run each built-in researcher in a process of its own")
	f.Bool("in-process", true, "")
	_ = f.MarkHidden("in-process")
}

// workElsewhere refuses flags of the worker where a cluster does the work.
func workElsewhere(c *settings.Settings, o network.Options, instead string) error {
	here := "leave out --engine to do the work here"
	if c.Text(settings.Engine) != "" {
		here = "say --engine " + settings.NoEngine + " to do the work here, since " + c.Label(settings.Engine) + " names a cluster"
	}
	for _, f := range []struct {
		flag  string
		given bool
	}{{"--library", len(o.Library) > 0}, {"--embedded", o.Embedded}, {"--db", o.DB != ""}, {"--allow-samples", o.AllowSamples}, {"--online", o.Online}, {"--model", o.Model != ""},
		{"--search", o.Search != ""}, {"--render", o.Render != ""}, {"--isolate", o.Isolate}} {
		if f.given {
			return invalid(f.flag, "give it to 'marchwarden worker', or "+here, "is for the workers of the cluster, and not for who asks "+instead)
		}
	}
	return nil
}

// askCluster has a cluster answer a question, and shows what happens and what comes of it.
func (a *app) askCluster(ctx context.Context, c *settings.Settings, o askOptions, at string, req marchwarden.Request) error {
	if err := workElsewhere(c, o.desk, "it"); err != nil {
		return err
	}
	id, name := a.NewID(), network.ResearcherFor(c, o.desk)
	t := dispatch.Task{ID: id, Record: id, Investigation: id, Priority: dispatch.Normal, Owner: a.owner(), Request: req,
		Wishes: dispatch.Wishes{Parallel: o.desk.Parallel, MaxRihlas: o.desk.MaxRihlas, AllowEgress: o.desk.AllowEgress, PlanOnly: o.desk.PlanOnly}}
	t.Queue, t.Wishes.Only = network.WorkerFor(name, o.desk.Researchers)
	t.Request.Question, t.Request.Context = a.Hide.Text(req.Question), a.Hide.Text(req.Context)
	var err error
	if t.Within, err = flagTime("--timeout", o.desk.Timeout, false); err != nil {
		return err
	}
	field := "--researcher"
	if o.desk.Researcher == "" {
		field = c.Label(settings.Researcher)
	}
	w := t.Wishes
	switch alone := name != settings.PI; {
	case !settings.MemberName.MatchString(name):
		return invalid(field, "", fmt.Sprintf("%q is no name of a researcher", plaintext.Clip(name, 40)))
	case alone && (len(o.desk.Researchers) > 0 || w.Parallel > 0 || w.MaxRihlas > 0 || len(w.AllowEgress) > 0 || w.PlanOnly):
		return invalid(field, "say --researcher "+settings.PI+" to let all of them work together", "asks "+name+" alone, and goes without --researchers, --parallel, --max-rihlas, --allow-egress and --plan")
	}
	if err := a.StartTracing(c); err != nil {
		return err
	}
	e, err := a.openCluster(ctx, c, at, a.logger(c))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := a.handIn(ctx, e, t); err != nil {
		return unreachable(ctx, at, err)
	}
	a.remember(c, submit.Sent{ID: id, Engine: at, Question: t.Request.Question, At: a.Now().UTC()})
	if !o.quiet && !o.json {
		a.note("submitted as %s", id)
		a.noteUnserved(ctx, e, t.Queue)
	}
	return a.follow(ctx, c, o, e, id)
}

// handIn submits a task, below a span of its own.
func (a *app) handIn(ctx context.Context, e dispatch.Client, t dispatch.Task) error {
	ctx, told := a.Tracer.Send(ctx, t.Queue)
	t.Span = a.Tracer.Carry(ctx)
	err := e.Submit(ctx, t)
	told(err)
	return err
}

// noteUnserved says that no worker serves a task's queue, if that is known.
func (a *app) noteUnserved(ctx context.Context, e *cluster.Engine, queue string) {
	workers, err := e.Workers(ctx)
	if err != nil || slices.ContainsFunc(workers, func(w cluster.Presence) bool { return w.Queues[queue].Slots > 0 }) {
		return
	}
	a.note("no worker that is there takes tasks for %s; it waits until one does", queue)
}

// follow shows what happens to a task until its end, brings its record home, and shows
// its result. An interrupt ends the watching; the task continues.
func (a *app) follow(ctx context.Context, c *settings.Settings, o askOptions, e dispatch.Engine, id marchwarden.TraceID) error {
	o.away = true
	w := a.newWatch(c, o)
	defer w.close()
	end, err := submit.Await(ctx, e, id, submit.Tell(w.event))
	w.close()
	if ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "stopped waiting; the research goes on", Err: errInterrupted,
			Hint: fmt.Sprintf("to come back to it: marchwarden watch %s; to end it: marchwarden cancel %s", shortID(id), shortID(id))}
	}
	if err != nil {
		return err
	}
	return a.receive(ctx, c, o, e, id, end, w)
}

// receive brings the record of an ended task home and shows its result.
func (a *app) receive(ctx context.Context, c *settings.Settings, o askOptions, e dispatch.Engine, id marchwarden.TraceID, end *dispatch.End, w *watch) error {
	if !end.Result.Valid() {
		return &marchwarden.Error{Code: firstCode(end.Code), Message: cmp.Or(end.Message, "the research was "+string(end.Status)), Hint: end.Hint}
	}
	stored, err := e.Blobs().Get(ctx, end.Result)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "get the result of %s", id)
	}
	res, err := marchwarden.DecodeResult(stored)
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeMalformed, "read the result of %s", id)
	}
	rec, err := a.OpenWorking(c)
	if err != nil {
		return err
	}
	d := &network.Runner{Name: settings.PI, Host: &a.Host, Settings: c, Records: rec, Warn: a.warn}
	start := a.settle(ctx, d, e, id, end, res)
	d.OpenWorld = leavesMachine(start)
	_, err = a.show(c, o, d, res, start, w)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if end.Status == dispatch.Canceled {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the research was canceled; the result is partial", Hint: "to resume it here: marchwarden resume " + shortID(id)}
	}
	return nil
}

func firstCode(code marchwarden.Code) marchwarden.Code {
	if code == "" {
		return marchwarden.CodeUnavailable
	}
	return code
}

// settle brings the record of a task home and into the ledger, and returns how the run
// was started, as far as that is known. A record that cannot be read or kept costs no
// answer.
func (a *app) settle(ctx context.Context, d *network.Runner, e dispatch.Engine, id marchwarden.TraceID, end *dispatch.End, res *marchwarden.Result) *trace.Start {
	unknown := &trace.Start{Researcher: d.Name}
	if !end.Trace.Valid() || res.TraceID != id { // of a researcher that keeps its own
		return unknown
	}
	h := submit.Home{Engine: e, Traces: d.Records.Traces, Blobs: d.Records.Blobs.Store}
	var b submit.Brought
	var err error
	if d.Records.Blobs.Store == nil {
		if b, err = h.Read(ctx, id, end); err == nil {
			a.warn("the record cannot be kept here; it is in the cluster")
		}
	} else if b, err = h.Bring(ctx, id, end); err == nil {
		var start *trace.Start
		if start, err = d.Complete(res); err == nil {
			return start
		}
	}
	if err != nil {
		a.warn("the record could not be brought home: " + err.Error())
	}
	if b.Start == nil {
		return unknown
	}
	return b.Start
}

// leavesMachine reports whether a run asked anything outside this machine.
func leavesMachine(start *trace.Start) bool {
	if start.Investigation != nil {
		return slices.ContainsFunc(start.Investigation.Members, func(m dispatch.Member) bool { return m.OpenWorld })
	}
	return slices.Contains([]string{researcher.WebName, researcher.ArxivName}, strings.TrimSpace(start.Researcher))
}
