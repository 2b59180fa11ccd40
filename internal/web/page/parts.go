package page

import (
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Piece is a part of a text. All pieces together are the text. Number is the citation
// that a marked piece is the excerpt of; a further piece of an excerpt has none.
type Piece struct {
	Text   string
	Number int
	Mark   bool
}

// Fault is what is wrong with a field of a form. Field is its name in the form, or ""
// for the form as a whole.
type Fault struct{ Field, Message, Hint string }

// Option is one of several values of a field.
type Option struct {
	Value, Name string
	Chosen      bool
}

// Discovery is something met on the way.
type Discovery struct {
	marchwarden.DiscoveryEvent
	From string // who met it, or ""
}

// labels are what the fields of forms are called on the pages.
var labels = map[string]string{
	"question": "Question", "context": "Context", "depth": "Depth", "token_budget": "Token budget", "max_sources": "Most sources", "researcher": "Researchers",
	"min_cost": "Cost, from", "max_cost": "Cost, to", "min_confidence": "Confidence, from", "max_confidence": "Confidence, to", "since": "Asked, from", "until": "Asked, to", "q": "Words", "token": "Your token",
}

func token(csrf string) h.Node {
	return h.Fill(`<input type="hidden" name="csrf" value="{}">`, csrf)
}

func button(csrf, path, label, class string) h.Node {
	return h.Fill(`<form method="post" action="{}">{}<button{}>{}</button></form>`, h.Local(path), token(csrf), h.If(class != "", ` class="{}"`, class), label)
}

func chip(w word) h.Node {
	return h.Fill(`<span class="chip {}"><span aria-hidden="true">{} </span>{}</span>`, w.tone, w.sign, w.title)
}

func faultAt(faults []Fault, field string) h.Node {
	for _, f := range faults {
		if f.Field == field {
			return h.Fill(`<p class="fault" id="{}-fault"><strong>{}</strong>{}</p>`, field, line(f.Message), with(f.Hint, ` ({})`))
		}
	}
	return h.Node{}
}

func faultList(faults []Fault) h.Node {
	return h.If(len(faults) > 0, `<div class="faults" role="alert" tabindex="-1" id="faults"><h2>This cannot be done as it is</h2><ul>{}</ul></div>`,
		h.Each(faults, func(f Fault) h.Node {
			field := h.Node{}
			if label := labels[f.Field]; label != "" {
				field = h.Fill(`<a href="{}">{}</a>: `, h.At(f.Field), label)
			}
			return h.Fill(`<li>{}{}{}</li>`, field, line(f.Message), with(f.Hint, ` <span class="soft">({})</span>`))
		}))
}

// invalid marks a field that has a fault. Hint is the id of what else describes it, or "".
func invalid(faults []Fault, field, hint string) h.Node {
	wrong := !faultAt(faults, field).Empty()
	var described []string
	if hint != "" {
		described = append(described, hint)
	}
	if wrong && hint != "" {
		described = append(described, field+"-fault")
	}
	return h.Join(h.If(len(described) > 0, ` aria-describedby="{}"`, strings.Join(described, " ")), h.If(wrong, ` aria-invalid="true"`))
}

// facts is labels with their values; those without a value are left out.
func facts(all []report.Fact) h.Node {
	return h.Fill(`<dl class="facts">{}</dl>`, h.Each(all, func(f report.Fact) h.Node {
		return h.If(f.Value != "", `<div><dt>{}</dt><dd lang="" dir="auto">{}</dd></div>`, f.Label, line(f.Value))
	}))
}

func cite(n int) h.Node {
	return h.Fill(`<a class="cite" href="{}" data-source="{}"><span class="sr">Source </span>{}</a>`, toSource(n), n, n)
}

// toSource leads from an answer's page to a source in its panel.
func toSource(n int) h.Link { return h.Again("source", n, "source") }

func choice(e run.Entry, with string) h.Node {
	id := e.ID.String()
	return h.Fill(`<input type="checkbox" name="run" value="{}"{} aria-label="Compare: {}">`, id, h.If(with != "" && id == with, ` checked`), clip(80, e.Question))
}

// entry is a run in a list, behind a box to choose it by, if there is one.
func entry(e run.Entry, box h.Node) h.Node {
	score := h.Node{}
	if e.Citations > 0 && e.Confidence != nil {
		v := float64(*e.Confidence)
		score = h.Fill(`<p class="score"><span class="sr">Confidence </span><b>{}</b>{}</p>`, unit(v), meter(v))
	}
	question := clip(300, e.Question)
	if question == "" {
		question = "A run without a question"
	}
	return h.Fill(`<li class="entry">{}<div class="entry-text"><a class="question" href="{}" lang="" dir="auto">{}</a>{}{}<p class="meta">{}</p></div>{}</li>
`, box, h.Local(RunPath(e.ID.String())), question, h.If(e.Answer != "", `<p class="snippet" lang="" dir="auto">{}</p>`, e.Answer), with(e.Problem, `<p class="snippet bad-text">{}</p>`), entryFacts(e), score)
}

// entryFacts are what is known of a run in a list. A run that goes on, or was cut off, has
// taken more than what its record says so far: its time and cost are left out.
func entryFacts(e run.Entry) h.Node {
	status := statusOf(string(e.Status))
	parts := []h.Node{chip(status)}
	if e.Status == run.Complete && e.Citations == 0 { // it found nothing to cite
		status.tone, status.sign = "plain", "◦"
		parts = []h.Node{chip(status), h.Fill(` <span>no answer</span>`)}
	}
	counted := e.Partial || e.Status == run.Complete || e.Status == run.Planned
	cost := ""
	if counted {
		cost = Money(e.CostUSD)
	}
	parts = append(parts,
		h.If(e.Partial && e.Citations > 0, ` <span>with a partial answer</span>`),
		h.If(!e.Began.IsZero(), ` {}`, moment(e.Began)),
		h.If(line(e.Researcher) != "", ` <span lang="" dir="auto">{}</span>`, who(e.Researcher)),
		countOf(e.Citations, "citation"), countOf(e.Gaps, "gap"), countOf(e.Tokens, "token"),
		with(cost, ` <span>{}</span>`),
		h.If(counted && e.Took > 0, ` <span>{}</span>`, term.Duration(e.Took)),
		h.If(e.Imported, ` <span>imported</span>`))
	return h.Join(parts...)
}

func countOf(n int, noun string) h.Node {
	return h.If(n > 0, ` <span>{}</span>`, term.Plural(n, noun))
}

func entries(all []run.Entry) h.Node {
	return h.Fill(`<ul class="entries">{}</ul>`, h.Each(all, func(e run.Entry) h.Node { return entry(e, h.Node{}) }))
}

func gaps(groups []report.GapGroup) h.Node {
	return h.Each(groups, func(g report.GapGroup) h.Node {
		return h.Fill(`<h3>{} <span class="soft">{}</span></h3><ul class="items">{}</ul>`, line(g.Words), len(g.Gaps), h.Each(g.Gaps, func(x report.Gap) h.Node {
			return h.Fill(`<li><p lang="" dir="auto"><strong>{}</strong></p>{}{}</li>`, line(x.Topic), with(x.Detail, `<p class="soft" lang="" dir="auto">{}</p>`), h.Each(x.Done, func(done string) h.Node {
				return h.Fill(`<p class="done"><span aria-hidden="true">→ </span><span class="sr">What was done: </span><span lang="" dir="auto">{}</span></p>`, line(done))
			}))
		}))
	})
}

func discoveries(all []Discovery) h.Node {
	return h.Fill(`<ul class="items">{}</ul>`, h.Each(all, func(d Discovery) h.Node {
		return h.Fill(`<li><p><span class="tag">{}</span> <strong lang="" dir="auto">{}</strong></p>{}{}{}</li>`, spaced(string(d.Type)), line(d.Query),
			with(d.Reason, `<p class="soft" lang="" dir="auto">{}</p>`), h.If(d.SourceLocator != "", `<p class="locator">{}</p>`, outside(d.SourceLocator)),
			h.If(d.SuggestedResearcher+d.From != "", `<p class="soft">{}{}</p>`, with(d.From, `Met by <span lang="" dir="auto">{}</span>. `), with(d.SuggestedResearcher, `For <span lang="" dir="auto">{}</span>.`)))
	}))
}

func decisions(all []marchwarden.Decision) h.Node {
	return h.Fill(`<ul class="items">{}</ul>`, h.Each(all, func(d marchwarden.Decision) h.Node {
		return h.Fill(`<li><p><span class="tag">{}</span> <span lang="" dir="auto">{}</span></p><p class="done"><span aria-hidden="true">→ </span><strong>{}</strong>{}{}</p></li>`,
			spaced(d.About), line(d.Topic), line(string(d.Action)), h.If(d.Rihla > 0, ` by rihla {}`, d.Rihla), with(d.Reason, `: <span lang="" dir="auto">{}</span>`))
	}))
}

func spaced(name string) string { return line(strings.ReplaceAll(name, "_", " ")) }
