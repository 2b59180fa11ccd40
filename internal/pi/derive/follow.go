package derive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// mostHops is how many proposals may follow a report.
const mostHops = 2

// Follow proposes the next hop where a report covers a part of the question only:
// the question with a name in the place of the words that describe it, as in "Where
// was Mara Quill born?" for "Where was the director of Harbour Lights born?". The
// name stands in a sentence of the report's excerpts that has what the description
// names; a title, a file name and a name of the question's own are none. Where the
// question has no such description nothing is proposed. A proposal goes to the same
// researcher, since what a report holds may be private, and nothing that was asked
// before is asked again. It never fails.
func (*Planner) Follow(_ context.Context, b *pi.Brief, r pi.Report) ([]pi.Sending, error) {
	q := lexicon.ReadQuestion(asked(b, r), "")
	var texts []lexicon.HopText
	var shown []string
	for _, c := range r.Citations {
		t := lexicon.HopText{Source: c.Locator, Title: spoken(c)}
		for _, sp := range lexicon.Sentences(c.RawExcerpt) {
			t.Sentences = append(t.Sentences, c.RawExcerpt[sp.Start:sp.End])
		}
		texts = append(texts, t)
		shown = append(shown, t.Title+" \n"+c.RawExcerpt)
	}
	missing := uncovered(&q, shown)
	d, ok := describes(&q, missing, shown)
	if !ok || len(shown) == 0 {
		return nil, nil
	}
	own := lexicon.Names(b.Request.Question + " \n" + q.Text)
	var out []pi.Sending
	for _, l := range nearest(&d, texts, lexicon.NewMultiHop(&q, shown).Leads(texts)) {
		if len(out) >= min(mostHops, b.Most) {
			break
		}
		if !names(l.Name, own, b.Request.Question) {
			continue
		}
		next := pi.Sending{
			Researcher: r.Sent.Researcher,
			Question:   clip(d.before + l.Name + d.after),
			Reason:     fmt.Sprintf("%q stands beside what was asked, and nothing says %s", l.Name, strings.Join(missing[:min(3, len(missing))], ", ")),
		}
		if !before(b.Asked, out, next) {
			out = append(out, next)
		}
	}
	return out, nil
}

// fileName is how a file is called, or an address: no word of a sentence.
var fileName = regexp.MustCompile(`(?i)[/\\]|^\S+\.[a-z][a-z0-9]{0,4}$`)

// spoken is the title of a citation, or "" for one that is the name of a file.
func spoken(c marchwarden.Citation) string {
	if fileName.MatchString(c.Title) || c.Title == c.Locator || c.Title == path.Base(c.Locator) {
		return ""
	}
	return c.Title
}

// names reports that a lead is a person or thing that the question does not name itself.
func names(lead string, own []string, text string) bool {
	if fileName.MatchString(lead) || slices.ContainsFunc(own, func(n string) bool { return strings.Contains(lead, n) && strings.Contains(n, " ") }) {
		return false
	}
	known := lexicon.Terms(text)
	return slices.ContainsFunc(lexicon.Terms(lead), func(s string) bool { return !slices.Contains(known, s) })
}

// nearest are the leads that can stand for a description, best first. Of one weight, those nearest to the word for what
// they are come first: "directed by Mara Quill".
func nearest(d *description, texts []lexicon.HopText, leads []lexicon.Lead) []lexicon.Lead {
	type placed struct {
		lexicon.Lead
		gap int
	}
	var list []placed
	for _, l := range leads {
		if gap := d.gap(l, texts); gap >= 0 {
			list = append(list, placed{l, gap})
		}
	}
	slices.SortStableFunc(list, func(a, b placed) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.gap, b.gap))
	})
	out := make([]lexicon.Lead, len(list))
	for i, p := range list {
		out[i] = p.Lead
	}
	return out
}

// asked is the question that a report is held against: the whole one where that, or its inner one, was asked.
func asked(b *pi.Brief, r pi.Report) string {
	whole := lexicon.ReadQuestion(b.Request.Question, "")
	if in := innermost(&whole); r.Sent.Question == clip(whole.Text) || in != "" && r.Sent.Question == clip(in) {
		return b.Request.Question
	}
	return r.Sent.Question
}

// uncovered are the words of a question, as written, that no text holds, except those that only ask.
func uncovered(q *lexicon.Question, texts []string) []string {
	held := lexicon.Terms(strings.Join(texts, " \n"))
	var out []string
	for _, t := range q.Terms {
		if lexicon.Light(t.Stem) || lexicon.Vague(t.Stem) || slices.ContainsFunc(held, func(s string) bool { return lexicon.Alike(t, s) > 0 }) {
			continue
		}
		out = append(out, t.Text)
	}
	return out
}

// before reports that a question of the same words was asked of, or is proposed to, the same researcher.
func before(asked, proposed []pi.Sending, s pi.Sending) bool {
	same := func(o pi.Sending) bool {
		return o.Researcher == s.Researcher && lexicon.SameWords(o.Question) == lexicon.SameWords(s.Question)
	}
	return slices.ContainsFunc(asked, same) || slices.ContainsFunc(proposed, same)
}
