// Package verify holds the grounding gate and the checks that any reader can repeat.
//
// Gate turns a draft, which is not trusted, into answer, claims and citations: an
// excerpt is cut out of the stored bytes by the program, a passage id that does
// not exist is dropped and counted, and a sentence left without evidence does not
// appear. Check takes any result and holds every citation against the stored bytes again.
// Contradictions compares what sources say.
//
// The package judges text against text. It fetches nothing and asks no model.
package verify

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Grounded is the part of a draft that stands.
type Grounded struct {
	Answer         string
	Blocks         []marchwarden.Block // nil by rules that have none
	Claims         []marchwarden.Claim
	Citations      []marchwarden.Citation
	ShortAnswer    *marchwarden.ShortAnswer
	Closest        []marchwarden.Closest
	Contradictions []marchwarden.Contradiction
	Gaps           []marchwarden.Gap
	// Sources says, for each citation, which source of the evidence it is from,
	// counted from one; Support is the draft's verdict on the first claim that rests
	// on it.
	Sources []int
	Support []marchwarden.Support

	trace.Verify // what was dropped and judged; Step fills in the rest
}

// Step is the gate's line in the trace.
func (g Grounded) Step() *trace.Verify {
	s := g.Verify
	s.Citations, s.Claims, s.Contradictions = len(g.Citations), len(g.Claims), len(g.Contradictions)
	s.Decision = fmt.Sprintf("%d claims stand on %d citations; %d claims and %d unknown ids were dropped", s.Claims, s.Citations, s.DroppedClaims, s.UnknownIDs)
	return &s
}

// Rules names how the gate works, and changes when that does. A run keeps those that
// it began with, so that it can be run again. By the rules before, a sentence was shown
// without the lines that it leads to, an answer had no blocks and one form, texts were
// split without terms, settings and contents, and answers picked without what their
// headings say; a sentence that states the answer could be doubted, and code could answer.
const (
	Rules       = "gate/7"
	rulesBefore = "gate/3"
)

// KnowsRules reports whether this program can work by the rules of a run.
func KnowsRules(rules string) bool { return rules == Rules || Earlier(rules) }

// Earlier reports whether the rules of a run are those before.
func Earlier(rules string) bool { return rules == rulesBefore }

// Gate grounds a draft in the evidence. Every text it cuts
// from is read from the store, where its hash is checked; an error means that the
// store failed.
func Gate(ctx context.Context, blobs blob.Store, set *evidence.Set, basis Basis, d reason.Draft) (Grounded, error) {
	g := &gate{Basis: basis, ctx: ctx, blobs: blobs, set: set, texts: map[int]string{}, places: map[int]func(int) string{}, cited: map[place]int{}}
	g.out.Judged, g.out.Agreed = d.Judged, d.Agreed
	err := g.lay(d)
	switch {
	case err != nil:
	case len(g.out.Claims) == 0: // a table alone is no answer
		g.out.Answer, g.out.Blocks, g.out.Citations, g.out.Sources, g.out.Support = refusal(d), nil, nil, nil, nil
		clear(g.cited)
		err = g.refuse(d)
	default:
		err = g.short(d.Short)
	}
	if err == nil {
		err = g.contradictions(d.Contradictions)
	}
	if err != nil {
		return Grounded{}, err
	}
	return g.out, nil
}

func refusal(d reason.Draft) string {
	if text := plainSentence(d.Refusal); text != "" {
		return escapeMarkdown(text) // it may quote a question, with what looks like a marker in it
	}
	return "No stored document answers this question."
}

type gate struct {
	Basis
	ctx    context.Context
	blobs  blob.Store
	set    *evidence.Set
	texts  map[int]string           // stored text by source number
	places map[int]func(int) string // where its parts stand in the document
	cited  map[place]int            // citation number by what it cites
	out    Grounded
}

// place is one excerpt of one source.
type place struct {
	source int
	span   marchwarden.Span
}

// claim grounds one sentence, or drops it when nothing supports it.
func (g *gate) claim(c reason.Claim) error {
	text := plainSentence(c.Text)
	switch c.Support {
	case marchwarden.Supported, marchwarden.Partial, marchwarden.Unsupported, marchwarden.Quoted:
	default:
		c.Support = marchwarden.Unchecked // no verdict, or none that there is
	}
	text = Unlink(text, func(a string) bool { return g.holds(c.Passages, a) })
	stands := text != "" && c.Support != marchwarden.Unsupported
	var numbers []int
	for i, id := range c.Passages {
		src, passage, ok := g.set.Passage(id)
		if !ok {
			g.out.UnknownIDs++
			continue
		}
		if !stands { // nothing is cited for what is not said
			continue
		}
		span := passage.Span
		if i < len(c.Spans) {
			span = c.Spans[i]
		}
		n, err := g.cite(src, span, c.Support)
		if err != nil {
			return err
		}
		if n > 0 && !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		g.out.DroppedClaims++
		g.out.Gaps = append(g.out.Gaps, leftOut(text, c.Conflict))
		return nil
	}
	g.out.Claims = append(g.out.Claims, g.judged(c, text, numbers))
	for _, n := range numbers {
		if cited := &g.out.Citations[n-1]; cited.Snippet == "" {
			cited.Snippet = snippet(cited.Title, text)
		}
	}
	return nil
}

// snippet says in the researcher's own words what a citation is for: the first sentence
// that rests on it, with the title before a short one; "" where both are too short.
func snippet(title, claim string) string {
	if utf8.RuneCountInString(claim) < marchwarden.MinSnippetChars && title != "" {
		claim = plaintext.Line(title, marchwarden.MaxSnippetChars/2) + ": " + claim
	}
	if utf8.RuneCountInString(claim) < marchwarden.MinSnippetChars {
		return ""
	}
	return plaintext.Clip(claim, marchwarden.MaxSnippetChars-1) // and the sign that it was cut
}

func leftOut(text, conflict string) marchwarden.Gap {
	if conflict != "" {
		return marchwarden.Gap{Topic: clip(text), Category: marchwarden.ContradictorySources,
			Detail: "a sentence was left out because the passages it cites say otherwise: " + conflict}
	}
	return marchwarden.Gap{Topic: clip(text), Category: marchwarden.SourceNotFound,
		Detail: "a sentence was left out because no stored passage supports it"}
}

// holds reports whether one of the sources that a claim cites has an address in
// its text, or is at it.
func (g *gate) holds(ids []evidence.ID, address string) bool {
	return slices.ContainsFunc(ids, func(id evidence.ID) bool {
		src, _, ok := g.set.Passage(id)
		return ok && (src.Page.Locator == address || strings.Contains(src.Text, address))
	})
}

// cite returns the number of the citation of a span, making it when it is new,
// or 0 when the span is not in the stored text or holds nothing to be read.
func (g *gate) cite(src *evidence.Source, span marchwarden.Span, support marchwarden.Support) (int, error) {
	c, err := g.cut(src, span)
	if err != nil || c.Span == nil {
		return 0, err
	}
	at := place{src.N, *c.Span}
	if n, ok := g.cited[at]; ok {
		return n, nil
	}
	if c.Locator, err = g.locator(src, c.Span.Start); err != nil {
		return 0, err
	}
	c.Published, c.Origin, c.Unchecked = src.Page.Published, src.Page.Origin, src.Page.Unchecked
	if fetched := src.Page.FetchedAt; !fetched.IsZero() {
		c.FetchedAt = &fetched
	}
	g.out.Citations = append(g.out.Citations, c)
	g.out.Sources = append(g.out.Sources, src.N)
	g.out.Support = append(g.out.Support, support)
	g.cited[at] = len(g.out.Citations)
	return len(g.out.Citations), nil
}

// cut cuts an excerpt out of the stored text of a source. Without a span nothing was
// cut: it is not in the text, or holds nothing to be read.
func (g *gate) cut(src *evidence.Source, span marchwarden.Span) (marchwarden.Citation, error) {
	text, err := g.text(src)
	if err != nil {
		return marchwarden.Citation{}, err
	}
	excerpt, used := evidence.Excerpt(text, span)
	if !utf8.ValidString(excerpt) || strings.TrimSpace(excerpt) == "" {
		g.out.UnknownIDs++ // half a character cannot be sent as it stands, and a blank says nothing
		return marchwarden.Citation{}, nil
	}
	return marchwarden.Citation{Source: src.Page.Source, Locator: src.Page.Locator, Title: src.Page.Title,
		RawExcerpt: excerpt, ContentHash: src.Page.Text.String(), Span: &used}, nil
}

// text is the stored text of a source, read through the store's digest check.
func (g *gate) text(src *evidence.Source) (string, error) {
	if t, ok := g.texts[src.N]; ok {
		return t, nil
	}
	text, err := blob.Text(g.ctx, g.blobs, src.Page.Text)
	if err != nil {
		return "", err
	}
	if text == src.Text { // a large one is in memory once
		text = src.Text
	}
	g.texts[src.N] = text
	return text, nil
}

// locator is the locator of a source with the line or page where the text at an
// offset stands, if the source has any. It names a place for people; what the
// document is called, counted and compared by stays its bare locator.
func (g *gate) locator(src *evidence.Source, offset int) (string, error) {
	at, ok := g.places[src.N]
	if !ok {
		text, err := g.text(src)
		if err != nil {
			return "", err
		}
		at, err = src.Page.Places(text, func() ([]byte, error) { return g.blobs.Get(g.ctx, src.Page.Raw) })
		if err != nil {
			return "", err
		}
		g.places[src.N] = at
	}
	return src.Page.Locator + at(offset), nil
}

// contradictions keeps those whose two sides are verbatim in the evidence.
func (g *gate) contradictions(cs []marchwarden.Contradiction) error {
	for _, c := range cs {
		a, b := g.quoted(c.A), g.quoted(c.B)
		if a == nil || b == nil {
			g.out.DroppedQuotes++
			continue
		}
		var err error
		if c.A.Locator, err = g.sideLocator(a, c.A.RawExcerpt); err != nil {
			return err
		}
		if c.B.Locator, err = g.sideLocator(b, c.B.RawExcerpt); err != nil {
			return err
		}
		g.out.Contradictions = append(g.out.Contradictions, c)
		g.out.Gaps = append(g.out.Gaps, marchwarden.Gap{Topic: c.Subject + ": " + c.Attribute,
			Category: marchwarden.ContradictorySources, Detail: c.Detail})
	}
	return nil
}

// quoted is the source that a side is from, or nil when it does not say that.
func (g *gate) quoted(s marchwarden.Side) *evidence.Source {
	for _, src := range g.set.Sources() {
		if src.Page.Locator == s.Locator && s.RawExcerpt != "" && utf8.RuneCountInString(s.RawExcerpt) <= marchwarden.MaxExcerptChars && strings.Contains(src.Text, s.RawExcerpt) {
			return src
		}
	}
	return nil
}

// sideLocator is that of the citation of the same excerpt, or else that of its
// only place in the source: a side has no span that would tell one from another.
func (g *gate) sideLocator(src *evidence.Source, excerpt string) (string, error) {
	for i, c := range g.out.Citations {
		if g.out.Sources[i] == src.N && c.RawExcerpt == excerpt {
			return c.Locator, nil
		}
	}
	at := strings.Index(src.Text, excerpt)
	if strings.LastIndex(src.Text, excerpt) != at {
		return src.Page.Locator, nil
	}
	return g.locator(src, at)
}

// marker is a reference mark that a source's own text may carry. Left in, it
// would read as one of ours, in whatever digits it is written.
var marker = regexp.MustCompile(`\s?[\[［]\s*\p{Nd}{1,9}\s*[\]］]`)

// plainSentence folds white space and takes foreign markers out, and those too
// that taking one out would make: "[[1]2]".
func plainSentence(s string) string {
	for marker.MatchString(s) {
		s = marker.ReplaceAllString(s, "")
	}
	return strings.Join(strings.Fields(s), " ")
}

// unlinked is a text on one line without markers and addresses.
func unlinked(s string) string {
	return plainSentence(Unlink(s, func(string) bool { return false }))
}

// special is what Markdown would take for markup: emphasis, code, tags, links,
// images, deletions, character references, and a list, heading or quote at the start.
var special = regexp.MustCompile("&#?\\w+;|[\\\\`*<~]|!\\[|\\]\\(|\\b_|_\\b|^[#>+-]|^\\d{1,9}[.)]")

// escapeMarkdown makes a sentence of a source stand in the answer as it reads,
// with nothing that a renderer would load, link or format.
func escapeMarkdown(s string) string {
	return special.ReplaceAllStringFunc(s, func(m string) string {
		if m[0] == '&' {
			return `\` + m
		}
		return m[:len(m)-1] + `\` + m[len(m)-1:]
	})
}

func clip(s string) string { return plaintext.Clip(s, 80) }
