package biblio

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Style is how a reference is written for people. "" is IEEE.
type Style string

// The styles.
const (
	APA     Style = "apa"
	IEEE    Style = "ieee"
	Chicago Style = "chicago"
)

// Styles are the names of the styles.
func Styles() []string { return []string{string(APA), string(IEEE), string(Chicago)} }

// Alphabetical reports whether a list in the style is in the order of the alphabet.
func (s Style) Alphabetical() bool { return s == APA || s == Chicago }

// Reference writes an entry on one line: who, what, where, when it was published and when it was
// read, and behind all that its address, which is apart if it is of the web. What is not known
// is left out.
func (s Style) Reference(e Entry) (line, address string) {
	e = e.fold()
	at := cmp.Or(e.URL, e.Locator)
	if e.DOI != "" {
		at = "https://doi.org/" + e.DOI
	}
	where := cmp.Or(e.Journal, e.Publisher)
	if site, err := url.Parse(e.URL); err == nil && where == "" {
		where = site.Hostname()
	}
	if e.ArXiv != "" && e.Journal == "" {
		where = "arXiv:" + e.ArXiv
	}
	title := cmp.Or(e.Title, where, "Untitled")
	if title == where {
		where = ""
	}
	switch s {
	case APA:
		line = e.apa(title, where)
	case Chicago:
		line = parts(stopped(e.names(familyFirst, ", and ")), "“"+stopped(title)+"”", stopped(where), stopped(dated(e.Published, longDate)), before("Accessed ", dated(e.Accessed, longDate), "."))
	default:
		line = e.ieee(title, where)
	}
	if e.URL != "" || e.DOI != "" {
		return line, at
	}
	return parts(line, stopped(at)), ""
}

// The layouts of dates.
const (
	longDate  = "January 2, 2006"
	shortDate = "Jan. 2, 2006"
)

func (e Entry) apa(title, where string) string {
	published := "(" + cmp.Or(dated(e.Published, "2006, January 2"), "n.d.") + ")."
	from := before("Retrieved ", dated(e.Accessed, longDate), ", from")
	if who := e.names(initialsLast, ", & "); who != "" {
		return parts(stopped(who), published, stopped(title), stopped(where), from)
	}
	return parts(stopped(title), published, stopped(where), from)
}

func (e Entry) ieee(title, where string) string {
	rest := []string{}
	for _, part := range []string{where, dated(e.Published, shortDate)} {
		if part != "" {
			rest = append(rest, part)
		}
	}
	quoted := "“" + stopped(title) + "”"
	if len(rest) > 0 {
		quoted = "“" + title + ",”"
	}
	online := ""
	if e.URL != "" || e.DOI != "" {
		online = "[Online]. Available:"
	}
	return parts(before("", e.names(initialsFirst, " and "), ","), quoted, stopped(strings.Join(rest, ", ")), before("Accessed: ", dated(e.Accessed, shortDate), "."), online)
}

// before is a text between two others; nothing stays nothing.
func before(head, text, tail string) string {
	if text == "" {
		return ""
	}
	return head + text + tail
}

func parts(all ...string) string { return strings.Join(strings.Fields(strings.Join(all, " ")), " ") }

// stopped is a text that ends a sentence.
func stopped(s string) string {
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, ".”") {
		return s
	}
	return s + "."
}

// dated is a date in a layout with as much of it as is known.
func dated(s, layout string) string {
	d := date(s)
	if d == nil {
		return ""
	}
	day := time.Date(d[0], time.January, 1, 0, 0, 0, 0, time.UTC)
	switch len(d) {
	case 1:
		layout = "2006"
	case 2:
		day = day.AddDate(0, d[1]-1, 0)
		layout = strings.NewReplacer(" 2,", "", " 2", "").Replace(strings.ReplaceAll(layout, "2006", "\x00"))
		layout = strings.ReplaceAll(layout, "\x00", "2006")
	default:
		day = time.Date(d[0], time.Month(d[1]), d[2], 0, 0, 0, 0, time.UTC)
	}
	return strings.Replace(day.Format(layout), "May.", "May", 1)
}

// mostNames is how many authors are named before "et al.".
const mostNames = 6

// names are the authors, each as one writes the first or the others, the last behind and.
func (e Entry) names(one func(n Name, first bool) string, and string) string {
	var all []string
	for i, n := range e.Authors[:min(len(e.Authors), mostNames)] {
		if n.Literal != "" {
			all = append(all, n.Literal)
		} else {
			all = append(all, one(n, i == 0))
		}
	}
	if len(all) < len(e.Authors) || e.MoreAuthors > 0 && len(all) > 0 {
		return strings.Join(all, ", ") + ", et al."
	}
	if n := len(all); n > 1 {
		if n > 2 && !strings.HasPrefix(and, ",") {
			and = "," + and
		}
		return strings.Join(all[:n-1], ", ") + and + all[n-1]
	}
	return strings.Join(all, "")
}

func initials(given string) string {
	var out []string
	for _, w := range strings.Fields(given) {
		out = append(out, string([]rune(w)[:1])+".")
	}
	return strings.Join(out, " ")
}

func initialsLast(n Name, _ bool) string { return fmt.Sprintf("%s, %s", n.Family, initials(n.Given)) }
func initialsFirst(n Name, _ bool) string {
	return strings.TrimSpace(initials(n.Given) + " " + n.Family)
}

func familyFirst(n Name, first bool) string {
	if first && n.Given != "" {
		return n.Family + ", " + n.Given
	}
	return n.String()
}
