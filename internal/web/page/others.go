package page

import (
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
)

// Drift is a check of the sources of a run.
type Drift struct {
	Frame
	ID, Question string
	CheckedAt    time.Time // zero: there was none yet
	Summary      string
	Report       drift.Report
	CanCheck     bool
}

// DriftState is what became of a source, in one word: why it could not be had, if it
// could not.
func DriftState(src drift.Source) string {
	if src.State == drift.Unreachable && src.Why != "" {
		return string(src.Why)
	}
	return string(src.State)
}

// Page is when they were checked, and what became of each.
func (v Drift) Page() h.Node {
	when := h.Node{}
	switch {
	case v.CheckedAt.IsZero():
		when = h.Fill(`<p class="soft">The sources have not been checked since the run. A check fetches each of them again and looks for the excerpts; the answer stays as it is.</p>`)
	case v.Summary == "":
		when = h.Fill(`<p class="meta"><span>checked {}</span></p>`, moment(v.CheckedAt))
	}
	cited := func(n int) h.Node {
		return h.Fill(`<a class="cite" href="{}"><span class="sr">Source </span>{}</a>`, h.Local(RunPath(v.ID)+h.Source(n).Address()), n)
	}
	claims := h.Each(v.Report.Claims, func(c drift.Claim) h.Node {
		return h.Fill(`<tr><td>{}</td><td lang="" dir="auto">{}</td><td>{}</td></tr>`, chip(pick(holds, string(c.State))), line(c.Text), cites(c.Citations, cited))
	})
	return shell{Frame: v.Frame, name: "drift", main: h.Fill(`<header class="head"><p class="kind"><a href="{}">Back to the answer</a>{}</p><h1>What became of the sources</h1>
{}{}{}</header>
{}{}`, h.Local(RunPath(v.ID)), with(v.Question, ` to <span lang="" dir="auto">{}</span>`), when, with(v.Summary, `<p class="lead says">{}</p>`),
		h.If(v.CanCheck, `<div class="actions">{}</div>`, button(v.CSRF, ActPath(v.ID, Check), "Check the sources again", "primary")),
		h.If(!claims.Empty(), `<section aria-labelledby="claims-title"><h2 id="claims-title">Claims</h2><table class="claims-drift"><caption class="sr">Sentences of the answer and what became of their evidence</caption><thead><tr><th scope="col">Evidence</th><th scope="col">Sentence</th><th scope="col">Sources</th></tr></thead><tbody>{}</tbody></table></section>
`, claims),
		h.If(len(v.Report.Sources) > 0, `<section aria-labelledby="sources-title"><h2 id="sources-title">Sources</h2>{}</section>`, h.Each(v.Report.Sources, v.source)))}.page()
}

func (v Drift) source(src drift.Source) h.Node {
	passages := h.Each(src.Citations, func(n int) h.Node {
		if n < 1 || n > len(v.Report.Passages) {
			return h.Node{}
		}
		p := v.Report.Passages[n-1]
		return h.Fill(`<figure class="passage"><figcaption>Excerpt {}: {}</figcaption><blockquote lang="" dir="auto">{}</blockquote></figure>`, p.Citation, chip(pick(standings, string(p.State))), passage(p))
	})
	return h.Fill(`<article class="box"><h3 lang="" dir="auto">{}</h3><p>{} <span class="locator">{}</span></p>{}{}{}{}</article>
`, or(src.Title, src.Locator), chip(pick(freshness, DriftState(src))), outside(src.Locator), h.If(src.MovedTo != "", `<p class="soft">Moved to {}</p>`, outside(src.MovedTo)),
		with(src.Retracted, `<p lang="" dir="auto">{}</p>`), with(src.Detail, `<p class="soft" lang="" dir="auto">{}</p>`), passages)
}

// passage is an excerpt, and its wording of now where that is another.
func passage(p drift.Passage) h.Node {
	if p.Now == "" {
		return h.Exact(p.Excerpt)
	}
	return h.Fill(`<del>{}</del> <ins>{}</ins>`, h.Exact(p.Excerpt), h.Exact(p.Now))
}

// SignIn is the page for those who are not known yet.
type SignIn struct {
	Frame
	// Team says that there are tokens to sign in with; else the way in is a link
	// that the program prints.
	Team          bool
	Problem, Hint string // what is wrong, and what helps
	// Next is where one wanted to go, a path of this server; "" for none.
	Next string
}

// Page has a form for a token, or says how to get a link.
func (v SignIn) Page() h.Node {
	hint := h.Node{}
	if v.Team {
		hint = with(v.Hint, ` ({})`)
	}
	way := h.Fill(`<p>The way in is a link that works once, for ten minutes. The program prints it when it starts:</p>
<p class="command"><code>marchwarden ui</code></p>
<p class="soft">If it runs already, start it again: it prints another link.</p>`)
	if v.Team {
		way = h.Fill(`<form method="post" action="/in">{}{}<div class="field"><label for="token">Your token</label>
<input type="password" id="token" name="token" autocomplete="current-password" required spellcheck="false" aria-describedby="token-hint{}">
<p class="hint" id="token-hint">The person who runs this server gives you one, made with <code>marchwarden token</code>.</p></div>
<p><button class="primary">Sign in</button></p></form>`, token(v.CSRF), h.If(v.Next != "", `<input type="hidden" name="next" value="{}">`, v.Next), h.If(line(v.Problem) != "", ` token-fault`))
	}
	problem := h.If(line(v.Problem) != "", `<p class="fault" role="alert" id="token-fault"><strong>{}</strong>{}</p>`, line(v.Problem), hint)
	return shell{Frame: v.Frame, name: "signin", main: h.Fill(`<section class="slim" aria-labelledby="in-title"><h1 id="in-title">Sign in</h1>
{}{}</section>`, problem, way)}.page()
}

// Problem is the page of what went wrong.
type Problem struct {
	Frame
	Status   int
	Headline string
	Message  string
	Hint     string
	Code     string
	// Back is where to go on from here, a path of this server; "" is the first page.
	Back string
}

// Page is what went wrong, and a way on.
func (v Problem) Page() h.Node {
	back := "To the first page"
	if v.Back != "" {
		back = "Back"
	}
	return shell{Frame: v.Frame, name: "problem", main: h.Fill(`<section class="slim" aria-labelledby="problem-title">{}<h1 id="problem-title">{}</h1>
{}{}{}{}</section>`, h.If(v.Status > 0, `<p class="kind">{}</p>`, v.Status), or(v.Headline, "Something went wrong"), with(v.Message, `<p class="says" lang="" dir="auto">{}</p>`),
		with(v.Hint, `<p class="warn"><strong>What helps:</strong> <span lang="" dir="auto">{}</span></p>`), with(v.Code, `<p class="soft">Code: <code>{}</code></p>`),
		h.If(!v.Bare, `<p><a class="button" href="{}">{}</a></p>`, h.Local(v.Back), back))}.page()
}

// Deletion asks once more before a run is deleted.
type Deletion struct {
	Frame
	ID, Question string
	Facts        []report.Fact
}

// Page is the question, and what would go.
func (v Deletion) Page() h.Node {
	return shell{Frame: v.Frame, name: "confirm", main: h.Fill(`<section class="slim" aria-labelledby="confirm-title"><h1 id="confirm-title">Delete this answer?</h1>
{}<p>Its record goes with it, and every stored text that no other answer needs. This cannot be undone: share it as a file first if you may want it again.</p>{}<form class="actions" method="post" action="{}">{}<input type="hidden" name="confirmed" value="yes"><button class="danger">Delete it for good</button> <a class="button" href="{}">No, go back</a></form></section>`,
		with(v.Question, `<blockquote lang="" dir="auto">{}</blockquote>`), h.If(len(v.Facts) > 0, `{}`, facts(v.Facts)), h.Local(ActPath(v.ID, Delete)), token(v.CSRF), h.Local(RunPath(v.ID)))}.page()
}
