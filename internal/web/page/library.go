package page

import (
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Library is the page of the folders that are searched.
type Library struct {
	Frame
	Folders []Folder
	Going   string // how far the indexing of a folder is, or ""
	Faults  []Fault
}

// Folder is a folder that is searched.
type Folder struct {
	Path    string
	Files   int // documents with text
	Bytes   int64
	Updated time.Time // when it was indexed; zero is never
	Missing bool
	Given   bool // by the one who started the program: it cannot be removed here
}

// Page is the folders, and the ways to add one.
func (v Library) Page() h.Node {
	list := h.Fill(`<p class="soft">No folder of yours is searched yet. Questions are answered from the documents that ship with the program.</p>`)
	if len(v.Folders) > 0 {
		list = h.Fill(`<ul class="entries">{}</ul>`, h.Each(v.Folders, v.folder))
	}
	return shell{Frame: v.Frame, name: "library", here: "library", main: h.Fill(`<section class="ask" aria-labelledby="library-title"><h1 id="library-title">Your documents</h1>
{}{}<form class="go-on" method="post" action="{}">{}<label class="sr" for="path">{}</label>{} <input id="path" name="path" required autocomplete="off" spellcheck="false" placeholder="A folder, such as ~/papers" dir="auto"{}> <button class="primary">Add</button>
<p class="hint" id="path-hint">It is searched with every question from now on, and never changed. New and changed files are noticed.</p></form>
<form class="drop" id="upload" method="post" action="{}">{}<input type="hidden" name="documents" value="yes"><label for="files">Or drop documents here, or choose them</label>
<input type="file" id="files" multiple><p class="hint">PDF, Office files, mail, HTML, Markdown, text, CSV, JSON and more; a copy is kept in the home folder of the program.</p>
<p id="sent" role="status"></p><button id="rest" hidden>Read the others</button></form></section>
<section class="recent" aria-labelledby="folders-title"><h2 id="folders-title">Searched</h2>{}</section>`,
		faultList(v.Faults), with(v.Going, `<p class="notice" role="status">{} <span class="state pulse"></span></p>`), h.Local(LibraryPath), token(v.CSRF), labels["path"], faultAt(v.Faults, "path"), invalid(v.Faults, "path"),
		h.Local(LibraryPath), token(v.CSRF), list)}.page()
}

func (v Library) folder(f Folder) h.Node {
	indexed := h.Fill(`<span>not read yet</span>`)
	switch {
	case f.Missing:
		indexed = h.Fill(`<span class="bad-text">the folder is missing</span>`)
	case f.Given:
		indexed = h.Fill(`<span>searched while this program runs</span>`)
	case !f.Updated.IsZero():
		indexed = h.Fill(`<span>{}</span> <span>{}</span> <span>read {}</span>`, term.Plural(f.Files, "document"), term.Bytes(f.Bytes), timed(f.Updated, "2 Jan 2006, 15:04"))
	}
	return h.Fill(`<li class="entry"><div class="entry-text"><b lang="" dir="auto">{}</b><p class="meta">{}</p></div>{}</li>
`, line(f.Path), indexed, h.If(!f.Given, `<form method="post" action="{}">{}<input type="hidden" name="path" value="{}"><button aria-label="Remove {}">Remove</button></form>`, h.Local(DropPath), token(v.CSRF), f.Path, line(f.Path)))
}
