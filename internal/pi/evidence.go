package pi

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// The bounds of what one report may bring.
const (
	maxCitations  = 100
	maxTopic      = 200
	maxDetail     = 500
	maxWord       = 80
	maxLocator    = 2000
	fetchesAtOnce = 8
)

// How a cited document was got hold of.
const (
	howStored    = "stored"    // the researcher's stored bytes, by their hash
	howRefetched = "refetched" // fetched once more by this program
	howReported  = "reported"  // there is only the researcher's word
)

// admission is a citation that stood the check.
type admission struct {
	journey  int
	index    int // in the report, from one
	source   int // in the evidence, from one
	span     marchwarden.Span
	citation marchwarden.Citation // as it was reported, with its place in the stored text
}

// admit checks every citation of a report: the document is got hold of, and the
// excerpt must stand in it. What does not stand is dropped and named.
func (r *run) admit(ctx context.Context, jr *journey) error {
	if jr.res == nil {
		err := jr.err
		if err == nil {
			err = marchwarden.Errorf(marchwarden.CodeMalformed, "it gave neither a result nor an error")
		}
		gap := marchwarden.GapFor("researcher "+jr.Researcher, err)
		gap.Detail = plaintext.Line(gap.Detail, maxDetail)
		jr.gaps = []marchwarden.Gap{gap}
		return nil
	}
	jr.gaps = r.gapsOf(jr)
	citations := jr.res.Citations[:min(len(jr.res.Citations), maxCitations)]
	held := make([]replay.Held, len(citations))
	var g errgroup.Group
	g.SetLimit(fetchesAtOnce)
	for i, c := range citations {
		if !usable(c) {
			continue
		}
		g.Go(func() (err error) {
			defer panics.Caught(&err, "checking evidence")
			held[i], err = replay.Evidence(replay.Shield(ctx), r.j, jr.Researcher, c, func(ctx context.Context) (replay.Held, error) {
				return r.obtain(ctx, r.members[jr.Researcher], c)
			})
			if fatal(err) {
				return err
			}
			return nil // a document that cannot be had leaves the report's word
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, c := range citations {
		if usable(c) {
			if err := r.hear(ctx, jr, i+1, c, held[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// usable reports whether a citation can be evidence at all.
func usable(c marchwarden.Citation) bool {
	return c.RawExcerpt != marchwarden.ExcerptNonText && strings.TrimSpace(c.RawExcerpt) != "" && c.Locator != "" &&
		len(c.Locator) <= maxLocator && len([]rune(c.RawExcerpt)) <= marchwarden.MaxExcerptChars
}

// obtain gets hold of the document behind a citation: as a researcher of this
// program has stored it already, as the researcher hands it over by hash, or from
// where it says it found it. Failing all that, its bare word is stored.
func (r *run) obtain(ctx context.Context, m dispatch.Member, c marchwarden.Citation) (replay.Held, error) {
	ours := context.WithoutCancel(ctx) // a caller who leaves must not make a liar of a researcher
	if ref, err := blob.Parse(c.ContentHash); err == nil && m.Trust != dispatch.Unknown {
		// A stranger may know a document of the user's by its hash alone: it has to
		// hand over what it says it read.
		if _, err := r.blobs.Get(ours, ref); err == nil && m.Trust == dispatch.Own {
			return replay.Held{Text: ref, How: howStored}, nil
		}
		if content, err := r.world.Dispatcher.Evidence(ctx, m.Name, c.ContentHash); err == nil {
			got, err := r.blobs.Put(ours, content)
			if err == nil && got == ref {
				return replay.Held{Text: ref, How: howStored}, nil
			}
		}
	}
	// An address may carry out what a private source holds.
	mayFetch := !m.Private || r.allowed(m.Name)
	if address, ok := locator.Canonical(c.Locator); ok && mayFetch && r.world.Refetch != nil && r.start.Request.Filter().Allows(locator.Host(address)) {
		if doc, err := r.world.Refetch(ctx, address); err == nil {
			return replay.Held{Text: doc.Text, How: howRefetched, Title: doc.Title, Published: doc.Published, FetchedAt: doc.FetchedAt}, nil
		}
	}
	ref, err := r.blobs.Put(ours, []byte(wording(c.RawExcerpt)))
	return replay.Held{Text: ref, How: howReported}, err
}

// wording is an excerpt without the mark that it was cut.
func wording(excerpt string) string { return strings.TrimSuffix(excerpt, marchwarden.ExcerptCut) }

// hear holds one citation against the document and takes it into the evidence.
func (r *run) hear(ctx context.Context, jr *journey, index int, c marchwarden.Citation, h replay.Held) error {
	text, err := r.textOf(ctx, h)
	if err != nil {
		return err
	}
	span, ok := placeOf(c, text)
	if !ok {
		jr.misquotes(c)
		return nil
	}
	c = r.attributed(c, h, r.members[jr.Researcher])
	src, fresh := r.set.Add(evidence.Cited(c, h.Text, len(text)), text)
	if !fresh && src.Page.Text != h.Text && locator.Host(c.Locator) == "" { // two researchers may have a document each by one name
		named := c
		named.Locator = jr.Researcher + ":" + c.Locator
		src, fresh = r.set.Add(evidence.Cited(named, h.Text, len(text)), text)
	}
	if src.Page.Unchecked && !c.Unchecked {
		src = r.supersede(src.N, c, h.Text, text)
	}
	if !fresh && src.Page.Text != h.Text { // another state of the same document was there first
		if span, ok = evidence.Locate(src.Text, wording(c.RawExcerpt)); !ok {
			jr.gaps = append(jr.gaps, marchwarden.Gap{Topic: plaintext.Line(c.Locator, maxTopic), Category: marchwarden.ContradictorySources,
				Detail: fmt.Sprintf("%s read another state of this document than a researcher before it; its excerpt was left out", jr.Researcher)})
			return nil
		}
	}
	c.Span, c.ContentHash = &span, src.Page.Text.String()
	r.cited = append(r.cited, admission{journey: jr.number, index: index, source: src.N, span: span, citation: c})
	jr.admitted++
	return nil
}

// misquotes drops a citation and names it.
func (jr *journey) misquotes(c marchwarden.Citation) {
	jr.gaps = append(jr.gaps, marchwarden.Gap{Topic: plaintext.Line(c.Locator, maxTopic), Category: marchwarden.SourceNotFound,
		Detail: fmt.Sprintf("%s cites an excerpt that is not in the document there; it was left out", jr.Researcher)})
}

// supersede puts a document in the place of the bare word on it that was heard
// before. Whoever gave that word is held to the document from then on.
func (r *run) supersede(n int, c marchwarden.Citation, ref blob.Ref, text string) *evidence.Source {
	set, moved := &evidence.Set{}, map[int]*evidence.Source{}
	for _, s := range r.set.Sources() {
		page, body := s.Page, s.Text
		if s.N == n || page.Unchecked && page.Text == ref {
			page, body = evidence.Cited(c, ref, len(text)), text
		}
		moved[s.N], _ = set.Add(page, body)
	}
	r.set = set
	var cited []admission
	for _, a := range r.cited {
		src, ok := moved[a.source], true
		if src.Page.Text.String() != a.citation.ContentHash {
			a.span, ok = evidence.Locate(src.Text, wording(a.citation.RawExcerpt))
		}
		if !ok {
			jr := r.journeys[a.journey-1]
			jr.admitted--
			jr.misquotes(a.citation)
			continue
		}
		at := a.span
		a.source, a.citation.Span, a.citation.ContentHash, a.citation.Unchecked = src.N, &at, src.Page.Text.String(), src.Page.Unchecked
		cited = append(cited, a)
	}
	r.cited = cited
	return moved[n]
}

// textOf is the stored text, if there is one.
func (r *run) textOf(ctx context.Context, h replay.Held) (string, error) {
	if !h.Text.Valid() {
		return "", nil
	}
	b, err := r.blobs.Get(context.WithoutCancel(ctx), h.Text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", replay.ErrJournal, err)
	}
	return string(b), nil
}

// placeOf is where an excerpt stands in a text: where the citation says, or where
// it is found after folding white space and punctuation. Similar is not enough.
func placeOf(c marchwarden.Citation, text string) (marchwarden.Span, bool) {
	if c.Span != nil && c.Span.In(len(text)) {
		if stands := text[c.Span.Start:c.Span.End]; c.RawExcerpt == stands || c.RawExcerpt == stands+marchwarden.ExcerptCut {
			return *c.Span, true
		}
	}
	return evidence.Locate(text, wording(c.RawExcerpt))
}

// attributed is a citation with what may be believed of its source: everything of
// this program's researchers; of others, no more than the address tells.
func (r *run) attributed(c marchwarden.Citation, h replay.Held, m dispatch.Member) marchwarden.Citation {
	c.Locator, c.Unchecked = bare(c), h.How == howReported
	if h.How == howRefetched {
		c.Title, c.Published = h.Title, h.Published
		fetched := h.FetchedAt
		c.FetchedAt = &fetched
	}
	if m.Trust == dispatch.Own {
		return c
	}
	c.Source, c.Title = plaintext.Line(c.Source, maxWord), plaintext.Line(c.Title, maxTopic)
	c.Authority, c.Origin = "", locator.Host(c.Locator)
	if c.Origin == "" {
		c.Origin = "researcher " + m.Name
	}
	if c.Source != "web" { // what it calls a file or a database, nobody has seen
		c.Authority = marchwarden.LowAuthority
	}
	if c.Unchecked {
		c.Published = ""
	}
	return c
}

// bare is the locator of the document, without the place in it.
func bare(c marchwarden.Citation) string {
	if c.Source != "file" {
		return c.Locator
	}
	document, _ := verify.CutPlace(c.Locator)
	return document
}

// allowed reports whether a member's findings may be told to others.
func (r *run) allowed(member string) bool {
	for _, m := range r.inv.AllowEgress {
		if m == member {
			return true
		}
	}
	return false
}
