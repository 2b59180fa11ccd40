package watch

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// Summary is a report in one line.
func (r Report) Summary() string {
	switch {
	case r.Failed != "":
		return "failed: " + term.CleanLine(r.Failed)
	case !r.Before.Valid() && !r.News():
		return "first answer"
	}
	var parts []string
	are := map[string]int{}
	for _, c := range r.Claims {
		are["claim "+string(c.State)]++
	}
	for _, s := range r.Sources {
		are["source "+string(s.State)]++
	}
	for _, noun := range []string{"claim", "source"} {
		for _, state := range news {
			if n := are[noun+" "+string(state)]; n > 0 {
				parts = append(parts, term.Plural(n, noun)+" "+string(state))
			}
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing changed"}
	}
	return strings.Join(append(parts, term.Plural(r.Unchanged, "claim")+" unchanged"), ", ")
}

// Text is a report for people, news first.
func (r Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", r.Summary())
	for _, state := range append(slices.Clone(news), Unsure, Unsaid, Also) {
		for _, c := range r.Claims {
			if c.State != state {
				continue
			}
			line("  %-12s %s", c.State, term.CleanLine(c.Text))
			if c.Now != "" {
				line("  %-12s now: %s", "", term.CleanLine(c.Now))
			}
			if c.Detail != "" {
				line("  %-12s against it: %s", "", term.CleanLine(c.Detail))
			}
		}
	}
	for _, s := range r.Sources {
		line("  source %s: %s", s.State, term.CleanLine(strings.TrimSpace(s.Locator+" "+s.Detail)))
	}
	if r.Notice != "" {
		line("  the program for notice failed: %s", term.CleanLine(r.Notice))
	}
	return b.String()
}

// maxEntries is how many reports a feed has.
const maxEntries = 100

type atomFeed struct {
	XMLName xml.Name    `xml:"http://www.w3.org/2005/Atom feed"`
	ID      string      `xml:"id"`
	Title   string      `xml:"title"`
	Updated string      `xml:"updated"`
	Author  string      `xml:"author>name"`
	Entries []atomEntry `xml:"entry"`
}

type atomEntry struct {
	ID      string    `xml:"id"`
	Title   string    `xml:"title"`
	Updated string    `xml:"updated"`
	Link    *atomLink `xml:"link"`
	Content string    `xml:"content"`
}

type atomLink struct {
	Href string `xml:"href,attr"`
}

// Feed is the news of questions as an Atom feed, the newest first. link is the address of a run's
// page; nil has none.
func Feed(questions []Question, link func(marchwarden.TraceID) string) ([]byte, error) {
	var reports []Report
	for _, q := range questions {
		for _, r := range q.Reports {
			if r.News() {
				reports = append(reports, r)
			}
		}
	}
	slices.Reverse(reports)
	slices.SortStableFunc(reports, func(a, b Report) int { return b.At.Compare(a.At) })
	feed := atomFeed{ID: "urn:marchwarden:watch", Title: "Marchwarden: watched questions", Updated: time.Time{}.Format(time.RFC3339), Author: "Marchwarden"}
	for i, r := range reports[:min(maxEntries, len(reports))] {
		e := atomEntry{ID: "urn:uuid:" + r.TraceID.String(), Title: term.CleanLine(r.Question) + ": " + r.Summary(), Updated: r.At.Format(time.RFC3339), Content: r.Text()}
		if link != nil {
			e.Link = &atomLink{link(r.TraceID)}
		}
		if feed.Entries = append(feed.Entries, e); i == 0 {
			feed.Updated = e.Updated
		}
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	enc := xml.NewEncoder(&b)
	enc.Indent("", " ")
	err := enc.Encode(feed)
	return b.Bytes(), marchwarden.Wrap(err, marchwarden.CodeInternal, "write the feed")
}

// writeFeed writes the feed of all questions beside them. The caller has the lock.
func (b Book) writeFeed() error {
	all, _ := b.List("") // one that cannot be read has no entries
	text, err := Feed(all, nil)
	if err == nil {
		err = durable.ReplaceFile(filepath.Join(b.Dir, feedFile), text)
	}
	return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write the feed")
}

// Text is a question with its reports for people; when words a time.
func (q Question) Text(when func(time.Time) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nevery %s, next at %s\n", term.CleanLine(q.Request.Question), q.Interval(), when(q.Due))
	for _, r := range q.Reports {
		fmt.Fprintf(&b, "\n%s  %s\n%s", when(r.At), r.TraceID, r.Text())
	}
	return b.String()
}

// Interval is how often the question is asked, in words such as 7d.
func (q Question) Interval() string {
	if days := q.Every / (24 * time.Hour); days*24*time.Hour == q.Every {
		return fmt.Sprintf("%dd", days)
	}
	return q.Every.String()
}

// Latest is the last report in one line.
func (q Question) Latest() string {
	if len(q.Reports) == 0 {
		return "not asked yet"
	}
	return q.Reports[len(q.Reports)-1].Summary()
}
