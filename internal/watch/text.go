package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

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
