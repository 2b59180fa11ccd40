package page

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Run is the page of a run that goes on.
type Run struct {
	Frame
	ID, Question string
	Live         Live
	CanCancel    bool
}

// Live is what changes on it.
type Live struct {
	run.Board
	// Summary is how the run stands, in a few words that are read aloud now and then.
	Summary string
	Elapsed time.Duration // since, at the time of this picture
	// Draft is what a model has written so far of the answer, not checked; paragraphs are apart by a
	// blank line.
	Draft       string
	Gaps        []report.GapGroup // in place of the board's
	Discoveries []Discovery
}

// Page has what changes as Live.Node.
func (v Run) Page() h.Node {
	return shell{Frame: v.Frame, name: "run", main: h.Fill(`<article class="run" id="run">
<header class="head"><p class="kind">Being researched</p><h1 lang="" dir="auto">{}</h1>
<div class="actions">{}<p class="connection soft" id="connection"></p></div>
<noscript><p class="notice">Without script this page does not follow by itself. <a href="{}">Look again</a></p></noscript></header>
<p class="sr" role="status" id="said"></p>
{}</article>`, or(v.Question, "No question was kept"),
		h.If(v.CanCancel, `{}`, button(v.CSRF, ActPath(v.ID, Cancel), "Stop and keep what there is", "")), h.Local(RunPath(v.ID)), v.Live.Node())}.page()
}

// Node is the part of a run's page that changes while it goes on: the script puts it in the place
// of the element of that id.
func (v Live) Node() h.Node {
	first, folded := h.Fill(`<div class="work">{}{}</div>`, h.If(len(v.Lanes) > 0, `<ol class="journeys">{}</ol>`, h.Each(v.working(), journey)), v.read()), h.Node{}
	said := line(v.Summary)
	if draft := v.draft(); !draft.Empty() { // it takes the place of who is at what
		first, folded, said = draft, first, said+". A draft is shown that is not yet checked"
	}
	tokens := h.Fill(`<p>{} tokens{}</p>`, term.Count(v.Tokens), h.If(v.Budget > 0, ` of {} <span class="soft">{}</span> <meter class="good" aria-label="Tokens used of the budget" min="0" max="{}" value="{}"></meter>`,
		term.Count(v.Budget), fmt.Sprintf("%.0f %%", 100*float64(v.Tokens)/float64(v.Budget)), v.Budget, v.Tokens))
	return h.Fill(`<div id="live" data-summary="{}">
{}{}
<details class="more"><summary>Details: {}tokens, what was not found</summary>{}{}{}{}{}</details></div>
`, said, v.now(), first, h.If(!folded.Empty(), `who was asked, `), folded, tokens,
		h.If(len(v.Gaps) > 0, `<h2>Not found so far</h2>{}`, gaps(v.Gaps)), h.If(len(v.Discoveries) > 0, `<h2>Met on the way</h2>{}`, discoveries(v.Discoveries)),
		h.If(len(v.Decisions) > 0, `<h2>Decisions</h2>{}`, decisions(v.Decisions)))
}

// now is what the run is at, on one line that is always there.
func (v Live) now() h.Node {
	return h.Fill(`<p class="now"><span class="state pulse" lang="" dir="auto">{}</span> <b data-elapsed="{}">{}</b></p>
`, line(v.Summary), int(max(0, v.Elapsed)/time.Second), clock(v.Elapsed))
}

// draft is what a model has written so far, marked as not checked.
func (v Live) draft() h.Node {
	text := []rune(v.Draft)
	text = text[max(0, len(text)-maxDraft):]
	body := h.Each(strings.Split(string(text), "\n\n"), func(p string) h.Node { return with(p, `<p>{}</p>`) })
	return h.If(!body.Empty(), `<section class="draft" aria-labelledby="draft-title"><h2 id="draft-title">{}</h2><div class="prose" lang="" dir="auto">{}</div></section>`,
		chip(word{sign: "✎", title: "Draft, not yet checked", tone: "fair"}), body)
}

// maxDraft is how much is shown of a draft, in characters from its end.
const maxDraft = 4000

// working are those who research: without the investigator, who sends them.
func (v Live) working() []run.Lane {
	if len(v.Lanes) > 1 && v.Lanes[0].Number == 0 {
		return v.Lanes[1:]
	}
	return v.Lanes
}

// mostRead is how many of the documents that were read last are listed.
const mostRead = 12

// read is what was read so far, the newest first. Room is kept for it, so that nothing moves.
func (v Live) read() h.Node {
	var all []string
	for _, l := range v.Lanes {
		all = append(all, l.Read...)
	}
	slices.Reverse(all)
	seen := map[string]bool{} // one that was read twice stands where it was read last
	all = slices.DeleteFunc(all, func(at string) bool {
		was := seen[at]
		seen[at] = true
		return was
	})
	return h.Fill(`<section class="reads" aria-labelledby="reads-title"><h2 id="reads-title">{}</h2><ul>{}</ul></section>`, h.Text("Read so far: "+term.Plural(len(all), "document")),
		h.Each(all[:min(len(all), mostRead)], func(at string) h.Node { return h.Fill(`<li lang="" dir="auto">{}</li>`, clip(120, at)) }))
}

func journey(l run.Lane) h.Node {
	return h.Fill(`<li>{} <b lang="" dir="auto">{}</b> <span lang="" dir="auto">{}</span><p class="meta">{}{}{}</p></li>
`, chip(pick(states, string(l.State))), who(l.Researcher), clip(200, l.Question),
		with(l.Doing, `<span lang="" dir="auto">{}</span> `), countOf(l.Documents, "document"), countOf(l.Citations, "citation"))
}
