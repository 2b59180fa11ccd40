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

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

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

// The addresses that pages lead to. Forms that change something are sent by POST;
// their fields are named in the comments. All of them carry "csrf" as well.
const (
	AskPath     = "/"               // GET: the form; ?from=ID fills it with an earlier question
	SubmitPath  = "/ask"            // POST: question, context, depth, format, token_budget, max_sources, researcher (repeated), follow
	HistoryPath = "/history"        // GET: q, status (repeated), researcher (repeated), offset
	LibraryPath = "/library"        // GET: the folders; POST: path, or documents for those that were handed over
	DropPath    = "/library/remove" // POST: path
	UploadPath  = "/library/files"  // POST ?name=NAME: a document, by the script
	WatchPath   = "/watch"          // GET: the watched questions
	OutPath     = "/out"            // POST
	StaticPath  = "/static/"        // GET: what Static serves
	runsPath    = "/runs/"
)

// What is done with a run: the last element of its address. Acts that change something are POST.
const (
	Cancel = "cancel" // POST
	Resume = "resume" // POST: token_budget, or none to use what is left
	Rerun  = "rerun"  // POST: the run again from its record, the results compared
	Check  = "drift"  // POST: fetch the sources again; GET: the last report
	Delete = "delete" // GET: Deletion; POST: confirmed=yes
	Follow = "watch"  // POST: watch the question
	Peek   = "panel"  // GET ?source=N: the panel alone, for the script
)

// RunPath is the address of a run: its answer, or its progress while there is none, which the
// script asks for again and again. A Retry-After has it try again where it failed. The answer takes ?source=N for the source in the panel.
func RunPath(id string) string { return runsPath + url.PathEscape(id) }

// ActPath is the address of an act on a run.
func ActPath(id, act string) string { return RunPath(id) + "/" + act }

// UnwatchPath is where the watching of a question is ended, by POST.
func UnwatchPath(id string) string { return WatchPath + "/" + url.PathEscape(id) + "/remove" }

// ExportPath is the address of a run in another form.
func ExportPath(id, format string) string { return RunPath(id) + "/export/" + url.PathEscape(format) }

// SourcePath is the address of the page of a citation's whole source, at the excerpt.
func SourcePath(id string, n int) string { return fmt.Sprintf("%s/source/%d#c%d", RunPath(id), n, n) }

// PicturePath is the address of a picture of the PDF page that a citation is from.
func PicturePath(id string, n int) string { return fmt.Sprintf("%s/source/%d/page", RunPath(id), n) }

//go:embed assets
var assets embed.FS

// Static serves what pages load, by its address. The name of a file has the hash of its content in
// it, so that browsers may keep it for good; another name is not found.
var Static = files{}

type files map[string][]byte

var script, style, icon = Static.add("app.js"), Static.add("style.css"), Static.add("icon.svg")

var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

func (f files) add(name string) h.Link {
	body, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("page: " + err.Error()) // it is part of the program
	}
	sum, ext := sha256.Sum256(body), path.Ext(name)
	at := StaticPath + strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	f[at] = body
	return h.Local(at)
}

// ServeHTTP serves the file that the last element of the request's path names, by GET and HEAD.
func (f files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, ok := f[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	head := w.Header()
	head.Set("Content-Type", kinds[path.Ext(r.URL.Path)])
	head.Set("Cache-Control", "public, max-age=31536000, immutable")
	head.Set("X-Content-Type-Options", "nosniff")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}
