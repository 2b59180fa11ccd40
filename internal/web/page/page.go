// Package page is what people see in a browser: the pages of `marchwarden ui`, their
// style sheets and their script. A view goes in, bytes come out.
//
// It owns the words, the order and the look of the pages, the addresses that they
// lead to, and the names of the fields of their forms. It knows no handler, no
// store and no clock: what a page shows is in its view, and times are shown in the
// zone that they carry.
//
// All text in a view is untrusted and cannot become markup: pages are written by package
// markup. No page has a script or a style of its own, so that a policy can
// forbid both, and none loads anything but what Static serves. Every change is a
// form with the token of its session. Without the script everything works but that
// a run is followed by itself.
package page

import h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"

// Frame is what every page has.
type Frame struct {
	Title string // of the window; the program's name is added
	CSRF  string // the token of the session's forms
	// User is who is signed in; "" is the local user, who cannot sign out.
	User string
	// Notice is one sentence about what was just done, or "".
	Notice string
	// Library says that there are folders to look after.
	Library bool
	// Bare leaves out the navigation, for those who are not signed in.
	Bare bool
}

type shell struct {
	Frame
	name string // of the page, for the style sheet
	here string // the entry of the navigation that it belongs to
	skip h.Node // further links for those who skip
	main h.Node
}

func (p shell) page() h.Node {
	return h.Fill(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{}Marchwarden</title>
<script src="{}"></script>
<link rel="stylesheet" href="{}">
<link rel="icon" type="image/svg+xml" href="{}">
</head>
<body class="page-{}">
<nav class="skips" aria-label="Skip links"><a href="#main">Skip to the content</a>{}</nav>
<header class="top"><a class="name" href="/"><img src="{}" alt="" width="22" height="22">Marchwarden</a>{}
<div class="tools"><button type="button" class="quiet scripted" id="theme">Theme</button>{}</div></header>
<main id="main" tabindex="-1">
{}
{}
</main>
<footer class="foot"><p>Text in quotation boxes is other people’s, as it was fetched. This page loads nothing from elsewhere.</p></footer>
</body>
</html>
`, with(p.Title, `{} · `), script, style, icon,
		p.name, p.skip, icon, p.navigation(),
		h.If(p.User != "" && !p.Bare, `<span class="who" lang="" dir="auto">{}</span> {}`, line(p.User), button(p.CSRF, OutPath, "Sign out", "quiet")), with(p.Notice, `<p class="notice" role="status">{}</p>`), p.main)
}

func (p shell) navigation() h.Node {
	entry := func(name, path, title string) h.Node {
		return h.Fill(`<li><a href="{}"{}>{}</a></li>`, h.Local(path), h.If(p.here == name, ` aria-current="page"`), title)
	}
	return h.If(!p.Bare, `<nav aria-label="Main"><ul>{}{}{}{}</ul></nav>`,
		entry("ask", AskPath, "Ask"), h.If(p.Library, `{}`, entry("library", LibraryPath, "Library")), entry("history", HistoryPath, "History"), entry("watch", WatchPath, "Watched"))
}
