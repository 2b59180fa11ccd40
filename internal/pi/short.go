package pi

import (
	"context"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// inShort gives a draft the short answer of a report or, where there is no answer, what the reports call closest.
func (f *findings) inShort(ctx context.Context, d *reason.Draft) error {
	if len(d.Claims) == 0 {
		return f.near(ctx, d)
	}
	if d.Short != nil {
		return nil
	}
	var leads []int // the sources of the first claim
	for _, id := range d.Claims[0].Passages {
		if src, _, ok := f.set.Passage(id); ok {
			leads = append(leads, src.N)
		}
	}
	for _, jr := range f.brought() {
		if !f.asksAll(jr) {
			continue // a part of the answer is none
		}
		if s, source := f.shortOf(jr); s != nil && slices.Contains(leads, source) {
			d.Short = s
			return nil
		}
	}
	return nil
}

// asksAll reports whether a journey was sent with the whole question.
func (b *book) asksAll(jr *journey) bool {
	return flatten(jr.Question) == flatten(b.start.Request.Question)
}

// shortOf is the short answer of a report and its source, nil if its words do not stand there. What a stranger calls
// yes or no is its word only.
func (f *findings) shortOf(jr *journey) (*reason.Short, int) {
	s := jr.res.ShortAnswer
	if s == nil || s.Validate(len(jr.res.Citations)) != nil || s.Kind.Decides() && !f.own(jr.Researcher) {
		return nil, 0
	}
	at := slices.IndexFunc(f.cited, func(a admission) bool { return a.journey == jr.number && a.index == s.Citation })
	if at < 0 {
		return nil, 0
	}
	a := f.cited[at]
	src := f.set.Sources()[a.source-1]
	if src.Page.Unchecked {
		return nil, 0
	}
	span, ok := *s.Span, src.Page.Text.String() == jr.res.Citations[a.index-1].ContentHash && s.Span.In(len(src.Text)) && s.Kind.Words(src.Text[s.Span.Start:s.Span.End]) == s.Text
	if !ok && !s.Kind.Decides() { // another state of the document may have the words as well
		span, ok = evidence.Locate(src.Text[a.span.Start:a.span.End], s.Text)
		span.Start, span.End = span.Start+a.span.Start, span.End+a.span.Start
	}
	if !ok {
		return nil, 0
	}
	return &reason.Short{Passage: passageAt(src, span), Span: span, Kind: s.Kind}, src.N
}

// near takes what our researchers call closest into the evidence, first of those that had the whole question.
func (f *findings) near(ctx context.Context, d *reason.Draft) error {
	for _, all := range []bool{true, false} {
		for _, jr := range f.journeys {
			if jr.lost || jr.replaced || jr.res == nil || !f.own(jr.Researcher) || f.asksAll(jr) != all {
				continue
			}
			for _, c := range jr.res.Closest[:min(len(jr.res.Closest), maxNotices)] {
				if err := f.nearBy(ctx, jr, c, d); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// nearBy adds one passage to a draft, if it stands in its document.
func (f *findings) nearBy(ctx context.Context, jr *journey, near marchwarden.Closest, d *reason.Draft) error {
	c := near.Citation()
	if len(d.Closest) >= marchwarden.MaxClosest || unusable(c) != "" {
		return nil
	}
	whole := c
	whole.Locator, whole.RawExcerpt = bare(c), "" // of the document alone
	h, err := f.evidence(ctx, jr, whole, f.obtain)
	if err != nil || !h.Text.Valid() {
		return err
	}
	text, err := f.textOf(ctx, h)
	if err != nil {
		return err
	}
	span, ok := placeOf(c, text)
	src, _ := f.set.Add(evidence.Cited(f.attributed(c, h, f.members[jr.Researcher]), h.Text, len(text)), text)
	if ok && src.Page.Text == h.Text {
		d.Closest = append(d.Closest, reason.Near{Passage: passageAt(src, span), Span: span, Reason: near.Reason})
	}
	return nil
}
