package page

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
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

// who is the name of a researcher for people. The contract calls the one who sends the
// others pi.
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

func unit(v float64) string {
	if math.IsNaN(v) {
		v = 0
	}
	return strconv.FormatFloat(min(max(v, 0), 1), 'f', 2, 64)
}

func meter(v float64) h.Node {
	level := "low"
	switch {
	case v >= 0.7:
		level = "good"
	case v >= 0.4:
		level = "fair"
	}
	return h.Fill(`<meter class="{}" aria-hidden="true" min="0" max="1" value="{}"></meter>`, level, unit(v))
}

// share is a part of a whole in words: "31 %". A whole of nothing has none.
func share(part, whole int) string {
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// Money is an amount for people, "" if it is not known.
func Money(usd *float64) string {
	switch {
	case usd == nil:
		return ""
	case *usd > 0 && *usd < 0.01:
		return fmt.Sprintf("$%.4f", *usd)
	}
	return fmt.Sprintf("$%.2f", *usd)
}

// word is a value of the contract: its name, which may be a class, its sign, which stands
// before the title so that colour is not alone, and what people read. Names that are not
// known never become a class.
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

func pick(all []word, name string) word {
	for _, w := range all {
		if w.name == name {
			return w
		}
	}
	return all[len(all)-1]
}

func verdictOf(name string) word   { return pick(verdicts, name) }
func freshnessOf(name string) word { return pick(freshness, name) }

func statusOf(name string) word {
	return pick(append(statuses[:len(statuses):len(statuses)], word{"other", "?", line(name), "plain"}), name)
}

func stateOf(name string) word {
	return pick(append(states[:len(states):len(states)], word{"other", "…", line(name), "plain"}), name)
}
