package web

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
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

var errNeedsScripts = marchwarden.Errorf(marchwarden.CodeUnavailable, "the page needs JavaScript to show its text")

// blank tells a page that says nothing, or nothing but that it needs scripts.
func blank(doc extract.Document) bool {
	return doc.Text == "" || len(doc.Text) < fewCharacters && strings.Contains(strings.ToLower(doc.Text), "javascript")
}
