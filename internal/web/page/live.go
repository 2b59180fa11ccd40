package page

import (
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

// Run is the page of a run that goes on.
func (s *Set) Run(v Run) h.Node {
	return s.frame(shell{Frame: v.Frame, name: "run", main: h.Fill(`<article class="run" id="run" data-events="{}">
<header class="head"><p class="kind">Being researched</p><h1 lang="" dir="auto">{}</h1>
<div class="actions">{}<p class="connection soft" id="connection"></p></div>
<noscript><p class="notice">Without script this page does not follow by itself. <a href="{}">Look again</a></p></noscript></header>
<p class="sr" role="status" id="said"></p>
{}</article>`, h.Local(ActPath(v.ID, Events)), or(v.Question, "A run without a question"),
		h.If(v.CanCancel && !v.Live.Over, `{}`, button(v.CSRF, ActPath(v.ID, Cancel), "Stop and keep what there is", "")), h.Local(RunPath(v.ID)), v.Live.node())})
}

// Live is the part of a run's page that changes while it goes on: what an event
// stream sends, to be put in the place of the element of that id.
func (s *Set) Live(v Live) h.Node { return v.node() }

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

// Ask is the page on which a question is put. What was typed is given back as it was
// typed, with what is wrong about it.
type Ask struct {
	Frame
	Question, Context       string
	Follow                  string // the run whose conversation the question continues, or ""
	Depth, Format           string // the chosen ones; "" is balanced, and the form that goes with the depth
	TokenBudget, MaxSources string // as typed; "" leaves it to the depth
	Researchers             []Choice
	Faults                  []Fault
	Running, Recent         []run.Entry
	// Mind says who writes, such as a model's name; "" is that no model does.
	Mind string
}

// Choice is a researcher that may be asked.
type Choice struct {
	Name, Scope string
	OpenWorld   bool   // words of the question leave this machine
	On          bool   // it is chosen
	Down        string // why it cannot be asked, or ""
}

// Ask is the page on which a question is put.
func (s *Set) Ask(v Ask) h.Node {
	return s.frame(shell{Frame: v.Frame, name: "ask", here: "ask", main: h.Fill(`<div class="ask">
<section class="ask-form" aria-labelledby="ask-title">
<h1 id="ask-title">Ask a question</h1>
<p class="lead">Every sentence of the answer will lead to the text that it rests on.</p>
{}<form method="post" action="/ask">
{}{}{}{}{}{}<div class="pair">{}{}</div>
{}<div class="submit"><button class="primary">Ask</button><p class="hint">{}</p></div>
</form>
</section>
<div class="ask-side">{}{}</div>
</div>`, faultList(v.Faults), token(v.CSRF), with(v.Follow, `<input type="hidden" name="follow" value="{}">`), v.question(), v.context(), v.depths(), v.forms(),
		v.limit("token_budget", v.TokenBudget, "Never exceeded. "+term.Count(marchwarden.MinTokenBudget)+" or more; empty is as the depth says"),
		v.limit("max_sources", v.MaxSources, "Documents that may be read; empty is as the depth says"),
		v.researchers(), v.writer(),
		h.If(len(v.Running) > 0, `<section aria-labelledby="running-title"><h2 id="running-title">At work now</h2>{}</section>`, entries(v.Running)), v.recent())})
}

// textarea is a field for a text. The line break after its tag is not part of the text.
func (v Ask) textarea(field, typed string, rows, limit int, more, hint h.Literal) h.Node {
	return h.Fill(`<div class="field"><label for="{}">{}</label>{}<textarea id="{}" name="{}" rows="{}"{} data-limit="{}" dir="auto"{}>
{}</textarea><p class="hint" id="{}-hint">{}<span class="counter" data-for="{}"></span></p></div>
`, field, labels[field], faultAt(v.Faults, field), field, field, rows, h.Fill(more), limit, invalid(v.Faults, field, field+"-hint"), typed, field, h.Fill(hint, term.Count(limit)), field)
}

func (v Ask) question() h.Node {
	return v.textarea("question", v.Question, 3, marchwarden.MaxQuestionChars, ` required`, `At most {} characters`)
}

func (v Ask) context() h.Node {
	open := v.Context != "" || !faultAt(v.Faults, "context").Empty()
	return h.Fill(`<details class="more"{}><summary>What you already know</summary>{}</details>
`, h.If(open, ` open`), v.textarea("context", v.Context, 4, marchwarden.MaxContextChars, ``, `It will not be repeated to you. At most {} characters`))
}

// group opens a group of fields, with the fault of all.
func (v Ask) group(field string, body h.Node) h.Node {
	fault := faultAt(v.Faults, field)
	return h.Fill(`<fieldset id="{}"{}><legend>{}</legend>{}{}</fieldset>
`, field, h.If(!fault.Empty(), ` aria-describedby="{}-fault"`, field), labels[field], fault, body)
}

func (v Ask) depths() h.Node {
	type depth struct {
		value       marchwarden.Depth
		name, about string
	}
	all := []depth{{marchwarden.Shallow, "Shallow", "a quick look"}, {marchwarden.Balanced, "Balanced", "the usual"}, {marchwarden.Deep, "Deep", "follows more leads"}}
	return v.group("depth", h.Fill(`<div class="cards">{}</div>`, h.Each(all, func(d depth) h.Node {
		l := marchwarden.Preset(d.value)
		chosen := v.Depth == string(d.value) || v.Depth == "" && d.value == marchwarden.Balanced
		return h.Fill(`<label class="card"><input type="radio" name="depth" value="{}"{}> <span><b>{}</b><span class="soft">{}</span><span class="soft">{} tokens, {} sources, {} rounds</span></span></label>`,
			d.value, h.If(chosen, ` checked`), d.name, d.about, term.Count(l.TokenBudget), l.MaxSources, l.MaxIterations)
	})))
}

func (v Ask) forms() h.Node {
	all := [][2]string{{"", "as the depth says"}, {string(marchwarden.Brief), "brief: one to three sentences"}, {string(marchwarden.Plain), "answer: paragraphs"},
		{string(marchwarden.Report), "report: sections, lists and tables"}, {string(marchwarden.Table), "table: one comparison"}}
	return v.group("format", h.Fill(`<div class="choices">{}</div>`, h.Each(all, func(f [2]string) h.Node {
		return h.Fill(`<label class="choice"><input type="radio" name="format" value="{}"{}> <span>{}</span></label>`, f[0], h.If(v.Format == f[0], ` checked`), f[1])
	})))
}

func (v Ask) limit(field, typed, hint string) h.Node {
	return h.Fill(`<div class="field"><label for="{}">{}</label>{}<input id="{}" name="{}" inputmode="numeric" autocomplete="off" value="{}"{}><p class="hint" id="{}-hint">{}</p></div>`,
		field, labels[field], faultAt(v.Faults, field), field, field, typed, invalid(v.Faults, field, field+"-hint"), field, hint)
}

func (v Ask) researchers() h.Node {
	if len(v.Researchers) == 0 {
		return h.Node{}
	}
	return v.group("researcher", h.Fill(`<div class="choices">{}</div>`, h.Each(v.Researchers, func(c Choice) h.Node {
		leaves := h.Fill(`<span class="tag good">searched on this machine</span>`)
		if c.OpenWorld {
			leaves = h.Fill(`<span class="tag fair">leaves this machine</span>`)
		}
		return h.Fill(`<label class="choice"><input type="checkbox" name="researcher" value="{}"{}{}> <span><b lang="" dir="auto">{}</b> {} <span class="soft" lang="" dir="auto">{}</span>{}</span></label>`,
			c.Name, h.If(c.On, ` checked`), h.If(c.Down != "", ` disabled`), line(c.Name), leaves, line(c.Scope), with(c.Down, `<span class="bad-text">Cannot be asked: <span lang="" dir="auto">{}</span></span>`))
	})))
}

func (v Ask) writer() h.Node {
	if line(v.Mind) == "" {
		return h.Text("No model is set: the answer will be made of sentences of the sources")
	}
	return h.Fill(`Written by <span lang="" dir="auto">{}</span>, which is sent the question and what was found`, line(v.Mind))
}

func (v Ask) recent() h.Node {
	body := h.Fill(`<p class="soft">Nothing was asked yet. What you ask is recorded on this machine, with everything that was read, and listed here.</p>`)
	if len(v.Recent) > 0 {
		body = h.Fill(`{}<p><a href="/history">All of them</a></p>`, entries(v.Recent))
	}
	return h.Fill(`<section aria-labelledby="recent-title"><h2 id="recent-title">Recent</h2>{}</section>`, body)
}
