package watch_test

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
	"os"
)

const (
	ferry   = "The ferry to Port Ellery leaves the harbour 9 times a day."
	keeper  = "The lighthouse of the harbour is kept by Marta Lindqvist."
	nets    = "Fishing nets are mended in the loft above the old boathouse."
	crane   = "The crane of the shipyard lifts blocks of granite in summer."
	market  = "A market for salted herring opens on the quay each Saturday."
	ferry12 = "The ferry to Port Ellery leaves the harbour 12 times a day."
	keeper2 = "The lighthouse of the harbour is kept by Greta Olsen."
)

// harbour has four claims on two pages.
func harbour(t *testing.T) *world {
	w := newWorld(t)
	w.pages = map[string][]string{"/a": {ferry, keeper}, "/b": {nets, crane}}
	w.add(1, nil)
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err, w.told)
	}
	if r := w.told[0]; r.News() || r.Before.Valid() || r.TraceID != idOf(1) || r.Summary() != "first answer" {
		t.Fatalf("the first answer: %+v", r)
	}
	return w
}

// Of claims on two pages, exactly those that rested on the page that changed are reported.
func TestChangedPage(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		want   []string // the claims that do not stand
		source []string
		news   bool
		same   int
	}{
		"nothing":                  {func(*world) {}, nil, nil, false, 4},
		"another wording":          {func(w *world) { w.word = func(s string) string { return "As is told: " + s } }, nil, nil, false, 4},
		"words around the passage": {func(w *world) { w.pages["/a"] = []string{market, ferry, keeper} }, []string{"new " + market}, nil, true, 4},
		"both sentences of a page": {func(w *world) { w.pages["/a"] = []string{ferry12, keeper2} }, []string{"contradicted " + ferry, "changed " + keeper}, []string{"changed /a"}, true, 2},
		"a page that lost all":     {func(w *world) { w.pages["/b"] = []string{market} }, []string{"gone " + nets, "gone " + crane, "new " + market}, []string{"changed /b"}, true, 2},
		"one sentence of a page":   {func(w *world) { w.pages["/b"] = []string{crane} }, []string{"gone " + nets}, []string{"changed /b"}, true, 3},
		"a page that is gone":      {func(w *world) { delete(w.pages, "/b") }, []string{"gone " + nets, "gone " + crane}, []string{"gone /b"}, true, 2},
		"a page out of reach":      {func(w *world) { w.down["/b"] = true }, nil, []string{"unreachable /b"}, false, 2},
		"another page contradicts": {func(w *world) { w.pages["/c"] = []string{ferry12} }, []string{"contradicted " + ferry, "new " + ferry12}, nil, true, 3},
		"another page agrees":      {func(w *world) { w.pages["/c"] = []string{nets} }, nil, nil, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := harbour(t)
			c.change(w)
			r := w.day()
			if got := states(r); !slices.Equal(got, c.want) || r.Unchanged != c.same || r.News() != c.news || r.Before != idOf(1) {
				t.Errorf("%q, %d unchanged, news %t; want %q, %d, %t", got, r.Unchanged, r.News(), c.want, c.same, c.news)
			}
			var sources []string
			for _, s := range r.Sources {
				sources = append(sources, string(s.State)+" "+strings.TrimPrefix(s.Locator, w.site.URL))
			}
			if !slices.Equal(sources, c.source) {
				t.Errorf("sources: %q, want %q", sources, c.source)
			}
			if c.news != r.News() {
				t.Errorf("it is news: %v", r.News())
			}
			// What was reported is what the next answer is compared with.
			w.down = map[string]bool{}
			if again := w.day(); c.news && again.News() {
				t.Errorf("it is news twice: %q", states(again))
			}
		})
	}
}

// A paper that a registry calls retracted is reported once, with the claims that rest on it.
func TestRetracted(t *testing.T) {
	w := harbour(t)
	w.papers = map[string]string{w.site.URL + "/b": "retracted 10.1000/notice"}
	r := w.day()
	if got := states(r); !slices.Equal(got, []string{"retracted " + nets, "retracted " + crane}) || !r.News() || r.Sources[0].State != watch.Retracted || r.Sources[0].Detail != "retracted 10.1000/notice" {
		t.Errorf("%+v", r)
	}
	if r = w.day(); r.News() || r.Unchanged != 4 {
		t.Errorf("it is told twice: %+v", r)
	}
	// A first answer that rests on one says so.
	w.add(2, nil)
	if r = w.day(); !r.News() || len(r.Sources) != 1 || r.Sources[0].State != watch.Retracted {
		t.Errorf("%+v", r)
	}
}

// A run that was cut off resumes, and one that ended before it was compared is not asked for again.
func TestNothingTwice(t *testing.T) {
	w := harbour(t)
	w.now = w.now.Add(24 * time.Hour)
	ctx, stop := context.WithCancelCause(t.Context())
	w.hurt = func(context.Context) error { stop(errors.New("interrupted")); return ctx.Err() }
	if err := w.Run(ctx); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Fatal(err)
	}
	w.hurt = nil
	check := w.Drift
	ctx, stop = context.WithCancelCause(t.Context())
	w.Drift = func(ctx context.Context, q watch.Question, id marchwarden.TraceID) (r drift.Report, err error) {
		stop(errors.New("interrupted"))
		return r, ctx.Err()
	}
	if err := w.Run(ctx); marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Fatal(err)
	}
	w.Drift = check
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); err != nil { // nothing is due
		t.Fatal(err)
	}
	if want := []string{"ask 001", "ask 101", "resume 101"}; !slices.Equal(w.asked, want) || len(w.told) != 2 || w.told[1].Unchanged != 4 {
		t.Errorf("%q, %d reports", w.asked, len(w.told))
	}
}

// Two processes do not both ask, and one that is removed meanwhile is not reported on.
func TestAtOnce(t *testing.T) {
	w := harbour(t)
	w.now = w.now.Add(24 * time.Hour)
	w.hurt = func(ctx context.Context) error {
		other := w.Runner
		if err := other.Run(ctx); !errors.Is(err, durable.ErrLocked) {
			t.Errorf("the other process: %v", err)
		}
		return w.Book.Remove(idOf(1))
	}
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := w.Book.List(""); len(all) != 0 || err != nil || len(w.told) != 1 || len(w.asked) != 2 {
		t.Errorf("%v, %v, %d reports, asked %q", all, err, len(w.told), w.asked)
	}
}

// An answer that fails, or says nothing because everything failed, leaves the answer before in its
// place, is asked for again within the hour, and does not stop others.
func TestFailures(t *testing.T) {
	w := harbour(t)
	w.add(2, nil)
	w.now = w.now.Add(24 * time.Hour)
	first := true
	w.hurt = func(context.Context) error {
		if first {
			first = false
			return marchwarden.Errorf(marchwarden.CodeUnavailable, "no model \x1b[31m")
		}
		return nil
	}
	if err := w.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "1 watched question failed") {
		t.Errorf("%v", err)
	}
	if r := w.told[1]; !strings.Contains(r.Failed, "no model") || r.News() || len(w.told) != 3 || w.told[2].Failed != "" {
		t.Errorf("%+v", w.told)
	}
	w.now = w.now.Add(time.Hour)
	if err := w.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := w.told[3]; r.Before != idOf(1) || r.Unchanged != 4 || r.ID != idOf(1) {
		t.Errorf("%+v", r)
	}
}

// The program for notice gets news and nothing else; one that fails is reported, and one that was
// not run because the process ended is run later.
func TestNotice(t *testing.T) {
	w := newWorld(t)
	w.pages = map[string][]string{"/a": {ferry}}
	w.add(1, func(q *watch.Question) { q.Notify = []string{"/bin/tell", "me"} })
	for range 2 {
		w.day()
	}
	if len(w.notices) != 0 {
		t.Errorf("without news: %q", w.notices)
	}
	w.pages["/a"] = []string{keeper}
	w.notify = func(program []string) error { return errors.New(strings.Join(program, " ") + " is not there") }
	w.now = w.now.Add(24 * time.Hour)
	if err := w.Run(t.Context()); err == nil {
		t.Error("the failure is not told")
	}
	var got watch.Report
	if err := json.Unmarshal([]byte(w.notices[0]), &got); err != nil || !got.News() || got.Question != question {
		t.Errorf("%v %s", err, w.notices[0])
	}
	if q, err := w.Book.Find("0198c0de-0000-7000-8000-000000000001"); err != nil || !strings.Contains(q.Reports[2].Notice, "is not there") {
		t.Errorf("%v %+v", err, q.Reports)
	}
	w.pages["/a"] = []string{nets}
	ctx, stop := context.WithCancel(t.Context())
	w.notify = func([]string) error { stop(); return ctx.Err() }
	w.now = w.now.Add(24 * time.Hour)
	if err := w.Run(ctx); err == nil {
		t.Error("it was not interrupted")
	}
	w.notify = nil
	if err := w.Run(t.Context()); err != nil || len(w.notices) != 3 || w.notices[1] != w.notices[2] || len(w.asked) != 4 {
		t.Errorf("%v, %d notices, asked %q", err, len(w.notices), w.asked)
	}
}

// A loop asks when a question is due, and ends with its context.
func TestLoop(t *testing.T) {
	w := harbour(t)
	ctx, stop := context.WithCancel(t.Context())
	slept := time.Duration(0)
	err := w.Loop(ctx, func(ctx context.Context, d time.Duration) error {
		if slept += d; slept > 25*time.Hour {
			stop()
			return ctx.Err()
		}
		w.now = w.now.Add(d)
		return nil
	}, func(err error) { t.Error(err) })
	if !errors.Is(err, context.Canceled) || len(w.asked) != 2 {
		t.Errorf("%v, asked %q", err, w.asked)
	}
}

// Files are private, whole and checked.
func TestBook(t *testing.T) {
	w := harbour(t)
	path := filepath.Join(w.Book.Dir, idOf(1).String()+".json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	for _, every := range []time.Duration{0, time.Minute, 367 * 24 * time.Hour} {
		if err := w.Book.Add(watch.Question{ID: idOf(3), Every: every, Request: marchwarden.Request{Question: "x"}}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("every %s: %v", every, err)
		}
	}
	if err := w.Book.Add(watch.Question{ID: idOf(1), Every: time.Hour, Request: marchwarden.Request{Question: "x"}}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
		t.Errorf("twice: %v", err)
	}
	if ids, err := w.Book.Needed(); err != nil || !slices.Contains(ids, idOf(1)) {
		t.Errorf("%v %v", ids, err)
	}
	if got := w.Book.Answers("local"); !got[idOf(1)] || len(w.Book.Answers("token:ann"))+len(w.Book.Answers("")) > 0 {
		t.Errorf("%v", got)
	}
	text, _ := os.ReadFile(path)
	for damage, code := range map[string]marchwarden.Code{"": marchwarden.CodeCorrupt, string(text[:len(text)/2]): marchwarden.CodeCorrupt, strings.Replace(string(text), `"format": 1`, `"format": 9`, 1): marchwarden.CodeUnsupported,
		strings.Replace(string(text), "000000000001", "000000000002", 1): marchwarden.CodeCorrupt} {
		if err := os.WriteFile(path, []byte(damage), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := watch.Read(path); marchwarden.CodeOf(err) != code {
			t.Errorf("%q: %v", damage, err)
		}
	}
	w.add(2, nil) // others are asked all the same
	if err := w.Run(t.Context()); err == nil || len(w.told) != 2 {
		t.Errorf("%v, %d reports", err, len(w.told))
	}
}
