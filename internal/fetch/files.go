package fetch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// Extractor reads the text of a document; *extract.Extractor is one. It is safe
// for concurrent use and keeps the promises made there.
type Extractor interface {
	Extract(ctx context.Context, name string, raw []byte) (extract.Document, error)
}

// sourceFile is the Source of a page that Files fetched.
const sourceFile = "file"

// Files fetches documents of local folders and of nothing else.
type Files struct {
	store   blob.Store
	extract Extractor
	now     func() time.Time
	folders []*Folder
}

// NewFiles makes a Fetcher over folders, which the caller keeps open and closes.
// Where two folders hold a locator, the first one given answers.
func NewFiles(store blob.Store, x Extractor, now func() time.Time, folders ...*Folder) *Files {
	return &Files{store: store, extract: x, now: now, folders: folders}
}

// Free says that reading costs nothing but time.
func (f *Files) Free() bool { return true }

// Fetch reads, extracts and stores the document at locator. Its errors, beyond
// those of Fetcher: a locator outside the folders, or hidden in one, is
// CodeDenied and nothing is opened; a document too large or damaged is
// CodeUnavailable.
func (f *Files) Fetch(ctx context.Context, locator string) (Page, error) {
	page, err := f.fetch(ctx, locator)
	if err != nil {
		code := CodeOf(ctx, err)
		switch _, own := errors.AsType[marchwarden.Code](err); {
		case own || code != marchwarden.CodeUnavailable:
		case errors.Is(err, fs.ErrNotExist):
			code = marchwarden.CodeNotFound
		case errors.Is(err, fs.ErrPermission), errors.Is(err, errNotRegular):
			code = marchwarden.CodeDenied
		}
		return Page{}, &marchwarden.Error{Code: code, Message: fmt.Sprintf("fetch %q", locator), Err: err}
	}
	return page, nil
}

// CodeOf classifies an error of a fetch by what went wrong, not by where. The caller's own
// end comes first: whatever failed then failed because of it. Whatever is left, a full
// disk or a damaged document, keeps this document from being used.
func CodeOf(ctx context.Context, err error) marchwarden.Code {
	var code marchwarden.Code
	var netErr net.Error
	switch {
	case ctx.Err() != nil:
		return marchwarden.CodeCanceled
	case errors.As(err, &code):
		return code
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &netErr) && netErr.Timeout():
		return marchwarden.CodeTimeout
	}
	return marchwarden.CodeUnavailable
}

func (f *Files) fetch(ctx context.Context, locator string) (Page, error) {
	if err := ctx.Err(); err != nil {
		return Page{}, err
	}
	var name string
	i := slices.IndexFunc(f.folders, func(f *Folder) (ok bool) {
		name, ok = f.Resolve(locator)
		return ok
	})
	if i < 0 {
		return Page{}, marchwarden.Errorf(marchwarden.CodeDenied, "not a document of the folders of this run")
	}
	folder := f.folders[i]
	raw, err := folder.Read(name)
	if err != nil {
		return Page{}, err
	}
	doc, err := f.extract.Extract(ctx, name, raw)
	if err != nil {
		// The time limit of one document is no cancellation of the run.
		return Page{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "extract text")
	}
	page := Page{
		Locator: locator, Source: sourceFile, Title: Title(name, doc), Author: doc.Author, Published: doc.Published,
		Origin: folder.Origin(name, doc), MediaType: doc.MediaType, Extractor: doc.Extractor, Links: doc.Links,
		Pages: doc.Pages, FetchedAt: f.now().UTC(), NonText: doc.NonText,
	}
	return Keep(ctx, f.store, page, raw, doc.Text)
}

// Keep stores the bytes of a page and, unless it is NonText, its text, and completes it
// with their references.
func Keep(ctx context.Context, store blob.Store, page Page, raw []byte, text string) (Page, error) {
	var err error
	if page.Raw, err = store.Put(ctx, raw); err != nil {
		return Page{}, fmt.Errorf("store bytes: %w", err)
	}
	page.RawBytes = len(raw)
	if page.NonText {
		return page, nil
	}
	if page.Text, err = store.Put(ctx, blob.Bytes(text)); err != nil {
		return Page{}, fmt.Errorf("store text: %w", err)
	}
	page.TextBytes = len(text)
	return page, nil
}
