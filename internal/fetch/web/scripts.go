package web

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
)

// fewCharacters is the length of text below which a page may be an empty frame.
const fewCharacters = 250

var (
	scriptTag = []byte("<script")
	noScript  = regexp.MustCompile(`(?s)<noscript.*?(?:javascript|</noscript)`)
	// appRoot finds the element that script frameworks fill, in lower-case HTML.
	appRoot = regexp.MustCompile(`<app-root|\s(ng-app|ng-version|data-reactroot|id\s*=\s*["']?(root|app|main-app|__next|__nuxt|___gatsby|svelte|q-app|react-root|ember-app|application)["'\s>/])`)
)

// needsScripts tells a page whose text is made in the browser: hardly any text,
// scripts, and a sign that they were to make more.
func needsScripts(raw []byte, doc extract.Document) bool {
	if doc.MediaType != "text/html" || utf8.RuneCountInString(doc.Text) >= fewCharacters {
		return false
	}
	raw = bytes.ToLower(raw[:min(len(raw), 1<<20)])
	return bytes.Contains(raw, scriptTag) && (doc.Text == "" || appRoot.Match(raw) || asksForScripts(raw))
}

// asksForScripts finds the sentence for browsers without scripts.
func asksForScripts(html []byte) bool {
	return slices.ContainsFunc(noScript.FindAll(html, -1), func(m []byte) bool { return bytes.HasSuffix(m, []byte("javascript")) })
}

var errNeedsScripts = &marchwarden.Error{
	Code: marchwarden.CodeUnavailable, Message: "the page needs JavaScript to show its text", Hint: "install Chromium and allow rendering to read such pages",
}

// render has the scripts of a page run and takes the outcome when it holds more
// text. A page that cannot be rendered stays what it was; if it was empty, the
// error says why.
func (f *Fetcher) render(ctx context.Context, got answer, doc extract.Document) (answer, extract.Document, error) {
	better, text, err := f.rendered(ctx, got)
	switch {
	case ctx.Err() != nil:
		return answer{}, extract.Document{}, ctx.Err()
	case err == nil && !blank(text) && (blank(doc) || len(text.Text) > len(doc.Text)):
		return better, text, nil
	case !blank(doc):
		return got, doc, nil
	case err != nil:
		return answer{}, extract.Document{}, err
	default:
		return answer{}, extract.Document{}, errNeedsScripts
	}
}

// blank tells a page that says nothing, or nothing but that it needs scripts.
func blank(doc extract.Document) bool {
	return doc.Text == "" || len(doc.Text) < fewCharacters && strings.Contains(strings.ToLower(doc.Text), "javascript")
}

func (f *Fetcher) rendered(ctx context.Context, got answer) (answer, extract.Document, error) {
	if f.cfg.Renderer == nil {
		return answer{}, extract.Document{}, errNeedsScripts
	}
	turn, err := f.hosts.enter(ctx, got.url.Hostname())
	if err != nil {
		return answer{}, extract.Document{}, err
	}
	defer turn.leave()
	ctx, cancel := context.WithTimeout(ctx, f.cfg.Timeout)
	defer cancel()
	html, at, err := f.cfg.Renderer.Render(ctx, got.url.String())
	if err != nil {
		return answer{}, extract.Document{}, &marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: "the page needs JavaScript, and running it failed", Err: err}
	}
	if int64(len(html)) > f.cfg.MaxBody {
		return answer{}, extract.Document{}, body{limit: f.cfg.MaxBody}.tooLarge()
	}
	final, err := f.renderedAt(ctx, got.url, at)
	if err != nil {
		return answer{}, extract.Document{}, err
	}
	// What a browser writes out is UTF-8, whatever the page came in.
	better := answer{url: final, status: http.StatusOK, raw: bytes.Clone(html), header: http.Header{"Content-Type": {"text/html; charset=utf-8"}}}
	doc, err := f.extract(ctx, better)
	return better, doc, err
}

// renderedAt checks where scripts went, "" for nowhere: a page elsewhere is one
// that the source filter and robots.txt there must allow.
func (f *Fetcher) renderedAt(ctx context.Context, from *url.URL, at string) (*url.URL, error) {
	if at == "" {
		return from, nil
	}
	loc, ok := locator.Followable(at)
	if !ok {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "its scripts went to an address that is refused")
	}
	final, err := url.Parse(loc)
	if err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "its scripts went to an address that is refused")
	}
	if !fetch.Allowed(ctx, final.Hostname()) {
		return nil, marchwarden.Errorf(marchwarden.CodeDenied, "its scripts went to %s, which is outside the source filter", final.Hostname())
	}
	if _, err := f.admit(ctx, final); err != nil {
		return nil, err
	}
	return final, nil
}
