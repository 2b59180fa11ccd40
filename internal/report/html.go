package report

import (
	_ "embed" // the style sheet
	"fmt"
	"io"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
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
	page := h.Document{Lang: "en", Title: r.title(), Style: style, Body: body(r)}
	if _, err := io.WriteString(w, page.String()); err != nil {
		return fmt.Errorf("write HTML: %w", err)
	}
	return nil
}

// part is one section of a report.
type part struct {
	id    string // of its element, for links
	title string
	body  h.Node // what is under its heading
}

// body is all that the page shows.
func body(r *Report) h.Node {
	return h.Lines(
		h.A(h.At("answer"), class("skip"), h.Text("Skip to the answer")),
		h.El(h.Header, nil, kind(), h.El(h.H1, h.Foreign(), h.Text(r.title())), summary(r)),
		content(r),
		h.El(h.Footer, nil, h.El(h.P, nil, h.Text("Text in quotation boxes is other people's, as it was fetched. This page loads nothing and runs nothing."))),
	)
}

// kind is the line over the title.
func kind() h.Node { return h.In(h.P, "kind", h.Text("Marchwarden research report")) }

// summary is what is under the title.
func summary(r *Report) h.Node {
	return h.Join(h.In(h.P, "facts", h.Text(strings.Join(r.about(), " · "))), notices(r.notices()))
}

// content is the parts of a report, with a list of links to them.
func content(r *Report) h.Node {
	var contents, sections []h.Node
	for _, p := range parts(r) {
		contents = append(contents, h.El(h.Li, nil, h.A(h.At(p.id), nil, h.Text(p.title))))
		sections = append(sections, p.section())
	}
	return h.Lines(
		h.El(h.Nav, []h.Attr{h.Label("Contents")}, h.El(h.Ul, nil, contents...)),
		h.El(h.Main, nil, h.Text("\n"), h.Lines(sections...)),
	)
}

// section is the part with its heading, as an element of the page.
func (p part) section() h.Node {
	title := p.id + "-title"
	return h.El(h.Section, []h.Attr{h.ID(p.id), h.LabelledBy(title)}, h.Text("\n"), h.El(h.H2, []h.Attr{h.ID(title)}, h.Text(p.title)), h.Text("\n"), p.body)
}

// parts are the sections of a report in their order; those with nothing to say are
// left out, but for the answer and the sources.
func parts(r *Report) []part {
	all := []part{
		{"answer", "Answer", answered(r.Result)},
		{"closest", notAnAnswer, closest(r.Result)},
		{"confidence", "Confidence", confidence(r.Result)},
		{"claims", "Claims", claims(r.Result)},
		{"contradictions", "Contradictions", contradictions(r.Result)},
		{"gaps", "Gaps", gapList(r.Result)},
		{"discoveries", "Discoveries", discoveries(r.Result)},
		{"questions", "Open questions", questions(r.Result)},
		{"rihlas", "Researchers asked", rihlas(r.Result)},
		{"sources", "Sources", sources(r)},
		{"cost", "Cost", definitions(r.costs())},
		{"check", "How to check this report", check(r)},
	}
	return slices.DeleteFunc(all, func(p part) bool { return p.body.Empty() })
}

func class(names string) []h.Attr { return []h.Attr{h.Class(names)} }

// foreign is an element with text from outside on one line.
func foreign(t h.Tag, s string) h.Node { return h.El(t, h.Foreign(), h.Text(plaintext.Fold(s))) }

// paragraph is text from outside as a paragraph; nothing stays nothing.
func paragraph(s string) h.Node {
	if s = plaintext.Fold(s); s == "" {
		return h.Node{}
	}
	return foreign(h.P, s)
}

func notices(all []string) h.Node {
	if len(all) == 0 {
		return h.Node{}
	}
	var items []h.Node
	for _, n := range all {
		items = append(items, h.El(h.Li, nil, h.Text(n)))
	}
	return h.In(h.Div, "problem", h.El(h.P, nil, h.El(h.Strong, nil, h.Text("Take note"))), h.El(h.Ul, nil, items...))
}

func answered(res *marchwarden.Result) h.Node {
	var out []h.Node
	if lead := plaintext.Fold(res.Lead()); lead != "" {
		marker := h.Node{}
		if n := leadsTo(res); n > 0 {
			marker = h.Join(h.Text(" "), markers([]int{n}))
		}
		out = append(out, h.El(h.P, append(h.Foreign(), h.Class("short")), h.El(h.Strong, nil, h.Text(lead)), marker))
	}
	for _, p := range Sentences(res) {
		var parts []h.Node
		for i, s := range p {
			if i > 0 {
				parts = append(parts, h.Text(" "))
			}
			parts = append(parts, spoken(res, s))
		}
		out = append(out, h.El(h.P, h.Foreign(), parts...))
	}
	if len(out) == 0 {
		return h.El(h.P, nil, h.Text(None))
	}
	return h.Lines(out...)
}

// closest are the passages that a refusal comes with.
func closest(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, c := range nearest(res) {
		out = append(out, side(nearView(c)))
	}
	if len(out) == 0 {
		return h.Node{}
	}
	return h.In(h.Div, "sides", out...)
}

// spoken is one sentence with its markers and, unless it stands, its verdict.
func spoken(res *marchwarden.Result, s Sentence) h.Node {
	text, badge := h.Text(s.Text), h.Node{}
	if s.Claim > 0 {
		support := res.Claims[s.Claim-1].Support
		v := Verdict(support)
		text = h.In(h.Span, "claim "+v, text)
		if !support.Stands() {
			badge = h.Join(h.Text(" "), badgeOf(v))
		}
	}
	if len(s.Cited) > 0 {
		text = h.Join(text, h.Text(" "))
	}
	return h.Join(text, markers(s.Cited), badge)
}

// badgeOf is a verdict in a box.
func badgeOf(v string) h.Node { return h.In(h.Span, "verdict "+v, h.Text(v)) }

// markers are links to sources.
func markers(numbers []int) h.Node {
	var out []h.Node
	for _, n := range numbers {
		out = append(out, h.A(h.At(sourceID(n)), []h.Attr{h.Class("marker"), h.Label(fmt.Sprintf("source %d", n))}, h.Text(fmt.Sprintf("[%d]", n))))
	}
	return h.Join(out...)
}

func sourceID(n int) string { return fmt.Sprintf("source-%d", n) }

func claimID(n int) string { return fmt.Sprintf("claim-%d", n) }

func definitions(fs []Fact) h.Node {
	var out []h.Node
	for _, f := range fs {
		out = append(out, h.El(h.Div, nil, h.El(h.Dt, nil, h.Text(f.Label)), h.El(h.Dd, nil, h.Text(f.Value))))
	}
	if len(out) == 0 {
		return h.Node{}
	}
	return h.El(h.Dl, nil, h.Text("\n"), h.Lines(out...))
}

func confidence(res *marchwarden.Result) h.Node {
	value := unit(res.Confidence)
	return h.Lines(
		h.In(h.P, "score", h.El(h.Meter, []h.Attr{h.Value(value), h.Label("confidence " + value + " of 1")}, h.Text(value)), h.Text(" "), h.El(h.Strong, nil, h.Text(value)), h.Text(" of 1, computed from:")),
		definitions(factors(res.ConfidenceFactors)))
}

func claims(res *marchwarden.Result) h.Node {
	var out []h.Node
	for i, c := range res.Claims {
		out = append(out, h.El(h.Li, []h.Attr{h.ID(claimID(i + 1))}, badgeOf(Verdict(c.Support)), h.Text(" "), foreign(h.Span, c.Text), h.Text(" "), markers(numbers(res, c))))
	}
	return listed(h.Ol, out)
}

// listed is a list of items, or nothing if there are none.
func listed(t h.Tag, items []h.Node) h.Node {
	if len(items) == 0 {
		return h.Node{}
	}
	return h.El(t, nil, h.Text("\n"), h.Lines(items...))
}

func contradictions(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, c := range res.Contradictions {
		out = append(out, h.In(h.Article, "contradiction", h.El(h.H3, h.Foreign(), h.Text(contested(c))), paragraph(c.Detail),
			h.In(h.Div, "sides", side(sideView(res, oneSide, c.A)), side(sideView(res, otherSide, c.B)))))
	}
	return h.Lines(out...)
}

// side is one of the two columns of a contradiction.
func side(s SideView) h.Node {
	head := h.El(h.Strong, h.Foreign(), h.Text(s.Heading))
	if s.Source > 0 {
		head = h.Join(markers([]int{s.Source}), h.Text(" "), head)
	}
	parts := []h.Node{h.El(h.P, nil, head)}
	if s.Name != "" {
		parts = slices.Insert(parts, 0, h.In(h.P, "label", h.Text(s.Name)))
	}
	parts = append(parts, h.In(h.P, "locator", located(s.Locator, s.Address)))
	if len(s.Facts) > 0 {
		parts = append(parts, h.El(h.P, append(h.Foreign(), h.Class("facts")), h.Text(strings.Join(s.Facts, " · "))))
	}
	if s.Value != "" {
		parts = append(parts, h.El(h.P, nil, h.El(h.Strong, h.Foreign(), h.Text(s.Value))))
	}
	parts = append(parts, h.El(h.Blockquote, h.Foreign(), h.Exact(s.Excerpt)))
	return h.In(h.Div, "side", parts...)
}

// whereabouts is a locator, as a link if it leads to the web.
func whereabouts(at string) h.Node { return located(plaintext.Fold(at), webAddress(at)) }

// located is a locator on one line, as a link if it has an address on the web.
func located(at, address string) h.Node {
	text := h.El(h.Bdi, nil, h.Text(at))
	if to, ok := h.Web(address); ok {
		return h.A(to, nil, text)
	}
	return h.El(h.Code, nil, text)
}

func gapList(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, g := range gaps(res) {
		var items []h.Node
		for _, x := range g.Gaps {
			var done []h.Node
			for _, d := range x.Done {
				done = append(done, h.In(h.P, "facts", h.Text(d)))
			}
			items = append(items, h.El(h.Li, nil, h.El(h.Strong, h.Foreign(), h.Text(x.Topic)), h.Text(" — "), foreign(h.Span, x.Detail), h.Join(done...)))
		}
		out = append(out, h.El(h.H3, nil, h.Text(g.Words)), listed(h.Ul, items))
	}
	return h.Lines(out...)
}

// item is an item of a list with a line of facts under it.
func item(head h.Node, facts []string) h.Node {
	if len(facts) == 0 {
		return h.El(h.Li, nil, head)
	}
	return h.El(h.Li, nil, head, h.El(h.P, append(h.Foreign(), h.Class("facts")), h.Text(strings.Join(facts, " · "))))
}

func discoveries(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, d := range res.DiscoveryEvents {
		x := discovery(d)
		out = append(out, item(h.Join(h.Text(x.Head+": "), foreign(h.Span, x.Text)), x.Facts))
	}
	return listed(h.Ul, out)
}

func questions(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, q := range openQuestions(res) {
		x := asked(q)
		out = append(out, item(foreign(h.Span, x.Text), x.Facts))
	}
	return listed(h.Ul, out)
}

func rihlas(res *marchwarden.Result) h.Node {
	var out []h.Node
	for _, r := range res.Rihlas {
		out = append(out, item(h.Join(h.El(h.Strong, nil, h.Text(known(r.Researcher))), h.Text(" — "), foreign(h.Span, r.Question)), rihlaFacts(r, false)))
	}
	return listed(h.Ol, out)
}

func check(r *Report) h.Node {
	parts := []h.Node{definitions(r.provenance())}
	if commands := r.commands(); len(commands) > 0 {
		parts = append(parts, h.El(h.P, nil, h.Text(checking)))
		for _, c := range commands {
			parts = append(parts, h.In(h.P, "command", h.El(h.Code, nil, h.Text(c))))
		}
	}
	return h.Lines(parts...)
}

// citedAs says for which claims a source is cited, each with its verdict.
func citedAs(res *marchwarden.Result, citation int) h.Node {
	var out []h.Node
	for _, n := range citedFor(res, citation) {
		c := res.Claims[n-1]
		out = append(out, h.El(h.Li, nil, h.A(h.At(claimID(n)), nil, h.Text("Claim "+term.Count(n))), h.Text(" "), badgeOf(Verdict(c.Support)), h.Text(" "), foreign(h.Span, c.Text)))
	}
	if len(out) == 0 {
		return h.Node{}
	}
	return h.Join(h.In(h.P, "label", h.Text("Cited for")), listed(h.Ul, out))
}
