package page

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Answer is the page of a run that has a result.
type Answer struct {
	Frame
	report.Report // StartedAt in the zone that people see; without a Result there is no answer
	View          report.View
	ID            string
	Cost          *float64 // in dollars; nil is not known
	Partial       bool     // it was stopped before its end
	Grounds       string   // what its sentences rest on
	Body          h.Node

	// Evidence is the source in the panel; nil if none was chosen.
	Evidence *Evidence

	Discoveries []Discovery
	Decisions   []marchwarden.Decision // those about other things than gaps
	// States are what became of the sources since, by their numbers: nothing is not known, and else
	// what package drift calls it, such as unchanged, changed, gone.
	States map[int]string
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

// cites says that there is something to look at beside the answer.
func (v Answer) cites() bool { return len(v.View.Sources) > 0 || v.Evidence != nil }

// section is a part of the page, unless it has nothing to say.
func section(id, title string, body h.Node) h.Node {
	return h.If(!body.Empty(), `<section id="{}" aria-labelledby="{}-title"><h2 id="{}-title">{}</h2>{}</section>
`, id, id, id, title, body)
}

// Page has the answer, what can be done with it, what it rests on, what is missing; and below, folded
// away, how it came about.
func (v Answer) Page() h.Node {
	v.Result = cmp.Or(v.Result, &marchwarden.Result{})
	alone, skip, panel := h.Fill(` alone`), h.Node{}, h.Node{}
	if v.cites() {
		alone, skip = h.Node{}, h.Fill(`<a href="#source">Skip to the source</a>`)
		panel = h.Fill(`{}<template id="no-source">{}</template>`, v.Evidence.Panel(), noSource())
	}
	shown := h.Join(
		section("closest", "Closest passages (not an answer)", h.If(len(v.View.Closest) > 0, `<div class="sides">{}</div>`, h.Each(v.View.Closest, side))),
		section("sources", "Sources", v.sources()),
		section("contradictions", "Where sources disagree", h.Each(v.View.Contradictions, contradiction)),
		section("gaps", "What was not found", gaps(v.View.Gaps)))
	details := h.Join(
		section("confidence", "How sure, and why", v.confidence()),
		section("claims", "Sentence by sentence", v.claims()),
		section("leads", "Leads", v.leads()),
		section("rihlas", "Researchers asked", rihlas(v.View.Rihlas)),
		section("cost", "Cost and record", h.If(len(v.View.Cost)+len(v.View.Provenance) > 0, `{}{}`, facts(v.View.Cost), facts(v.View.Provenance))))
	return shell{Frame: v.Frame, name: "answer", skip: skip, main: h.Fill(`<div class="split{}" id="split" data-run="{}">
<article class="column">
{}{}{}{}{}{}</article>
{}</div>`, alone, h.Local(RunPath(v.ID)), v.head(), v.answer(), v.actions(), v.goOn(), shown,
		h.If(!details.Empty(), `<details class="more" id="details"><summary>Details: how sure and why, sentence by sentence, who was asked, cost and record</summary>
{}</details>`, details), panel)}.page()
}

func (v Answer) head() h.Node {
	return h.Fill(`<header class="head">{}<h1 lang="" dir="auto">{}</h1>{}
{}</header>
`, v.before(), or(v.Question, "No question was kept"), with(v.Asked, `<p class="meta">asked as: <span lang="" dir="auto">{}</span></p>`), v.notes())
}

// before leads to the earlier turns of the conversation.
func (v Answer) before() h.Node {
	return h.If(len(v.Turns) > 0, `<nav class="turns" aria-label="Earlier in this conversation"><ol>{}</ol></nav>`, h.Each(v.Turns, func(t trace.Turn) h.Node {
		return h.Fill(`<li><a href="{}" lang="" dir="auto">{}</a></li>`, h.Local(RunPath(t.TraceID.String())), or(cmp.Or(t.Question, t.Asked), "No question was kept"))
	}))
}

// goOn is the box for the next question of the conversation.
func (v Answer) goOn() h.Node {
	return h.If(len(v.Can.Follow) > 0, `<form class="go-on" method="post" action="/ask">{}<input type="hidden" name="follow" value="{}">{}<label class="sr" for="go-on">Ask on</label> <input id="go-on" name="question" required maxlength="{}" autocomplete="off" dir="auto" placeholder="Ask a follow-up" title="It may leave out what was named here"> <button class="primary">Ask</button></form>
`, token(v.CSRF), v.ID, h.Each(v.Can.Follow, func(name string) h.Node {
		return h.Fill(`<input type="hidden" name="researcher" value="{}">`, name)
	}), marchwarden.MaxQuestionChars)
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

// trust is how far the answer can be trusted and what it took, in words.
func (v Answer) trust() h.Node {
	sure, took := h.Node{}, time.Duration(v.Result.CostMetadata.WallTimeSec*float64(time.Second))
	if v.cites() {
		words, _ := report.Sure(v.Result.Confidence)
		sure = h.Fill(`<a href="#confidence">{}</a> `, words)
	}
	return h.Fill(`<p class="meta trust">{}{}{}{}{}</p>`, with(v.Grounds, `<a href="#claims">{}</a> `), sure,
		h.If(took > 0, `<span>{}</span> `, term.Duration(took)), with(money(v.Cost), `<span>{}</span> `), timed(v.StartedAt, "2 Jan 2006"))
}

// actions are what can be done with the answer: what is done often is in sight.
func (v Answer) actions() h.Node {
	link := func(shown bool, path, label string, class h.Literal) h.Node {
		return h.If(shown, `<li><a{} href="{}">{}</a></li>`, h.Fill(class), h.Local(path), label)
	}
	do := func(shown bool, act, label string) h.Node {
		return h.If(shown, `<li>{}</li>`, button(v.CSRF, ActPath(v.ID, act), label, ""))
	}
	resume := h.If(v.Can.Resume, `<form method="post" action="{}">{}{}<button class="primary">Go on{}</button></form>`, h.Local(ActPath(v.ID, Resume)), token(v.CSRF),
		h.If(v.Can.More > 0, `<input type="hidden" name="token_budget" value="{}">`, v.Can.More), h.If(v.Can.More > 0, ` with {} more tokens`, term.Count(v.Can.More)))
	exports := h.If(len(v.Can.Exports) > 0, `<details class="menu share"><summary>Share</summary><ul>{}</ul></details>`, h.Each(v.Can.Exports, func(e Format) h.Node {
		return h.Fill(`<li><a href="{}" download><b>{}</b> <span class="soft">{}</span></a></li>`, h.Local(ExportPath(v.ID, e.Name)), e.Name, e.About)
	}))
	more := h.Join(do(v.Can.Check && len(v.View.Sources) > 0, Check, "Check the sources again"), do(v.Can.Watch, Follow, "Watch this question"), do(v.Can.Rerun, Rerun, "Rerun from the record"), link(v.Can.Delete, ActPath(v.ID, Delete), "Delete", ` class="danger"`))
	return h.Fill(`<div class="about">{}<div class="actions toolbar">{}{}<a class="button" href="{}">Ask again</a>{}</div></div>{}`, v.trust(), resume, exports,
		h.Local(AskPath+"?from="+url.QueryEscape(v.ID)), h.If(!more.Empty(), `<details class="menu acts"><summary>More</summary><ul>{}</ul></details>`, more),
		h.If(line(v.Drift) != "", `<p class="meta"><span class="says">{}</span> <a href="{}">What became of the sources</a></p>`, line(v.Drift), h.Local(ActPath(v.ID, Check))))
}

// bearings are how the factors of a confidence bear on it, by the rubric of package confidence.
var bearings = map[string]string{
	"Independent origins":        "the more origins say the same, the surer it is; pages of one publisher count once",
	"Authority of the sources":   "the standing of those who say it",
	"Contradictions":             "sources that disagree make it less sure",
	"Evidence on what was asked": "how much of what was asked the evidence speaks to",
	"Budget":                     "a run that ran out of budget may have missed something",
	"Recency":                    "how old the cited sources are",
}

func (v Answer) confidence() h.Node {
	if !v.cites() {
		return h.Node{}
	}
	factors := h.If(len(v.View.Factors) > 0, `<table class="factors"><caption class="sr">What the confidence was computed from</caption><thead class="sr"><tr><th scope="col">Factor</th><th scope="col">Value</th><th scope="col">How it bears on it</th></tr></thead><tbody>{}</tbody></table>`,
		h.Each(v.View.Factors, func(f report.Fact) h.Node {
			return h.Fill(`<tr><th scope="row">{}</th><td lang="" dir="auto">{}</td><td class="soft">{}</td></tr>`, f.Label, line(f.Value), bearings[f.Label])
		}))
	return h.Fill(`<p class="figure-line"><b class="big">{}</b> {} {}</p>{}`, unit(v.Result.Confidence), meter(v.Result.Confidence),
		"An estimate of how likely the answer is right, from 0 to 1: computed by fixed rules from what follows, and adjusted by how often such scores were right.", factors)
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
		h.Each(s.Facts, func(f string) h.Node {
			return h.If(!strings.HasPrefix(f, "authority "), `<span lang="" dir="auto">{}</span> `, line(f)) // a word of the details
		}))
}

// claims is a table of the claims.
func (v Answer) claims() h.Node {
	rows := h.Each(v.View.Claims, func(c report.ClaimView) h.Node {
		verdict := pick(verdicts, c.Verdict)
		return h.Fill(`<tr class="{}"><td>{}</td><td lang="" dir="auto">{}</td><td>{}</td></tr>
`, verdict.name, chip(verdict), line(c.Text), cites(c.Sources, cite))
	})
	return h.If(len(v.View.Claims) > 0, `<table class="claims"><caption class="sr">Sentences of the answer, the verdict on each, and its sources</caption><thead><tr><th scope="col">Verdict</th><th scope="col">Sentence</th><th scope="col">Sources</th></tr></thead><tbody>
{}</tbody></table>`, rows)
}

func cites(all []int, one func(int) h.Node) h.Node {
	return h.Each(all, func(n int) h.Node { return h.Join(one(n), h.Text(" ")) })
}

// sources is a card for each document, with what is cited from it.
func (v Answer) sources() h.Node {
	return h.If(len(v.View.Sources) > 0, `<ol class="sources">{}</ol>`, h.Each(v.View.Documents, func(cited []int) h.Node {
		first := v.View.Sources[cited[0]-1]
		title, place := clip(120, first.Heading), or(host(first.Document), clip(120, first.Document))
		if first.Heading == "" || first.Heading == first.Locator {
			title, place = clip(120, first.Document), ""
		}
		state := v.States[first.Number]
		return h.Fill(`<li class="source"><p class="document" lang="" dir="auto">{}</p><p class="meta">{}{}{}</p>{}</li>
`, title, with(place, `<span lang="" dir="auto">{}</span> `), with(first.Published, `<span>{}</span> `), h.If(state != "" && state != "unchanged", `{}`, chip(pick(freshness, state))), h.Each(cited, func(n int) h.Node {
			return h.Fill(`<a href="{}" data-source="{}"><b><span class="sr">Source </span>{}</b> <span lang="" dir="auto">{}</span></a>`, h.Source(n), n, n, or(clip(110, v.View.Sources[n-1].Excerpt), "the source"))
		}))
	}))
}

// leads are open questions, what was met on the way, and what was done about them.
func (v Answer) leads() h.Node {
	questions := h.Each(v.Result.OpenQuestions, func(q marchwarden.OpenQuestion) h.Node {
		return h.Fill(`<li><p>{}<strong lang="" dir="auto">{}</strong></p>{}</li>`, with(string(q.Priority), `<span class="tag">{}</span> `), line(q.Question), with(q.Context, `<p class="soft" lang="" dir="auto">{}</p>`))
	})
	return h.Join(h.If(len(v.Result.OpenQuestions) > 0, `<h3>Open questions</h3><ul class="items">{}</ul>`, questions),
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
