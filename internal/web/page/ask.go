package page

import (
	"io"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Ask is the page on which a question is put. What was typed is given back as it was
// typed, with what is wrong about it.
type Ask struct {
	Frame
	Question, Context       string
	Depth                   string // the chosen one; "" is balanced
	TokenBudget, MaxSources string // as typed; "" leaves it to the depth
	Researchers             []Choice
	Faults                  []Fault
	Running, Recent         []run.Entry
	// Mind says who writes, such as a model's name; "" is that no model does.
	Mind string
}

// Choice is a researcher that may be asked.
type Choice struct {
	Name, Scope string
	OpenWorld   bool   // words of the question leave this machine
	On          bool   // it is chosen
	Down        string // why it cannot be asked, or ""
}

// Ask writes the page on which a question is put.
func (s *Set) Ask(w io.Writer, v Ask) error {
	return s.write(w, shell{Frame: v.Frame, name: "ask", here: "ask", main: h.Fill(`<div class="ask">
<section class="ask-form" aria-labelledby="ask-title">
<h1 id="ask-title">Ask a question</h1>
<p class="lead">Every sentence of the answer will lead to the text that it rests on.</p>
{}<form method="post" action="/ask">
{}{}{}{}<div class="pair">{}{}</div>
{}<div class="submit"><button class="primary">Ask</button><p class="hint">{}</p></div>
</form>
</section>
<div class="ask-side">{}{}</div>
</div>`, faultList(v.Faults), token(v.CSRF), v.question(), v.context(), v.depths(),
		v.limit("token_budget", v.TokenBudget, "Never exceeded. "+term.Count(marchwarden.MinTokenBudget)+" or more; empty is as the depth says"),
		v.limit("max_sources", v.MaxSources, "Documents that may be read; empty is as the depth says"),
		v.researchers(), v.writer(),
		h.If(len(v.Running) > 0, `<section aria-labelledby="running-title"><h2 id="running-title">At work now</h2>{}</section>`, entries(v.Running)), v.recent())})
}

// textarea is a field for a text. The line break after its tag is not part of the text.
func (v Ask) textarea(field, typed string, rows, limit int, more, hint h.Literal) h.Node {
	return h.Fill(`<div class="field"><label for="{}">{}</label>{}<textarea id="{}" name="{}" rows="{}"{} data-limit="{}" dir="auto"{}>
{}</textarea><p class="hint" id="{}-hint">{}<span class="counter" data-for="{}"></span></p></div>
`, field, labels[field], faultAt(v.Faults, field), field, field, rows, h.Fill(more), limit, invalid(v.Faults, field, field+"-hint"), typed, field, h.Fill(hint, term.Count(limit)), field)
}

func (v Ask) question() h.Node {
	return v.textarea("question", v.Question, 3, marchwarden.MaxQuestionChars, ` required`, `At most {} characters`)
}

func (v Ask) context() h.Node {
	open := v.Context != "" || !faultAt(v.Faults, "context").Empty()
	return h.Fill(`<details class="more"{}><summary>What you already know</summary>{}</details>
`, h.If(open, ` open`), v.textarea("context", v.Context, 4, marchwarden.MaxContextChars, ``, `It will not be repeated to you. At most {} characters`))
}

// group opens a group of fields, with the fault of all.
func (v Ask) group(field string, body h.Node) h.Node {
	fault := faultAt(v.Faults, field)
	return h.Fill(`<fieldset id="{}"{}><legend>{}</legend>{}{}</fieldset>
`, field, h.If(!fault.Empty(), ` aria-describedby="{}-fault"`, field), labels[field], fault, body)
}

func (v Ask) depths() h.Node {
	type depth struct {
		value       marchwarden.Depth
		name, about string
	}
	all := []depth{{marchwarden.Shallow, "Shallow", "a quick look"}, {marchwarden.Balanced, "Balanced", "the usual"}, {marchwarden.Deep, "Deep", "follows more leads"}}
	return v.group("depth", h.Fill(`<div class="cards">{}</div>`, h.Each(all, func(d depth) h.Node {
		l := marchwarden.Preset(d.value)
		chosen := v.Depth == string(d.value) || v.Depth == "" && d.value == marchwarden.Balanced
		return h.Fill(`<label class="card"><input type="radio" name="depth" value="{}"{}> <span><b>{}</b><span class="soft">{}</span><span class="soft">{} tokens, {} sources, {} rounds</span></span></label>`,
			d.value, h.If(chosen, ` checked`), d.name, d.about, term.Count(l.TokenBudget), l.MaxSources, l.MaxIterations)
	})))
}

func (v Ask) limit(field, typed, hint string) h.Node {
	return h.Fill(`<div class="field"><label for="{}">{}</label>{}<input id="{}" name="{}" inputmode="numeric" autocomplete="off" value="{}"{}><p class="hint" id="{}-hint">{}</p></div>`,
		field, labels[field], faultAt(v.Faults, field), field, field, typed, invalid(v.Faults, field, field+"-hint"), field, hint)
}

func (v Ask) researchers() h.Node {
	if len(v.Researchers) == 0 {
		return h.Node{}
	}
	return v.group("researcher", h.Fill(`<div class="choices">{}</div>`, h.Each(v.Researchers, func(c Choice) h.Node {
		leaves := h.Fill(`<span class="tag good">searched on this machine</span>`)
		if c.OpenWorld {
			leaves = h.Fill(`<span class="tag fair">leaves this machine</span>`)
		}
		return h.Fill(`<label class="choice"><input type="checkbox" name="researcher" value="{}"{}{}> <span><b lang="" dir="auto">{}</b> {} <span class="soft" lang="" dir="auto">{}</span>{}</span></label>`,
			c.Name, h.If(c.On, ` checked`), h.If(c.Down != "", ` disabled`), line(c.Name), leaves, line(c.Scope), with(c.Down, `<span class="bad-text">Cannot be asked: <span lang="" dir="auto">{}</span></span>`))
	})))
}

func (v Ask) writer() h.Node {
	if line(v.Mind) == "" {
		return h.Text("No model is set: the answer will be made of sentences of the sources")
	}
	return h.Fill(`Written by <span lang="" dir="auto">{}</span>, which is sent the question and what was found`, line(v.Mind))
}

func (v Ask) recent() h.Node {
	body := h.Fill(`<p class="soft">Nothing was asked yet. What you ask is recorded on this machine, with everything that was read, and listed here.</p>`)
	if len(v.Recent) > 0 {
		body = h.Fill(`{}<p><a href="/history">All of them</a></p>`, entries(v.Recent))
	}
	return h.Fill(`<section aria-labelledby="recent-title"><h2 id="recent-title">Recent</h2>{}</section>`, body)
}
