package page

import (
	"fmt"
	"net/url"
	"slices"
	"time"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// History is the page of past runs. What was typed is given back as it was typed.
type History struct {
	Frame
	Words                 string
	Statuses, Researchers []Option
	Faults                []Fault
	Entries               []run.Entry
	Total, From, To       int // "From to To of Total", counted from one
	Newer, Older          url.Values
}

func (v History) narrowed() bool {
	return slices.ContainsFunc(slices.Concat(v.Statuses, v.Researchers), func(o Option) bool { return o.Chosen })
}

// Page is one page of the runs that were found.
func (v History) Page() h.Node {
	filtered := v.Words != "" || v.narrowed()
	return shell{Frame: v.Frame, name: "history", here: "history", main: h.Fill(`<h1>History</h1>{}
<search><form class="find" method="get" action="/history">
<div class="find-line"><label class="sr" for="q">Words of the question or the answer</label>
<input type="search" id="q" name="q" value="{}" placeholder="Words to look for" dir="auto" aria-describedby="q-hint">
<button class="primary">Search</button></div>
<p class="hint" id="q-hint">Finds what has all of the words.</p>
<details class="more"{}><summary>Filters</summary><div class="filters">{}</div><p><button>Apply</button> {}</p></details>
</form></search>
<section aria-labelledby="results-title"><h2 id="results-title">{}</h2>{}</section>`,
		faultList(v.Faults), v.Words, h.If(v.narrowed() || len(v.Faults) > 0, ` open`),
		v.filters(), h.If(filtered, `<a href="/history">Clear all</a>`), v.found(), v.results(filtered))}.page()
}

func (v History) filters() h.Node {
	boxes := func(title, field string, all []Option, name func(string) string) h.Node {
		return h.If(len(all) > 0, `<fieldset><legend>{}</legend>{}</fieldset>`, title, h.Each(all, func(o Option) h.Node {
			return h.Fill(`<label><input type="checkbox" name="{}" value="{}"{}> <span lang="" dir="auto">{}</span></label>`, field, o.Value, h.If(o.Chosen, ` checked`), name(o.Value))
		}))
	}
	return h.Join(boxes("Status", "status", v.Statuses, func(s string) string { return pick(statuses, s).title }), boxes("Researcher", "researcher", v.Researchers, who))
}

func (v History) found() string {
	switch {
	case len(v.Entries) == 0:
		return "Nothing found"
	case len(v.Entries) < v.Total:
		return fmt.Sprintf("%s to %s of %s", term.Count(v.From), term.Count(v.To), term.Plural(v.Total, "question"))
	}
	return term.Plural(v.Total, "question")
}

func (v History) results(filtered bool) h.Node {
	switch {
	case len(v.Entries) > 0:
	case filtered:
		return h.Fill(`<p class="soft">Nothing fits. Fewer words or filters find more. <a href="/history">Show all</a></p>`)
	default:
		return h.Fill(`<p class="soft">Nothing was asked yet. <a href="/">Ask something</a></p>`)
	}
	turn := func(to url.Values, rel, label string) h.Node {
		return h.If(len(to) > 0, `<a rel="{}" href="{}">{}</a>`, rel, h.Local(HistoryPath+"?"+to.Encode()), label)
	}
	return h.Join(entries(v.Entries), h.If(len(v.Newer)+len(v.Older) > 0, `<div class="pages"><nav aria-label="Pages">{} {}</nav></div>`, turn(v.Newer, "prev", "‹ Previous"), turn(v.Older, "next", "Next ›")))
}

// Watch is the page of watched questions. Their times are in the zone of who looks.
type Watch struct {
	Frame
	Questions []watch.Question
	CanRemove bool
}

// mostShown is how many reports of a question the page has.
const mostShown = 10

// Page is a box for each question.
func (v Watch) Page() h.Node {
	none := h.If(len(v.Questions) == 0, `<p class="soft">No question is watched yet. To watch one, open its answer and choose <i>Watch this question</i> under <i>More</i>.</p>`)
	return shell{Frame: v.Frame, name: "watch", here: "watch", main: h.Fill(`<header class="head"><h1>Watched questions</h1>
<p class="soft">They are asked again on schedule while this program or <code>marchwarden watch run</code> runs. What changed is below.</p></header>
{}{}`, none, h.Each(v.Questions, v.question))}.page()
}

func (v Watch) question(q watch.Question) h.Node {
	last := h.If(q.Last.Valid(), ` <a href="{}">last answer</a>`, h.Local(RunPath(q.Last.String())))
	reports := slices.Clone(q.Reports[max(0, len(q.Reports)-mostShown):])
	slices.Reverse(reports)
	return h.Fill(`<article class="box"><h2 lang="" dir="auto">{}</h2><p class="meta"><span>every {}</span> <span>next {}</span>{}</p>{}{}</article>
`, line(q.Request.Question), q.Interval(), moment(q.Due), last, h.If(len(reports) > 0, `<ul>{}</ul>`, h.Each(reports, change)),
		h.If(v.CanRemove, `<div class="actions">{}</div>`, button(v.CSRF, UnwatchPath(q.ID.String()), "Stop watching", "")))
}

func change(r watch.Report) h.Node {
	claims := h.Each(r.Claims, func(c watch.Claim) h.Node {
		return h.Fill(`<li><b>{}</b> <span lang="" dir="auto">{}</span>{}{}</li>`, c.State, line(c.Text), with(c.Now, `<br>now: <span lang="" dir="auto">{}</span>`), with(c.Detail, `<br>against it: <span lang="" dir="auto">{}</span>`))
	})
	sources := h.Each(r.Sources, func(s watch.Source) h.Node {
		return h.Fill(`<li><b>source {}</b> <span class="locator">{}</span> <span lang="" dir="auto">{}</span></li>`, s.State, outside(s.Locator), line(s.Detail))
	})
	answer := h.Fill(`<span lang="" dir="auto">{}</span>`, r.Summary())
	if r.TraceID.Valid() && r.Failed == "" {
		answer = h.Fill(`<a href="{}">{}</a>`, h.Local(RunPath(r.TraceID.String())), answer)
	}
	return h.Fill(`<li>{}: {}{}</li>`, moment(r.At), answer, h.If(len(r.Claims)+len(r.Sources) > 0, `<ul>{}{}</ul>`, claims, sources))
}

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
