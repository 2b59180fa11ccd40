package derive

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// part is a question that another one falls into.
type part struct {
	text, why string
	inner     bool // what has to be known before the rest can be asked
}

// split is what a question falls into: things it compares, its several questions, or the inner one of a chain.
func split(q *lexicon.Question) []part {
	if ps := compared(q); len(ps) > 0 {
		return ps
	}
	if ps := several(q); len(ps) > 0 {
		return ps
	}
	if in := innermost(q); in != "" {
		return []part{{in, "what the rest of the question hangs on", true}}
	}
	return nil
}

var (
	versus = regexp.MustCompile(`(?i)^(.+?)\s+(?:vs\.?|versus)\s+(.+?)[.?!]*$`)
	either = later(`^(.*?)[,:]?\s+(?:the\s+)?(` + proper + `)\s+or\s+(?:the\s+)?(` + proper + `)\s*[.?!]*$`)
	both   = later(`^(?:Are|Were|Is|Was|Do|Did|Does|Have|Has)\s+(?:both\s+)?(?:the\s+)?(` + proper + `)\s+and\s+(?:the\s+)?(` + proper + `)\s+(?:both\s+)?(.+?)\s*[.?!]*$`)
	on     = regexp.MustCompile(`(?i)^(.+?)\s+(?:on|in terms of|with (?:regard|respect) to|regarding|with a view to)\s+(.+)$`)
)

// later compiles an expression when it is first used: one with names takes as long as a tenth
// of the start of the program, and most commands ask nothing.
func later(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}

// proper is a name of one to six words.
const proper = `\p{Lu}[\p{L}\p{N}.'’&-]*(?:\s+(?:(?:of|of the|the|for|de|van|von|und|and)\s+)?[\p{Lu}\p{N}][\p{L}\p{N}.'’&-]*){0,5}`

// compared asks about each of two things that are compared.
func compared(q *lexicon.Question) []part {
	var a, b, aspect string
	switch {
	case q.Kind == lexicon.AskCompare && len(q.Parts) == 2:
		a, b = q.Parts[0].Label, q.Parts[1].Label
		if m := on.FindStringSubmatch(b); m != nil {
			b, aspect = m[1], m[2]
		}
	case versus.MatchString(q.Text):
		m := versus.FindStringSubmatch(q.Text)
		a, b = m[1], m[2]
	case either().MatchString(q.Text):
		m := either().FindStringSubmatch(q.Text)
		aspect, a, b = lower(m[1]), m[2], m[3]
	case both().MatchString(q.Text):
		m := both().FindStringSubmatch(q.Text)
		a, b, aspect = m[1], m[2], m[3]
	}
	if a == "" || b == "" || strings.EqualFold(a, b) || strings.Contains(aspect, " both ") { // a title was cut in two
		return nil
	}
	ask := func(thing string) part {
		if aspect == "" {
			return part{text: fmt.Sprintf("What is known about %s?", thing), why: "one of two things that are compared"}
		}
		return part{text: fmt.Sprintf("%s: %s?", thing, aspect), why: "one of two things that are compared"}
	}
	return []part{ask(a), ask(b)}
}

// lower puts the first letter of a phrase in lower case, unless a name begins there.
func lower(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if next, _ := utf8.DecodeRuneInString(s[n:]); unicode.IsUpper(next) {
		return s
	}
	return string(unicode.ToLower(r)) + s[n:]
}

// several asks each of the questions that one consists of. A part that leans on the first one's subject names it.
func several(q *lexicon.Question) []part {
	if len(q.Parts) < 2 || q.Kind == lexicon.AskCompare {
		return nil
	}
	var out []part
	for _, p := range q.Parts {
		if len(p.Subject) == 0 && leaning.MatchString(p.Label) || strings.ContainsAny(p.Label, `"“”`) {
			continue // it cannot stand alone
		}
		out = append(out, part{text: p.Question(), why: "one of several questions"})
	}
	return out
}

// leaning are words that stand for what another part of the question names.
var leaning = regexp.MustCompile(`(?i)\b(?:each|these|those|their|they|them|its?|respective|respectively)\b`)

// The forms of an inner question, within a question that asks for more.
const noun = `([a-z]+(?:-[a-z]+)*(?:\s[a-z]+)??)`

var (
	place    = regexp.MustCompile(`\b(?:the|a|an)\s+` + noun + `,?\s+(?:where|in which|at which|on which)\s+([^,?;]+)`)
	relative = regexp.MustCompile(`\b(?:the|a|an)\s+` + noun + `,?\s+(?:that|which|who)\s+([^,?;]+)`)
	owned    = later(`(` + proper + `)['’]s?\s+((?:[a-z]+\s)??` + relation + `)\b`)
	ofName   = later(`\bthe\s+((?:[a-z]+\s)??` + relation + `)\s+of\s+((?:the\s+(?:[a-z]+\s+)?)?` + proper + `|["“][^"”]+["”])`)
)

// persons and things are what a thing has one of, so that "the author of" it stands for a name.
var (
	persons  = strings.ReplaceAll(lexicon.WordList("persons of a thing"), " ", "|")
	things   = strings.ReplaceAll(lexicon.WordList("things of a thing"), "; ", "|")
	relation = `(?:` + persons + `|` + things + `)`
)

var (
	isPerson = regexp.MustCompile(`(?:^|\s)(?:` + persons + `)$`)
	// within are words that an inner question cannot have: it would be the whole one, or point outside itself.
	within = regexp.MustCompile(`(?i)\b(?:what|which|whom|how)\b|\b(?:when|where|who)$|^(?:he|she|it|they|his|her|this)\b`)
	// another subject begins a clause of which the noun before it is the object.
	another = regexp.MustCompile(`^(?:the|a|an)\s|^\p{Lu}`)
)

// innermost is the question on which the rest hangs, or "": "Which film won the prize?" of "Who directed the film that
// won the prize?".
func innermost(q *lexicon.Question) string {
	for _, form := range []struct {
		re  *regexp.Regexp
		ask func(a, b string) string
	}{
		{place, func(noun, clause string) string { return lexicon.Begun(clause) + " in which " + noun + "?" }},
		{relative, func(noun, clause string) string {
			if another.MatchString(clause) {
				return lexicon.Begun(clause) + " which " + noun + "?"
			}
			return "Which " + noun + " " + clause + "?"
		}},
		{owned(), func(name, relation string) string {
			return asker(relation) + " is " + possessive(name) + " " + relation + "?"
		}},
		{ofName(), func(relation, name string) string {
			return asker(relation) + " is the " + relation + " of " + name + "?"
		}},
	} {
		found := form.re.FindAllStringSubmatchIndex(q.Text, -1)
		for k := len(found) - 1; k >= 0; k-- { // the last is the innermost
			at := found[k]
			rest := q.Text[:at[0]] + " " + q.Text[at[1]:]
			a, b := q.Text[at[2]:at[3]], strings.TrimRight(q.Text[at[4]:at[5]], " .!")
			if weighty(rest) > 0 && weighty(a+" "+b) > 1 && !within.MatchString(b) { // a question that is its own inner one is no chain
				return form.ask(a, b)
			}
		}
	}
	return ""
}

// weighty counts the words of a text that say what is asked.
func weighty(text string) int {
	n := 0
	for _, s := range lexicon.Terms(text) {
		if !lexicon.Light(s) {
			n++
		}
	}
	return n
}

func asker(relation string) string {
	if isPerson.MatchString(relation) {
		return "Who"
	}
	return "What"
}

func possessive(name string) string {
	if strings.HasSuffix(name, "s") {
		return name + "'"
	}
	return name + "'s"
}
