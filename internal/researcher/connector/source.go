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

var (
	_ search.Engine = (*Connector)(nil)
	_ fetch.Fetcher = (*Connector)(nil)
)

// Name implements search.Engine.
func (c *Connector) Name() string { return c.cfg.Name }

// Search implements search.Engine. Many servers look for the words as one string: where they find
// nothing, its words are asked for one by one, the longest first.
func (c *Connector) Search(ctx context.Context, q search.Query) ([]search.Hit, error) {
	q, ok, err := search.Clean(q)
	if err != nil || !ok {
		return nil, err
	}
	found, err := c.ask(ctx, q.Text)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		found, err = c.byWords(ctx, q.Text)
	}
	c.remember(found)
	return c.tidy(found, q), err
}

func (c *Connector) ask(ctx context.Context, query string) ([]hit, error) {
	f, err := c.use(ctx, c.plan.search, query)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeOf(err), "search %s", c.cfg.Name)
	}
	return c.plan.search.hits(f, query), nil
}

// byWords asks for the longest words of a query one by one. What more of them find comes first.
func (c *Connector) byWords(ctx context.Context, query string) (out []hit, err error) {
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
		found, err := c.ask(ctx, w)
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
func (c *Connector) tidy(found []hit, q search.Query) (hits []search.Hit) {
	seen := map[string]bool{}
	for _, h := range found {
		date := plaintext.Date(h.published)
		outside := date != "" && (q.Since != "" && date < q.Since || q.Until != "" && date > q.Until)
		if seen[h.id] || len(h.id) > maxID || outside || len(hits) >= q.Limit || !q.Filter.Allows(cmp.Or(locator.Host(h.url), h.id)) {
			continue
		}
		seen[h.id] = true
		hits = append(hits, search.Hit{
			Locator: c.locator(h.id), Title: plaintext.Line(h.title, maxTitle), Snippet: plaintext.Line(h.text, maxSnippet),
			Score: 1 / float64(1+len(hits)), Published: date,
		})
	}
	return hits
}

// Fetch implements fetch.Fetcher for the locators that searches gave.
func (c *Connector) Fetch(ctx context.Context, loc string) (fetch.Page, error) {
	page, err := c.fetch(ctx, loc)
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeOf(err), "fetch %q", plaintext.Line(loc, maxTitle))
	}
	return page, nil
}

func (c *Connector) fetch(ctx context.Context, loc string) (fetch.Page, error) {
	id, ok := c.id(loc)
	if !ok {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "not a document of %s", c.cfg.Name)
	}
	c.mu.Lock()
	known := c.known[id]
	c.mu.Unlock()
	got, name, kind, err := c.read(ctx, id, known)
	if err != nil {
		return fetch.Page{}, err
	}
	if strings.TrimSpace(got.text) == "" {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "%s gave no text", c.cfg.Name)
	}
	raw := []byte(got.text)
	doc, err := c.cfg.Extractor.ExtractAs(ctx, name, kind, raw)
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
		Published: plaintext.Date(cmp.Or(got.published, known.published, doc.Published)), Origin: c.cfg.Name, // the addresses are the server's word
		MediaType: doc.MediaType, Extractor: doc.Extractor, NonText: doc.NonText, FetchedAt: c.cfg.Now().UTC(),
	}
	return fetch.Keep(ctx, c.cfg.Blobs, page, raw, doc.Text)
}

// read is a document, with the name and the media type that tell its format. Without a tool to
// fetch, it is what the search gave.
func (c *Connector) read(ctx context.Context, id string, known hit) (got hit, name, kind string, err error) {
	query, whole := strings.CutPrefix(id, wholeAnswer)
	if c.plan.fetch.name == "" || whole {
		if known.text == "" && whole { // in an earlier process
			found, err := c.ask(ctx, query)
			if err != nil || len(found) != 1 {
				return got, "", "", cmp.Or(err, error(marchwarden.Errorf(marchwarden.CodeNotFound, "%s answers otherwise than before", c.cfg.Name)))
			}
			known = found[0]
		}
		return known, formOf(id, known.text), "", nil
	}
	answer, err := c.use(ctx, c.plan.fetch, id)
	if err != nil {
		return got, "", "", err
	}
	got, file := c.plan.fetch.document(answer)
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
