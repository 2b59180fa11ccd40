package extractive

import (
	"regexp"
	"slices"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// dateOf is the date of a statement: its own, or that of the message or the headings
// it stands under, or that of its document.
func (lk *look) dateOf(u unit) lexicon.Date {
	head := u.text
	if len(head) > 40 { // a date further on is what the sentence speaks of
		head = head[:40]
	}
	for _, text := range []string{head, u.passage.Path, u.passage.Heading} {
		if d, _, ok := lexicon.FirstDate(text); ok && d.Year > 0 {
			return d
		}
	}
	d, _, _ := lexicon.FirstDate(lk.windows[u.at].src.Page.Published)
	return d
}

// agreement is 1 where a statement is of the date that is asked about, or names it,
// and -1 where it is of another.
func agreement(asked, of lexicon.Date, text string) float64 {
	if d, _, ok := lexicon.FirstDate(text); ok && d.Fits(asked) && !(d.Month == 0 && asked.Month > 0) {
		return 1
	}
	switch {
	case of.Year == 0:
		return 0
	case of.Fits(asked):
		return 1
	}
	return -1
}

// latest are words with which a question asks for what holds now.
var latest = regexp.MustCompile(`(?i)\b(latest|current(ly)?|now(adays)?|newest|most recent(ly)?|today|these days|at the moment|at present|as things stand|still|to date)\b`)

// newerMargin is how much weaker, in log-odds, a newer statement may be to take the
// place of an older one. Where the question asks for what holds now, or held at a date,
// and the reader has looked closely, it need only be about the question.
const newerMargin = 0.7

// newest puts the newest statement first among those that answer about as well, are
// about the same matter and bear a date. A question that names a date gets the statement
// of that date.
func (lk *look) newest(list []answer) []answer {
	if len(list) < 2 || list[0].date.Year == 0 {
		return list
	}
	_, _, dated := lexicon.FirstDate(lk.q.Text)
	better := func(a, b answer) bool { return a.date.String() > b.date.String() }
	if dated {
		better = func(a, b answer) bool { return a.feats[featDate] > 0 && b.feats[featDate] < 0 }
	}
	firm := dated || latest.MatchString(lk.q.Text)
	at := 0
	for i, a := range list[:min(closely, len(list))] {
		close := a.score >= list[0].score-newerMargin || firm && a.feats[featCloserAbout] > 0
		if close && better(a, list[at]) && lk.sameMatter(list[0], a) {
			at = i
		}
	}
	first := list[at]
	return append([]answer{first}, slices.Delete(slices.Clone(list), at, at+1)...)
}

// sameMatter reports that a statement, or its headings, holds the word of the question
// that says most of what another is about.
func (lk *look) sameMatter(a, b answer) bool {
	has := lk.holds(lk.windows[a.at].Path + "\n" + a.text)
	most := 0
	for t := range has {
		if lk.idf[t]*has[t] > lk.idf[most]*has[most] {
			most = t
		}
	}
	return len(has) > 0 && lk.holds(lk.windows[b.at].Path + "\n" + b.text)[most] >= has[most]
}
