package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hub"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
)

// workElsewhere refuses flags of the worker where a cluster does the work.
func workElsewhere(c *settings.Settings, o network.Options, instead string) error {
	here := "leave out --engine to do the work here"
	if c.Origin(settings.Engine) != "--engine" {
		here = "say --engine " + settings.NoEngine + " to do the work here, since " + c.Label(settings.Engine) + " names a cluster"
	}
	if flag := o.WorkFlag(); flag != "" {
		return invalid(flag, "give it to 'marchwarden worker', or "+here, "is for the workers of the cluster, and not for who asks "+instead)
	}
	return nil
}

// askCluster has a cluster answer a question, and shows what happens and what comes of it.
func askCluster(ctx context.Context, a *app, c *settings.Settings, o askOptions, req marchwarden.Request) error {
	if err := cmp.Or(byFlag(submit.NotFollowing(req)), workElsewhere(c, o.desk, "it")); err != nil {
		return err
	}
	t, err := taskFor(a, c, o.desk)
	if err != nil {
		return err
	}
	if t.Within, err = flagTime("--timeout", o.desk.Timeout, false); err != nil {
		return err
	}
	id, at := a.NewID(), c.Text(settings.Engine)
	t.ID, t.Record, t.Investigation, t.Request = id, id, id, req
	t.Request.Question, t.Request.Context = a.Hide.Text(req.Question), a.Hide.Text(req.Context)
	e, err := a.openCluster(ctx, c, a.logger(c))
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Submit(ctx, t); err != nil {
		return cluster.Unreachable(ctx, at, err)
	}
	sent := submit.Sent{ID: id, Engine: at, Question: t.Request.Question, At: a.Now().UTC()}
	if err := sent.Remember(c.SentPath()); err != nil { // then the whole id is needed
		a.warn("what was submitted could not be written down: " + durable.Cause(err))
	}
	if !o.quiet && !a.json {
		a.note("submitted as %s", id)
		workers, err := e.Workers(ctx)
		if err == nil && !slices.ContainsFunc(workers, func(w cluster.Presence) bool { return w.Queues[t.Queue].Slots > 0 }) {
			a.note("no worker that is there takes tasks for %s; it waits until one does", t.Queue)
		}
	}
	return followTask(ctx, a, c, o, e, id)
}

// taskFor is a task for who is meant by the options, without its question.
func taskFor(a *app, c *settings.Settings, o network.Options) (t dispatch.Task, err error) {
	name, field := network.ResearcherFor(c, o), "--researcher"
	if o.Researcher == "" {
		field = c.Label(settings.Researcher)
	}
	switch {
	case !settings.MemberName.MatchString(name):
		return t, invalid(field, "", fmt.Sprintf("%q is no name of a researcher", plaintext.Clip(name, 40)))
	case name != settings.PI && (len(o.Researchers) > 0 || o.Parallel > 0 || o.MaxRihlas > 0 || len(o.AllowEgress) > 0 || o.PlanOnly):
		return t, invalid(field, "say --researcher "+settings.PI+" to let all of them work together", "asks "+name+" alone, and goes without --researchers, --parallel, --max-rihlas, --allow-egress and --plan")
	}
	t = dispatch.Task{Priority: dispatch.Normal, Owner: a.owner(), Wishes: dispatch.Wishes{Parallel: o.Parallel, MaxRihlas: o.MaxRihlas, AllowEgress: o.AllowEgress, PlanOnly: o.PlanOnly}}
	t.Queue, t.Wishes.Only = network.WorkerFor(name, o.Researchers)
	return t, nil
}

// followTask shows what happens to a task until its end, brings its record home, and shows
// its result. An interrupt ends the watching; the task continues.
func followTask(ctx context.Context, a *app, c *settings.Settings, o askOptions, e dispatch.Engine, id marchwarden.TraceID) error {
	o.away = true
	w := newWatch(a, c, o)
	defer w.close()
	end, err := submit.Follow(ctx, e, &dispatch.Watching{Task: id}, submit.Tell(w.event))
	w.close()
	if ctx.Err() != nil {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "stopped waiting; the research goes on", Err: errInterrupted,
			Hint: fmt.Sprintf("to come back to it: marchwarden follow %s; to end it: marchwarden cancel %s", shortID(id), shortID(id))}
	}
	if err != nil {
		return err
	}
	res, err := submit.ResultOf(ctx, e.Blobs(), id.String(), end)
	if err != nil {
		return err
	}
	rec, err := a.OpenWorking(c)
	if err != nil {
		return err
	}
	d := &network.Runner{Name: settings.PI, Host: &a.Host, Settings: c, Records: rec, Warn: a.warn}
	start := d.BringHome(ctx, e, id, end, res)
	_, err = showResult(ctx, a, o, d, res, start)
	if err := errors.Join(err, d.Close()); err != nil {
		return err
	}
	if end.Status == dispatch.Canceled {
		return &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the research was canceled; the result is partial", Hint: "to resume it here: marchwarden resume " + shortID(id)}
	}
	return nil
}

var oneTask = argCount(1, 1, "one id")

func newFollow(a *app) *cobra.Command {
	var o askOptions
	cmd := a.verb("follow [flags] ID", "follow a research in a cluster until its result", oneTask, func(ctx context.Context, c *settings.Settings, args []string) error {
		if err := settings.CheckOut(o.out); err != nil {
			return err
		}
		e, state, err := openSent(ctx, a, c, args[0])
		if err != nil {
			return err
		}
		defer e.Close()
		o.desk.PlanOnly = state.Task.Wishes.PlanOnly
		return followTask(ctx, a, c, o, e, state.Task.ID)
	})
	engineFlag(cmd.Flags())
	o.showFlags(a, cmd.Flags())
	return cmd
}

func newCancel(a *app) *cobra.Command {
	cmd := a.verb("cancel [flags] ID", "end a research in a cluster", oneTask, func(ctx context.Context, c *settings.Settings, args []string) error {
		e, state, err := openSent(ctx, a, c, args[0])
		if err != nil {
			return err
		}
		defer e.Close()
		id := state.Task.ID
		if state.End != nil {
			a.note("%s had ended: %s", id, state.End.Status)
			return nil
		}
		if err := e.Cancel(ctx, id, "canceled by "+cmp.Or(a.owner(), "its owner")); err != nil {
			return err
		}
		a.note("%s is canceled; marchwarden follow %s shows what there is", id, shortID(id))
		return nil
	})
	engineFlag(cmd.Flags())
	return cmd
}

// openSent opens the cluster that has the task that an argument means, and looks how it
// is: the cluster of the flag, else the one to which it was submitted, else that of the
// settings. The caller closes it.
func openSent(ctx context.Context, a *app, c *settings.Settings, arg string) (e *cluster.Engine, state dispatch.State, err error) {
	sent, err := submit.FindSent(c.SentPath(), arg, a.warn)
	if err != nil {
		return nil, state, err
	}
	if sent.Engine != "" && c.Origin(settings.Engine) != "--engine" {
		c.Values[settings.Engine] = settings.Value{Texts: []string{sent.Engine}}
	}
	if e, err = a.openCluster(ctx, c, a.logger(c)); err != nil {
		return nil, state, err
	}
	if state, err = e.Look(ctx, sent.ID); err != nil {
		return nil, state, errors.Join(err, e.Close())
	}
	return e, state, nil
}

func engineFlag(f *pflag.FlagSet) {
	settingFlag(f, "engine", settings.Engine, "use the cluster at this `URL`, such as nats://hub1:4222; several hubs with commas; "+settings.NoEngine+" for no cluster, whatever the settings say")
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// plainName is a name with nothing but letters, digits, dashes and underscores.
func plainName(s string) string {
	return strings.Trim(notPlain.ReplaceAllString(s, "-"), "-")
}

// owner is for whom the program asks.
func (a *app) owner() string {
	for _, name := range []string{"USER", "LOGNAME", "USERNAME"} {
		if v, ok := a.Env(name); ok && v != "" {
			return v
		}
	}
	return ""
}

// engineConfig is how the cluster of the settings is reached, under a name for people who look at the
// connections of a hub.
func (a *app) engineConfig(c *settings.Settings, log *slog.Logger) (cluster.Config, error) {
	at, err := c.NeedEngine()
	if err != nil {
		return cluster.Config{}, err
	}
	host, _ := os.Hostname() // none is none
	name := plainName(fmt.Sprintf("%s-%d-%s", cmp.Or(host, "unknown"), os.Getpid(), a.NewID().String()[24:]))
	cfg := cluster.Config{URL: at, Name: name, Now: a.Now, Log: log}
	if cfg.TLS, err = (hub.TLSFiles{Cert: c.Text(settings.EngineCert), Key: c.Text(settings.EngineCertKey), CA: c.Text(settings.EngineCA)}).Load(); err != nil {
		return cfg, err
	}
	if path := c.Text(settings.EngineKey); path != "" {
		if settings.PastedSeed(path) != "" {
			return cfg, invalid(c.Label(settings.EngineKey), "write the key to a file that only you can read, and give its path", "must be the path of a file, and holds a key itself")
		}
		cfg.Seed = func() ([]byte, error) { return hub.ReadSeed(path) }
		seed, err := cfg.Seed()
		if err != nil {
			return cfg, &marchwarden.Error{Code: marchwarden.CodeInvalid, Field: c.Label(settings.EngineKey), Message: "cannot be used", Err: err, Hint: marchwarden.HintOf(err)}
		}
		a.Hide.Learn(string(seed))
	}
	return cfg, nil
}

// openCluster connects to the cluster of the settings. The caller closes it.
func (a *app) openCluster(ctx context.Context, c *settings.Settings, log *slog.Logger) (*cluster.Engine, error) {
	cfg, err := a.engineConfig(c, log)
	if err != nil {
		return nil, err
	}
	return cluster.Dial(ctx, cfg)
}
