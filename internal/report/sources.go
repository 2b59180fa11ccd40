package report

import (
	"cmp"
	"fmt"
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
func sources(r *Report) h.Node {
	if len(r.Result.Citations) == 0 {
		return h.El(h.P, nil, h.Text("None cited."))
	}
	var out []h.Node
	texts := &texts{res: r.Result, at: map[string]int{}, room: maxTexts}
	for i, c := range r.Result.Citations {
		out = append(out, h.El(h.Article, []h.Attr{h.ID(sourceID(i + 1)), h.Class("source"), h.Focusable()}, h.Text("\n"), h.Lines(
			h.El(h.H3, nil, h.In(h.Span, "number", h.Text(fmt.Sprintf("[%d]", i+1))), h.Text(" "), foreign(h.Span, heading(c.Title, c.Locator))),
			h.In(h.P, "locator", whereabouts(c.Locator)),
			excerpt(c, r.source(i), i+1),
			texts.more(c, r.source(i).Text, i+1),
			citedAs(r.Result, i+1),
			h.El(h.Details, nil, h.El(h.Summary, nil, h.Text("About this source")), definitions(r.sourceFacts(i))),
		)))
	}
	return h.Lines(out...)
}

// excerpt shows an excerpt at its place, or alone with the reason why it is alone.
func excerpt(c marchwarden.Citation, src Source, n int) h.Node {
	var notes []h.Node
	if c.Unchecked {
		notes = append(notes, h.In(h.P, "problem", h.Text(unchecked)))
	}
	if src.Problem != "" {
		notes = append(notes, h.In(h.P, "problem", h.El(h.Strong, nil, h.Text(standsNot)), h.Text(src.Problem+".")))
	}
	if c.Span == nil || !c.Span.In(len(src.Text)) {
		return h.Lines(append(notes, h.El(h.Blockquote, h.Foreign(), h.Exact(c.RawExcerpt)))...)
	}
	mark := h.El(h.Mark, []h.Attr{h.ID(fmt.Sprintf("excerpt-%d", n))}, h.Exact(src.Text[c.Span.Start:c.Span.End]))
	return h.Lines(append(notes, h.El(h.Blockquote, h.Foreign(), around(src.Text, *c.Span, nearChars, mark)))...)
}

// around is a marked part of a text with so many characters before and after it, and
// a word on how much more there is.
func around(text string, s marchwarden.Span, chars int, mark h.Node) h.Node {
	w := cut(text, s, chars)
	parts := []h.Node{h.Exact(w.Before), mark, h.Exact(w.After)}
	if w.Earlier > 0 {
		parts = slices.Insert(parts, 0, h.In(h.Span, "cut", h.Text(term.Bytes(int64(w.Earlier))+" before … ")))
	}
	if w.Later > 0 {
		parts = append(parts, h.In(h.Span, "cut", h.Text(" … "+term.Bytes(int64(w.Later))+" after")))
	}
	return h.Join(parts...)
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

// texts hands out the stored texts of a page.
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
		return h.In(h.P, "facts", h.A(h.At(textID(at)), nil, h.Text(fmt.Sprintf("The whole stored text is with [%d]", at))))
	}
	if len(text) <= maxWhole {
		body := wholeText(t.res, text, c.ContentHash)
		if body.Len() <= t.room {
			t.room -= body.Len()
			t.at[c.ContentHash] = n
			return unfold(n, "The whole stored text ("+term.Bytes(int64(len(text)))+")", body)
		}
	}
	mark := h.El(h.Mark, nil, h.Exact(text[c.Span.Start:c.Span.End]))
	return unfold(n, "More of the text", around(text, *c.Span, wideChars, mark))
}

func textID(n int) string { return fmt.Sprintf("text-%d", n) }

// unfold is a long text that a reader may open and scroll.
func unfold(n int, title string, body h.Node) h.Node {
	box := append(h.Foreign(), h.ID(textID(n)), h.Class("text"), h.Scrollable(), h.Label(fmt.Sprintf("stored text of source %d", n)))
	return h.El(h.Details, nil, h.El(h.Summary, nil, h.Text(title)), h.El(h.Blockquote, box, body))
}

// wholeText is a stored text with all that is cited from it marked.
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
		parts = append(parts, h.Exact(text[at:s.Start]), h.El(h.Mark, nil, h.Exact(text[s.Start:s.End])))
		at = s.End
	}
	return h.Join(append(parts, h.Exact(text[at:]))...)
}
