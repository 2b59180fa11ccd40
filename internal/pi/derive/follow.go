package derive

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/hop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
)

// Limits of what follows a report.
const (
	mostHops = 2
	// leadFloor is what a name must be worth: it stands beside words of the question.
	leadFloor = 0.3
)

// Follow proposes the next hop where a report covers a part of the question only:
// the words that are missing, with a name that stands in its excerpts beside the
// others. It goes to the same researcher, since what a report holds may be private,
// and nothing that was asked before is asked again. It fails only with a context
// that has ended.
func (*Planner) Follow(ctx context.Context, b *pi.Brief, r pi.Report) ([]pi.Sending, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	q := question.Read(asked(b, r), "", b.Now.Year())
	var texts []hop.Text
	var shown []string
	for _, c := range r.Citations {
		t := hop.Text{Source: c.Locator, Title: c.Title}
		for _, sp := range lexicon.Sentences(c.RawExcerpt) {
			t.Sentences = append(t.Sentences, c.RawExcerpt[sp.Start:sp.End])
		}
		texts = append(texts, t)
		shown = append(shown, c.Title+" \n"+c.RawExcerpt)
	}
	missing := uncovered(&q, shown)
	if len(missing) == 0 || len(shown) == 0 {
		return nil, nil
	}
	var out []pi.Sending
	for _, l := range hop.New(&q, shown).Leads(texts) {
		if l.Weight < leadFloor || len(out) >= min(mostHops, b.Most) {
			break
		}
		next := pi.Sending{
			Researcher: r.Sent.Researcher,
			Question:   clip(strings.Join(missing, " ") + " " + l.Name + "?"),
			Reason:     fmt.Sprintf("%q stands beside what was asked, and nothing says %s", l.Name, strings.Join(missing[:min(3, len(missing))], ", ")),
		}
		if !before(b.Asked, out, next) {
			out = append(out, next)
		}
	}
	return out, nil
}

// asked is the question that a report is held against: the whole one where that
// was asked, or its inner one, and otherwise the one that was asked.
func asked(b *pi.Brief, r pi.Report) string {
	whole := question.Read(b.Request.Question, "", b.Now.Year())
	if in := innermost(&whole); r.Sent.Question == clip(whole.Text) || in != "" && r.Sent.Question == clip(in) {
		return b.Request.Question
	}
	return r.Sent.Question
}

// uncovered are the words of a question, as written, that no text holds, except
// those that only ask.
func uncovered(q *question.Question, texts []string) []string {
	held := lexicon.Terms(strings.Join(texts, " \n"))
	var out []string
	for _, t := range q.Terms {
		if question.Light(t.Stem) || question.Vague(t.Stem) || slices.ContainsFunc(held, func(s string) bool { return question.Alike(t, s) > 0 }) {
			continue
		}
		out = append(out, t.Text)
	}
	return out
}

// before reports that a question of the same words was asked of, or is proposed to,
// the same researcher.
func before(asked, proposed []pi.Sending, s pi.Sending) bool {
	same := func(o pi.Sending) bool {
		return o.Researcher == s.Researcher && slices.Equal(words(o.Question), words(s.Question))
	}
	return slices.ContainsFunc(asked, same) || slices.ContainsFunc(proposed, same)
}

// words are the stems of a text in sorted order.
func words(s string) []string {
	stems := lexicon.Terms(s)
	slices.Sort(stems)
	return slices.Compact(stems)
}
