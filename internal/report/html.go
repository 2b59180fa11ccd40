package report

import (
	_ "embed"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// style is the style sheet of a report. It is light or dark as the reader's system
// is, fits a phone and paper, and loads nothing.
//
//go:embed style.css
var style string

// HTML writes the report as one page that needs nothing else: no script, no request,
// and a security policy that allows neither. Markers lead to the sources, where each
// excerpt is shown at its place in the stored text. It writes once.
func HTML(w io.Writer, r *Report) error {
	p := newHTMLPage(r)
	page := h.Document{Title: p.Title, Style: style, Body: h.Fill(`<a href="#answer" class="skip">Skip to the answer</a>
<header><p class="kind">Marchwarden research report</p><h1 lang="" dir="auto">{}</h1>{}</header>
{}<footer><p>Text in quotation boxes is other people&#39;s, as it was fetched. This page loads nothing and runs nothing.</p></footer>
`, p.Title, p.summary(), p.content())}
	_, err := io.WriteString(w, page.String())
	return err
}

type htmlPage struct {
	*View
	r *Report
}

func newHTMLPage(r *Report) htmlPage { return htmlPage{r.View(), r} }

func (p htmlPage) summary() h.Node {
	return h.Fill(`<p class="facts">{}</p>{}`, strings.Join(p.About, " · "),
		h.If(len(p.Notices) > 0, `<div class="problem"><p><strong>Take note</strong></p><ul>{}</ul></div>`,
			h.Each(p.Notices, func(s string) h.Node { return h.Fill(`<li>{}</li>`, s) })))
}

type part struct {
	id, title string
	body      h.Node // what is under its heading
}

// content is the parts that have something to say, with a list of links to them.
func (p htmlPage) content() h.Node {
	missing, gaps := h.Each(p.Gaps, gapGroup), h.Node{}
	if !p.Missing {
		missing, gaps = gaps, missing
	}
	all := slices.DeleteFunc([]part{
		{"answer", "Answer", p.answer()},
		{"gaps", whatIsMissing, missing},
		{"closest", notAnAnswer, h.If(len(p.Closest) > 0, `<div class="sides">{}</div>`, h.Each(p.Closest, side))},
		{"confidence", "Confidence", h.Fill(`<p class="score"><meter value="{}" aria-label="confidence {} of 1">{}</meter> <strong>{}</strong> of 1, computed from:</p>
{}`, p.Confidence, p.Confidence, p.Confidence, p.Confidence, h.Lines(definitions(p.Factors)))},
		{"claims", "Claims", p.claims()},
		{"contradictions", "Contradictions", h.Each(p.Contradictions, contradiction)},
		{"gaps", "Gaps", gaps},
		{"discoveries", "Discoveries", items(`<ul>{}</ul>`, p.Discoveries, `{}: <span lang="" dir="auto">{}</span>`)},
		{"questions", "Open questions", items(`<ul>{}</ul>`, p.Questions, `{}<span lang="" dir="auto">{}</span>`)},
		{"rihlas", "Researchers asked", items(`<ol>{}</ol>`, p.Rihlas, `<strong>{}</strong> — <span lang="" dir="auto">{}</span>`)},
		{"references", "References", p.references()},
		{"sources", "Sources", p.sources()},
		{"cost", "Cost", definitions(p.Cost)},
		{"check", "How to check this report", p.check()},
	}, func(p part) bool { return p.body.Empty() })
	return h.Fill(`<nav aria-label="Contents"><ul>{}</ul></nav>
<main>
{}</main>
`, h.Each(all, func(p part) h.Node { return h.Fill(`<li><a href="{}">{}</a></li>`, h.At(p.id), p.title) }), h.Each(all, func(p part) h.Node {
		return h.Fill(`<section id="{}" aria-labelledby="{}-title">
<h2 id="{}-title">{}</h2>
{}</section>
`, p.id, p.id, p.id, p.title, p.body)
	}))
}

func listed[T any](form h.Literal, all []T, one func(T) h.Node) h.Node {
	return h.If(len(all) > 0, form, h.Join(h.Text("\n"), h.Each(all, func(x T) h.Node { return h.Lines(one(x)) })))
}

func (p htmlPage) answer() h.Node {
	var out []h.Node
	if p.Lead != "" {
		marker := h.Node{}
		if p.LeadsTo > 0 {
			marker = h.Join(h.Text(" "), markers([]int{p.LeadsTo}))
		}
		out = append(out, h.Fill(`<p lang="" dir="auto" class="short"><strong>{}</strong>{}</p>`, p.Lead, marker))
	}
	return h.Lines(append(out, answerHTML(p.r.Result, toSource))...)
}

func badge(v string) h.Node { return h.Fill(`<span class="verdict {}">{}</span>`, v, v) }

func markers(numbers []int) h.Node {
	return woven{toSource}.marks(numbers)
}

func toSource(n int) h.Link { return h.At("source-" + strconv.Itoa(n)) }

func definitions(fs []Fact) h.Node {
	return h.If(len(fs) > 0, `<dl>
{}</dl>`, h.Each(fs, func(f Fact) h.Node {
		return h.Fill(`<div><dt>{}</dt><dd>{}</dd></div>
`, f.Label, f.Value)
	}))
}

func (p htmlPage) claims() h.Node {
	return listed(`<ol>{}</ol>`, p.Claims, func(c ClaimView) h.Node {
		return h.Fill(`<li id="claim-{}">{} <span lang="" dir="auto">{}</span> {}</li>`, c.Number, badge(c.Verdict), c.Text, markers(c.Sources))
	})
}

func contradiction(c ContradictionView) h.Node {
	return h.Fill(`<article class="contradiction"><h3 lang="" dir="auto">{}</h3>{}<div class="sides">{}{}</div></article>
`, c.About, h.If(c.Detail != "", `<p lang="" dir="auto">{}</p>`, c.Detail), side(c.Sides[0]), side(c.Sides[1]))
}

func side(s SideView) h.Node {
	source := h.Node{}
	if s.Source > 0 {
		source = h.Join(markers([]int{s.Source}), h.Text(" "))
	}
	return h.Fill(`<div class="side">{}<p>{}<strong lang="" dir="auto">{}</strong></p><p class="locator">{}</p>{}{}<blockquote lang="" dir="auto">{}</blockquote></div>`,
		h.If(s.Name != "", `<p class="label">{}</p>`, s.Name), source, s.Heading, located(s.Locator, s.Address), factLine(s.Facts),
		h.If(s.Value != "", `<p><strong lang="" dir="auto">{}</strong></p>`, s.Value), h.Exact(s.Excerpt))
}

func factLine(facts []string) h.Node {
	return h.If(len(facts) > 0, `<p lang="" dir="auto" class="facts">{}</p>`, strings.Join(facts, " · "))
}

// located is a locator on one line, as a link if it has an address on the web.
func located(at, address string) h.Node {
	text := h.Fill(`<bdi>{}</bdi>`, at)
	if to, ok := h.Web(address); ok {
		return h.Away(to, text)
	}
	return h.Fill(`<code>{}</code>`, text)
}

func gapGroup(g GapGroup) h.Node {
	return h.Lines(h.Fill(`<h3>{}</h3>`, g.Words), listed(`<ul>{}</ul>`, g.Gaps, func(x Gap) h.Node {
		return h.Fill(`<li><strong lang="" dir="auto">{}</strong> — <span lang="" dir="auto">{}</span>{}</li>`, x.Topic, x.Detail,
			h.Each(x.Done, func(s string) h.Node { return h.Fill(`<p class="facts">{}</p>`, s) }))
	}))
}

// items is a list of things, each with a line of facts under it. form has a head and a text.
func items(list h.Literal, all []Item, form h.Literal) h.Node {
	return listed(list, all, func(x Item) h.Node {
		return h.Fill(`<li>{}{}</li>`, h.Fill(form, x.Head, x.Text), factLine(x.Facts))
	})
}

func (p htmlPage) check() h.Node {
	return h.Lines(definitions(p.Provenance), h.If(len(p.Commands) > 0, `<p>{}</p>
{}`, checking, h.Each(p.Commands, func(c string) h.Node {
		return h.Fill(`<p class="command"><code>{}</code></p>
`, c)
	})))
}

func (p htmlPage) references() h.Node {
	return h.Each(p.r.references(), func(ref reference) h.Node {
		link := h.Node{}
		if to, ok := h.Web(ref.address); ok {
			link = h.Away(to, h.Text(ref.address))
		}
		return h.Fill(`<p class="reference">{} <span lang="" dir="auto">{}</span> {}</p>
`, markers(ref.cited), ref.text, link)
	})
}

func (p htmlPage) citedFor(claims []int) h.Node {
	return h.If(len(claims) > 0, `<p class="label">Cited for</p>{}`, listed(`<ul>{}</ul>`, claims, func(n int) h.Node {
		c := p.Claims[n-1]
		return h.Fill(`<li><a href="#claim-{}">Claim {}</a> {} <span lang="" dir="auto">{}</span></li>`, n, term.Count(n), badge(c.Verdict), c.Text)
	}))
}

// nearChars is how much of the stored text stands before an excerpt, and as much after it.
const nearChars = 400

// sources are the cited sources in the order of their numbers, each with its excerpt
// marked in the text around it.
func (p htmlPage) sources() h.Node {
	if len(p.Sources) == 0 {
		return h.Fill(`<p>None cited.</p>`)
	}
	return h.Each(p.Sources, func(s SourceView) h.Node {
		c, src := p.r.Result.Citations[s.Number-1], p.r.source(s.Number-1)
		return h.Fill(`<article id="source-{}" class="source" tabindex="-1">
{}</article>
`, s.Number, h.Lines(
			h.Fill(`<h3><span class="number">[{}]</span> <span lang="" dir="auto">{}</span></h3>`, s.Number, s.Heading),
			h.Fill(`<p class="locator">{}</p>`, located(s.Locator, s.Address)),
			h.If(c.Unchecked, `<p class="problem">{}</p>`, unchecked),
			h.If(src.Problem != "", `<p class="problem"><strong>{}</strong>{}.</p>`, standsNot, src.Problem),
			p.excerpt(s.Number),
			p.citedFor(s.Claims),
			h.Fill(`<details><summary>About this source</summary>{}</details>`, definitions(s.Facts)),
		))
	})
}

func (p htmlPage) excerpt(n int) h.Node {
	w, ok := p.r.Excerpt(n-1, nearChars)
	if !ok {
		return h.Fill(`<blockquote lang="" dir="auto">{}</blockquote>`, h.Exact(w.Excerpt))
	}
	return h.Fill(`<blockquote lang="" dir="auto">{}{}<mark id="excerpt-{}">{}</mark>{}{}</blockquote>`, h.If(w.Earlier > 0, `<span class="cut">{} before … </span>`, term.Bytes(int64(w.Earlier))),
		h.Exact(w.Before), n, h.Exact(w.Excerpt), h.Exact(w.After), h.If(w.Later > 0, `<span class="cut"> … {} after</span>`, term.Bytes(int64(w.Later))))
}

// window is the part of a text around a span, cut between words where there are such.
func window(text string, s marchwarden.Span, chars int) (from, to int) {
	from, to = s.Start, s.End
	for i := 0; i < chars && (from > 0 || to < len(text)); i++ {
		_, n := utf8.DecodeLastRuneInString(text[:from])
		from -= n
		_, n = utf8.DecodeRuneInString(text[to:])
		to += n
	}
	const word = 30 // bytes; where a word is longer, there may be none
	if i := strings.IndexAny(text[from:min(from+word, s.Start)], " \n"); from > 0 && i >= 0 {
		from += i + 1
	}
	if i := strings.LastIndexAny(text[max(to-word, s.End):to], " \n"); to < len(text) && i >= 0 {
		to = max(to-word, s.End) + i
	}
	return from, to
}

// appScript is the script of AppPage. It speaks the MCP Apps protocol of 2026-01-26
// with the window around it.
//
//go:embed app.js
var appScript string

// appStyle is what the style sheet of AppPage has besides that of a report: links
// within the page are followed by the script, which leaves :target as it is.
const appStyle = `
.source.here, li.here { border-color: var(--link); box-shadow: 0 0 0 2px var(--link); }
.back { margin: .25rem 0; padding: .25rem .75rem; border: 1px solid var(--line); border-radius: .25rem; background: var(--box); color: var(--link); font: inherit; font-size: .875rem; cursor: pointer; }
.said { white-space: pre-wrap; }
#status:empty { margin: 0; }
`

// AppPage is the page in which an MCP host shows a result: the style sheet of a report,
// a title, and one script that puts what AppBody made in its place once the host hands
// it over. It holds nothing of any result and is the same bytes at every call. It loads
// nothing, and its policy lets it run only that script.
func AppPage() []byte {
	return []byte(h.Document{Title: "Research report", Style: style + appStyle, Script: appScript, Body: h.Fill(`<header><p class="kind">Marchwarden research report</p><h1 lang="" dir="auto" id="question">Research report</h1><p id="status" class="facts" role="status">This page shows what a call of a tool found, inside the program that made the call.</p></header>
<div id="view"></div>
`)}.String())
}

// AppBody is a result as a piece of HTML for AppPage: what the page of a report has
// under its title, byte for byte, for a report that knows the result and nothing else.
// So excerpts stand alone, without the stored text around them. The error is
// CodeInvalid, for no result.
func AppBody(res *marchwarden.Result) (string, error) {
	if res == nil {
		return "", marchwarden.Errorf(marchwarden.CodeInvalid, "there is no result to show")
	}
	p := newHTMLPage(&Report{Result: res})
	return h.Lines(p.summary(), p.content()).String(), nil
}
