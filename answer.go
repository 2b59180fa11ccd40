package marchwarden

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ShortAnswer is the answer in a few words of the source, cut out by the program.
type ShortAnswer struct {
	// Text is what stands at Span, each run of white space as one space; it is "yes"
	// or "no" for these kinds, and "" for ShortUnknown.
	Text string `json:"text,omitempty"`
	// Citation indexes Result.Citations, counted from one; 0 for ShortUnknown.
	Citation int `json:"citation,omitempty"`
	// Span is where the words stand in that citation's stored text; for yes and no it
	// is the sentence that decides.
	Span *Span     `json:"span,omitempty"`
	Kind ShortKind `json:"kind"`
}

// ShortKind tells what a short answer is.
type ShortKind string

// The kinds of short answers.
const (
	ShortSpan    ShortKind = "span"  // words of a source
	ShortYes     ShortKind = "yes"   // a sentence of a source says so
	ShortNo      ShortKind = "no"    // a sentence of a source says the opposite
	ShortValue   ShortKind = "value" // of a database
	ShortUnknown ShortKind = "unknown"
)

// Known reports whether k is a kind that there is.
func (k ShortKind) Known() bool { return known(k) }

// Decides reports whether k is yes or no.
func (k ShortKind) Decides() bool { return k == ShortYes || k == ShortNo }

// Words are those of a stored text as a short answer of this kind has them.
func (k ShortKind) Words(stored string) string {
	if k.Decides() {
		return string(k)
	}
	return strings.Join(strings.Fields(stored), " ")
}

// Validate says what is wrong with the form of a short answer of a result with so
// many citations. Whether its words are the source's is for a verifier to say.
func (s *ShortAnswer) Validate(citations int) error {
	switch {
	case !s.Kind.Known():
		return fmt.Errorf("kind %q is none that there is", s.Kind)
	case s.Kind == ShortUnknown && (s.Text != "" || s.Citation != 0 || s.Span != nil):
		return fmt.Errorf("what is unknown has no words")
	case s.Kind == ShortUnknown:
		return nil
	case s.Citation < 1 || s.Citation > citations:
		return fmt.Errorf("citation %d does not exist", s.Citation)
	case s.Span == nil:
		return fmt.Errorf("no span: there is nothing to check it against")
	case utf8.RuneCountInString(s.Text) > MaxExcerptChars:
		return fmt.Errorf("it has more than %d characters", MaxExcerptChars)
	}
	return nil
}

// MaxClosest is how many passages are given with a refusal.
const MaxClosest = 2

// Closest is a passage that is near a question which was refused. It is no claim and
// no answer. Its fields are those of a Citation, and Reason says what it is near by.
type Closest struct {
	Source      string `json:"source"`
	Locator     string `json:"locator"`
	Title       string `json:"title,omitempty"`
	RawExcerpt  string `json:"raw_excerpt"`
	ContentHash string `json:"content_hash,omitempty"`
	Span        *Span  `json:"span,omitempty"`
	Reason      string `json:"reason"`
}

// Citation is the passage as one that can be shown and checked like any other.
func (c Closest) Citation() Citation {
	return Citation{Source: c.Source, Locator: c.Locator, Title: c.Title, RawExcerpt: c.RawExcerpt, ContentHash: c.ContentHash, Span: c.Span}
}

// Refused reports whether the result says that it does not know.
func (r *Result) Refused() bool { return r.ShortAnswer != nil && r.ShortAnswer.Kind == ShortUnknown }

// Lead is the line that stands above the answer, for people: the short answer, unless
// the answer begins with it, or that the question is refused and what was looked
// through, unless the answer says so. It is "" for none. Its words are foreign: clean them
// like the answer's.
func (r *Result) Lead() string {
	s := r.ShortAnswer
	switch {
	case s == nil || !s.Kind.Known():
		return ""
	case s.Kind == ShortYes:
		return unlessFirst(r.Answer, "Yes", ".,;:!")
	case s.Kind == ShortNo:
		return unlessFirst(r.Answer, "No", ".,;:!")
	case s.Kind != ShortUnknown:
		return unlessFirst(r.Answer, strings.Join(strings.Fields(s.Text), " "), "")
	case strings.HasPrefix(r.Answer, "I don't know."):
		return ""
	case r.CostMetadata.SourcesRead == 1:
		return "I don't know. One document was looked through."
	case r.CostMetadata.SourcesRead > 1:
		return fmt.Sprintf("I don't know. %d documents were looked through.", r.CostMetadata.SourcesRead)
	}
	return "I don't know."
}

// unlessFirst is short, or "" if the Markdown begins with it as whole words, before
// one of the marks where any are given.
func unlessFirst(markdown, short, marks string) string {
	plain := strings.Join(strings.Fields(strings.ReplaceAll(markdown, `\`, "")), " ")
	if short == "" || len(plain) < len(short) || !strings.EqualFold(plain[:len(short)], short) {
		return short
	}
	next, _ := utf8.DecodeRuneInString(plain[len(short):])
	ends := len(plain) == len(short) || marks == "" && !unicode.IsLetter(next) && !unicode.IsDigit(next) || strings.ContainsRune(marks, next)
	if ends {
		return ""
	}
	return short
}
