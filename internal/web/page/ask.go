package page

import (
	"slices"
	"strings"

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
	Follow                  string // the run whose conversation the question continues, or ""
	Depth, Format           string // the chosen ones; "" is balanced, and the form that goes with the depth
	TokenBudget, MaxSources string // as typed; "" leaves it to the depth
	Researchers             []Choice
	Examples                []string // questions that what is searched has answers to
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

// Page is one box, and all else folded away below it.
func (v Ask) Page() h.Node {
	return shell{Frame: v.Frame, name: "ask", here: "ask", main: h.Fill(`<section class="ask" aria-labelledby="ask-title">
<h1 id="ask-title">What do you want to know?</h1>
{}<form method="post" action="/ask" id="ask">
{}{}<div class="asker">{}<div class="submit"><p class="hint">{}</p><button class="primary">Ask</button></div></div>
<details class="more options"{}><summary>Options <span class="soft">{}</span></summary>
{}{}{}<div class="pair">{}{}{}</div></details>
</form>
{}</section>
{}{}`, faultList(v.Faults), token(v.CSRF), with(v.Follow, `<input type="hidden" name="follow" value="{}">`), v.question(), v.writer(), h.If(v.opened(), ` open`), v.chosen(),
		v.researchers(), v.depths(), v.textarea("context", v.Context, 2, marchwarden.MaxContextChars, `<label for="{}">{}</label>`, ``, "It is not repeated to you"), v.forms(),
		v.limit("token_budget", v.TokenBudget, "Never exceeded. "+term.Count(marchwarden.MinTokenBudget)+" or more"), v.limit("max_sources", v.MaxSources, "Documents that may be read"), v.examples(),
		h.If(len(v.Running) > 0, `<section class="recent" aria-labelledby="running-title"><h2 id="running-title">At work now</h2>{}</section>`, entries(v.Running)), v.recent())}.page()
}

// opened says that something is wrong with an option, or that one was chosen before.
func (v Ask) opened() bool {
	wrong := slices.ContainsFunc(v.Faults, func(f Fault) bool { return f.Field != "" && f.Field != "question" })
	return wrong || v.Context+v.Format+v.TokenBudget+v.MaxSources != ""
}

// chosen is the options in a few words: who is asked, and how deep.
func (v Ask) chosen() string {
	var out []string
	for _, c := range v.Researchers {
		if c.On && c.Down == "" {
			out = append(out, line(c.Name))
		}
	}
	return strings.Join(append(out, or(v.Depth, string(marchwarden.Balanced))), " · ")
}

// textarea is a field for a text. The line break after its tag is not part of the text.
func (v Ask) textarea(field, typed string, rows, limit int, label, more h.Literal, hint string) h.Node {
	return h.Fill(`<div class="field">{}{}<textarea id="{}" name="{}" rows="{}"{} data-limit="{}" dir="auto"{}>
{}</textarea><p class="hint" id="{}-hint">{}<span class="counter" data-for="{}"></span></p></div>
`, h.Fill(label, field, labels[field]), faultAt(v.Faults, field), field, field, rows, h.Fill(more), limit, invalid(v.Faults, field), typed, field, hint, field)
}

func (v Ask) question() h.Node {
	more := h.Literal(` required placeholder="Ask a question" enterkeyhint="go"`)
	if len(v.Faults) == 0 { // else the summary of the faults has the focus
		more += ` autofocus`
	}
	return v.textarea("question", v.Question, 2, marchwarden.MaxQuestionChars, `<label class="sr" for="{}">{}</label>`, more, "")
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
		return h.Fill(`<label class="card"><input type="radio" name="depth" value="{}"{}> <span><b>{}</b><span class="soft">{}</span><span class="soft">{} sources, {} tokens</span></span></label>`,
			d.value, h.If(chosen, ` checked`), d.name, d.about, l.MaxSources, term.Count(l.TokenBudget))
	})))
}

func (v Ask) forms() h.Node {
	all := [][2]string{{"", "as the depth says"}, {string(marchwarden.Brief), "one to three sentences"}, {string(marchwarden.Plain), "paragraphs"},
		{string(marchwarden.Report), "a report in sections"}, {string(marchwarden.Table), "one table"}}
	return h.Fill(`<div class="field"><label for="format">{}</label>{}<select id="format" name="format">{}</select></div>`, labels["format"], faultAt(v.Faults, "format"), h.Each(all, func(f [2]string) h.Node {
		return h.Fill(`<option value="{}"{}>{}</option>`, f[0], h.If(v.Format == f[0], ` selected`), f[1])
	}))
}

func (v Ask) limit(field, typed, hint string) h.Node {
	return h.Fill(`<div class="field"><label for="{}">{}</label>{}<input id="{}" name="{}" inputmode="numeric" autocomplete="off" value="{}"{}><p class="hint" id="{}-hint">{}</p></div>`,
		field, labels[field], faultAt(v.Faults, field), field, field, typed, invalid(v.Faults, field), field, hint)
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
		return h.Text("Answers are quoted from what is searched. No model is used")
	}
	return h.Fill(`Written by <span lang="" dir="auto">{}</span>, which is sent the question and what was found`, line(v.Mind))
}

// examples are questions that a press of a button asks, of those who are asked by themselves.
func (v Ask) examples() h.Node {
	asked := h.Each(v.Researchers, func(c Choice) h.Node {
		return h.If(c.On && c.Down == "", `<input type="hidden" name="researcher" value="{}">`, c.Name)
	})
	return h.If(len(v.Examples) > 0 && !asked.Empty(), `<form class="examples" method="post" action="/ask" aria-label="Examples">{}{}<p class="soft">Try</p>{}</form>
`, token(v.CSRF), asked, h.Each(v.Examples, func(q string) h.Node {
		return h.Fill(`<button name="question" value="{}" lang="" dir="auto">{}</button>`, line(q), line(q))
	}))
}

func (v Ask) recent() h.Node {
	body := h.Fill(`<p class="soft">Nothing was asked yet. What you ask is kept on this machine, with everything that was read.{}</p>`, h.If(v.Library, ` To ask about your own documents, <a href="{}">add them</a>.`, h.Local(LibraryPath)))
	if len(v.Recent) > 0 {
		body = h.Fill(`{}<p><a href="/history">All of them</a></p>`, entries(v.Recent))
	}
	return h.Fill(`<section class="recent" aria-labelledby="recent-title"><h2 id="recent-title">Recent</h2>{}</section>`, body)
}
