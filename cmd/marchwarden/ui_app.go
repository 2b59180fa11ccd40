package main

import (
	"cmp"
	"context"
	"errors"
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch/cluster"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/httpapi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/runs"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/submit"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	living "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web"
)

var _ web.App = (*uiApp)(nil)

// Members are those who can be asked. Whom the settings keep off the network can be
// chosen, if all that is missing is a word that questions may leave this machine.
func (b *uiApp) Members() (out []web.Member) {
	if b.answers.Cluster != nil {
		ctx, done := context.WithTimeout(context.Background(), cluster.DialTime)
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
	for _, e := range network.Roster(b.answers.Settings, b.answers.Base) {
		m := web.Member{Name: e.Name, Scope: e.Scope, OpenWorld: e.OpenWorld, On: e.Off == ""}
		if !m.On {
			chosen := b.answers.Base
			chosen.Online, chosen.Researchers = true, []string{e.Name}
			m.Down = network.WhyOff(b.answers.Settings, chosen, e.Name)
		}
		out = append(out, m)
	}
	return out
}

// Examples are questions on what ships with the program, where that is searched.
func (b *uiApp) Examples() []string {
	if b.answers.Cluster != nil {
		return nil
	}
	return network.Examples(b.answers.Settings, b.answers.Base)
}

// Ask begins a run that is kept.
func (b *uiApp) Ask(ctx context.Context, q web.Question) (marchwarden.TraceID, error) {
	choice, err := b.answers.Choose(q.Researchers)
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	return b.begin(ctx, q.Request, choice)
}

// begin starts a run, or resumes one, and leaves it.
func (b *uiApp) begin(ctx context.Context, req marchwarden.Request, choice *marchwarden.Choice) (marchwarden.TraceID, error) {
	if b.unkept != nil {
		return marchwarden.TraceID{}, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "nothing can be asked here, since nothing can be kept", Hint: "the log of the server says why"}
	}
	visit, err := b.runs.Begin(ctx, runs.Asked{Request: req, Choice: choice, Keep: true})
	if err != nil {
		return marchwarden.TraceID{}, err
	}
	visit.End()
	return visit.ID(), nil
}

// Resume resumes a run, with more tokens if it ended for want of them.
func (b *uiApp) Resume(ctx context.Context, id marchwarden.TraceID, tokens int) error {
	if _, err := b.answers.Resumed(id); err != nil {
		return err
	}
	req := marchwarden.Request{Resume: id.String()}
	if tokens > 0 {
		req.Constraints = &marchwarden.Constraints{TokenBudget: &tokens}
	}
	_, err := b.begin(ctx, req, nil)
	return err
}

// keeps reports whether folders and watched questions are kept here: where this process answers.
func (b *uiApp) keeps() bool { return b.answers.Cluster == nil && b.unkept == nil }

// askWatched asks them when they are due, until ctx ends.
func (b *uiApp) askWatched(ctx context.Context) {
	w := b.answers.Watcher(func(q living.Question, r living.Report) {
		b.log.Info("a watched question was asked", "id", q.ID.String(), "report", r.Summary())
	})
	_ = w.Loop(ctx, httpapi.Sleep, func(err error) { b.log.Warn("watched questions", "error", err) }) // it ends with ctx
}

// Remove removes a run with all that only it needed.
func (b *uiApp) Remove(ctx context.Context, id marchwarden.TraceID) error {
	plan, err := b.answers.Records.Home(b.answers.Settings).PlanCollection(ctx, record.CollectOptions{Now: b.a.Now(), Runs: []marchwarden.TraceID{id}})
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
func (b *uiApp) openCluster(ctx context.Context) error {
	limit, err := flagTime("--timeout", b.answers.Base.Timeout, false)
	if err != nil {
		return err
	}
	if b.engine, err = b.a.openCluster(ctx, b.answers.Settings, b.log); err != nil {
		return err
	}
	b.answers.Cluster = &submit.Cluster{Engine: b.engine, NewID: b.a.NewID, Now: b.a.Now, Timeout: limit}
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
	log, err := b.answers.Records.Traces.Load(id)
	if err != nil {
		return false, "", err
	}
	again, err := network.Again(ctx, log, b.answers.Records.Blobs, b.a.OpenVectors(b.answers.Settings).Of)
	if err != nil || again.Same() {
		return err == nil, "", err
	}
	return false, replay.Difference(again.Want, again.Got), nil
}

// Drift fetches the sources of a run again and keeps what came of it.
func (b *uiApp) Drift(ctx context.Context, id marchwarden.TraceID, told func()) (drift.Report, error) {
	return b.answers.Records.CheckSources(ctx, &b.a.Host, b.answers.Settings, id, network.SourceOptions{Library: b.answers.Base.Library, Timeout: network.SourcePatience, Told: func(drift.Source) { told() }})
}

// Drifted is what the last check found.
func (b *uiApp) Drifted(id marchwarden.TraceID) (drift.Report, string, bool) {
	last, ok, err := drift.Last(b.answers.Settings.Home(), id)
	if err != nil {
		b.log.Warn("a check of sources cannot be read", "error", err)
	}
	if !ok || err != nil {
		return drift.Report{}, "", false
	}
	return last, last.Summary(b.a.inZone(last.CheckedAt)), true
}

// Formats are the forms in which a run can leave; PDF is none where nothing prints it.
func (b *uiApp) Formats() (out []web.Format) {
	for _, f := range bundle.Formats() {
		if f.Name != "pdf" || network.Printer(b.answers.Settings) != nil {
			out = append(out, web.Format{Name: f.Name, About: f.About, Suffix: f.Suffixes[0], Type: f.Type})
		}
	}
	return out
}

// Export writes a run in one of them.
func (b *uiApp) Export(ctx context.Context, id marchwarden.TraceID, format string, w io.Writer) error {
	f, err := formatOf(exportOptions{format: format})
	if err != nil {
		return err
	}
	past, err := b.answers.Records.Store().Load(id)
	if err != nil {
		return err
	}
	return f.Write(ctx, exportOf(b.a, b.answers.Settings, b.answers.Records.Store(), past), w)
}

// uiLibrary is the folders of the library, as 'marchwarden library' has them.
type uiLibrary struct{ *uiApp }

func (l uiLibrary) Folders(ctx context.Context) ([]web.Folder, error) {
	var out []web.Folder
	given := l.answers.Base.Library
	if len(given) == 0 {
		given = l.answers.Settings.List(settings.Library)
	}
	for _, path := range given {
		out = append(out, web.Folder{Path: path, Given: true})
	}
	kept, err := network.FolderInfos(ctx, l.answers.Settings)
	for _, f := range kept {
		out = append(out, web.Folder{Path: f.Path, Files: f.Files, Bytes: f.Bytes, Updated: f.Updated, Missing: f.Missing})
	}
	return out, err
}

func (l uiLibrary) Add(ctx context.Context, path string, told func(done, all int)) error {
	f, err := l.a.OpenFolder("", cmp.Or(path, l.answers.Settings.DocumentsPath()))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = network.AddFolder(ctx, &l.a.Host, l.answers.Settings, f, func(e marchwarden.Event) { told(e.Done, e.Total) })
	return err
}

func (l uiLibrary) Remove(ctx context.Context, path string) error {
	return network.RemoveFolder(ctx, l.answers.Settings, path)
}

func (l uiLibrary) Keep(name string, data []byte) error {
	return network.KeepDocument(&l.a.Host, l.answers.Settings, name, data)
}
