package derive

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

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
	gaps := map[[2]string]int{}
	leads = slices.DeleteFunc(leads, func(l lexicon.Lead) bool {
		gap := d.gap(l, texts)
		gaps[[2]string{l.Source, l.Name}] = gap
		return gap < 0
	})
	slices.SortStableFunc(leads, func(a, b lexicon.Lead) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(gaps[[2]string{a.Source, a.Name}], gaps[[2]string{b.Source, b.Name}]))
	})
	return leads
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

// description is a part of a question that stands for a name.
type description struct {
	before, after string // what stands around it
	head          string // the noun for what is described: "director"
	role          bool   // a sentence that names it says so, as of a director, not of a city
	terms         []lexicon.Term
}

// ofThing is "the foreman of Ravenscar Mill", of any noun.
var ofThing = later(`\b[Tt]he\s+((?:[a-z]+(?:-[a-z]+)*\s){0,2}?[a-z]+(?:-[a-z]+)*)\s+of\s+(?:(?:the\s+(?:[a-z]+\s+)?)?` + proper + `|["“][^"”]+["”])`)

// isThing are nouns that need not be said of what they describe: a man was born in a town, called one or not.
var isThing = regexp.MustCompile(`(?:^|\s)(?:` + things + `)$`)

// describes finds the innermost description of a question with all that is missing outside of it, so that the question
// can be asked with a name instead. Shown tells where a name ends: "the Kessler dam" is one.
func describes(q *lexicon.Question, missing, shown []string) (description, bool) {
	if len(missing) == 0 {
		return description{}, false
	}
	for _, form := range []struct {
		re   *regexp.Regexp
		head int // the group with the noun
		role bool
	}{{place, 1, false}, {relative, 1, false}, {owned(), 2, true}, {ofThing(), 1, true}} {
		found := form.re.FindAllStringSubmatchIndex(q.Text, -1)
		for k := len(found) - 1; k >= 0; k-- {
			at := found[k]
			d := description{head: q.Text[at[2*form.head]:at[2*form.head+1]]}
			d.role = form.role && !isThing.MatchString(d.head)
			open := slices.DeleteFunc(slices.Clone(missing), func(w string) bool { return !d.role && slices.Contains(strings.Fields(d.head), w) })
			end, ok := without(q.Text, at[0], whole(q.Text, at[1], shown), open)
			if !ok || len(open) == 0 {
				continue
			}
			d.before, d.after = q.Text[:at[0]], q.Text[end:]
			for _, t := range lexicon.ReadQuestion(q.Text[at[0]:end], "").Terms {
				if !lexicon.Light(t.Stem) && (d.role || !slices.Contains(lexicon.Terms(d.head), t.Stem)) {
					d.terms = append(d.terms, t)
				}
			}
			if len(d.terms) > 0 && readable(d.before, d.after) {
				return d, true
			}
		}
	}
	return description{}, false
}

// without is where the description text[start:end] ends if what is missing does not belong to it. Words at the end of a
// clause may be the question's: "the man who built the mill | born".
func without(text string, start, end int, missing []string) (int, bool) {
	lost := func(s string) bool { return slices.Contains(missing, s) }
	toks := lexicon.Tokens(text[start:end])
	cut := len(toks)
	for cut > 0 && lost(toks[cut-1].Text) && !toks[cut-1].Capital && !toks[cut-1].Number {
		cut--
	}
	if cut < 2 || slices.ContainsFunc(toks[:cut], func(t lexicon.Token) bool { return lost(t.Text) }) {
		return 0, false
	}
	if cut < len(toks) && toks[cut-1].Stop { // "the prize of the man who was | born"
		return 0, false
	}
	return start + toks[cut-1].End, true
}

// whole is where a name that ends at end goes on to, if the words after it follow it in what is shown.
func whole(text string, end int, shown []string) int {
	start, last := strings.LastIndexByte(text[:end], ' ')+1, end
	for _, t := range run(text[end:]) {
		name := text[start : end+t.End]
		if !slices.ContainsFunc(shown, func(s string) bool { return strings.Contains(strings.Join(strings.Fields(s), " "), name) }) {
			break
		}
		last = end + t.End
	}
	return last
}

// run are the words of a text up to the first mark, capital, number or stop word.
func run(text string) []lexicon.Token {
	toks := lexicon.Tokens(text)
	at := 0
	for i, t := range toks {
		if t.Stop || t.Capital || t.Number || text[at:t.Start] != " " {
			return toks[:i]
		}
		at = t.End
	}
	return toks
}

// An auxiliary leaves the verb of a question for after its subject, except in "what is".
var (
	auxiliary = regexp.MustCompile(`(?i)\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would)\s*$`)
	equation  = regexp.MustCompile(`(?i)\b(?:what|who|which)\s+(?:is|are|was|were)\s*$`)
)

// readable reports that a name can stand between two halves of a question: one has begun, no article leads up to it,
// and what follows is the verb that is due, or nothing of the description.
func readable(before, after string) bool {
	toks := lexicon.Tokens(before)
	if len(toks) == 0 {
		return false
	}
	switch last := toks[len(toks)-1]; strings.ToLower(last.Text) {
	case "a", "an", "the", "this", "that", "which", "what", "whose":
		return false
	}
	due := 0
	if auxiliary.MatchString(before) && !equation.MatchString(before) {
		due = 1
	}
	return len(run(after)) <= due
}

// gap is how many words lie between a lead and the noun that describes it, in a sentence that has both and all else that
// the description names, or -1. The title of a text speaks for its sentences.
func (d *description) gap(l lexicon.Lead, texts []lexicon.HopText) int {
	best := -1
	for _, text := range texts {
		for _, s := range text.Sentences {
			at := standing(s, l.Name)
			if text.Source != l.Source || at < 0 || !d.heldBy(s+" \n"+text.Title) {
				continue
			}
			if gap := d.away(s, at, at+len(l.Name)); best < 0 || gap < best {
				best = gap
			}
		}
	}
	return best
}

// standing is where a name stands in a sentence as words of it, not in a file name, address or identifier; or -1.
func standing(s, name string) int {
	const within = `/\_@#`
	for from := 0; ; {
		i := strings.Index(s[from:], name)
		if i < 0 {
			return -1
		}
		at, end := from+i, from+i+len(name)
		last, next := s[:at], s[end:]
		inside := last != "" && strings.ContainsAny(last[len(last)-1:], within+".") || next != "" && strings.ContainsAny(next[:1], within) ||
			len(next) > 1 && next[0] == '.' && next[1] > ' ' && !strings.ContainsAny(next[1:2], `"')]`) && next[1] < utf8.RuneSelf
		if !inside {
			return at
		}
		from = end
	}
}

func (d *description) heldBy(text string) bool {
	held := lexicon.Terms(text)
	return !slices.ContainsFunc(d.terms, func(t lexicon.Term) bool {
		return !slices.ContainsFunc(held, func(s string) bool { return lexicon.Alike(t, s) > 0 })
	})
}

// away counts the words between the lead at [from,to) and the nearest word of the noun; all if it has none.
func (d *description) away(s string, from, to int) int {
	toks := lexicon.Tokens(s)
	heads := lexicon.ReadQuestion(d.head, "").Terms
	best := len(toks)
	for i, t := range toks {
		if !slices.ContainsFunc(heads, func(h lexicon.Term) bool { return lexicon.Alike(h, t.Stem) > 0 }) {
			continue
		}
		for j, o := range toks {
			if o.Start >= from && o.End <= to {
				best = min(best, max(i-j, j-i))
			}
		}
	}
	return best
}
