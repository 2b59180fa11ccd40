package web

import (
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/access"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// chosen is a run of ann's that has recorded its choice, and says nothing.
func (w *world) chosen(id marchwarden.TraceID) {
	w.t.Helper()
	data, err := marchwarden.EncodeResult(&marchwarden.Result{TraceID: id, CompletedQuestion: "What is grown there?"})
	if err != nil {
		w.t.Fatal(err)
	}
	ref, err := w.blobs.Put(w.t.Context(), data)
	if err != nil {
		w.t.Fatal(err)
	}
	writer, err := w.traces.Create(id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range []trace.Step{&trace.Start{Format: trace.Format, TraceID: id, Researcher: "pi", Request: marchwarden.Request{Question: "And there?", Follow: idOf(9).String()}, StartedAt: time.Now(), Choice: &marchwarden.Choice{Online: true}},
		&trace.Complete{Result: ref}} {
		if err := writer.Append(s); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// A question is watched by a button, listed with its reports, and given up; only its owner
// and the local user see it, with its answers.
func TestWatch(t *testing.T) {
	var book watch.Book
	w, people := newTeam(t, func(cfg *Config) {
		book = watch.In(filepath.Join(t.TempDir(), "home"))
		cfg.Watched = book
	}, map[string][]string{"ann": asker, "bob": asker, "eve": {access.ScopeRead}})
	ann, bob := people["ann"], people["bob"]
	first, second := idOf(21), idOf(22)
	w.chosen(first)
	w.chosen(second)
	q := watch.Question{ID: first, Owner: "token:ann", Every: time.Hour, Request: marchwarden.Request{Question: question}, Last: second, Reports: []watch.Report{
		{ID: first, Question: question, At: time.Now(), TraceID: second, Before: first, Claims: []watch.Claim{{State: watch.Gone, Text: "They grow <alfalfa>."}}}, {ID: first, At: time.Now(), Failed: "open /srv/secret/place"}}}
	if err := book.Add(q); err != nil {
		t.Fatal(err)
	}
	_, text := ann.get("/watch")
	has(t, text, question, "They grow &lt;alfalfa&gt;.", "1 claim gone", "/runs/"+second.String(), "failed: open …")
	lacks(t, text, "/srv/secret")
	if status, text := ann.get(path(second, "")); status != 200 {
		t.Errorf("an answer to what she watches: %d %s", status, text)
	}
	for _, at := range []string{"/watch", "/history"} {
		_, text := bob.get(at)
		lacks(t, text, question, "alfalfa", second.String())
	}
	if status, _ := bob.get(path(second, "")); status != 404 {
		t.Errorf("another's: %d", status)
	}
	for _, b := range []*browser{bob, people["eve"]} {
		if status, _, _ := b.post("/watch/"+first.String()+"/remove", nil); status != 404 && status != 403 {
			t.Errorf("given up by another: %d", status)
		}
	}
	if status, _, _ := ann.post("/watch/"+first.String()+"/remove", nil); status != 303 {
		t.Errorf("given up: %d", status)
	}
	if all, err := book.List(""); len(all) != 0 || err != nil {
		t.Errorf("%v %v", all, err)
	}
}

// The button watches what was understood, with the choice of the run, and once.
func TestWatchButton(t *testing.T) {
	book := watch.In(t.TempDir())
	w := newWorld(t, func(cfg *Config) { cfg.Watched = book })
	b, id := w.local(), idOf(31)
	w.chosen(id)
	_, text := b.get(path(id, ""))
	has(t, text, "Watch this question")
	if status, to, _ := b.post(path(id, "/watch"), url.Values{}); status != 303 || !strings.HasPrefix(to, "/watch?") {
		t.Fatalf("%d %s", status, to)
	}
	all, err := book.List("local")
	if err != nil || len(all) != 1 || all[0].Request.Question != "What is grown there?" || all[0].Request.Follow != "" || all[0].Choice == nil || !all[0].Choice.Online || all[0].Last != id || len(all[0].Notify) > 0 {
		t.Errorf("%+v %v", all, err)
	}
	if status, _, text := b.post(path(id, "/watch"), url.Values{}); status != 400 {
		t.Errorf("twice: %d %s", status, text)
	}
	if status, _, text := b.post(path(w.run("", question), "/watch"), url.Values{}); status != 409 {
		t.Errorf("a run without a choice: %d %s", status, text)
	}
}
