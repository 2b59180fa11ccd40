package page

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

func line(s string) string { return plaintext.Fold(s) }

func clip(most int, s string) string { return plaintext.Clip(plaintext.Fold(s), most) }

// with is a literal filled with a text on one line; nothing where there is no text.
func with(s string, form h.Literal) h.Node {
	s = line(s)
	return h.If(s != "", form, s)
}

func or(texts ...string) string {
	for _, t := range texts {
		if t = line(t); t != "" {
			return t
		}
	}
	return ""
}

func host(locator string) string {
	u, err := url.Parse(locator)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return strings.TrimPrefix(plaintext.Fold(u.Hostname()), "www.")
}

// who is a researcher for people. The contract calls the one who sends the others pi.
func who(name string) string {
	if name == "pi" {
		return "the investigator"
	}
	return line(name)
}

// outside is a locator as a link, if it is an address of the web, and else as text.
func outside(locator string) h.Node {
	if to, ok := h.Web(locator); ok {
		return h.Fill(`<a href="{}" lang="" dir="auto" rel="noopener noreferrer nofollow">{}</a>`, to, line(locator))
	}
	return h.Fill(`<span lang="" dir="auto">{}</span>`, line(locator))
}

func moment(t time.Time) h.Node { return timed(t, "2 Jan 2006, 15:04 MST") }

// timed is a time in a layout, and for machines. A zero time is nothing.
func timed(t time.Time, layout string) h.Node {
	return h.If(!t.IsZero(), `<time datetime="{}">{}</time>`, t.Format(time.RFC3339), t.Format(layout))
}

// clock is a duration as the script counts it on: in whole seconds.
func clock(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

func unit(v marchwarden.Unit) string { return fmt.Sprintf("%.2f", float64(v)) }

func meter(v marchwarden.Unit) h.Node {
	level := "low"
	switch {
	case v >= 0.7:
		level = "good"
	case v >= 0.4:
		level = "fair"
	}
	return h.Fill(`<meter class="{}" aria-hidden="true" min="0" max="1" value="{}"></meter>`, level, unit(v))
}

// money is an amount for people, "" if it is not known.
func money(usd *float64) string {
	switch {
	case usd == nil:
		return ""
	case *usd == 0:
		return "no cost"
	case *usd < 0.01:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// word is a value of the contract: its name, which may be a class, its sign, which stands
// before the title so that colour is not alone, and what people read. The last of a list is for names
// that are not known, which never become a class; without a title it says the name.
type word struct{ name, sign, title, tone string }

var verdicts = []word{
	{"supported", "✓", "Supported", "good"},
	{"quoted", "❝", "Quoted", "plain"},
	{"partial", "◐", "Partly supported", "fair"},
	{"unsupported", "✗", "Not supported", "bad"},
	{"unchecked", "?", "Not checked", "plain"},
}

var statuses = []word{
	{"complete", "✓", "Complete", "good"}, {"planned", "◦", "Planned only", "plain"}, {"interrupted", "‖", "Interrupted", "fair"},
	{"running", "●", "Running", "live"}, {"damaged", "✗", "Damaged", "bad"}, {"other", "?", "", "plain"},
}

var states = []word{
	{"planned", "◦", "planned", "plain"}, {"planning", "…", "planning", "live"}, {"waiting", "…", "waiting", "live"}, {"searching", "⌕", "searching", "live"}, {"reading", "≡", "reading", "live"},
	{"writing", "✎", "writing", "live"}, {"checking", "✓", "checking", "live"}, {"done", "✓", "done", "good"}, {"failed", "✗", "failed", "bad"}, {"other", "…", "", "plain"},
}

var freshness = []word{
	{"unchanged", "✓", "Live and unchanged", "good"}, {"changed", "≠", "Live, but changed since", "fair"}, {"gone", "✗", "Gone: this copy is what is left", "bad"},
	{"refused", "⊘", "Refused at the last check", "fair"}, {"unanswered", "⊘", "No answer at the last check", "fair"}, {"unchecked", "?", "Not checked since it was stored", "plain"},
}

var standings = []word{
	{"present", "✓", "still there", "good"}, {"altered", "≠", "in another wording", "fair"}, {"missing", "✗", "no longer there", "bad"}, {"unknown", "?", "not known", "plain"},
}

var holds = []word{
	{"kept", "✓", "Kept", "good"}, {"weakened", "◐", "Some evidence altered or gone", "fair"}, {"lost", "✗", "Evidence altered or gone", "bad"}, {"unknown", "?", "Not known", "plain"},
}

func pick(all []word, name string) word {
	i := slices.IndexFunc(all, func(w word) bool { return w.name == name })
	if i < 0 {
		i = len(all) - 1
	}
	w := all[i]
	w.title = or(w.title, name)
	return w
}

// Fault is what is wrong with a field of a form. Field is its name in the form, or ""
// for the form as a whole.
type Fault struct{ Field, Message, Hint string }

// Option is one of several values of a field.
type Option struct {
	Value  string
	Chosen bool
}

// Discovery is something met on the way.
type Discovery struct {
	marchwarden.DiscoveryEvent
	From string // who met it, or ""
}

// labels are what the fields of forms are called on the pages.
var labels = map[string]string{
	"question": "Question", "context": "What you already know", "depth": "Depth", "format": "Form of the answer", "token_budget": "Token budget", "max_sources": "Most sources", "researcher": "Where to look",
	"q": "Words", "token": "Your token", "path": "Folder",
}

func token(csrf string) h.Node {
	return h.Fill(`<input type="hidden" name="csrf" value="{}">`, csrf)
}

func button(csrf, path, label, class string) h.Node {
	return h.Fill(`<form method="post" action="{}">{}<button{}>{}</button></form>`, h.Local(path), token(csrf), h.If(class != "", ` class="{}"`, class), label)
}

func chip(w word) h.Node {
	return h.Fill(`<span class="chip {}"><span aria-hidden="true">{} </span>{}</span>`, w.tone, w.sign, w.title)
}

func faultAt(faults []Fault, field string) h.Node {
	for _, f := range faults {
		if f.Field == field {
			return h.Fill(`<p class="fault" id="{}-fault"><strong>{}</strong>{}</p>`, field, line(f.Message), with(f.Hint, ` ({})`))
		}
	}
	return h.Node{}
}

func faultList(faults []Fault) h.Node {
	return h.If(len(faults) > 0, `<div class="faults" role="alert" tabindex="-1" id="faults"><h2>This needs to be corrected</h2><ul>{}</ul></div>`,
		h.Each(faults, func(f Fault) h.Node {
			field := h.Node{}
			if label := labels[f.Field]; label != "" {
				field = h.Fill(`<a href="{}">{}</a>: `, h.At(f.Field), label)
			}
			return h.Fill(`<li>{}{}{}</li>`, field, line(f.Message), with(f.Hint, ` <span class="soft">({})</span>`))
		}))
}

// invalid marks a field that has a fault, and says what describes it.
func invalid(faults []Fault, field string) h.Node {
	if faultAt(faults, field).Empty() {
		return h.Fill(` aria-describedby="{}-hint"`, field)
	}
	return h.Fill(` aria-describedby="{}-hint {}-fault" aria-invalid="true"`, field, field)
}

// facts is labels with their values; those without a value are left out.
func facts(all []report.Fact) h.Node {
	return h.Fill(`<dl class="facts">{}</dl>`, h.Each(all, func(f report.Fact) h.Node {
		return h.If(f.Value != "", `<div><dt>{}</dt><dd lang="" dir="auto">{}</dd></div>`, f.Label, line(f.Value))
	}))
}

func cite(n int) h.Node {
	return h.Fill(`<a class="cite" href="{}" data-source="{}"><span class="sr">Source </span>{}</a>`, h.Source(n), n, n)
}

// entry is a run in a list.
func entry(e run.Entry) h.Node {
	return h.Fill(`<li class="entry"><div class="entry-text"><a class="question" href="{}" lang="" dir="auto">{}</a>{}{}<p class="meta">{}</p></div></li>
`, h.Local(RunPath(e.ID.String())), or(clip(300, e.Question), "No question was kept"), h.If(e.Answer != "", `<p class="snippet" lang="" dir="auto">{}</p>`, e.Answer), with(e.Problem, `<p class="snippet bad-text">{}</p>`), entryFacts(e))
}

// entryFacts are what is known of a run in a list, in words. A run that goes on, or was cut off, has
// taken more than what its record says so far: its time and cost are left out.
func entryFacts(e run.Entry) h.Node {
	cost := ""
	if counted := e.Partial || e.Status == run.Complete || e.Status == run.Planned; counted && e.CostUSD != nil && *e.CostUSD > 0 {
		cost = money(e.CostUSD)
	}
	sure := ""
	if e.Citations > 0 && e.Confidence != nil {
		sure, _ = report.Sure(*e.Confidence)
	}
	return h.Join(h.If(e.Status != run.Complete, `{} `, chip(pick(statuses, string(e.Status)))), h.If(e.Status == run.Complete && e.Citations == 0, `<span>no answer</span> `), // it found nothing to cite
		h.If(e.Partial && e.Citations > 0, `<span>with a partial answer</span> `), with(sure, `<span>{}</span> `), h.If(!e.Began.IsZero(), `{} `, moment(e.Began)),
		with(cost, `<span>{}</span> `), h.If(e.Imported, `<span>imported</span>`))
}

func countOf(n int, noun string) h.Node {
	return h.If(n > 0, ` <span>{}</span>`, term.Plural(n, noun))
}

func entries(all []run.Entry) h.Node {
	return h.Fill(`<ul class="entries">{}</ul>`, h.Each(all, entry))
}

// gaps is a line for each category, and all of it below.
func gaps(groups []report.GapGroup) h.Node {
	return h.Each(groups, func(g report.GapGroup) h.Node {
		return h.Fill(`<details class="gap"><summary>{}: <span lang="" dir="auto">{}</span>{}</summary><ul class="items">{}</ul></details>`, line(g.Words), clip(160, g.Gaps[0].Topic), h.If(len(g.Gaps) > 1, ` and {} more`, len(g.Gaps)-1), h.Each(g.Gaps, func(x report.Gap) h.Node {
			return h.Fill(`<li><p lang="" dir="auto"><strong>{}</strong></p>{}{}</li>`, line(x.Topic), with(x.Detail, `<p class="soft" lang="" dir="auto">{}</p>`), h.Each(x.Done, func(done string) h.Node {
				return h.Fill(`<p class="done"><span aria-hidden="true">→ </span><span class="sr">What was done: </span><span lang="" dir="auto">{}</span></p>`, line(done))
			}))
		}))
	})
}

func discoveries(all []Discovery) h.Node {
	return h.Fill(`<ul class="items">{}</ul>`, h.Each(all, func(d Discovery) h.Node {
		return h.Fill(`<li><p><span class="tag">{}</span> <strong lang="" dir="auto">{}</strong></p>{}{}{}</li>`, spaced(string(d.Type)), line(d.Query),
			with(d.Reason, `<p class="soft" lang="" dir="auto">{}</p>`), h.If(d.SourceLocator != "", `<p class="locator">{}</p>`, outside(d.SourceLocator)),
			h.If(d.SuggestedResearcher+d.From != "", `<p class="soft">{}{}</p>`, with(d.From, `Met by <span lang="" dir="auto">{}</span>. `), with(d.SuggestedResearcher, `For <span lang="" dir="auto">{}</span>.`)))
	}))
}

func decisions(all []marchwarden.Decision) h.Node {
	return h.Fill(`<ul class="items">{}</ul>`, h.Each(all, func(d marchwarden.Decision) h.Node {
		return h.Fill(`<li><p><span class="tag">{}</span> <span lang="" dir="auto">{}</span></p><p class="done"><span aria-hidden="true">→ </span><strong>{}</strong>{}{}</p></li>`,
			spaced(d.About), line(d.Topic), line(string(d.Action)), h.If(d.Rihla > 0, ` by question {}`, d.Rihla), with(d.Reason, `: <span lang="" dir="auto">{}</span>`))
	}))
}

func spaced(name string) string { return line(strings.ReplaceAll(name, "_", " ")) }
