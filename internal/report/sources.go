package report

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// How much of the stored texts a page carries.
const (
	nearChars = 400       // before an excerpt, and as many after it: what is read with it
	wideChars = 1500      // the same for a text that is not shown as a whole
	maxWhole  = 48 << 10  // the longest text that is shown as a whole, in bytes
	maxTexts  = 512 << 10 // all texts shown as a whole together, in bytes of HTML
)

// sources are the cited sources in the order of their numbers, each with its excerpt
// marked in the text around it. A document's whole text is shown once, with the first
// of its citations, if it is short and the page has room; else more of what is around
// the excerpt.
func (p htmlPage) sources() h.Node {
	if len(p.Sources) == 0 {
		return h.Fill(`<p>None cited.</p>`)
	}
	texts := &texts{res: p.r.Result, at: map[string]int{}, room: maxTexts}
	return h.Each(p.Sources, func(s SourceView) h.Node {
		c, src := p.r.Result.Citations[s.Number-1], p.r.source(s.Number-1)
		return h.Fill(`<article id="source-{}" class="source" tabindex="-1">
{}</article>
`, s.Number, h.Lines(
			h.Fill(`<h3><span class="number">[{}]</span> <span lang="" dir="auto">{}</span></h3>`, s.Number, s.Heading),
			h.Fill(`<p class="locator">{}</p>`, located(s.Locator, s.Address)),
			h.If(c.Unchecked, `<p class="problem">{}</p>`, unchecked),
			h.If(src.Problem != "", `<p class="problem"><strong>{}</strong>{}.</p>`, standsNot, src.Problem),
			excerpt(c, src.Text, s.Number),
			texts.more(c, src.Text, s.Number),
			p.citedFor(s.Claims),
			h.Fill(`<details><summary>About this source</summary>{}</details>`, definitions(s.Facts)),
		))
	})
}

func excerpt(c marchwarden.Citation, text string, n int) h.Node {
	body := h.Exact(c.RawExcerpt)
	if c.Span != nil && c.Span.In(len(text)) {
		body = around(text, *c.Span, nearChars, h.Fill(`<mark id="excerpt-{}">{}</mark>`, n, h.Exact(text[c.Span.Start:c.Span.End])))
	}
	return h.Fill(`<blockquote lang="" dir="auto">{}</blockquote>`, body)
}

// around is a marked part of a text with so many characters before and after it, and
// a word on how much more there is.
func around(text string, s marchwarden.Span, chars int, mark h.Node) h.Node {
	w := cut(text, s, chars)
	return h.Join(h.If(w.Earlier > 0, `<span class="cut">{} before … </span>`, term.Bytes(int64(w.Earlier))), h.Exact(w.Before), mark, h.Exact(w.After),
		h.If(w.Later > 0, `<span class="cut"> … {} after</span>`, term.Bytes(int64(w.Later))))
}

// window is the part of a text that is shown around a span. It begins and ends
// between words where there are such.
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

type texts struct {
	res  *marchwarden.Result
	at   map[string]int // by content hash, the citation with which the whole is shown
	room int            // what is left of maxTexts
}

// more is the text around a citation beyond what is shown with its excerpt.
func (t *texts) more(c marchwarden.Citation, text string, n int) h.Node {
	if c.Span == nil || !c.Span.In(len(text)) {
		return h.Node{}
	}
	if from, to := window(text, *c.Span, nearChars); from == 0 && to == len(text) {
		return h.Node{}
	}
	if at := t.at[c.ContentHash]; at > 0 {
		return h.Fill(`<p class="facts"><a href="#text-{}">The whole stored text is with [{}]</a></p>`, at, at)
	}
	title, body := "More of the text", h.Node{}
	if len(text) <= maxWhole {
		body = wholeText(t.res, text, c.ContentHash)
	}
	if size := len(body.String()); size > 0 && size <= t.room {
		t.room -= size
		t.at[c.ContentHash] = n
		title = "The whole stored text (" + term.Bytes(int64(len(text))) + ")"
	} else {
		body = around(text, *c.Span, wideChars, h.Fill(`<mark>{}</mark>`, h.Exact(text[c.Span.Start:c.Span.End])))
	}
	return h.Fill(`<details><summary>{}</summary><blockquote lang="" dir="auto" id="text-{}" class="text" tabindex="0" aria-label="stored text of source {}">{}</blockquote></details>`, title, n, n, body)
}

func wholeText(res *marchwarden.Result, text, hash string) h.Node {
	var spans []marchwarden.Span
	for _, c := range res.Citations {
		if c.ContentHash == hash && c.Span != nil && c.Span.In(len(text)) {
			spans = append(spans, *c.Span)
		}
	}
	slices.SortFunc(spans, func(a, b marchwarden.Span) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	var parts []h.Node
	at := 0
	for i := 0; i < len(spans); {
		s := spans[i]
		for i++; i < len(spans) && spans[i].Start <= s.End; i++ {
			s.End = max(s.End, spans[i].End)
		}
		parts = append(parts, h.Exact(text[at:s.Start]), h.Fill(`<mark>{}</mark>`, h.Exact(text[s.Start:s.End])))
		at = s.End
	}
	return h.Join(append(parts, h.Exact(text[at:]))...)
}
