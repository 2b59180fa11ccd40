package page

import (
	"cmp"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Answer is the page of a run that has a result.
type Answer struct {
	Frame
	ID, Question string
	Asked        string       // the question as it was typed, if it was understood as another
	Turns        []trace.Turn // of the conversation before it
	Researcher   string
	Began        time.Time
	Took         time.Duration
	Partial      bool // it was stopped before its end
	View         report.View
	Body         h.Node

	// Evidence is the source in the panel; nil if none was chosen.
	Evidence *Evidence

	Confidence  Confidence
	Support     string // the verdict whose claims are shown; "" is all
	Discoveries []Discovery
	Questions   []marchwarden.OpenQuestion
	Decisions   []marchwarden.Decision // those about other things than gaps
	Lanes       h.Node
	Sources     []SourceLine
	Stages      h.Node // tokens and time by stage

	// Drift is the last check of the sources in one sentence, or "".
	Drift string
	Can   Can
}

// Can says what may be done with a run.
type Can struct {
	Resume, Rerun, Check, Delete, Watch bool
	// Follow are those who would be asked a question that goes on from here; with none there is no box.
	Follow []string
	// More proposes a token budget for resuming a run that ended at its cap; 0 uses what is left.
	More    int
	Exports []Format
}

// Format is a form in which a run can leave.
type Format struct{ Name, About, Suffix, Type string }

// Confidence is a number and what it was made of.
type Confidence struct {
	Value   float64 // 0 to 1
	Words   string  // what the number means, in a sentence
	Factors []Factor
}

// Factor is what a confidence was computed from, among others.
type Factor struct {
	Name  string
	Words string // its value
	// Value is from 0 to 1, the more the better; what has no measure has none.
	Value *float64
	Why   string // how it bears on the number
}

// SourceLine is a citation in a list.
type SourceLine struct {
	Number    int
	Title     string // or "", then the locator stands for it
	Locator   string
	Published string
	Authority string
	// State is what became of the source since: "" is not known, and else what
	// package drift calls it, such as unchanged, changed, gone.
	State string
}

// cites says that there is something to look at beside the answer.
func (v Answer) cites() bool { return len(v.Sources) > 0 || v.Evidence != nil }

type section struct {
	id, title, link string // the link is the title in the list of parts, if it is another
	body            h.Node // nothing leaves the part out
}

func (p section) node() h.Node {
	return h.If(!p.body.Empty(), `<section id="{}" aria-labelledby="{}-title"><h2 id="{}-title">{}</h2>{}</section>
`, p.id, p.id, p.id, p.title, p.body)
}

func (p section) entry() h.Node {
	title := p.title
	if p.link != "" {
		title = p.link
	}
	return h.If(!p.body.Empty(), `<li><a href="{}">{}</a></li>`, h.At(p.id), title)
}

// Answer is the page of a run that has a result.
func (s *Set) Answer(v Answer) h.Node {
	alone, skip, panel := h.Fill(` alone`), h.Node{}, h.Node{}
	if v.cites() {
		alone, skip = h.Node{}, h.Fill(`<a href="#source">Skip to the source</a>`)
		panel = h.Fill(`{}<template id="no-source">{}</template>`, v.Evidence.panel(), noSource())
	}
	parts := v.parts()
	return s.frame(shell{Frame: v.Frame, name: "answer", skip: skip, main: h.Fill(`<div class="split{}" id="split" data-run="{}">
<article class="column">
{}{}{}{}<nav class="contents" aria-label="Parts of this page"><ul>{}</ul></nav>
{}</article>
{}</div>`, alone, h.Local(RunPath(v.ID)), v.head(), v.answer(), section{id: "closest", title: "Closest passages (not an answer)", body: h.If(len(v.View.Closest) > 0, `<div class="sides">{}</div>`, h.Each(v.View.Closest, side))}.node(), v.goOn(),
		h.Each(parts, section.entry), h.Each(parts, section.node), panel)})
}

func (v Answer) parts() []section {
	confidence := h.Node{}
	if v.cites() {
		confidence = v.Confidence.node()
	}
	return []section{
		{"confidence", "Confidence", "", confidence},
		{"contradictions", "Contradictions", "", h.Each(v.View.Contradictions, contradiction)},
		{"gaps", "Gaps", "", gaps(v.View.Gaps)},
		{"claims", "Claims", "", v.claims()},
		{"sources", "Sources", "", sourceList(v.Sources)},
		{"leads", "Leads", "", v.leads()},
		{"rihlas", "Researchers asked", "Researchers", h.Join(v.Lanes, rihlas(v.View.Rihlas))},
		{"cost", "Cost and record", "Cost", h.If(!v.Stages.Empty() || len(v.View.Cost)+len(v.View.Provenance) > 0, `{}{}{}`, v.Stages, facts(v.View.Cost), facts(v.View.Provenance))},
	}
}

func (v Answer) head() h.Node {
	by, long := "asked of", h.Node{}
	if v.cites() {
		by = "answered by"
	}
	if utf8.RuneCountInString(v.Question) > 160 {
		long = h.Fill(` class="long"`)
	}
	return h.Fill(`<header class="head">{}<h1{} lang="" dir="auto">{}</h1>
{}<p class="meta">{}{}{}{}</p>
{}{}{}</header>
`, v.before(), long, or(v.Question, "A run without a question"), with(v.Asked, `<p class="meta">asked as: <span lang="" dir="auto">{}</span></p>
`),
		h.If(line(v.Researcher) != "", `<span>{} <span lang="" dir="auto">{}</span></span>`, by, who(v.Researcher)),
		h.If(!v.Began.IsZero(), ` {}`, moment(v.Began)), h.If(v.Took > 0, ` <span>{}</span>`, term.Duration(v.Took)),
		h.If(len(v.Sources) > 0, ` <a href="#sources">{}</a>`, term.Plural(len(v.Sources), "citation")),
		v.glance(), v.actions(), v.notes())
}

// before leads to the earlier turns of the conversation.
func (v Answer) before() h.Node {
	return h.If(len(v.Turns) > 0, `<nav class="turns" aria-label="Earlier in this conversation"><ol>{}</ol></nav>`, h.Each(v.Turns, func(t trace.Turn) h.Node {
		return h.Fill(`<li><a href="{}" lang="" dir="auto">{}</a></li>`, h.Local(RunPath(t.TraceID.String())), or(cmp.Or(t.Question, t.Asked), "A run without a question"))
	}))
}

// goOn is the box for the next question of the conversation.
func (v Answer) goOn() h.Node {
	return h.If(len(v.Can.Follow) > 0, `<form class="go-on" method="post" action="/ask">{}<input type="hidden" name="follow" value="{}">{}<label for="go-on">Ask on</label> <input id="go-on" name="question" required maxlength="{}" autocomplete="off" dir="auto" aria-describedby="go-on-hint"> <button class="primary">Ask</button>
<p class="hint" id="go-on-hint">It may leave out what was named here. Asked of {}; pages that were fetched are read first</p></form>
`, token(v.CSRF), v.ID, h.Each(v.Can.Follow, func(name string) h.Node {
		return h.Fill(`<input type="hidden" name="researcher" value="{}">`, name)
	}), marchwarden.MaxQuestionChars, line(strings.Join(v.Can.Follow, ", ")))
}

func (v Answer) notes() h.Node {
	stopped := v.Partial && !v.Body.Empty()
	return h.If(stopped || len(v.View.Notices) > 0, `<div class="warn"><p><strong>Take note</strong></p><ul>{}{}</ul></div>`,
		h.If(stopped, `<li>This run was stopped before its end: the answer is what there was by then.</li>`),
		h.Each(v.View.Notices, func(s string) h.Node { return h.Fill(`<li lang="" dir="auto">{}</li>`, line(s)) }))
}

func (v Answer) answer() h.Node {
	lead := h.Node{}
	if s := line(v.View.Lead); s != "" {
		source := h.Node{}
		if v.View.LeadsTo > 0 {
			source = h.Join(h.Text(" "), cite(v.View.LeadsTo))
		}
		lead = h.Fill(`<p class="short"><strong lang="" dir="auto">{}</strong>{}</p>`, s, source)
	}
	body := h.Fill(`<div lang="" dir="auto">{}</div>`, v.Body)
	if v.Body.Empty() {
		body = h.Fill(`<p class="soft">There is no answer{}.</p>`, h.If(v.Can.Resume, ` yet: you can resume the run`))
	}
	return h.Fill(`<section id="answer" class="prose" tabindex="-1" aria-labelledby="answer-title"><h2 id="answer-title" class="sr">Answer</h2>{}{}</section>
`, lead, body)
}

// glance is what the check of the answer came to, each part with a link to more.
func (v Answer) glance() h.Node {
	if !v.cites() {
		return h.Node{}
	}
	missing := 0
	for _, g := range v.View.Gaps {
		missing += len(g.Gaps)
	}
	return h.Fill(`<ul class="glance" aria-label="At a glance">{}{}{}<li><a class="chip plain" href="#confidence">confidence {}{}</a></li></ul>`, v.standing(),
		h.If(len(v.View.Contradictions) > 0, `<li><a class="chip bad" href="#contradictions"><span aria-hidden="true">≠ </span>{}</a></li>`, term.Plural(len(v.View.Contradictions), "contradiction")),
		h.If(missing > 0, `<li><a class="chip plain" href="#gaps"><span aria-hidden="true">◌ </span>{}</a></li>`, term.Plural(missing, "gap")),
		unit(v.Confidence.Value), meter(v.Confidence.Value))
}

// standing is how many claims stand. What is copied from a source is not proved by it.
func (v Answer) standing() h.Node {
	stands, quoted := 0, 0
	for _, c := range v.View.Claims {
		if s := marchwarden.Support(c.Verdict); s.Stands() {
			stands++
			if s == marchwarden.Quoted {
				quoted++
			}
		}
	}
	words := "supported or quoted"
	switch quoted {
	case 0:
		words = "supported"
	case stands:
		words = "quoted"
	}
	tone, sign := "plain", "✓"
	switch {
	case stands < len(v.View.Claims):
		tone, sign = "fair", "◐"
	case words == "supported":
		tone = "good"
	case words == "quoted":
		sign = "❝"
	}
	return h.If(len(v.View.Claims) > 0, `<li><a class="chip {}" href="#claims"><span aria-hidden="true">{} </span>{} of {} {}</a></li>`, tone, sign, stands, term.Plural(len(v.View.Claims), "sentence"), words)
}

func (v Answer) actions() h.Node {
	link := func(shown bool, class, path, label string) h.Node {
		return h.If(shown, `<a class="{}" href="{}">{}</a>`, class, h.Local(path), label)
	}
	do := func(shown bool, act Act, label string) h.Node {
		return h.If(shown, `{}`, button(v.CSRF, ActPath(v.ID, act), label, ""))
	}
	resume := h.If(v.Can.Resume, `<form method="post" action="{}">{}{}<button class="primary">Go on{}</button></form>`, h.Local(ActPath(v.ID, Resume)), token(v.CSRF),
		h.If(v.Can.More > 0, `<input type="hidden" name="token_budget" value="{}">`, v.Can.More), h.If(v.Can.More > 0, ` with {} more tokens`, term.Count(v.Can.More)))
	exports := h.If(len(v.Can.Exports) > 0, `<details class="menu"><summary>Export</summary><ul>{}</ul></details>`, h.Each(v.Can.Exports, func(e Format) h.Node {
		return h.Fill(`<li><a href="{}" download><b>{}</b> <span class="soft">{}</span></a></li>`, h.Local(ExportPath(v.ID, e.Name)), e.Name, e.About)
	}))
	return h.Fill(`<div class="actions toolbar">{}{}{}{}{}{}{}{}</div>{}`, resume, exports, do(v.Can.Check && len(v.Sources) > 0, Check, "Check the sources again"),
		link(true, "button", withQuery(AskPath, url.Values{"from": {v.ID}}), "Ask again"), link(!v.Body.Empty(), "button", withQuery(HistoryPath, url.Values{"with": {v.ID}}), "Compare"),
		do(v.Can.Watch, Follow, "Watch this question"), do(v.Can.Rerun, Rerun, "Rerun from the record"), link(v.Can.Delete, "button danger", ActPath(v.ID, Delete), "Delete"),
		h.If(line(v.Drift) != "", `<p class="meta"><span class="says">{}</span> <a href="{}">What became of the sources</a></p>`, line(v.Drift), h.Local(ActPath(v.ID, Check))))
}

func (c Confidence) node() h.Node {
	factors := h.If(len(c.Factors) > 0, `<table class="factors"><caption class="sr">What the confidence was computed from</caption><thead class="sr"><tr><th scope="col">Factor</th><th scope="col">Value</th><th scope="col">How it bears on it</th></tr></thead><tbody>{}</tbody></table>`,
		h.Each(c.Factors, func(f Factor) h.Node {
			bar := h.Node{}
			if f.Value != nil {
				bar = h.Join(meter(*f.Value), h.Text(" "))
			}
			return h.Fill(`<tr><th scope="row">{}</th><td>{}<span lang="" dir="auto">{}</span></td><td class="soft">{}</td></tr>`, line(f.Name), bar, line(f.Words), line(f.Why))
		}))
	return h.Fill(`<p class="figure-line"><b class="big">{}</b> {} {}</p>{}`, unit(c.Value), meter(c.Value), line(c.Words), factors)
}

func contradiction(c report.ContradictionView) h.Node {
	return h.Fill(`<div class="contradiction"><h3 lang="" dir="auto">{}</h3>{}<div class="sides">{}{}</div></div>
`, line(c.About), with(c.Detail, `<p lang="" dir="auto">{}</p>`), side(c.Sides[0]), side(c.Sides[1]))
}

func side(s report.SideView) h.Node {
	source := h.Node{}
	if s.Source > 0 {
		source = h.Join(cite(s.Source), h.Text(" "))
	}
	locator := s.Locator
	if locator == s.Heading {
		locator = ""
	}
	return h.Fill(`<figure class="side">{}<blockquote lang="" dir="auto">{}</blockquote><figcaption>{}<span lang="" dir="auto">{}</span> <span class="meta">{}{}</span></figcaption></figure>`,
		with(s.Value, `<p class="value" lang="" dir="auto">{}</p>`), h.Exact(s.Excerpt), source, line(s.Heading), with(locator, `<span lang="" dir="auto">{}</span> `),
		h.Each(s.Facts, func(f string) h.Node { return h.Fill(`<span lang="" dir="auto">{}</span> `, line(f)) }))
}

// claims is a table of the claims, of which those of one verdict may be shown alone.
func (v Answer) claims() h.Node {
	counts := map[string]int{}
	rows := h.Each(v.View.Claims, func(c report.ClaimView) h.Node {
		verdict := verdictOf(c.Verdict)
		counts[verdict.name]++
		return h.Fill(`<tr class="{}"><td>{}</td><td lang="" dir="auto">{}</td><td>{}</td></tr>
`, verdict.name, chip(verdict), line(c.Text), cites(c.Sources, cite))
	})
	show := func(name, title string, n int, chosen bool) h.Node {
		return h.Fill(`<label><input type="radio" name="support" id="show-{}" value="{}"{}> {} <span class="soft">{}</span></label>`, name, name, h.If(chosen, ` checked`), title, n)
	}
	known := false
	choices := h.Each(verdicts, func(w word) h.Node {
		known = known || w.name == v.Support
		return show(w.name, w.title, counts[w.name], w.name == v.Support)
	})
	return h.If(len(v.View.Claims) > 0, `<fieldset class="filter"><legend class="sr">Which to show</legend>{}{}</fieldset>
<table class="claims"><caption class="sr">Sentences of the answer, the verdict on each, and its sources</caption><thead><tr><th scope="col">Verdict</th><th scope="col">Sentence</th><th scope="col">Sources</th></tr></thead><tbody>
{}</tbody></table>`, show("all", "All", len(v.View.Claims), !known), choices, rows)
}

func cites(all []int, one func(int) h.Node) h.Node {
	return h.Each(all, func(n int) h.Node { return h.Join(one(n), h.Text(" ")) })
}

func sourceList(all []SourceLine) h.Node {
	return h.If(len(all) > 0, `<ol class="sources">{}</ol>`, h.Each(all, func(s SourceLine) h.Node {
		title := clip(120, s.Title)
		place := with(host(s.Locator), `<span>{}</span> `)
		switch {
		case title == "":
			title = clip(120, s.Locator)
		case place.Empty():
			place = with(clip(120, s.Locator), `<span lang="" dir="auto">{}</span> `)
		}
		return h.Fill(`<li value="{}"><a href="{}" data-source="{}" lang="" dir="auto">{}</a> <span class="meta">{}{}{}{}</span></li>
`, s.Number, toSource(s.Number), s.Number, title, place, with(s.Published, `<span>{}</span> `), with(s.Authority, `<span>{} authority</span> `),
			h.If(s.State != "", `<span>{}</span>`, freshnessOf(s.State).title))
	}))
}

// leads are open questions, what was met on the way, and what was done about them.
func (v Answer) leads() h.Node {
	questions := h.Each(v.Questions, func(q marchwarden.OpenQuestion) h.Node {
		return h.Fill(`<li><p>{}<strong lang="" dir="auto">{}</strong></p>{}</li>`, with(string(q.Priority), `<span class="tag">{}</span> `), line(q.Question), with(q.Context, `<p class="soft" lang="" dir="auto">{}</p>`))
	})
	return h.Join(h.If(len(v.Questions) > 0, `<h3>Open questions</h3><ul class="items">{}</ul>`, questions),
		h.If(len(v.Discoveries) > 0, `<h3>Met on the way</h3>{}`, discoveries(v.Discoveries)),
		h.If(len(v.Decisions) > 0, `<h3>What was done about them</h3>{}`, decisions(v.Decisions)))
}

func rihlas(all []report.Item) h.Node {
	n := 0
	return h.If(len(all) > 0, `<ol class="journeys">{}</ol>`, h.Each(all, func(i report.Item) h.Node {
		n++
		return h.Fill(`<li><p><b>{} <span lang="" dir="auto">{}</span></b> <span lang="" dir="auto">{}</span></p><p class="meta">{}</p></li>
`, n, line(i.Head), line(i.Text), h.Each(i.Facts, func(f string) h.Node { return h.Fill(`<span lang="" dir="auto">{}</span> `, line(f)) }))
	}))
}
