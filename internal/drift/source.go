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

// look finds out about one document and the passages that are cited of it. Its only
// error is that ctx ended before it had: the document is Unchecked then.
func (cfg Config) look(ctx context.Context, c cited, citations []marchwarden.Citation) (Source, []Passage, error) {
	first := citations[c.numbers[0]-1]
	src := Source{Locator: first.Locator, Title: first.Title, ContentHash: first.ContentHash, Citations: c.numbers, State: Unchecked}
	passages := make([]Passage, len(c.numbers))
	for i, n := range c.numbers {
		passages[i] = Passage{Citation: n, Locator: citations[n-1].Locator, State: Unknown, Excerpt: citations[n-1].RawExcerpt}
	}
	if c.doc == nil {
		src.Detail = "the document is not in the record"
		return src, passages, nil
	}
	was := c.doc.Page
	src.Locator, src.FetchedAt = was.Locator, was.FetchedAt
	fetcher, kind, why := cfg.fetcherOf(c.doc)
	if fetcher == nil {
		src.Detail = why
		return src, passages, nil
	}
	was.Source = kind
	if ctx.Err() != nil {
		return stopped(ctx, src, passages)
	}
	within := fetch.Within(ctx, c.doc.Run.Start.Request.Filter()) // which the document was found under
	now, err := again(within, fetcher, was)
	if ctx.Err() != nil {
		return stopped(ctx, src, passages)
	}
	if err != nil {
		src.State, src.Why, src.Detail = Unreachable, cmp.Or(whys[marchwarden.CodeOf(err)], Unanswered), reason(err)
		if src.Why == Gone {
			for i := range passages {
				passages[i].State = Missing
			}
		}
		return src, passages, nil
	}
	if now.URL != "" && was.URL != "" && now.URL != was.URL {
		src.MovedTo = now.URL
	}
	done, found := src, slices.Clone(passages)
	cfg.compare(ctx, comparison{was: was, now: now}, &done, found, citations)
	if ctx.Err() != nil { // which may have cut the comparison short
		return stopped(ctx, src, passages)
	}
	return done, found, nil
}

// stopped is what is known of a document that was not had before ctx ended.
func stopped(ctx context.Context, src Source, passages []Passage) (Source, []Passage, error) {
	src.Detail = "the check was stopped before"
	return src, passages, marchwarden.Wrap(ctx.Err(), marchwarden.CodeCanceled, "fetch %.300q", src.Locator)
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

func again(ctx context.Context, f fetch.Fetcher, was fetch.Page) (fetch.Page, error) {
	if r, ok := f.(fetch.Refetcher); ok {
		return r.Refetch(ctx, was)
	}
	return f.Fetch(ctx, was.Locator)
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

type comparison struct {
	was, now fetch.Page

	old, text string // the texts, as far as they could be read
	// reread is the old bytes read as the new ones were, where that differs.
	reread string
}

// compare fills in what became of a document that was had, and of its passages.
func (cfg Config) compare(ctx context.Context, c comparison, src *Source, passages []Passage, citations []marchwarden.Citation) {
	present := func() {
		src.State = Unchanged
		for i := range passages {
			passages[i].State = Present
		}
	}
	switch {
	case c.now.Raw.Valid() && c.now.Raw == c.was.Raw, c.now.Text.Valid() && c.now.Text == c.was.Text:
		present()
		return
	case c.now.NonText || c.was.NonText:
		src.State, src.Detail = Changed, "it is no text"
		if c.now.NonText && !c.was.NonText {
			src.Detail = fmt.Sprintf("it is no text any more (%s)", c.now.MediaType)
			for i := range passages {
				passages[i].State = Missing
			}
		}
		return
	}
	text, err := cfg.Fetched.Get(ctx, c.now.Text)
	if err != nil { // unreachable unless a fetcher stores elsewhere
		src.State, src.Why, src.Detail = Unreachable, Unanswered, err.Error()
		return
	}
	// What is damaged is for others to report, and an excerpt is in the result.
	old, _ := cfg.Store.Blobs.Get(ctx, c.was.Text)
	c.text, c.old = string(text), string(old)
	src.State = Changed
	if c.reread = cfg.reread(ctx, c.was, c.now); c.reread != "" {
		src.Detail = fmt.Sprintf("both were read by %s, as the record was read by %s", c.now.Extractor, c.was.Extractor)
	}
	if same := cmp.Or(c.reread, c.old); same != "" && evidence.Fold(same) == evidence.Fold(c.text) {
		present() // the same words are on the page, whatever is around them
		return
	}
	if c.now.MediaType != c.was.MediaType && c.was.MediaType != "" {
		src.Detail = fmt.Sprintf("it is %s now, and was %s", c.now.MediaType, c.was.MediaType)
	}
	for i := range passages {
		c.passage(&passages[i], citations[passages[i].Citation-1])
	}
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
func (c comparison) passage(p *Passage, by marchwarden.Citation) {
	excerpt := Quote(by)
	if by.RawExcerpt == marchwarden.ExcerptNonText || excerpt == "" {
		return
	}
	inside := false // the excerpt itself ends within a word
	if by.Span != nil && by.Span.In(len(c.old)) {
		word, number := goesOn(c.old, *by.Span)
		inside = word || number
	}
	if stands(c.text, excerpt, inside) {
		p.State = Present
		return
	}
	// An excerpt that today's extractor does not find in the old bytes either is
	// looked for as it reads there.
	if c.reread != "" && !stands(c.reread, excerpt, inside) {
		if read, ok := nearest(c.reread, excerpt); ok {
			if stands(c.text, read, true) {
				p.State = Present
				return
			}
			excerpt = read
		}
	}
	now, ok := nearest(c.text, excerpt)
	if !ok {
		p.State = Missing
		return
	}
	p.State, p.Now, p.Diff = Altered, now, Diff(excerpt, now)
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

// NewScratch makes a store for what a check fetches: it reads what the record holds, which
// it never writes to, and keeps what is put in memory, so that a check leaves nothing behind.
func NewScratch(kept blob.Store) blob.Store { return scratch{blob.NewMem(), kept} }

type scratch struct {
	blob.Store // what was fetched
	kept       blob.Store
}

func (s scratch) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	content, err := s.Store.Get(ctx, ref)
	if errors.Is(err, blob.ErrNotFound) {
		return s.kept.Get(ctx, ref)
	}
	return content, err
}

func (s scratch) Stat(ctx context.Context, ref blob.Ref) (blob.Info, error) {
	info, err := s.Store.Stat(ctx, ref)
	if errors.Is(err, blob.ErrNotFound) {
		return s.kept.Stat(ctx, ref)
	}
	return info, err
}
