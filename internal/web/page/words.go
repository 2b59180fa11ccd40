package page

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// words are what templates call.
var words = template.FuncMap{
	// Texts and numbers.
	"line": plaintext.Fold, "clip": clip, "exact": exact, "count": term.Count, "plural": term.Plural, "took": term.Duration,
	"moment": moment, "stamp": stamp, "day": day, "seconds": seconds, "clock": clock, "unit": unit, "share": share, "deref": deref, "level": level,
	"who": who, "long": func(s string) bool { return len([]rune(s)) > 160 },
	"prev": func(n int) int { return n - 1 }, "next": func(n int) int { return n + 1 },
	// Words of the contract.
	"verdict": verdictOf, "status": statusOf, "state": stateOf, "freshness": freshnessOf, "standing": standingOf, "hold": holdOf, "label": label,
	"maxChars":   func() int { return marchwarden.MaxQuestionChars },
	"maxContext": func() int { return marchwarden.MaxContextChars },
	"minTokens":  func() int { return marchwarden.MinTokenBudget },
	// Addresses.
	"run": RunPath, "act": ActPath, "export": ExportPath, "whole": SourcePath, "cite": citePath, "local": local, "outside": outside, "host": host,
	"history": func(q url.Values) string { return withQuery(HistoryPath, q) },
	"numbers": func(days string) string { return withQuery(NumbersPath, url.Values{"days": {days}}) },
	"again":   func(id string) string { return withQuery(AskPath, url.Values{"from": {id}}) },
	"beside":  func(id string) string { return withQuery(HistoryPath, url.Values{"with": {id}}) },
	// What templates give to other templates.
	"fault":      func(f *Fault, id string) faultView { return faultView{f, id} },
	"form":       func(csrf, path, label, class string) button { return button{csrf, path, label, class} },
	"row":        func(e Entry, choose bool, with string) rowView { return rowView{e, choose, with != "" && e.ID == with} },
	"contestant": func(letter string, e Entry) contestant { return contestant{letter, e} },
	"shared":     func(caption string, all []Shared) sharedView { return sharedView{caption, all} },
	"lanes":      func(l Live) bool { return len(l.Journeys) > 0 || l.Lanes != "" },
}

// faultView is a fault at the field with this id.
type faultView struct {
	*Fault
	ID string
}

// button is a form that is nothing but a button.
type button struct{ CSRF, Path, Label, Class string }

// rowView is a run in a list from which runs may be chosen.
type rowView struct {
	Entry
	Choose, Chosen bool
}

// labels are what the fields of forms are called on the pages.
var labels = map[string]string{
	"question": "Question", "context": "Context", "depth": "Depth", "token_budget": "Token budget", "max_sources": "Most sources", "researcher": "Researchers",
	"min_cost": "Cost, from", "max_cost": "Cost, to", "min_confidence": "Confidence, from", "max_confidence": "Confidence, to", "since": "Asked, from", "until": "Asked, to", "q": "Words", "token": "Your token",
}

// label is what a field is called; "" if there is no such field.
func label(field string) string { return labels[field] }

// contestant is one of two runs.
type contestant struct {
	Letter string
	Entry  Entry
}

// sharedView is a table of what runs have in common.
type sharedView struct {
	Caption string
	All     []Shared
}

// host is the host of a locator that is an address of the web, or "".
func host(locator string) string {
	u, err := url.Parse(locator)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return strings.TrimPrefix(plaintext.Fold(u.Hostname()), "www.")
}

// who is the name of a researcher for people. The contract calls the one who sends the
// others pi.
func who(name string) string {
	if name == "pi" {
		return "the investigator"
	}
	return plaintext.Fold(name)
}

// clip is a text on one line and at most so long.
func clip(most int, s string) string { return plaintext.Clip(plaintext.Fold(s), most) }

// exact is a text to the character, nothing of it hidden.
func exact(s string) template.HTML { return template.HTML(markup.Exact(s).String()) }

// outside is a locator as a link, if it is an address of the web, and else as text.
func outside(locator string) template.HTML {
	text := markup.Text(plaintext.Fold(locator))
	if to, ok := markup.Web(locator); ok {
		return template.HTML(markup.A(to, markup.Foreign(), text).String())
	}
	return template.HTML(markup.El(markup.Span, markup.Foreign(), text).String())
}

// local is a path of this server; what is none is the first page.
func local(path string) string {
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\r\n\t") {
		return AskPath
	}
	return path
}

// moment is a time for people, in the zone that it carries.
func moment(t time.Time) string { return t.Format("2 Jan 2006, 15:04 MST") }

// day is its day.
func day(t time.Time) string { return t.Format("2 Jan 2006") }

// stamp is a time for machines.
func stamp(t time.Time) string { return t.Format(time.RFC3339) }

// seconds is a duration as a whole number of them.
func seconds(d time.Duration) int { return int(max(0, d) / time.Second) }

// clock is a duration as the script counts it on: in whole seconds.
func clock(d time.Duration) string {
	s := seconds(d)
	switch {
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d h %d min", s/3600, s%3600/60)
}

// unit is a number from 0 to 1; what is none is 0.
func unit(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	return strconv.FormatFloat(min(max(v, 0), 1), 'f', 2, 64)
}

// deref is the value of a number that may be missing.
func deref(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// level is a number from 0 to 1 as a class: low, fair or good.
func level(v float64) string {
	switch {
	case v >= 0.7:
		return "good"
	case v >= 0.4:
		return "fair"
	}
	return "low"
}

// share is a part of a whole in words: "31 %". A whole of nothing has none.
func share(part, whole int) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// word is a value of the contract: its name, which is a class, its sign, and what
// people read. Names that are not known never become a class.
type word struct{ name, sign, title, tone string }

// Name is the word's class.
func (w word) Name() string { return w.name }

// Sign stands before the title, so that colour is not alone.
func (w word) Sign() string { return w.sign }

// Title is the word.
func (w word) Title() string { return w.title }

// Tone is good, fair, bad or plain.
func (w word) Tone() string { return w.tone }

var verdicts = []word{
	{"supported", "✓", "Supported", "good"},
	{"quoted", "❝", "Quoted", "plain"},
	{"partial", "◐", "Partly supported", "fair"},
	{"unsupported", "✗", "Not supported", "bad"},
	{"unchecked", "?", "Not checked", "plain"},
}

var statuses = []word{
	{"complete", "✓", "Complete", "good"}, {"planned", "◦", "Planned only", "plain"}, {"interrupted", "‖", "Interrupted", "fair"},
	{"running", "●", "Running", "live"}, {"damaged", "✗", "Damaged", "bad"},
}

var states = []word{
	{"planned", "◦", "planned", "plain"}, {"planning", "…", "planning", "live"}, {"waiting", "…", "waiting for its rihlas", "live"}, {"searching", "⌕", "searching", "live"}, {"reading", "≡", "reading", "live"},
	{"writing", "✎", "writing", "live"}, {"checking", "✓", "checking", "live"}, {"done", "✓", "done", "good"}, {"failed", "✗", "failed", "bad"},
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

func pick(all []word, name string, other word) word {
	for _, w := range all {
		if w.name == name {
			return w
		}
	}
	return other
}

func verdictOf(name string) word { return pick(verdicts, name, verdicts[4]) }

func statusOf(name string) word {
	return pick(statuses, name, word{"other", "?", plaintext.Fold(name), "plain"})
}

func stateOf(name string) word {
	return pick(states, name, word{"other", "…", plaintext.Fold(name), "plain"})
}

func freshnessOf(name string) word { return pick(freshness, name, freshness[5]) }

func standingOf(name string) word { return pick(standings, name, standings[3]) }

func holdOf(name string) word { return pick(holds, name, holds[3]) }
