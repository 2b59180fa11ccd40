package drift

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// unknown is a document, and the passages that are cited of it, before they are looked at.
func unknown(c cited, citations []marchwarden.Citation) (Source, []Passage) {
	first := citations[c.numbers[0]-1]
	src := Source{Locator: first.Locator, Title: first.Title, ContentHash: first.ContentHash, Citations: c.numbers, State: Unchecked}
	if c.doc != nil {
		src.Locator, src.FetchedAt = c.doc.Locator, c.doc.FetchedAt
	}
	passages := make([]Passage, len(c.numbers))
	for i, n := range c.numbers {
		passages[i] = Passage{Citation: n, Locator: citations[n-1].Locator, State: Unknown, Excerpt: citations[n-1].RawExcerpt}
	}
	return src, passages
}

// look finds out about one document and the passages that are cited of it. What it gives is
// worth nothing when ctx has ended.
func (cfg Config) look(ctx context.Context, c cited, citations []marchwarden.Citation) (Source, []Passage) {
	src, passages := unknown(c, citations)
	if c.doc == nil {
		src.Detail = "the document is not in the record"
		return src, passages
	}
	fetcher, kind, why := cfg.fetcherOf(c.doc)
	if fetcher == nil {
		src.Detail = why
		return src, passages
	}
	was := c.doc.Page
	was.Source = kind
	now, err := cfg.again(fetch.Within(ctx, c.doc.Run.Start.Request.Filter()), fetcher, was) // the filter that it was found under
	if err != nil {
		src.State, src.Why, src.Detail = Unreachable, cmp.Or(whys[marchwarden.CodeOf(err)], Unanswered), reason(err)
		if src.Why == Gone {
			stand(passages, Missing)
		}
		return src, passages
	}
	if now.URL != "" && was.URL != "" && now.URL != was.URL {
		src.MovedTo = now.URL
	}
	cfg.compare(ctx, was, now, &src, passages, citations)
	return src, passages
}

// stand says that all passages have one standing.
func stand(passages []Passage, state Standing) {
	for i := range passages {
		passages[i].State = state
	}
}

// fetcherOf is who fetches a document and as which kind; nil, and why, if none is
// to. Only what was fetched from here before is fetched.
func (cfg Config) fetcherOf(doc *run.Document) (fetcher fetch.Fetcher, kind, why string) {
	kind = doc.Source
	if kind == "" && doc.How == "refetched" { // by the investigator itself
		kind = "web"
	}
	switch f := cfg.Fetchers[kind]; {
	case f != nil:
		return f, kind, ""
	case kind == "":
		return nil, "", "another researcher read it; it was never fetched from here"
	case kind == "database":
		return nil, "", "rows of a database are not read again; ask anew, or 'marchwarden watch' the question"
	}
	return nil, "", "documents of kind " + kind + " are not fetched again"
}

// again fetches a document again. A Refetcher finds what it was beside what it fetches.
func (cfg Config) again(ctx context.Context, f fetch.Fetcher, was fetch.Page) (fetch.Page, error) {
	r, ok := f.(fetch.Refetcher)
	if !ok {
		return f.Fetch(ctx, was.Locator)
	}
	if raw, err := cfg.Store.Blobs.Get(ctx, was.Raw); err == nil {
		_, _ = cfg.Fetched.Put(ctx, raw) // of what is damaged nothing is expected
	}
	return r.Refetch(ctx, was)
}

// whys are how a document could not be had, by the code of the error; others are Unanswered.
var whys = map[marchwarden.Code]Why{marchwarden.CodeNotFound: Gone, marchwarden.CodeDenied: Refused}

// reason is an error without its first words, which name the locator once more.
func reason(err error) string {
	if e, ok := errors.AsType[*marchwarden.Error](err); ok && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// compare fills in what became of a document that was had, and of its passages.
func (cfg Config) compare(ctx context.Context, was, now fetch.Page, src *Source, passages []Passage, citations []marchwarden.Citation) {
	switch {
	case now.Raw.Valid() && now.Raw == was.Raw, now.Text.Valid() && now.Text == was.Text:
		src.State = Unchanged
		stand(passages, Present)
		return
	case now.NonText && !was.NonText:
		src.State, src.Detail = Changed, fmt.Sprintf("it is no text any more (%s)", now.MediaType)
		stand(passages, Missing)
		return
	case was.NonText:
		src.State, src.Detail = Changed, "it is no text"
		return
	}
	text, err := blob.Text(ctx, cfg.Fetched, now.Text)
	if err != nil { // unreachable unless a fetcher stores elsewhere
		src.State, src.Why, src.Detail = Unreachable, Unanswered, err.Error()
		return
	}
	t := texts{now: text}
	// What is damaged is for others to report, and an excerpt is in the result.
	t.old, _ = blob.Text(ctx, cfg.Store.Blobs, was.Text)
	if t.reread = cfg.reread(ctx, was, now); t.reread != "" {
		src.Detail = fmt.Sprintf("both were read by %s, as the record was read by %s", now.Extractor, was.Extractor)
	}
	if same := cmp.Or(t.reread, t.old); same != "" && evidence.Fold(same) == evidence.Fold(text) {
		src.State = Unchanged // the same words are on the page, whatever is around them
		stand(passages, Present)
		return
	}
	src.State = Changed
	if now.MediaType != was.MediaType && was.MediaType != "" {
		src.Detail = fmt.Sprintf("it is %s now, and was %s", now.MediaType, was.MediaType)
	}
	for i := range passages {
		t.passage(&passages[i], citations[passages[i].Citation-1])
	}
}

// texts are those of a document that changed, as far as they could be read.
type texts struct {
	old, now string
	reread   string // the old bytes read as the new ones were, where that differs
}

// reread reads the recorded bytes as the new ones were read, if the record was read
// otherwise: what an extractor does better now is no change of the page. It is ""
// if there is no difference or nothing to read.
func (cfg Config) reread(ctx context.Context, was, now fetch.Page) string {
	if cfg.Extract == nil || was.Extractor == "" || was.Extractor == now.Extractor || was.MediaType != now.MediaType || was.Source != "web" && was.Source != "file" {
		return ""
	}
	raw, err := cfg.Store.Blobs.Get(ctx, was.Raw)
	if err != nil {
		return ""
	}
	doc, err := cfg.Extract.ExtractAs(ctx, cmp.Or(was.URL, was.Locator), was.MediaType, raw)
	if err != nil {
		return ""
	}
	return doc.Text
}

// passage finds out about one passage of a text that changed.
func (t texts) passage(p *Passage, by marchwarden.Citation) {
	excerpt := Quote(by)
	if by.RawExcerpt == marchwarden.ExcerptNonText || excerpt == "" {
		return
	}
	inside := by.Span != nil && by.Span.In(len(t.old)) && !whole(t.old, *by.Span) // the excerpt itself ends within a word
	present := stands(t.now, excerpt, inside)
	if !present && t.reread != "" && !stands(t.reread, excerpt, inside) {
		// Today's extractor does not find it in the old bytes either: it is looked for as it reads there.
		if read, ok := nearest(t.reread, excerpt); ok {
			excerpt, present = read, stands(t.now, read, true)
		}
	}
	if present {
		p.State = Present
		return
	}
	p.State = Missing
	if now, ok := nearest(t.now, excerpt); ok {
		p.State, p.Now = Altered, now
	}
}

// Files reads the files of folders again, and says which folder is wanted where it has none.
type Files struct {
	From    fetch.Fetcher
	Folders []*fetch.Folder
}

// Fetch implements fetch.Fetcher.
func (f Files) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	if !slices.ContainsFunc(f.Folders, func(d *fetch.Folder) bool { _, ok := d.Resolve(locator); return ok }) {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "its folder is not in the library, or not any more: --library names the folder it is in")
	}
	return f.From.Fetch(ctx, locator)
}
