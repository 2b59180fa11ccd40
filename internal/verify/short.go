package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// maxReason is how long the reason of a closest passage may be, in characters.
const maxReason = 200

// judged is a claim as the result has it: with the draft's verdict, or as quoted if it
// is copied from what it cites. A draft that calls it so and is wrong had no verdict.
func (g *gate) judged(c reason.Claim, text string, numbers []int) marchwarden.Claim {
	out := marchwarden.Claim{Text: text, Citations: numbers, Support: c.Support}
	if c.Support == marchwarden.Quoted || c.Support == marchwarden.Supported {
		for _, n := range numbers {
			stored := func(from int) string { return g.texts[g.out.Sources[n-1]][from:] }
			if copied(text, g.out.Citations[n-1], stored) {
				out.Support = marchwarden.Quoted
				return out
			}
		}
	}
	switch {
	case c.Support == marchwarden.Quoted:
		out.Support = marchwarden.Unchecked
	case c.Support != marchwarden.Unchecked && (c.Judge == marchwarden.JudgeLocal || c.Judge == marchwarden.JudgeBoth):
		out.Judge = c.Judge
	}
	return out
}

// copied reports whether a claim stands word for word in an excerpt. Of one that was
// cut, stored has the rest from an offset on.
func copied(claim string, c marchwarden.Citation, stored func(from int) string) bool {
	source := c.RawExcerpt
	if c.Span != nil && strings.HasSuffix(source, marchwarden.ExcerptCut) {
		source = stored(c.Span.Start)
	}
	source = plainSentence(source)
	for from := 0; ; {
		i := strings.Index(source[from:], claim)
		if i < 0 || claim == "" {
			return false
		}
		from += i
		if evidence.WholeWords(source, marchwarden.Span{Start: from, End: from + len(claim)}) {
			return true
		}
		_, size := utf8.DecodeRuneInString(source[from:])
		from += size
	}
}

// short cuts the short answer out of the stored text, if a citation of the answer
// holds it.
func (g *gate) short(s *reason.Short) error {
	if s == nil {
		return nil
	}
	g.out.DroppedShort = 1
	src, _, ok := g.set.Passage(s.Passage)
	if !ok || !s.Kind.Known() || s.Kind == marchwarden.ShortUnknown {
		return nil
	}
	text, err := g.text(src)
	if err != nil || !s.Span.In(len(text)) {
		return err
	}
	n, span := g.holder(src, s.Span)
	if n == 0 {
		return nil
	}
	stored := g.texts[g.out.Sources[n-1]][span.Start:span.End]
	words := s.Kind.Words(stored)
	if !utf8.ValidString(stored) || strings.TrimSpace(stored) == "" || utf8.RuneCountInString(words) > marchwarden.MaxExcerptChars {
		return nil
	}
	g.out.ShortAnswer, g.out.DroppedShort = &marchwarden.ShortAnswer{Text: words, Citation: n, Span: &span, Kind: s.Kind}, 0
	return nil
}

// holder is the citation that a span of a source belongs to, and the span in its text:
// the one whose excerpt holds it, another of the same source, or one of another source
// whose excerpt has the same words. It is 0 for none.
func (g *gate) holder(src *evidence.Source, span marchwarden.Span) (int, marchwarden.Span) {
	same := 0
	for i, c := range g.out.Citations {
		if g.out.Sources[i] != src.N {
			continue
		}
		if c.Span.Start <= span.Start && span.End <= c.Span.End {
			return i + 1, span
		}
		if same == 0 {
			same = i + 1
		}
	}
	if same > 0 {
		return same, span
	}
	words := g.texts[src.N][span.Start:span.End]
	for i, c := range g.out.Citations {
		text := g.texts[g.out.Sources[i]][c.Span.Start:c.Span.End]
		if at, ok := evidence.Locate(text, words); ok {
			return i + 1, marchwarden.Span{Start: c.Span.Start + at.Start, End: c.Span.Start + at.End}
		}
	}
	return 0, span
}

// refuse says that there is no answer, and what comes nearest to one.
func (g *gate) refuse(d reason.Draft) error {
	if d.Short != nil && d.Short.Kind != marchwarden.ShortUnknown {
		g.out.DroppedShort = 1
	}
	g.out.ShortAnswer = &marchwarden.ShortAnswer{Kind: marchwarden.ShortUnknown}
	for _, near := range d.Closest {
		if len(g.out.Closest) == marchwarden.MaxClosest {
			break
		}
		src, passage, ok := g.set.Passage(near.Passage)
		if !ok {
			g.out.UnknownIDs++
			continue
		}
		if near.Span == (marchwarden.Span{}) {
			near.Span = passage.Span
		}
		c, err := g.cut(src, near.Span)
		if err != nil {
			return err
		}
		if c.Span == nil {
			continue
		}
		if c.Locator, err = g.locator(src, c.Span.Start); err != nil {
			return err
		}
		why := Unlink(near.Reason, func(a string) bool { return g.holds([]evidence.ID{near.Passage}, a) })
		g.out.Closest = append(g.out.Closest, marchwarden.Closest{Source: c.Source, Locator: c.Locator, Title: c.Title, RawExcerpt: c.RawExcerpt,
			ContentHash: c.ContentHash, Span: c.Span, Reason: plaintext.Line(why, maxReason)})
	}
	return nil
}

// short says what is wrong with the short answer of a result.
func (c *checker) short() error {
	s := c.res.ShortAnswer
	if s == nil {
		return nil
	}
	if err := s.Validate(len(c.res.Citations)); err != nil {
		return err
	}
	if s.Kind == marchwarden.ShortUnknown {
		if len(c.res.Claims) > 0 {
			return errors.New("what is unknown has no claims")
		}
		return nil
	}
	if problem := c.cites([]int{s.Citation}); problem != "" {
		return errors.New(problem)
	}
	stored, err := c.stands(c.res.Citations[s.Citation-1].ContentHash, *s.Span)
	switch {
	case err != nil:
		return err
	case !utf8.ValidString(stored) || strings.TrimSpace(stored) == "":
		return fmt.Errorf("nothing to be read stands at %d–%d of its citation's text", s.Span.Start, s.Span.End)
	case s.Text != s.Kind.Words(stored):
		return fmt.Errorf("text is not what stands at %d–%d of its citation's text", s.Span.Start, s.Span.End)
	}
	return nil
}

// quotes reports whether one of the excerpts that a claim cites has its words.
func (c *checker) quotes(said marchwarden.Claim) bool {
	return slices.ContainsFunc(said.Citations, func(n int) bool {
		cited := c.res.Citations[n-1]
		return copied(said.Text, cited, func(from int) string {
			text, _ := c.text(cited.ContentHash) // the excerpt was found in it
			return text[min(from, len(text)):]
		})
	})
}
