package report

import (
	_ "embed"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// appScript is the script of AppPage. It speaks the MCP Apps protocol of 2026-01-26
// with the window around it.
//
//go:embed app.js
var appScript string

// appStyle is what the style sheet of AppPage has besides that of a report: links
// within the page are followed by the script, which leaves :target as it is.
const appStyle = `
.source.here, li.here { border-color: var(--link); box-shadow: 0 0 0 2px var(--link); }
.back { margin: .25rem 0; padding: .25rem .75rem; border: 1px solid var(--line); border-radius: .25rem; background: var(--box); color: var(--link); font: inherit; font-size: .875rem; cursor: pointer; }
.said { white-space: pre-wrap; }
#status:empty { margin: 0; }
`

// AppPage is the page in which an MCP host shows a result: the style sheet of a report,
// a title, and one script that puts what AppBody made in its place once the host hands
// it over. It holds nothing of any result and is the same bytes at every call. It loads
// nothing, and its policy lets it run only that script.
func AppPage() []byte {
	return []byte(h.Document{Title: "Research report", Style: style + appStyle, Script: appScript, Body: h.Fill(`<header><p class="kind">Marchwarden research report</p><h1 lang="" dir="auto" id="question">Research report</h1><p id="status" class="facts" role="status">This page shows what a call of a tool found, inside the program that made the call.</p></header>
<div id="view"></div>
`)}.String())
}

// AppBody is a result as a piece of HTML for AppPage: what the page of a report has
// under its title, byte for byte, for a report that knows the result and nothing else.
// So excerpts stand alone, without the stored text around them. The error is
// CodeInvalid, for no result.
func AppBody(res *marchwarden.Result) (string, error) {
	if res == nil {
		return "", marchwarden.Errorf(marchwarden.CodeInvalid, "there is no result to show")
	}
	p := newHTMLPage(&Report{Result: res})
	return h.Lines(p.summary(), p.content()).String(), nil
}
