package page

import (
	"slices"

	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

// Watch is the page of watched questions. Their times are in the zone of who looks.
type Watch struct {
	Frame
	Questions []watch.Question
	CanRemove bool
}

// mostShown is how many reports of a question the page has.
const mostShown = 10

// Page is a box for each question.
func (v Watch) Page() h.Node {
	none := h.If(len(v.Questions) == 0, `<p class="soft">No question is watched yet. To watch one, open its answer and choose <i>Watch this question</i> under <i>More</i>.</p>`)
	return shell{Frame: v.Frame, name: "watch", here: "watch", main: h.Fill(`<header class="head"><h1>Watched questions</h1>
<p class="soft">They are asked again on schedule while this program or <code>marchwarden watch run</code> runs. What changed is below.</p></header>
{}{}`, none, h.Each(v.Questions, v.question))}.page()
}

func (v Watch) question(q watch.Question) h.Node {
	last := h.If(q.Last.Valid(), ` <a href="{}">last answer</a>`, h.Local(RunPath(q.Last.String())))
	reports := slices.Clone(q.Reports[max(0, len(q.Reports)-mostShown):])
	slices.Reverse(reports)
	return h.Fill(`<article class="box"><h2 lang="" dir="auto">{}</h2><p class="meta"><span>every {}</span> <span>next {}</span>{}</p>{}{}</article>
`, line(q.Request.Question), q.Interval(), moment(q.Due), last, h.If(len(reports) > 0, `<ul>{}</ul>`, h.Each(reports, change)),
		h.If(v.CanRemove, `<div class="actions">{}</div>`, button(v.CSRF, UnwatchPath(q.ID.String()), "Stop watching", "")))
}

func change(r watch.Report) h.Node {
	claims := h.Each(r.Claims, func(c watch.Claim) h.Node {
		return h.Fill(`<li><b>{}</b> <span lang="" dir="auto">{}</span>{}{}</li>`, c.State, line(c.Text), with(c.Now, `<br>now: <span lang="" dir="auto">{}</span>`), with(c.Detail, `<br>against it: <span lang="" dir="auto">{}</span>`))
	})
	sources := h.Each(r.Sources, func(s watch.Source) h.Node {
		return h.Fill(`<li><b>source {}</b> <span class="locator">{}</span> <span lang="" dir="auto">{}</span></li>`, s.State, outside(s.Locator), line(s.Detail))
	})
	answer := h.Fill(`<span lang="" dir="auto">{}</span>`, r.Summary())
	if r.TraceID.Valid() && r.Failed == "" {
		answer = h.Fill(`<a href="{}">{}</a>`, h.Local(RunPath(r.TraceID.String())), answer)
	}
	return h.Fill(`<li>{}: {}{}</li>`, moment(r.At), answer, h.If(len(r.Claims)+len(r.Sources) > 0, `<ul>{}{}</ul>`, claims, sources))
}
