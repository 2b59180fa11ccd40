package page

import (
	"fmt"
	"net/url"
	"slices"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
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
