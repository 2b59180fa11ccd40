// Package derive is the planner that needs no model. It reads the question by
// rule: who of the network is asked follows from the words of their scopes, and what
// they are asked from the form of the question. It owns these rules and nothing else:
// whether a proposal is sent is the investigator's to decide.
package derive

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// id names this planner. Its number rises with every change that can alter a plan.
const id = "derive/1"

// leastTokens is what one rihla needs: parts of the question are proposed only while every rihla can have as much.
const leastTokens = 2500

// Planner derives plans. It holds no state and is safe for concurrent use.
type Planner struct{}

var _ pi.Planner = (*Planner)(nil)

// New makes the planner.
func New() *Planner { return &Planner{} }

// ID is "derive/1".
func (*Planner) ID() string { return id }

// Plan sends the whole question to every researcher whose scope it speaks to, and what
// it falls into to the same, as far as there is room. The inner question of a
// chain comes first. It never fails.
func (*Planner) Plan(_ context.Context, b *pi.Brief) ([]pi.Sending, error) {
	q := lexicon.ReadQuestion(b.Request.Question, b.Request.Context)
	var inner, others []pi.Sending
	whole := choose(&q, b)
	for _, s := range split(&q) {
		for _, w := range whole {
			sending := pi.Sending{Researcher: w.Researcher, Question: clip(s.text), Reason: s.why}
			if s.inner {
				inner = append(inner, sending)
			} else {
				others = append(others, sending)
			}
		}
	}
	room := min(b.Most, max(len(whole), b.Limits.TokenBudget/leastTokens))
	out := slices.Concat(inner, whole)
	if len(out) > room { // the whole must not wait for its parts
		out = slices.Concat(whole, inner)
	}
	out = once(append(out, others...))
	return out[:max(0, min(room, len(out)))], nil
}

// once drops what is asked of the same researcher in the same words as before.
func once(list []pi.Sending) []pi.Sending {
	key := func(s pi.Sending) string { return s.Researcher + "\n" + lexicon.Plain(s.Question) }
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(s pi.Sending) bool {
		k := key(s)
		again := seen[k]
		seen[k] = true
		return again
	})
}

// clip keeps a question within what a researcher takes, whole words first.
func clip(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= marchwarden.MaxQuestionChars {
		return s
	}
	cut := string([]rune(s)[:marchwarden.MaxQuestionChars])
	if i := strings.LastIndexByte(cut, ' '); i > 0 {
		cut = cut[:i]
	}
	return cut
}

// What makes a question scholarly is words, or the number of a paper.
var (
	databaseWords  = lexicon.StemSet("database scope")
	paperWords     = lexicon.StemSet("paper scope")
	generalWords   = lexicon.StemSet("general scope")
	scholarlyWords = lexicon.StemSet("scholarly")
	scholarlyForms = regexp.MustCompile(`(?i)\b\d{4}\.\d{4,5}(?:v\d+)?\b|\b10\.\d{4,9}/\S|\bresearch\s+(?:on|into|about|shows?|says?|papers?)\b|\b(?:recent|latest|current)\s+research\b|\bstate of the art\b`)
)

// choose picks who is asked: general scopes always, specialists where the question speaks to them; if none, all.
func choose(q *lexicon.Question, b *pi.Brief) []pi.Sending {
	var out, all []pi.Sending
	for _, m := range b.Members {
		s := pi.Sending{Researcher: m.Name, Question: clip(b.Request.Question), Reason: asks(q, m)}
		if s.Reason != "" {
			out = append(out, s)
		}
		s.Reason = "nobody's scope fits better"
		all = append(all, s)
	}
	if len(out) == 0 {
		return all
	}
	return out
}

// asks says why a member should be asked, or "".
func asks(q *lexicon.Question, m dispatch.Member) string {
	scope := lexicon.Terms(strings.ReplaceAll(m.Scope, "_", " "))
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(scope, func(s string) bool { return set[s] })
	}
	database := has(databaseWords)
	switch {
	case !database && has(paperWords):
		return scholarly(q)
	case !database && has(generalWords):
		return "its scope is general"
	}
	var shared []string
	for _, t := range q.Terms {
		if lexicon.Light(t.Stem) || lexicon.Vague(t.Stem) || databaseWords[t.Stem] {
			continue
		}
		if slices.ContainsFunc(scope, func(s string) bool { return lexicon.Alike(t, s) > 0 }) {
			shared = append(shared, t.Text)
		}
	}
	if len(shared) == 0 {
		return ""
	}
	return "its scope has " + strings.Join(shared[:min(3, len(shared))], ", ")
}

// scholarly says what makes a question one for papers, or "".
func scholarly(q *lexicon.Question) string {
	if m := scholarlyForms.FindString(q.Text); m != "" {
		return fmt.Sprintf("the question has %q", strings.TrimSpace(m))
	}
	for _, t := range q.Terms {
		if scholarlyWords[t.Stem] {
			return fmt.Sprintf("the question has %q", t.Text)
		}
	}
	return ""
}
