package conflict

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// Bounds of a heading that stands in the text itself.
const (
	headMost = 16 // tokens
	headSkip = 2  // tokens between it and what repeats it: "Winter Island The …", "Sir …"
)

// entry is what the article of an encyclopaedia is about: its heading, which its first
// sentence takes up. Other documents have none.
type entry struct {
	words []string        // stems, sorted
	added map[string]bool // those in brackets, which tell it from others of its name
}

// entryOf finds the heading of a document, in its title or at the beginning of its text:
// "Lake Mills, Iowa Lake Mills is a city".
func entryOf(src *evidence.Source) entry {
	toks := lexicon.Tokens(src.Text[:min(len(src.Text), 40*headMost)])
	title := lexicon.Tokens(src.Page.Title)
	if len(titleOf(src)) == 0 {
		title = nil
	}
	for skip := range headSkip + 1 {
		if repeats(title, toks, skip) {
			return newEntry(src.Page.Title, title)
		}
		for k := 1; k <= min(headMost, len(toks)-1); k++ {
			if repeats(toks[:k], toks[k:], skip) {
				return newEntry(src.Text, toks[:k])
			}
		}
	}
	return entry{}
}

// repeats reports whether a text begins with the first words of a heading, two at least
// where it has them, after some others.
func repeats(head, text []lexicon.Token, skip int) bool {
	n := 0
	for n < min(len(head), len(text)-skip) && head[n].Stem == text[skip+n].Stem {
		n++
	}
	return n >= min(2, len(head)) && slices.ContainsFunc(head[:n], func(t lexicon.Token) bool { return !t.Stop && (t.Capital || t.Number) })
}

func newEntry(text string, head []lexicon.Token) entry {
	e := entry{added: map[string]bool{}}
	open := strings.IndexByte(text[:head[len(head)-1].End], '(')
	for _, t := range head {
		if !t.Stop {
			e.words = append(e.words, t.Stem)
			e.added[t.Stem] = open >= 0 && t.Start > open
		}
	}
	slices.Sort(e.words)
	e.words = slices.Compact(e.words)
	return e
}

// others reports whether two articles are about different things of the name that is
// asked about: their headings differ in more than the values. Where these are in the
// headings, one article must be a copy of the other to be about the same thing.
func (q *inquiry) others(a, b entry, va, vb slot) (others, valued bool) {
	asked := func(e entry) bool {
		return slices.ContainsFunc(e.words, func(w string) bool { return q.subject[w] })
	}
	if !asked(a) || !asked(b) {
		return false, false
	}
	more := func(e, o entry, v slot) bool {
		return slices.ContainsFunc(e.words, func(w string) bool {
			if slices.Contains(o.words, w) {
				return false
			}
			valued = true
			return !e.added[w] || !slices.Contains(v.stems, w)
		})
	}
	return more(a, b, va) || more(b, a, vb), valued
}

// looked stand before the date on which somebody looked at a page.
var (
	lookedUp = words("retrieved accessed archived edited updated modified")
	looked   = words("retrieved accessed archived edited updated modified from on original")
)

// datesIn are the dates with day, month and year, except those of looking something up.
func datesIn(toks []lexicon.Token) map[date]bool {
	out := map[date]bool{}
	for i := 1; i+2 < len(toks); i++ {
		if !dated(toks[i]) || !dated(toks[i+1]) || !dated(toks[i+2]) || looked[strings.ToLower(toks[i-1].Text)] && i > 1 && looked[strings.ToLower(toks[i-2].Text)] || lookedUp[strings.ToLower(toks[i-1].Text)] {
			continue
		}
		if d := dateOf(slot{stems: []string{toks[i].Stem, toks[i+1].Stem, toks[i+2].Stem}}); d.year > 0 && d.month > 0 && d.day > 0 {
			out[d] = true
		}
	}
	return out
}

// sameDate reports whether two scenes have a whole date in common that is no value.
func (sc *scene) sameDate(o *scene, va, vb slot) bool {
	for d := range sc.dates {
		if o.dates[d] && d != dateOf(va) && d != dateOf(vb) {
			return true
		}
	}
	return false
}

// called reports whether what tells the thing that one article is about from others of
// its name stands around a sentence of another document: "2007" of "Death at a Funeral
// (2007 film)"; and whether in the sentence itself. Words of the question and the values
// tell nothing.
func (q *inquiry) called(a, b *statement, aside map[string]bool) (around, within bool) {
	by := func(e entry, s *statement) {
		var more []string
		for _, w := range e.words {
			if !aside[w] {
				more = append(more, w)
			}
		}
		if len(more) > 0 && count(more, func(w string) bool { return s.scene.names[w] }) == len(more) {
			around = true
			within = within || s.holds(slot{stems: more})
		}
	}
	by(a.scene.entry, b)
	by(b.scene.entry, a)
	return around, within
}
