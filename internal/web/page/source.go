package page

import (
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Evidence is one source as the side panel shows it: the stored text around the
// excerpt.
type Evidence struct {
	RunID string
	// Preview says that the reader did not choose it: it fills the room beside an answer, and does
	// not come up over one.
	Preview       bool
	Number, Of    int                  // which of how many citations
	Cited         marchwarden.Citation // FetchedAt in the zone that people see
	Author        string
	Claims        []report.ClaimView // that rest on it
	State, Detail string             // what became of it since, as in Answer, and more in words
	CheckedAt     time.Time
	// Window is the excerpt, to the byte, in the stored text around it; nil if that cannot be shown.
	Window *report.Window
	// Printed says that there is a picture of the page that the excerpt is on; Leaf is its number, 0 if
	// that is not known.
	Printed bool
	Leaf    int
	Problem string // why the text cannot be shown; then the excerpt is
	Notes   []string
}

// Source is the page of one whole source.
type Source struct {
	Frame
	RunID, Question string
	Evidence        Evidence            // its window is as much as is shown of the text
	Excerpts        []report.SourceView // what is cited from it
}

func (e *Evidence) title() string {
	return or(e.Cited.Title, e.Cited.Locator, "A source without a name")
}

// keys are how a keyboard goes through the sources. They need the script.
const keys h.Literal = `<div class="keys scripted"><p class="soft"><kbd>j</kbd> and <kbd>k</kbd>, or the arrows on a sentence, go on and back; <kbd>Enter</kbd> opens its source; <kbd>Esc</kbd> closes it.</p>
<label><input type="checkbox" data-keys checked> Use the letters j and k</label></div>`

func noSource() h.Node {
	return h.Fill(`<h2>Source</h2><p class="soft">Choose a sentence, or a number behind it, to see the text that it rests on.</p>{}`, h.Fill(keys))
}

// Panel is one source as the side panel of an answer; none asks for a choice.
func (e *Evidence) Panel() h.Node {
	if e == nil {
		return h.Fill(`<aside class="panel" id="source" tabindex="-1" aria-label="Source">{}</aside>`, noSource())
	}
	opened, preview, shut := h.Fill(` open`), h.Node{}, h.Fill(`<a class="close" href="{}"><span aria-hidden="true">✕</span><span class="sr">Close the source</span></a>`, h.Local(RunPath(e.RunID)+"#answer"))
	if e.Preview {
		opened, preview, shut = h.Node{}, h.Fill(` data-preview="{}"`, e.Number), h.Node{}
	}
	step := func(shown bool, n int, rel, sign, label string) h.Node {
		return h.If(shown, `<a href="{}" data-source="{}" rel="{}"><span aria-hidden="true">{}</span><span class="sr">{}</span></a>`, h.Source(n), n, rel, sign, label)
	}
	claims := h.Each(e.Claims, func(c report.ClaimView) h.Node {
		return h.Fill(`<li><p>{} <span lang="" dir="auto">{}</span></p></li>`, chip(pick(verdicts, c.Verdict)), line(c.Text))
	})
	return h.Fill(`<aside class="panel{}" id="source" tabindex="-1"{} aria-labelledby="source-title">
<header class="panel-head"><p class="kind">Source {}{} <span class="steps">{}{}{}</span></p><h2 id="source-title" lang="" dir="auto">{}</h2>{}</header>
{}{}{}{}{}<p><a href="{}">The whole stored text</a></p>{}</aside>
`, opened, preview, e.Number, h.If(e.Of > 0, ` of {}`, e.Of),
		step(e.Number > 1, e.Number-1, "prev", "‹", "Previous source"), step(e.Number < e.Of, e.Number+1, "next", "›", "Next source"), shut, e.title(), e.locator(),
		h.If(e.Cited.Unchecked, `<p class="warn">Known from its researcher’s report alone: this excerpt could not be checked against the source.</p>`),
		e.leaf(), e.text(), h.If(len(e.Claims) > 0, `<h3>What rests on it</h3><ul class="items small">{}</ul>`, claims), e.about(), h.Local(SourcePath(e.RunID, e.Number)), h.Fill(keys))
}

func (e *Evidence) locator() h.Node {
	return h.If(e.Cited.Locator != "", `<p class="locator">{}</p>`, outside(e.Cited.Locator))
}

// text is the stored text with its excerpt marked, or the excerpt and why it is alone.
func (e *Evidence) text() h.Node {
	if e.Window == nil {
		return h.Join(with(e.Problem, `<p class="warn">The stored text cannot be shown: <span lang="" dir="auto">{}</span></p>`),
			h.If(e.Cited.RawExcerpt != "", `<blockquote lang="" dir="auto"><mark id="excerpt">{}</mark></blockquote>`, h.Exact(e.Cited.RawExcerpt)))
	}
	return h.Fill(`<div class="stored" tabindex="0" role="region" aria-label="Stored text" lang="" dir="auto">{}{}<mark id="excerpt">{}</mark>{}{}</div>`,
		h.If(e.Window.Earlier > 0, `<span class="cut" aria-hidden="true">… </span>`), h.Exact(e.Window.Before), h.Exact(e.Window.Excerpt), h.Exact(e.Window.After),
		h.If(e.Window.Later > 0, `<span class="cut" aria-hidden="true"> …</span>`))
}

// leaf is the page of a PDF as a picture. Where it cannot be had, the script leaves it out.
func (e *Evidence) leaf() h.Node {
	name := "The page"
	if e.Leaf > 0 {
		name = "Page " + term.Count(e.Leaf)
	}
	at := h.Local(PicturePath(e.RunID, e.Number))
	return h.If(e.Printed, `<figure class="leaf"><a href="{}"><img src="{}" alt="{} of the PDF, with the excerpt marked" width="1000" height="1294" loading="lazy" decoding="async"></a><figcaption class="meta">{} of the stored PDF, with the excerpt marked</figcaption></figure>`, at, at, name, name)
}

// about is what is known of a source: what readers ask for first, and the rest folded away.
func (e *Evidence) about() h.Node {
	c := e.Cited
	var fetched time.Time
	if c.FetchedAt != nil {
		fetched = *c.FetchedAt
	}
	span := h.Node{}
	if c.Span != nil {
		span = h.Fill(`<div><dt>Bytes</dt><dd>{} to {}</dd></div>`, term.Count(c.Span.Start), term.Count(c.Span.End))
	}
	return h.Fill(`<p class="meta">{}{}{}</p>{}{}<details class="more"><summary>Details of the source</summary><dl class="facts">{}{}{}{}{}{}</dl></details>`,
		with(e.Author, `<span lang="" dir="auto">{}</span> `), with(c.Published, `<span lang="" dir="auto">{}</span> `), h.If(!fetched.IsZero(), `<span>stored {}</span>`, timed(fetched, "2 Jan 2006")),
		h.If(e.State != "", `<p>{}{}{}</p>`, chip(pick(freshness, e.State)), h.If(!e.CheckedAt.IsZero(), ` <span class="soft">on {}</span>`, timed(e.CheckedAt, "2 Jan 2006")), with(e.Detail, `<br><span class="soft" lang="" dir="auto">{}</span>`)),
		h.Each(e.Notes, func(s string) h.Node { return h.Fill(`<p class="soft" lang="" dir="auto">{}</p>`, line(s)) }),
		with(string(c.Authority), `<div><dt>Authority</dt><dd>{}</dd></div>`),
		with(c.Origin, `<div><dt>Origin</dt><dd lang="" dir="auto">{}</dd></div>`),
		with(c.Source, `<div><dt>Kind</dt><dd lang="" dir="auto">{}</dd></div>`),
		h.Fill(`<div><dt>Confidence</dt><dd>{}</dd></div>`, unit(c.Confidence)), span,
		with(c.ContentHash, `<div><dt>Stored as</dt><dd><code>{}</code></dd></div>`))
}

// Page is the text, and what is known of it.
func (v Source) Page() h.Node {
	e := &v.Evidence
	back := RunPath(v.RunID)
	if e.Number > 0 {
		back += h.Source(e.Number).Address()
	}
	text, cut := e.text(), false
	if w := e.Window; w != nil {
		text, cut = h.Fill(`<div class="stored full" lang="" dir="auto">{}<mark id="c{}">{}</mark>{}</div>`, h.Exact(w.Before), e.Number, h.Exact(w.Excerpt), h.Exact(w.After)), w.Earlier+w.Later > 0
	}
	return shell{Frame: v.Frame, name: "source", main: h.Fill(`<article class="whole">
<header class="head"><p class="kind"><a href="{}">Back to the answer</a>{}</p><h1 lang="" dir="auto">{}</h1>{}{}</header>
<div class="split">
<section class="column" aria-labelledby="text-title"><h2 id="text-title">Stored text</h2>{}{}</section>
<aside class="panel" aria-labelledby="about-title"><h2 id="about-title">About it</h2>{}{}{}</aside>
</div>
</article>`, h.Local(back), with(v.Question, ` to <span lang="" dir="auto">{}</span>`), e.title(), e.locator(),
		h.If(e.Cited.Unchecked, `<p class="warn">Known from its researcher’s report alone: what is stored is the report, not the document.</p>`),
		text, h.If(cut, `<p class="soft">The text goes on; this is as much as is shown.</p>`), e.leaf(), e.about(),
		h.If(len(v.Excerpts) > 0, `<h3>Cited from it</h3><ol class="sources">{}</ol>`, h.Each(v.Excerpts, func(x report.SourceView) h.Node {
			return h.Fill(`<li value="{}"><a href="{}" lang="" dir="auto">{}</a></li>`, x.Number, h.Local(SourcePath(v.RunID, x.Number)), clip(120, x.Excerpt))
		})))}.page()
}
