package web

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
)

// onePage fetches one page, whatever it is asked for.
type onePage fetch.Page

func (p onePage) Fetch(context.Context, string) (fetch.Page, error) { return fetch.Page(p), nil }

// citing is a run that cites documents, each at a part of its text. Their Raw is that of raw.
func (w *world) citing(n int, raw string, text string, span marchwarden.Span, pages ...fetch.Page) marchwarden.TraceID {
	w.t.Helper()
	id := idOf(n)
	out := w.writes(id, "What does it say?")
	rec := replay.Record(out, w.blobs, func() time.Duration { return 0 }, nil)
	res := marchwarden.Result{TraceID: id, CostMetadata: marchwarden.CostMetadata{ModelID: "extractive/1"}}
	for i, p := range pages {
		c := w.cite(text+strings.Repeat(".", i), span.Start, span.End)
		p.Locator, p.Source, p.RawBytes, p.TextBytes = c.Locator+strings.Repeat("x", i), "file", len(raw), len(text)+i
		c.Locator = p.Locator
		ref, err := w.blobs.Put(w.t.Context(), []byte(raw))
		if err == nil {
			p.Raw = ref
			p.Text, err = w.blobs.Put(w.t.Context(), []byte(text+strings.Repeat(".", i)))
		}
		if err == nil {
			_, err = replay.Fetcher(rec, onePage(p)).Fetch(w.t.Context(), p.Locator)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		res.Citations = append(res.Citations, c)
	}
	w.ends(out, &res)
	_ = out.Close()
	return id
}

// A citation of a PDF has a picture of its page, drawn once, of that document and no other.
func TestPicture(t *testing.T) {
	const text, stored = "The first page.\n\nBeans fix nitrogen. Peas do.\n\nThe last.", "%PDF-1.7 as it was stored"
	var asked []Passage
	var fails error
	w := newWorld(t, func(cfg *Config) {
		cfg.Draw = func(_ context.Context, pdf []byte, at Passage) ([]byte, error) {
			if string(pdf) != stored {
				t.Errorf("it draws %q", pdf)
			}
			asked = append(asked, at)
			return []byte("a picture"), fails
		}
	})
	span := marchwarden.Span{Start: strings.Index(text, "fix"), End: len(text)} // it ends on the next page
	begins := []int{0, strings.Index(text, "Beans"), strings.Index(text, "The last")}
	id := w.citing(1, stored, text, span, fetch.Page{MediaType: "application/pdf", Pages: begins}, fetch.Page{MediaType: "application/pdf"}, fetch.Page{MediaType: "text/html"},
		fetch.Page{MediaType: "application/pdf", Pages: []int{900, -4, 7}}) // a record that was tampered with
	b := w.local()
	_, panel := b.get(path(id, "/panel?source=1"))
	has(t, panel, `<img src="`+path(id, "/source/1/page")+`" alt="Page 2 of the PDF, with the excerpt marked"`, `<mark id="excerpt">fix nitrogen. Peas do.`)
	_, panel = b.get(path(id, "/panel?source=2"))
	has(t, panel, `alt="The page of the PDF`)
	_, panel = b.get(path(id, "/panel?source=3"))
	lacks(t, panel, "<img")
	_, whole := b.get(path(id, "/source/1"))
	has(t, whole, `<img src="`+path(id, "/source/1/page"))
	for range 2 {
		resp, body := b.send("GET", path(id, "/source/1/page"), nil)
		if resp.StatusCode != 200 || body != "a picture" || resp.Header.Get("Content-Type") != "image/png" || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %q %v", resp.StatusCode, body, resp.Header)
		}
	}
	b.get(path(id, "/source/2/page"))
	want := []Passage{{Text: "fix nitrogen. Peas do.\n\n", Page: 2, Before: "Beans "}, {Text: text[span.Start:], Before: text[:span.Start]}}
	if len(asked) != 2 || asked[0] != want[0] || asked[1] != want[1] {
		t.Errorf("asked for %+v", asked)
	}
	for _, other := range []string{"/source/3/page", "/source/5/page", "/source/0/page", "/source/x/page"} {
		if status, _ := b.get(path(id, other)); status != 404 {
			t.Errorf("%s: %d", other, status)
		}
	}
	fails = errors.New("a hostile document in /home/ann/papers")
	for range 2 {
		if status, text := b.get(path(id, "/source/4/page")); status != 404 || strings.Contains(text, "hostile") || strings.Contains(text, "papers") {
			t.Errorf("%d %s", status, mainOf(text))
		}
	}
	if len(asked) != 3 {
		t.Errorf("what fails was tried %d times", len(asked)-2)
	}
	if status, _, _ := b.post(path(id, "/delete"), map[string][]string{"confirmed": {"yes"}}); status != 303 || len(w.server.pictures) != 0 {
		t.Errorf("%d; %d pictures of a run that is gone", status, len(w.server.pictures))
	}
}

// One picture is drawn at a time, and none for a reader who has left.
func TestPictureOfWhoLeft(t *testing.T) {
	drawing := make(chan struct{})
	w := newWorld(t, func(cfg *Config) {
		cfg.Draw = func(ctx context.Context, _ []byte, _ Passage) ([]byte, error) {
			drawing <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	text := "Beans fix nitrogen."
	id := w.citing(1, "%PDF", text, marchwarden.Span{End: len(text)}, fetch.Page{MediaType: "application/pdf"})
	told, err := w.server.tell(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	pdf, at := w.server.printed(told, 1)
	first, leave := context.WithCancel(t.Context())
	second, leaveToo := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		_, err := w.server.drawn(first, pictureKey{id, 1}, pdf, at)
		ended <- err
	}()
	<-drawing
	go func() {
		_, err := w.server.drawn(second, pictureKey{id, 1}, pdf, at)
		ended <- err
	}()
	leaveToo()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) || len(w.server.pictures) != 0 {
		t.Errorf("%v; %d are kept", err, len(w.server.pictures))
	}
}
