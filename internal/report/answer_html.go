package report

import (
	"cmp"
	"fmt"
	"math"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// AnswerHTML is the answer of a result, as HTML that cannot act or load. A sentence with markers, or that is a claim, is
//
//	<span class="sentence partial" data-source="1">text
//	<a href="?source=1#source" class="cite" data-source="1" aria-label="source 1">[1]</a>
//	<span class="verdict partial">partial</span></span>
//
// where the verdict is there if the sentence is a claim, and data-source is its first
// citation. It is blocks, to be put into an element of the page; headings begin at h3.
// Equal results give equal bytes.
func AnswerHTML(res *marchwarden.Result) h.Node {
	return answerHTML(res, h.Source)
}

// answerHTML is an answer whose markers lead to where to says.
func answerHTML(res *marchwarden.Result, to func(citation int) h.Link) h.Node {
	w := woven{to}
	var out []h.Node
	level := 0
	for _, b := range Blocks(res) {
		switch b.Type {
		case marchwarden.Heading:
			level = min(max(b.Level-1, 1), level+1) // under h2, and none is left out
			out = append(out, h.Fill([]h.Literal{`<h3 lang="" dir="auto">{}</h3>`, `<h4 lang="" dir="auto">{}</h4>`}[level-1], b.Text))
		case marchwarden.Paragraph:
			var parts []h.Node
			for i, c := range b.Claims {
				parts = append(parts, h.If(i > 0, ` `), w.sentence(c))
			}
			out = append(out, h.Fill(`<p lang="" dir="auto">{}</p>`, h.Join(parts...)))
		case marchwarden.List:
			form := h.Literal(`<ul>{}</ul>`)
			if b.Ordered {
				form = `<ol>{}</ol>`
			}
			out = append(out, h.Fill(form, h.Each(b.Items, func(c marchwarden.Claim) h.Node { return h.Fill(`<li lang="" dir="auto">{}</li>`, w.sentence(c)) })))
		case marchwarden.TableBlock:
			out = append(out, w.table(b))
		case marchwarden.Quote:
			out = append(out, h.Fill(`<blockquote lang="" dir="auto">{} {}</blockquote>`, h.Exact(res.Citations[b.Citation-1].RawExcerpt), w.marks([]int{b.Citation})))
		case marchwarden.Chart:
			out = append(out, h.Fill(`<figure class="chart">{}<figcaption>{} {}</figcaption><details><summary>Numbers</summary>{}</details></figure>`,
				chart(b), seriesNames(b), w.marks(existing([]int{b.Citation}, b.Citation)), w.table(verify.Figures(b))))
		}
	}
	if len(out) == 0 {
		return h.Fill(`<p>{}</p>`, None)
	}
	return h.Lines(out...)
}

// woven writes sentences with links to their sources.
type woven struct{ to func(citation int) h.Link }

func (w woven) marks(numbers []int) h.Node {
	return h.Each(numbers, func(n int) h.Node {
		return h.Fill(`<a href="{}" class="cite" data-source="{}" aria-label="source {}">[{}]</a>`, w.to(n), n, n, n)
	})
}

func (w woven) sentence(c marchwarden.Claim) h.Node {
	if c.Support == "" && len(c.Citations) == 0 {
		return h.Text(c.Text)
	}
	source := h.Node{}
	if len(c.Citations) > 0 {
		source = h.Fill(` data-source="{}"`, c.Citations[0])
	}
	return h.Fill(`<span class="sentence{}"{}>{}{}{}{}</span>`, h.If(c.Support != "", ` {}`, c.Support), source, c.Text,
		h.If(len(c.Citations) > 0 && c.Text != "", ` `), w.marks(c.Citations), h.If(c.Support != "", ` {}`, badge(string(c.Support))))
}

// table may be wider than the page: it is scrolled by itself, with a keyboard, too.
func (w woven) table(b marchwarden.Block) h.Node {
	return h.Fill(`<div role="group" aria-label="table" tabindex="0" class="table"><table>
<thead><tr>{}</tr></thead>
<tbody>
{}</tbody>
</table></div>`, h.Each(b.Columns, func(c string) h.Node {
		if c == "" {
			return h.Fill(`<td></td>`)
		}
		return h.Fill(`<th scope="col" lang="" dir="auto">{}</th>`, c)
	}), h.Each(b.Rows, func(row []marchwarden.Cell) h.Node {
		cells := h.Node{}
		for i, c := range row {
			form := h.Literal(`<td lang="" dir="auto">{}</td>`)
			if i == 0 && c.Text != "" {
				form = `<th scope="row" lang="" dir="auto">{}</th>`
			}
			cells = h.Join(cells, h.Fill(form, w.sentence(marchwarden.Claim{Text: orNone(c), Citations: c.Citations})))
		}
		return h.Fill(`<tr>{}</tr>
`, cells)
	}))
}

// orNone is what a cell says; an empty one says that nothing was found.
func orNone(c marchwarden.Cell) string {
	if c.Text == "" && len(c.Citations) == 0 {
		return "–"
	}
	return c.Text
}

func seriesNames(b marchwarden.Block) string {
	var names []string
	for _, s := range b.Series {
		names = append(names, s.Name)
	}
	return joined(", ", names...)
}

// The measures of a chart.
const (
	chartWide = 640.0
	chartLeft = 160.0 // where bars begin, after their labels
	chartBar  = 22.0
	maxBars   = 40
)

// chart draws the numbers of a block as bars. They stand beside the bars; all of them are in the
// table below.
func chart(b marchwarden.Block) h.Node {
	low, high := 0.0, 0.0
	for _, s := range b.Series {
		for _, v := range s.Values {
			low, high = min(low, v), max(high, v)
		}
	}
	switch span := high - low; {
	case span == 0:
		high = 1
	case math.IsInf(span, 0) || math.IsNaN(span): // nothing can be drawn
		return h.Node{}
	}
	bars, y, scale := h.Node{}, 0.0, (chartWide-chartLeft-90)/(high-low)
	for i, s := range b.Series {
		for j, v := range s.Values[:min(len(s.Values), len(s.Labels), maxBars/len(b.Series))] {
			label := s.Labels[j]
			if len(b.Series) > 1 {
				label = joined(": ", s.Name, label)
			}
			from, to := chartLeft+(min(v, 0)-low)*scale, chartLeft+(max(v, 0)-low)*scale
			bars = h.Join(bars, h.Fill(`<text x="{}" y="{}" text-anchor="end">{}</text>`, px(chartLeft-8), px(y+15), plaintext.Clip(label, 21)),
				h.Fill(`<rect class="series-{}" x="{}" y="{}" width="{}" height="{}"/><text x="{}" y="{}">{}</text>`, i%4+1, px(from), px(y+3), px(max(to-from, 1)), px(chartBar-6), px(to+6), px(y+15), verify.Figure(v)))
			y += chartBar
		}
	}
	return h.Fill(`<svg role="img" viewBox="0 0 {} {}" width="100%"><title>{}</title>{}</svg>`, px(chartWide), px(max(y, chartBar)), "chart of "+cmp.Or(seriesNames(b), "numbers"), bars)
}

func px(v float64) string { return fmt.Sprintf("%.1f", v) }
