package page

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
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
<input type="search" id="q" name="q" value="{}" placeholder="Words to look for" dir="auto" aria-describedby="q-hint">
<button class="primary">Search</button></div>
<p class="hint" id="q-hint">Finds what has all of the words.</p>{}
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
		return h.If(len(to) > 0, `<a rel="{}" href="{}">{}</a>`, rel, h.Local(withQuery(HistoryPath, to)), label)
	}
	return h.Fill(`<form method="get" action="/compare" id="choose"><ul class="entries choosable">{}</ul>
<div class="pages"><button>Compare the two chosen</button> <span class="soft" id="chosen" role="status"></span>{}</div></form>`,
		h.Each(v.Entries, func(e run.Entry) h.Node { return entry(e, choice(e, v.With)) }),
		h.If(len(v.Newer)+len(v.Older) > 0, `<nav aria-label="Pages">{} {}</nav>`, turn(v.Newer, "prev", "‹ Previous"), turn(v.Older, "next", "Next ›")))
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
	return s.frame(shell{Frame: v.Frame, name: "compare", here: "history", main: h.Fill(`<h1 class="apart">Two answers side by side</h1>
<p class="lead">{}</p>
<div class="versus">{}{}</div>{}
{}{}{}`, v.sentence(), contestant("A", v.A), contestant("B", v.B), h.If(v.A.Question != v.B.Question, `<p class="notice">They answer different questions, which may be why they differ.</p>`),
		part("claims", "Sentences", "pairs", "Sentences of both answers, and of one alone", []string{"A", "B", "What differs"}, h.Each(v.Claims, pair)),
		part("sources", "Sources", "", "Sources of both answers", []string{"What", "In A", "In B"}, sources),
		part("gaps", "What was not found", "", "What both answers did not find", []string{"What", "In A", "In B"}, gaps))})
}

// sentence says what differs.
func (v Compare) sentence() string {
	same, changed, onlyA, onlyB := 0, 0, 0, 0
	for _, p := range v.Claims {
		switch {
		case p.A == nil:
			onlyB++
		case p.B == nil:
			onlyA++
		case p.Changed:
			changed++
		default:
			same++
		}
	}
	shared := 0
	for _, p := range v.Sources {
		if p.A != nil && p.B != nil {
			shared++
		}
	}
	a, b := v.Comparison.A, v.Comparison.B
	surer := "Both are as sure"
	switch {
	case a.Confidence > b.Confidence:
		surer = "A is surer"
	case b.Confidence > a.Confidence:
		surer = "B is surer"
	}
	took := func(s run.Side) string {
		return term.Duration(time.Duration(s.CostMetadata.WallTimeSec*float64(time.Second))) + " and " + term.Plural(s.CostMetadata.TokensUsed, "token")
	}
	var counts []string
	for _, c := range []struct {
		n     int
		words string
	}{{same, "the same"}, {changed, "changed"}, {onlyA, "in A only"}, {onlyB, "in B only"}} {
		if c.n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", c.n, c.words))
		}
	}
	return fmt.Sprintf("Sentences: %s. They share %d of %s. %s (%.2f and %.2f). A took %s, B %s.",
		or(strings.Join(counts, ", "), "none"), shared, term.Plural(len(v.Sources), "source"), surer, float64(a.Confidence), float64(b.Confidence), took(a), took(b))
}

// part is a section that is a table; nothing where there are no rows.
func part(id, title, class, caption string, head []string, rows h.Node) h.Node {
	return h.If(!rows.Empty(), `<section aria-labelledby="{}-title"><h2 id="{}-title">{}</h2><table{}><caption class="sr">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></section>
`, id, id, title, h.If(class != "", ` class="{}"`, class), caption, h.Each(head, func(s string) h.Node { return h.Fill(`<th scope="col">{}</th>`, s) }), rows)
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
