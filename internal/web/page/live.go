package page

import (
	"io"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
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
	ID string
	// State is what the run is at, in a word; Summary is how it stands, in a short
	// sentence that is read aloud now and then.
	State, Summary string
	Over           bool // it goes on no more
	Interrupted    bool
	Began          time.Time
	Elapsed        time.Duration // since, at the time of this picture
	Tokens, Budget int
	Citations      int
	Picture        h.Node     // the lanes
	Lanes          []run.Lane // the same as a list, with what each is at
	Gaps           []report.GapGroup
	Discoveries    []Discovery
	Decisions      []marchwarden.Decision
}

// Run writes the page of a run that goes on.
func (s *Set) Run(w io.Writer, v Run) error {
	return s.write(w, shell{Frame: v.Frame, name: "run", main: h.Fill(`<article class="run" id="run" data-events="{}">
<header class="head"><p class="kind">Being researched</p><h1 lang="" dir="auto">{}</h1>
<div class="actions">{}<p class="connection soft" id="connection"></p></div>
<noscript><p class="notice">Without script this page does not follow by itself. <a href="{}">Look again</a></p></noscript></header>
<p class="sr" role="status" id="said"></p>
{}</article>`, h.Local(ActPath(v.ID, Events)), or(v.Question, "A run without a question"),
		h.If(v.CanCancel && !v.Live.Over, `{}`, button(v.CSRF, ActPath(v.ID, Cancel), "Stop and keep what there is", "")), h.Local(RunPath(v.ID)), v.Live.node())})
}

// Live writes the part of a run's page that changes while it goes on: what an event
// stream sends, to be put in the place of the element of that id.
func (s *Set) Live(w io.Writer, v Live) error { return writeNode(w, "live", v.node()) }

func (v Live) node() h.Node {
	question := h.Node{}
	if len(v.Lanes) > 0 {
		question = h.Fill(` data-question="{}"`, line(v.Lanes[0].Question))
	}
	box := func(id, title string, empty bool, body h.Node) h.Node {
		return h.If(!empty, `<section class="box" aria-labelledby="{}"><h2 id="{}">{}</h2>{}</section>`, id, id, title, body)
	}
	end := "It has ended."
	if v.Interrupted {
		end = "It was stopped."
	}
	journeys := h.If(len(v.Lanes) > 0, `<ol class="journeys">{}</ol>`, h.Each(v.Lanes, journey))
	return h.Fill(`<div id="live" data-summary="{}"{}{}>
{}{}{}<div class="columns">{}{}{}</div>{}</div>
`, line(v.Summary), question, h.If(v.Over, ` data-over`), v.gauges(), with(v.Summary, `<p class="summary" lang="" dir="auto">{}</p>`),
		box("lanes-title", "Researchers at work", len(v.Lanes) == 0 && v.Picture.Empty(), h.Join(v.Picture, journeys)),
		box("live-gaps", "Gaps so far", len(v.Gaps) == 0, gaps(v.Gaps)),
		box("live-discoveries", "Met on the way", len(v.Discoveries) == 0, discoveries(v.Discoveries)),
		box("live-decisions", "Decisions", len(v.Decisions) == 0, decisions(v.Decisions)),
		h.If(v.Over, `<p class="notice">{} <a href="{}">See what came of it</a></p>`, end, h.Local(RunPath(v.ID))))
}

func (v Live) gauges() h.Node {
	state, elapsed := h.Fill(`<b class="state pulse">{}</b>`, line(v.State)), h.Fill(`<b data-elapsed="{}">{}</b>`, int(max(0, v.Elapsed)/time.Second), clock(v.Elapsed))
	if v.Over {
		state, elapsed = h.Fill(`<b class="state">{}</b>`, line(v.State)), h.Fill(`<b>{}</b>`, term.Duration(v.Elapsed))
	}
	budget := h.If(v.Budget > 0, ` of {} <span class="soft">{}</span> <meter class="good" aria-label="Tokens used of the budget" min="0" max="{}" value="{}"></meter>`,
		term.Count(v.Budget), share(v.Tokens, v.Budget), v.Budget, v.Tokens)
	return h.Fill(`<dl class="gauges"><div><dt>State</dt><dd>{}</dd></div><div><dt>Time</dt><dd>{}</dd></div><div class="wide"><dt>Tokens</dt><dd><b>{}</b>{}</dd></div><div><dt>Citations</dt><dd><b>{}</b></dd></div></dl>
`, state, elapsed, term.Count(v.Tokens), budget, term.Count(v.Citations))
}

func journey(l run.Lane) h.Node {
	searches := "searches"
	if l.Searches == 1 {
		searches = "search"
	}
	tokens := term.Count(l.Tokens)
	if l.Budget > 0 {
		tokens += " of " + term.Count(l.Budget)
	}
	return h.Fill(`<li><p>{} <b>{}<span lang="" dir="auto">{}</span></b> <span lang="" dir="auto">{}</span></p><p class="meta">{}{}{}{}{}{}</p></li>
`, chip(stateOf(string(l.State))), h.If(l.Number > 0, `{} `, l.Number), who(l.Researcher), clip(200, l.Question),
		with(l.Doing, `<span lang="" dir="auto">{}</span> `), h.If(l.Iteration > 0, `<span>round {}</span> `, term.Count(l.Iteration)),
		h.If(l.Searches > 0, `<span>{} {}</span>`, term.Count(l.Searches), searches), countOf(l.Documents, "document"), countOf(l.Citations, "citation"),
		h.If(l.Tokens > 0, ` <span>{} tokens</span>`, tokens))
}
