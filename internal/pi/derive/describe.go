package derive

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

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
