// Package fetchtest holds a scripted fetcher for the tests of what is built on
// top of one. It is for tests only; it reads no file and no network.
package fetchtest

import (
	"context"
	"slices"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// Fake is a scripted fetch.Fetcher. Set its fields before the first fetch. It is
// safe for concurrent use.
type Fake struct {
	Store blob.Store               // where pages are stored; required
	Texts map[string]string        // the text of each page, by locator
	Pages map[string]fetch.Page    // title, author, date, origin, links… of a page, by locator; optional
	Errs  map[string]error         // what to fail with, by locator
	Delay map[string]time.Duration // how long a fetch takes, by locator; a cancelled one ends at once
	Now   time.Time                // FetchedAt of every page

	mu      sync.Mutex
	fetched []string // guarded by mu
}

// Fetch implements fetch.Fetcher: it stores the scripted text as both the bytes
// and the text. Where Pages is silent, the source is "file", and title and
// origin are the locator. A Page with NonText set has its bytes stored only. A
// locator without a script is CodeNotFound.
func (f *Fake) Fetch(ctx context.Context, locator string) (fetch.Page, error) {
	f.mu.Lock()
	f.fetched = append(f.fetched, locator)
	f.mu.Unlock()
	if d := f.Delay[locator]; d > 0 {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	if err := ctx.Err(); err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "fetch %q", locator)
	}
	if err, ok := f.Errs[locator]; ok {
		return fetch.Page{}, err
	}
	text, ok := f.Texts[locator]
	if !ok {
		return fetch.Page{}, marchwarden.Errorf(marchwarden.CodeNotFound, "fetch %q: no such page", locator)
	}
	return f.store(ctx, locator, text)
}

func (f *Fake) store(ctx context.Context, locator, text string) (fetch.Page, error) {
	ref, err := f.Store.Put(ctx, []byte(text))
	if err != nil {
		return fetch.Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "store %q", locator)
	}
	page := f.Pages[locator]
	page.Locator, page.Raw, page.RawBytes, page.FetchedAt = locator, ref, len(text), f.Now
	page.Source = orElse(page.Source, "file")
	page.Title = orElse(page.Title, locator)
	page.Origin = orElse(page.Origin, locator)
	page.MediaType = orElse(page.MediaType, "text/plain")
	page.Extractor = orElse(page.Extractor, "fake/1")
	if !page.NonText {
		page.Text, page.TextBytes = ref, len(text)
	}
	return page, nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Fetched returns the locators asked for so far, in the order the fetches began.
func (f *Fake) Fetched() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.fetched)
}
