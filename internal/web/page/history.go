package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// History is the page of past runs. What was typed is given back as it was typed.
type History struct {
	Frame
	Words                        string
	Statuses, Researchers        []Option
	MinCost, MaxCost             string
	MinConfidence, MaxConfidence string
	Since, Until                 string // 2006-01-02
	Faults                       []Fault
	Entries                      []run.Entry
	Total, From, To              int // "From to To of Total", counted from one
	Newer, Older                 url.Values
	// With is the run that another is to be compared with, chosen beforehand.
	With string
}

func (v History) narrowed() bool {
	for _, o := range append(append([]Option{}, v.Statuses...), v.Researchers...) {
		if o.Chosen {
			return true
		}
	}
	return v.MinCost+v.MaxCost+v.MinConfidence+v.MaxConfidence+v.Since+v.Until != ""
}

// History is the page of past runs.
func (s *Set) History(v History) h.Node {
	filtered := v.Words != "" || v.narrowed()
	return s.frame(shell{Frame: v.Frame, name: "history", here: "history", main: h.Fill(`<h1>History</h1>{}
<search><form class="find" method="get" action="/history">
<div class="find-line"><label class="sr" for="q">Words of the question or the answer</label>
<input type="search" id="q" name="q" value="{}" placeholder="Words of the question or the answer" dir="auto" aria-describedby="q-hint">
<button class="primary">Search</button></div>
<p class="hint" id="q-hint">All words must be there; "a phrase in quotes" as it is.</p>{}
<details class="more"{}><summary>Filters</summary><div class="filters">{}</div><p><button>Apply</button> {}</p></details>
</form></search>
<section aria-labelledby="results-title"><h2 id="results-title">{}</h2>{}</section>`,
		faultList(v.Faults), v.Words, h.If(v.With != "", `<input type="hidden" name="with" value="{}">`, v.With), h.If(v.narrowed() || len(v.Faults) > 0, ` open`),
		v.filters(), h.If(filtered, `<a href="/history">Clear all</a>`), v.found(), v.results(filtered))})
}

func (v History) filters() h.Node {
	boxes := func(title, field string, all []Option, name func(string) string) h.Node {
		return h.If(len(all) > 0, `<fieldset><legend>{}</legend>{}</fieldset>`, title, h.Each(all, func(o Option) h.Node {
			return h.Fill(`<label><input type="checkbox" name="{}" value="{}"{}> <span lang="" dir="auto">{}</span></label>`, field, o.Value, h.If(o.Chosen, ` checked`), name(o.Value))
		}))
	}
	between := func(title, from, to, low, high string, kind h.Literal) h.Node {
		return h.Fill(`<fieldset><legend>{}</legend><div class="range"><label for="{}">from</label><input{} id="{}" name="{}" value="{}"{}><label for="{}">to</label><input{} id="{}" name="{}" value="{}"{}></div></fieldset>`,
			title, from, h.Fill(kind), from, from, low, invalid(v.Faults, from, ""), to, h.Fill(kind), to, to, high, invalid(v.Faults, to, ""))
	}
	const decimal h.Literal = ` inputmode="decimal" autocomplete="off"`
	return h.Join(boxes("Status", "status", v.Statuses, func(s string) string { return statusOf(s).title }), boxes("Researcher", "researcher", v.Researchers, who),
		between("Confidence", "min_confidence", "max_confidence", v.MinConfidence, v.MaxConfidence, decimal),
		between("Cost in dollars", "min_cost", "max_cost", v.MinCost, v.MaxCost, decimal),
		between("Asked", "since", "until", v.Since, v.Until, ` type="date"`))
}

func (v History) found() string {
	switch {
	case len(v.Entries) == 0:
		return "No runs"
	case len(v.Entries) < v.Total:
		return fmt.Sprintf("%s to %s of %s", term.Count(v.From), term.Count(v.To), term.Plural(v.Total, "run"))
	}
	return term.Plural(v.Total, "run")
}

func (v History) results(filtered bool) h.Node {
	switch {
	case len(v.Entries) > 0:
	case filtered:
		return h.Fill(`<p class="soft">Nothing fits. Fewer words or filters find more. <a href="/history">Show all runs</a></p>`)
	default:
		return h.Fill(`<p class="soft">Nothing was asked yet. <a href="/">Ask something</a></p>`)
	}
	turn := func(to url.Values, rel, label string) h.Node {
		return h.If(len(to) > 0, `<a rel="{}" href="{}">{}</a>`, rel, h.Local(withQuery(HistoryPath, to)), label)
	}
	return h.Fill(`<form method="get" action="/compare" id="choose"><ul class="entries choosable">{}</ul>
<div class="pages"><button>Compare the two chosen</button> <span class="soft" id="chosen" role="status"></span>{}</div></form>`,
		h.Each(v.Entries, func(e run.Entry) h.Node { return entry(e, choice(e, v.With)) }),
		h.If(len(v.Newer)+len(v.Older) > 0, `<nav aria-label="Pages">{} {}</nav>`, turn(v.Newer, "prev", "‹ Previous"), turn(v.Older, "next", "Next ›")))
}

// Numbers is the page of figures over many runs.
type Numbers struct {
	Frame
	Spans   []Option      // over how many days, of which one is chosen
	Facts   []report.Fact // totals
	Figures []Figure
}

// Figure is numbers with bars.
type Figure struct {
	Title string
	About string // what it shows and what to look for, in a sentence
	Body  h.Node
}

// Numbers is the page of figures.
func (s *Set) Numbers(v Numbers) h.Node {
	spans := h.Each(v.Spans, func(o Option) h.Node {
		return h.Fill(`<li><a href="{}"{}>{}</a></li>`, h.Local(withQuery(NumbersPath, url.Values{"days": {o.Value}})), h.If(o.Chosen, ` aria-current="true"`), line(o.Name))
	})
	totals := h.Each(v.Facts, func(f report.Fact) h.Node {
		return h.If(f.Value != "", `<div><dt>{}</dt><dd><b>{}</b></dd></div>`, line(f.Label), line(f.Value))
	})
	figures := h.Fill(`<p class="soft">There is nothing to count yet. <a href="/">Ask something</a></p>`)
	if len(v.Figures) > 0 {
		n := 0
		figures = h.Fill(`<div class="figures">{}</div>`, h.Each(v.Figures, func(f Figure) h.Node {
			n++
			return h.Fill(`<section class="box" aria-labelledby="figure-{}"><h2 id="figure-{}">{}</h2>{}{}</section>
`, n, n, line(f.Title), with(f.About, `<p class="soft">{}</p>`), f.Body)
		}))
	}
	return s.frame(shell{Frame: v.Frame, name: "numbers", here: "numbers", main: h.Fill(`<header class="head"><h1>Numbers</h1>{}</header>{}{}`,
		h.If(len(v.Spans) > 0, `<nav class="spans" aria-label="Over how long"><ul>{}</ul></nav>`, spans), h.If(len(v.Facts) > 0, `<dl class="gauges">{}</dl>`, totals), figures)})
}

// Bars is a table of numbers with bars, as a figure.
func Bars(caption string, head []string, rows [][]Cell) h.Node {
	if len(rows) == 0 {
		return h.Fill(`<p class="soft">Nothing measured yet.</p>`)
	}
	return h.Fill(`<figure class="chart bars"><div class="chart-table" tabindex="0" role="group" aria-label="{}">{}</div></figure>`, caption, Table(caption, head, rows))
}

// Compare is two runs side by side.
type Compare struct {
	Frame
	A, B run.Entry
	run.Comparison
}

// Compare is the page of two runs side by side.
func (s *Set) Compare(v Compare) h.Node {
	contestant := func(letter string, e run.Entry) h.Node {
		return h.Fill(`<section class="box" aria-label="Run {}"><p class="letter" aria-hidden="true">{}</p>{}</section>`, letter, letter, entries([]run.Entry{e}))
	}
	sources := h.Each(v.Sources, func(p run.Pair[run.Source]) h.Node {
		src := cmp.Or(p.A, p.B)
		return shared(src.Title, src.Locator, p.A != nil, p.B != nil)
	})
	gaps := h.Each(v.Gaps, func(p run.Pair[marchwarden.Gap]) h.Node {
		return shared(cmp.Or(p.A, p.B).Topic, "", p.A != nil, p.B != nil)
	})
	return s.frame(shell{Frame: v.Frame, name: "compare", here: "history", main: h.Fill(`<h1 class="apart">Two runs side by side</h1>
<div class="versus">{}{}</div>{}
{}{}{}{}`, contestant("A", v.A), contestant("B", v.B), h.If(v.A.Question != v.B.Question, `<p class="notice">Their questions are not the same, so what differs may be due to that.</p>`),
		part("measures", "Measures", "", "Measures of both runs", []string{"Measure", "A", "B", "Difference"}, v.measures()),
		part("claims", "Claims", "pairs", "Claims of both runs, and of one alone", []string{"A", "B", "What differs"}, h.Each(v.Claims, pair)),
		part("sources", "Sources", "", "Sources of both runs", []string{"What", "In A", "In B"}, sources),
		part("gaps", "Gaps", "", "Gaps of both runs", []string{"What", "In A", "In B"}, gaps))})
}

// part is a section that is a table; nothing where there are no rows.
func part(id, title, class, caption string, head []string, rows h.Node) h.Node {
	return h.If(!rows.Empty(), `<section aria-labelledby="{}-title"><h2 id="{}-title">{}</h2><table{}><caption class="sr">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></section>
`, id, id, title, h.If(class != "", ` class="{}"`, class), caption, h.Each(head, func(s string) h.Node { return h.Fill(`<th scope="col">{}</th>`, s) }), rows)
}

var factorNames = map[string]string{
	"num_corroborating_sources": "independent origins", "source_authority": "authority of the sources", "contradiction_detected": "contradiction found",
	"query_specificity_match": "evidence on what was asked", "budget_exhausted": "budget exhausted",
}

func (v Compare) measures() h.Node {
	var out []h.Node
	row := func(name, a, b, difference string) {
		out = append(out, h.Fill(`<tr><th scope="row">{}</th><td lang="" dir="auto">{}</td><td lang="" dir="auto">{}</td><td>{}</td></tr>`, line(name), line(a), line(b), difference))
	}
	for _, f := range v.Factors {
		difference := ""
		switch {
		case f.Same:
		case f.Name == "confidence":
			difference = fmt.Sprintf("%+.2f", float64(v.Comparison.B.Confidence-v.Comparison.A.Confidence))
		default:
			difference = "differs"
		}
		row(or(factorNames[f.Name], strings.ReplaceAll(f.Name, "_", " ")), yesNo(f.A), yesNo(f.B), difference)
	}
	a, b := v.Comparison.A, v.Comparison.B
	for _, c := range []struct {
		name string
		a, b int
	}{{"claims", len(a.Claims), len(b.Claims)}, {"citations", len(a.Citations), len(b.Citations)}, {"gaps", len(a.Gaps), len(b.Gaps)},
		{"contradictions", len(a.Contradictions), len(b.Contradictions)}, {"tokens", a.CostMetadata.TokensUsed, b.CostMetadata.TokensUsed}} {
		row(c.name, term.Count(c.a), term.Count(c.b), signed(c.b-c.a))
	}
	took := func(s run.Side) string {
		return term.Duration(time.Duration(s.CostMetadata.WallTimeSec * float64(time.Second)))
	}
	row("time", took(a), took(b), "")
	return h.Join(out...)
}

func yesNo(s string) string {
	switch s {
	case "true":
		return "yes"
	case "false":
		return "no"
	}
	return s
}

// signed is a difference with its sign; none is nothing.
func signed(n int) string {
	switch {
	case n < 0:
		return "−" + term.Count(-n)
	case n == 0:
		return ""
	}
	return "+" + term.Count(n)
}

func pair(p run.Pair[marchwarden.Claim]) h.Node {
	half := func(c *marchwarden.Claim) h.Node {
		if c == nil {
			return h.Fill(`<span class="soft">none</span>`)
		}
		return h.Fill(`<p lang="" dir="auto">{}</p><p>{}</p>`, line(c.Text), chip(verdictOf(string(c.Support))))
	}
	class, words := "same", "the same"
	switch {
	case p.A == nil:
		class, words = "came", "only in B"
	case p.B == nil:
		class, words = "went", "only in A"
	case p.Changed:
		class, words = "changed", "changed"
	}
	return h.Fill(`<tr class="{}"><td>{}</td><td>{}</td><td>{}</td></tr>`, class, half(p.A), half(p.B), words)
}

func shared(text, locator string, inA, inB bool) h.Node {
	class, a, b := "same", "yes", "yes"
	switch {
	case !inA:
		class, a = "came", "no"
	case !inB:
		class, b = "went", "no"
	}
	return h.Fill(`<tr class="{}"><td><span lang="" dir="auto">{}</span>{}</td><td>{}</td><td>{}</td></tr>`, class, line(text), h.If(locator != "", `<br><span class="locator">{}</span>`, outside(locator)), a, b)
}
