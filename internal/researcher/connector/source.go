package connector

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// The sizes of what is shown of a hit, in characters.
const (
	maxTitle   = 300
	maxSnippet = 1000
	maxID      = 2000 // in bytes; a longer one is no id
)

type engine Connector

var _ search.Engine = (*engine)(nil)

// Name implements search.Engine.
func (e *engine) Name() string { return e.cfg.Name }

// Search implements search.Engine. Many servers look for the words as one string: where they find
// nothing, its words are asked for one by one, the longest first.
func (e *engine) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	found, err := e.ask(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		found, err = e.byWords(ctx, q.Text)
	}
	(*Connector)(e).remember(found)
	return e.tidy(found, q), err
}

func (e *engine) ask(ctx context.Context, query string) ([]hit, error) {
	f, err := (*Connector)(e).use(ctx, e.plan.search, query)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeOf(err), "search %s", e.cfg.Name)
	}
	return e.plan.search.hits(f, query), nil
}

// byWords asks for the longest words of a query one by one. What more of them find comes first.
func (e *engine) byWords(ctx context.Context, query string) (out []hit, err error) {
	const most = 4
	var asked []string
	for w := range lexicon.Words(query) {
		if len(w) > 2 && !lexicon.IsStop(w) && !slices.Contains(asked, w) {
			asked = append(asked, w)
		}
	}
	if len(asked) < 2 && (len(asked) == 0 || asked[0] == query) {
		return nil, nil
	}
	slices.SortStableFunc(asked, func(a, b string) int { return len(b) - len(a) })
	times := map[string]int{}
	for _, w := range asked[:min(len(asked), most)] {
		found, err := e.ask(ctx, w)
		if err != nil {
			return out, err
		}
		for _, h := range found {
			if times[h.id]++; times[h.id] == 1 {
				out = append(out, h)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b hit) int { return times[b.id] - times[a.id] })
	return out, nil
}

// tidy makes hits that keep the promises of search.Engine.
func (e *engine) tidy(found []hit, q search.Query) (hits []search.Hit) {
	seen := map[string]bool{}
	for _, h := range found {
		date := search.Date(h.published)
		outside := date != "" && (q.Since != "" && date < q.Since || q.Until != "" && date > q.Until)
		if seen[h.id] || len(h.id) > maxID || outside || len(hits) >= q.Limit || !q.Filter.Allows(cmp.Or(locator.Host(h.url), h.id)) {
			continue
		}
		seen[h.id] = true
		hits = append(hits, search.Hit{
			Locator: (*Connector)(e).locator(h.id), Title: plaintext.Line(h.title, maxTitle), Snippet: plaintext.Line(h.text, maxSnippet),
			Score: 1 / float64(1+len(hits)), Published: date,
		})
	}
	return hits
}

type fetcher Connector

var _ fetch.Fetcher = (*fetcher)(nil)

// Fetch implements fetch.Fetcher for the locators that searches gave.
func (f *fetcher) Fetch(ctx context.Context, loc string) (fetch.Page, error) {
	page, err := f.fetch(ctx, loc)
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeOf(err), "fetch %q", plaintext.Line(loc, maxTitle))
	}
	return page, nil
}

func (f *fetcher) fetch(ctx context.Context, loc string) (fetch.Page, error) {
	c := (*Connector)(f)
	id, ok := c.id(loc)
	if !ok {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "not a document of %s", f.cfg.Name)
	}
	known := c.recall(id)
	got, name, kind, err := f.read(ctx, id, known)
	if err != nil {
		return fetch.Page{}, err
	}
	if strings.TrimSpace(got.text) == "" {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "%s gave no text", f.cfg.Name)
	}
	raw := []byte(got.text)
	doc, err := f.cfg.Extractor.ExtractAs(ctx, name, kind, raw)
	if err != nil {
		code := marchwarden.CodeUnavailable
		if ctx.Err() != nil {
			code = marchwarden.CodeCanceled
		}
		return fetch.Page{}, marchwarden.Wrap(err, code, "extract text")
	}
	at, _ := locator.Canonical(cmp.Or(got.url, known.url))
	page := fetch.Page{
		Locator: loc, URL: at, Source: "connector", Title: plaintext.Line(cmp.Or(got.title, known.title, doc.Title, id), maxTitle), Author: doc.Author,
		Published: search.Date(cmp.Or(got.published, known.published, doc.Published)), Origin: f.cfg.Name, // the addresses are the server's word
		MediaType: doc.MediaType, Extractor: doc.Extractor, NonText: doc.NonText, FetchedAt: f.cfg.Now().UTC(),
	}
	return fetch.Keep(ctx, f.cfg.Blobs, page, raw, doc.Text)
}

// read is a document, with the name and the media type that tell its format. Without a tool to
// fetch, it is what the search gave.
func (f *fetcher) read(ctx context.Context, id string, known hit) (got hit, name, kind string, err error) {
	c := (*Connector)(f)
	query, whole := strings.CutPrefix(id, wholeAnswer)
	if f.plan.fetch.name == "" || whole {
		if known.text == "" && whole { // in an earlier process
			found, err := (*engine)(f).ask(ctx, query)
			if err != nil || len(found) != 1 {
				return got, "", "", cmp.Or(err, error(marchwarden.Errorf(marchwarden.CodeNotFound, "%s answers otherwise than before", f.cfg.Name)))
			}
			known = found[0]
		}
		return known, formOf(id, known.text), "", nil
	}
	answer, err := c.use(ctx, f.plan.fetch, id)
	if err != nil {
		return got, "", "", err
	}
	got, file := f.plan.fetch.document(answer)
	if file != nil {
		return got, path.Base(file.URI), file.MediaType, nil
	}
	return got, formOf(id, got.text), "", nil
}

// containers are the endings of files that are no text: what a server gives of one is its text.
var containers = []string{".pdf", ".docx", ".docm", ".xlsx", ".xlsm", ".pptx", ".pptm", ".ppsx", ".odt", ".ods", ".odp", ".epub", ".eml", ".mbox", ".ipynb", ".rtf"}

// formOf is a file's name that tells the format of a text: HTML as it looks, what the id says, else
// Markdown, which most servers write.
func formOf(id, text string) string {
	head := strings.ToLower(strings.TrimSpace(text[:min(len(text), 200)]))
	if strings.HasPrefix(head, "<!doctype html") || strings.HasPrefix(head, "<html") {
		return "page.html"
	}
	ending := strings.ToLower(path.Ext(id))
	if ending != "" && !strings.Contains(ending, " ") && !strings.Contains(id, "://") && !slices.Contains(containers, ending) {
		return path.Base(id)
	}
	return "page.md"
}
