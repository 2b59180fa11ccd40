package network

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/limit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher/database"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// Resumed reads a run that is to be resumed, and gives the options that it was begun with. Of o
// they keep the database, if it names one, and its time is added to that of the run. A rihla, an
// imported run and one that another process works on are refused.
func (o Options) Resumed(c *settings.Settings, rec *Records, id marchwarden.TraceID) (Options, *trace.Log, error) {
	log, err := rec.Traces.Load(id)
	if err != nil {
		return o, nil, err
	}
	start, err := log.Start()
	if err != nil {
		return o, nil, err
	}
	if start.PartOf {
		return o, nil, settings.Invalid("ID", "resume the investigation that sent it: 'marchwarden traces' lists it", fmt.Sprintf("run %s is a part of an investigation", id))
	}
	if foreign, err := rec.Traces.Foreign(id); err != nil || foreign { // its choice is of another installation
		return o, nil, cmp.Or(err, run.Imported(id))
	}
	if busy, err := rec.Traces.Busy(id); err != nil || busy {
		return o, nil, cmp.Or(err, trace.Going(id))
	}
	begun, err := o.AsBegun(c, start)
	if err != nil {
		return o, nil, err
	}
	begun = begun.forAsked()
	begun.DB = cmp.Or(o.DB, begun.DB) // one that is named now is refused if it is not asked
	return begun, log, nil
}

// forAsked leaves out what is for researchers that are not asked: what is recorded is all that the
// settings had to give.
func (o Options) forAsked() Options {
	names := o.Researchers
	if len(names) == 0 && o.Researcher != settings.PI && o.Researcher != "" {
		names = []string{o.Researcher}
	}
	if len(names) > 0 {
		return o.Narrowed(names)
	}
	return o
}

// AsBegun are the options of a run as it was begun, with what is added to its time. Those are
// asked who were in its network, whatever the settings would make of it today. A run whose record
// has a command line in the place of a choice, as earlier versions wrote it, is refused.
func (o Options) AsBegun(c *settings.Settings, start *trace.Start) (Options, error) {
	var choice marchwarden.Choice
	switch {
	case start.Choice != nil:
		choice = *start.Choice
	case len(start.Flags) > 0:
		return o, &marchwarden.Error{Code: marchwarden.CodeUnsupported, Message: "the run is of an earlier version, and cannot be resumed", Hint: "ask again"}
	}
	// Members choose as they did; the model of the run itself is the one that it had, and is no
	// model that the user has named for them.
	begun := Options{Choice: choice, Begun: &choice, BegunBy: cmp.Or(start.Model, NoModel), Warn: o.Warn, Told: o.Told, Log: o.Log}
	begun.DB = cmp.Or(o.DB, begun.DB)
	var err error
	if o.Timeout != "" {
		if begun.More, err = c.Deadline(o.Timeout, false); err != nil {
			return o, err
		}
	}
	names := []string{start.Researcher}
	if start.Investigation != nil {
		names = nil
		for _, m := range start.Investigation.Members {
			if slices.Contains(c.ResearcherNames(), m.Name) { // one that is gone is a gap
				names = append(names, m.Name)
			}
		}
		begun.Researchers = names
	} else if begun.Researcher == "" {
		begun.Researcher = start.Researcher
	}
	outside := slices.Contains(names, researcher.WebName) || slices.Contains(names, researcher.ArxivName)
	if outside && c.Given(settings.Online) && !c.On(settings.Online) {
		return o, settings.Invalid(c.Label(settings.Online), "unset it to resume this run", "is false, and the run asks the web")
	}
	begun.Online = begun.Online || outside && start.Investigation != nil
	return begun, nil
}

// OpenHere has the questions of a file answered in this process, within the limits that all such
// processes share. The caller calls end.
func (h *Host) OpenHere(c *settings.Settings, o Options, parallel int) (ask submit.Ask, end func() error, err error) {
	rules, err := limit.ParseRules(c.List(settings.Limits))
	if err != nil {
		return nil, nil, settings.Invalid(c.Label(settings.Limits), "for example anthropic requests 50/s", err.Error())
	}
	h.Limits = (&limit.Set{Rules: rules, Store: limit.Folder(filepath.Join(c.QueuePath(), "limits"), h.Now), Now: h.Now}).Limit
	d, err := h.Open(c, o)
	if err != nil {
		return nil, nil, err
	}
	kept, err := runs.Open(runs.Config{Researcher: d, Dir: c.RunsPath(), Now: h.Now, Name: submit.HereName, MaxRunning: parallel, Log: o.Log, Recorded: d.Records.Result})
	if err != nil {
		return nil, nil, errors.Join(err, d.Close())
	}
	earlier := func(res *marchwarden.Result) { _, _ = d.Complete(res) } // a ledger that cannot be read costs no answer
	here := &submit.Here{Runs: kept, Traces: d.Records.Traces, Earlier: earlier}
	return here.Ask, func() error { return errors.Join(kept.Close(context.Background()), d.Close()) }, nil
}

// PerQuestion is the researcher of a server whose questions each choose their researchers: the
// network is opened for every question, and a run that is resumed is opened as it was begun.
type PerQuestion struct {
	Host     *Host
	Settings *settings.Settings
	Records  *Records
	Base     Options         // what questions are asked with
	Cluster  *submit.Cluster // answers instead; nil if this process does
}

var _ marchwarden.Researcher = (*PerQuestion)(nil)

// Research asks the cluster, or a network that it opens and closes. A run of this machine
// resumes here.
func (p *PerQuestion) Research(ctx context.Context, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if p.Cluster != nil {
		capped := req
		done, err := p.Host.allow(ctx, p.Settings, &capped)
		if err != nil {
			return nil, err
		}
		defer done()
		res, err := p.Cluster.Research(ctx, capped, sink)
		if err == nil {
			d := &Runner{Name: settings.PI, Host: p.Host, Settings: p.Settings, Records: p.Records, Warn: p.Base.Warn, Caller: access.From(ctx).ID}
			_, err = d.Complete(res)
			return res, err
		}
		if req.Resume == "" || !errors.Is(err, dispatch.ErrNotAsked) || !errors.Is(err, marchwarden.CodeNotFound) {
			return nil, err
		}
	}
	o, err := p.Options(ctx, req)
	if err != nil {
		return nil, err
	}
	d, err := p.Host.Open(p.Settings, o)
	if err != nil {
		return nil, err
	}
	res, err := d.Research(ctx, req, sink)
	if closed := d.Close(); closed != nil {
		p.Base.Log.Warn("a researcher did not close", "error", closed)
	}
	return res, err
}

// Options are what a run is asked with. A run whose record names no choice, as earlier
// versions wrote it, is not asked: another researcher could learn the question.
func (p *PerQuestion) Options(ctx context.Context, req marchwarden.Request) (o Options, err error) {
	if req.Resume == "" {
		choice := runs.ChoiceOf(ctx)
		if choice == nil {
			return o, &marchwarden.Error{Code: marchwarden.CodeCanceled, Message: "the server ended before the run had begun", Hint: "ask again"}
		}
		o = p.Base
		o.Choice = *choice
		o = o.forAsked()
	} else {
		id, err := marchwarden.ParseTraceID(req.Resume)
		if err == nil {
			o, err = p.Resumed(id)
		}
		if err != nil {
			return o, err
		}
	}
	// The address of the server's database holds a password, and is not recorded then.
	if o.DB == "" && (o.Researcher == database.Name || slices.Contains(o.Researchers, database.Name)) {
		o.DB = p.Base.DB
	}
	return o, nil
}

// Choose is the choice of a question that names researchers, or leaves it to the server.
func (p *PerQuestion) Choose(names []string) (*marchwarden.Choice, error) {
	o := p.Base
	if p.Cluster != nil {
		return &marchwarden.Choice{Researchers: names, AllowEgress: o.AllowEgress}, nil
	}
	if len(names) > 0 {
		if err := p.Settings.AreMembers("--researchers", names); err != nil {
			return nil, err
		}
		o.Online = true // for those of them that need it: to name one is to mean it
		o = o.Narrowed(names)
		o.Researchers = names
	}
	if err := o.Check(p.Settings, settings.PI); err != nil {
		return nil, err
	}
	if _, err := p.Host.Seats(p.Settings, o); err != nil {
		return nil, err
	}
	return o.Recorded(p.Host, p.Settings), nil
}

// Resumed are the options of a run that is to be resumed.
func (p *PerQuestion) Resumed(id marchwarden.TraceID) (Options, error) {
	o, _, err := Options{Warn: p.Base.Warn, Told: p.Base.Told, Log: p.Base.Log}.Resumed(p.Settings, p.Records, id)
	return o, err
}

// NothingLeft says why a run did not go on.
func NothingLeft(req marchwarden.Request, time bool, res *marchwarden.Result) string {
	switch {
	case !res.CostMetadata.BudgetExhausted && (req.Constraints != nil || time):
		return "no cap has cut the run short: there was nothing left to do with more"
	case res.CostMetadata.BudgetExhausted:
		return "the run has ended at a cap; its gaps say which: to go on, add --budget N, --max-iterations N, --max-sources N, --max-cost USD or --timeout TIME"
	}
	return "the run has ended, and nothing was left to do"
}

// AsMuchAgain are the flags that give a run as much again of what it ran out of, by
// the names that its trace has for the caps.
func AsMuchAgain(exhausted []string, start *trace.Start) string {
	had := start.LimitsNow()
	more := map[budget.Limit]string{
		budget.Tokens: fmt.Sprintf("--budget %d", had.TokenBudget), budget.Iterations: fmt.Sprintf("--max-iterations %d", min(had.MaxIterations, marchwarden.MaxIterations)),
		budget.Sources: fmt.Sprintf("--max-sources %d", had.MaxSources), budget.Cost: fmt.Sprintf("--max-cost %v", had.MaxCostUSD),
		budget.Wall: fmt.Sprintf("--timeout %s", max(time.Second, start.Wall.Round(time.Second))),
	}
	var flags []string
	for _, what := range exhausted {
		if flag := more[budget.LimitOf(what)]; flag != "" {
			flags = append(flags, flag)
		}
	}
	if len(flags) == 0 {
		return more[budget.Tokens]
	}
	slices.Sort(flags)
	return strings.Join(slices.Compact(flags), " ")
}

// Watched completes a question that the local user wants to watch, with the choice of the options:
// it is due now. What could not be asked or run is refused.
func (o Options) Watched(h *Host, c *settings.Settings, q watch.Question) (watch.Question, error) {
	if err := o.Check(c, ResearcherFor(c, o)); err != nil {
		return q, err
	}
	if _, err := c.Deadline(o.Timeout, true); err != nil {
		return q, err
	}
	if len(q.Notify) > 0 {
		program, err := exec.LookPath(q.Notify[0])
		if err != nil {
			return q, settings.Invalid("--notify", "name a program that can be run, with its path", err.Error())
		}
		q.Notify[0] = h.Source().Absolute(program, h.Dir)
	}
	q.Request.Question, q.Request.Context = h.Hide.Text(q.Request.Question), h.Hide.Text(q.Request.Context)
	if o.DB != "" && h.openAddress(o.DB) == "" {
		return q, settings.Invalid("--db", "set MARCHWARDEN_DB where 'marchwarden watch run' runs", "may hold a password, which is not kept")
	}
	q.ID, q.Owner, q.Added, q.Due, q.Choice = h.NewID(), access.Local().ID, h.Now().UTC(), h.Now().UTC(), o.Recorded(h, c)
	return q, nil
}

// Watcher asks watched questions again, each with its own choice and limits. told hears of each.
func (p *PerQuestion) Watcher(told func(watch.Question, watch.Report)) *watch.Runner {
	h, c := p.Host, p.Settings
	api, indexes := h.openIndexes(c)
	return &watch.Runner{
		Book: watch.In(c.Home()), Store: p.Records.Store(), Now: h.Now, NewID: h.NewID, Told: told,
		Ask: func(ctx context.Context, q watch.Question, id marchwarden.TraceID, again bool) error {
			asked := *p
			asked.Base.Timeout = q.Timeout
			req := q.Request
			if again {
				req = marchwarden.Request{Resume: id.String()}
			}
			ctx, stop := context.WithCancel(runs.WithChoice(marchwarden.WithTraceID(ctx, id), q.Choice))
			defer stop()
			go runs.HeedStop(ctx, c.RunsPath(), id, stop)
			_, err := asked.Research(ctx, req, nil)
			return err
		},
		Drift: func(ctx context.Context, q watch.Question, id marchwarden.TraceID) (drift.Report, error) {
			return p.Records.CheckSources(ctx, h, c, id, SourceOptions{Library: q.Choice.Library, Timeout: SourcePatience})
		},
		Retracted: drift.Papers{ArXiv: api, Indexes: indexes}.Retracted,
		// The program runs without a shell and with little of the environment, which may hold keys.
		Notify: func(ctx context.Context, program []string, report []byte) error {
			ctx, done := context.WithTimeout(ctx, time.Minute)
			defer done()
			cmd := exec.CommandContext(ctx, program[0], program[1:]...)
			cmd.Env, cmd.Stdin, cmd.WaitDelay = append([]string{}, plainEnv(h.Env)...), bytes.NewReader(h.Hide.Bytes(report)), time.Second
			if said, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w %s", err, plaintext.Line(string(said), 200))
			}
			return nil
		},
	}
}
