package pi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
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
	maxBlocks     = 100
	maxNotices    = 40 // things looked at
	maxPerReport  = 4  // rihlas that it can lead to
	maxLeads      = 30 // discoveries and open questions of a result, each
	mostHeard     = 5  // sentences of an external researcher that are kept beside what is written of all evidence
	fetchesAtOnce = 8
	maxDocument   = 2 << 20  // that a stranger may hand over
	maxDocuments  = 64 << 20 // that all of them may
)

// How a cited document was got hold of.
const (
	howStored    = "stored"    // the researcher's stored bytes, by their hash
	howRefetched = "refetched" // fetched once more by this program
	howReported  = "reported"  // there is only the researcher's word
)

type admission struct {
	journey  int
	index    int // in the report, from one
	source   int // in the evidence, from one
	span     marchwarden.Span
	citation marchwarden.Citation // as it was reported, with its place in the stored text
}

// admit checks every citation of a report: the excerpt must stand in the document. What does not is dropped and named.
func (f *findings) admit(ctx context.Context, jr *journey) error {
	if jr.res == nil {
		err := cmp.Or[error](jr.err, marchwarden.Errorf(marchwarden.CodeMalformed, "it gave neither a result nor an error"))
		gap := marchwarden.GapFor("researcher "+jr.Researcher, err)
		gap.Detail = plaintext.Line(gap.Detail, maxDetail)
		jr.gaps = []marchwarden.Gap{gap}
		return nil
	}
	jr.gaps = f.gapsOf(jr)
	citations := jr.res.Citations[:min(len(jr.res.Citations), maxCitations)]
	if more := len(jr.res.Citations) - len(citations); more > 0 {
		jr.leavesOut("citations", fmt.Sprintf("%s cites %d more than the %d that are looked at", jr.Researcher, more, maxCitations))
	}
	documents, err := f.documents(ctx, jr, citations)
	if err != nil {
		return err
	}
	for i, c := range citations {
		why, h := unusable(c), documents[documentOf(c)]
		if why == "" && !h.Text.Valid() { // there is its word only
			if h, err = f.evidence(ctx, jr, c, f.report); err != nil {
				return err
			}
		}
		if why = cmp.Or(why, f.unwanted(jr, c, h)); why != "" {
			jr.leavesOut(plaintext.Line(c.Locator, maxTopic), fmt.Sprintf("a citation of %s was left out: %s", jr.Researcher, why))
			continue
		}
		if err := f.hear(ctx, jr, i+1, c, h); err != nil {
			return err
		}
	}
	return nil
}

// leavesOut names what was not taken from a report.
func (jr *journey) leavesOut(topic, detail string) {
	jr.gaps = append(jr.gaps, marchwarden.Gap{Topic: topic, Category: marchwarden.SourceNotFound, Detail: detail})
}

// unusable says why a citation can be no evidence at all; "" if it can.
func unusable(c marchwarden.Citation) string {
	switch {
	case c.RawExcerpt == marchwarden.ExcerptNonText, strings.TrimSpace(c.RawExcerpt) == "":
		return "it has no text"
	case c.Locator == "", len(c.Locator) > maxLocator:
		return "its locator is missing, or too long"
	case utf8.RuneCountInString(c.RawExcerpt) > marchwarden.MaxExcerptChars:
		return fmt.Sprintf("its excerpt is longer than %d characters", marchwarden.MaxExcerptChars)
	}
	return ""
}

// document is what several citations of a report may be of.
type document struct{ locator, hash string }

func documentOf(c marchwarden.Citation) document { return document{bare(c), c.ContentHash} }

// documents gets hold of what a report cites, each document once. One that cannot be had is missing.
func (f *findings) documents(ctx context.Context, jr *journey, citations []marchwarden.Citation) (map[document]replay.Held, error) {
	var wanted []marchwarden.Citation
	for _, c := range citations {
		known := func(o marchwarden.Citation) bool { return documentOf(o) == documentOf(c) }
		if unusable(c) == "" && !slices.ContainsFunc(wanted, known) {
			c.Locator, c.RawExcerpt = bare(c), "" // of the document alone
			wanted = append(wanted, c)
		}
	}
	held := make([]replay.Held, len(wanted))
	var g errgroup.Group
	g.SetLimit(fetchesAtOnce)
	for i, c := range wanted {
		g.Go(func() (err error) {
			held[i], err = f.evidence(ctx, jr, c, f.obtain)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := map[document]replay.Held{}
	for i, c := range wanted {
		out[documentOf(c)] = held[i]
	}
	return out, nil
}

// evidence runs one of the ways to a document as a recorded effect. Only a broken record is an error.
func (f *findings) evidence(ctx context.Context, jr *journey, c marchwarden.Citation, way func(context.Context, dispatch.Member, marchwarden.Citation) (replay.Held, error)) (replay.Held, error) {
	h, err := replay.Evidence(replay.Shield(ctx), f.j, jr.Researcher, c, func(ctx context.Context) (replay.Held, error) {
		return way(ctx, f.members[jr.Researcher], c)
	})
	if err != nil && !replay.Fatal(err) {
		return replay.Held{}, nil
	}
	return h, err
}

// obtain gets hold of a cited document: as this program has stored it, as the researcher hands it over by hash, or
// from where it says it found it.
func (f *findings) obtain(ctx context.Context, m dispatch.Member, c marchwarden.Citation) (replay.Held, error) {
	ours := context.WithoutCancel(ctx) // a caller who leaves must not make a liar of a researcher
	if ref, err := blob.Parse(c.ContentHash); err == nil && m.Trust != dispatch.Unknown {
		// A stranger may know a document by its hash alone: it has to hand over what it says it read.
		if _, err := f.blobs.Get(ours, ref); err == nil && (m.Trust == dispatch.Own || f.heard(ref)) {
			return replay.Held{Text: ref, How: howStored}, nil
		}
		if content, err := f.handed(ctx, m, c.ContentHash); err == nil {
			got, err := f.blobs.Put(ours, content)
			if err == nil && got == ref {
				return replay.Held{Text: ref, How: howStored}, nil
			}
		}
	}
	// An address may carry out what a private source holds.
	mayFetch := !m.Private || f.allowed(m.Name)
	if address, ok := locator.Canonical(c.Locator); ok && mayFetch && f.world.Refetch != nil && f.start.Request.Filter().Allows(locator.Host(address)) {
		if doc, err := f.world.Refetch(fetch.Within(ctx, f.start.Request.Filter()), address); err == nil && !doc.NonText {
			return replay.Held{Text: doc.Text, How: howRefetched, Title: doc.Title, Published: doc.Published, FetchedAt: doc.FetchedAt}, nil
		}
	}
	return replay.Held{}, marchwarden.Errorf(marchwarden.CodeNotFound, "%s has no document at %s that can be had", m.Name, c.Locator)
}

// heard reports whether a document is in the evidence already, from a member whose findings are no secret.
func (f *findings) heard(ref blob.Ref) bool {
	return slices.ContainsFunc(f.cited, func(a admission) bool {
		src := f.set.Sources()[a.source-1]
		return src.Page.Text == ref && !src.Page.Unchecked && !f.secret(f.journeys[a.journey-1].Researcher)
	})
}

// handed is a document that a researcher hands over. Strangers cannot fill the memory with it.
func (f *findings) handed(ctx context.Context, m dispatch.Member, hash string) ([]byte, error) {
	if m.Trust != dispatch.Own && f.taken.Load() > maxDocuments {
		return nil, marchwarden.Errorf(marchwarden.CodeExhausted, "strangers have handed over more than %d bytes", maxDocuments)
	}
	content, err := f.world.Dispatcher.Evidence(ctx, m.Name, hash)
	if err != nil || m.Trust == dispatch.Own {
		return content, err
	}
	f.taken.Add(int64(len(content)))
	if len(content) > maxDocument {
		return nil, marchwarden.Errorf(marchwarden.CodeExhausted, "a document of %d bytes is too large", len(content))
	}
	return content, nil
}

func (f *findings) report(ctx context.Context, _ dispatch.Member, c marchwarden.Citation) (replay.Held, error) {
	ref, err := f.blobs.Put(context.WithoutCancel(ctx), []byte(wording(c.RawExcerpt)))
	return replay.Held{Text: ref, How: howReported}, err
}

// wording is an excerpt without the mark that it was cut.
func wording(excerpt string) string { return strings.TrimSuffix(excerpt, marchwarden.ExcerptCut) }

// hear holds one citation against the document and takes it into the evidence.
func (f *findings) hear(ctx context.Context, jr *journey, index int, c marchwarden.Citation, h replay.Held) error {
	text, err := f.textOf(ctx, h)
	if err != nil {
		return err
	}
	span, ok := placeOf(c, text)
	if !ok {
		jr.misquotes(c)
		return nil
	}
	member := f.members[jr.Researcher]
	c, standing := f.attributed(c, h, member), rank(h, member)
	src, fresh := f.set.Add(evidence.Cited(c, h.Text, len(text)), text)
	switch {
	case fresh:
		f.ranks[src.Page.Locator] = standing
	case standing > f.ranks[src.Page.Locator]:
		src = f.supersede(src.N, c, h.Text, text)
		f.ranks[src.Page.Locator] = standing
	}
	if src.Page.Text != h.Text { // another state of the document was there first
		at, found := evidence.Locate(src.Text, wording(c.RawExcerpt))
		if !found && standing == f.ranks[src.Page.Locator] { // neither is better: both are kept
			also := c
			also.Locator = jr.Researcher + ":" + c.Locator
			src, _ = f.set.Add(evidence.Cited(also, h.Text, len(text)), text)
			f.ranks[src.Page.Locator] = standing
			at, found = span, src.Page.Text == h.Text
		}
		if !found {
			jr.gaps = append(jr.gaps, marchwarden.Gap{Topic: plaintext.Line(c.Locator, maxTopic), Category: marchwarden.ContradictorySources,
				Detail: fmt.Sprintf("%s read another state of this document than a researcher with a better standing; its excerpt was left out", jr.Researcher)})
			return nil
		}
		span = at
	}
	c.Span, c.ContentHash = &span, src.Page.Text.String()
	f.cited = append(f.cited, admission{journey: jr.number, index: index, source: src.N, span: span, citation: c})
	jr.admitted++
	return nil
}

// rank orders the ways to a document: a better one takes the place of a worse one at the same address.
func rank(h replay.Held, m dispatch.Member) int {
	switch {
	case h.How == howReported:
		return 0
	case m.Trust == dispatch.Own:
		return 3
	case h.How == howRefetched:
		return 2
	}
	return 1
}

func (jr *journey) misquotes(c marchwarden.Citation) {
	jr.leavesOut(plaintext.Line(c.Locator, maxTopic), jr.Researcher+" cites an excerpt that is not in the document there; it was left out")
}

// supersede puts a document in the place of one that stands lower, to which the member that brought it is held then.
func (f *findings) supersede(n int, c marchwarden.Citation, ref blob.Ref, text string) *evidence.Source {
	set, moved := &evidence.Set{Earlier: f.set.Earlier}, map[int]*evidence.Source{}
	for _, s := range f.set.Sources() {
		page, body := s.Page, s.Text
		if s.N == n || page.Unchecked && page.Text == ref {
			page, body = evidence.Cited(c, ref, len(text)), text
		}
		moved[s.N], _ = set.Add(page, body)
	}
	f.set = set
	var cited []admission
	for _, a := range f.cited {
		src, ok := moved[a.source], true
		if src.Page.Text.String() != a.citation.ContentHash {
			a.span, ok = evidence.Locate(src.Text, wording(a.citation.RawExcerpt))
		}
		if !ok {
			jr := f.journeys[a.journey-1]
			jr.admitted--
			jr.misquotes(a.citation)
			continue
		}
		at := a.span
		a.source, a.citation.Span, a.citation.ContentHash, a.citation.Unchecked = src.N, &at, src.Page.Text.String(), src.Page.Unchecked
		cited = append(cited, a)
	}
	f.cited = cited
	return moved[n]
}

// inOrder puts the evidence into the order of the rihlas: what is written must not depend on who was fastest.
func (f *findings) inOrder() {
	slices.SortStableFunc(f.cited, func(a, b admission) int {
		return cmp.Or(cmp.Compare(a.journey, b.journey), cmp.Compare(a.index, b.index))
	})
	var order, all []int
	for _, a := range f.cited {
		all = append(all, a.source)
	}
	for _, s := range f.set.Sources() { // those that no citation needs any more
		all = append(all, s.N)
	}
	for _, n := range all {
		if !slices.Contains(order, n) {
			order = append(order, n)
		}
	}
	if slices.IsSorted(order) { // a large document is not read again for nothing
		return
	}
	set, moved := &evidence.Set{Earlier: f.set.Earlier}, map[int]int{}
	for _, n := range order {
		src, _ := set.Add(f.set.Sources()[n-1].Page, f.set.Sources()[n-1].Text)
		moved[n] = src.N
	}
	for i := range f.cited {
		f.cited[i].source = moved[f.cited[i].source]
	}
	f.set = set
}

// textOf is the stored text, if there is one. What is in the evidence already is not read again.
func (f *findings) textOf(ctx context.Context, h replay.Held) (string, error) {
	if !h.Text.Valid() {
		return "", nil
	}
	if known := slices.IndexFunc(f.set.Sources(), func(src *evidence.Source) bool { return src.Page.Text == h.Text }); known >= 0 {
		return f.set.Sources()[known].Text, nil
	}
	text, err := blob.Text(context.WithoutCancel(ctx), f.blobs, h.Text)
	if err != nil {
		return "", fmt.Errorf("%w: %w", replay.ErrJournal, err)
	}
	return text, nil
}

// placeOf is where an excerpt stands in a text, as the citation says or after folding. Similar is not enough.
func placeOf(c marchwarden.Citation, text string) (marchwarden.Span, bool) {
	if c.Span != nil && c.Span.In(len(text)) {
		if stands := text[c.Span.Start:c.Span.End]; c.RawExcerpt == stands || c.RawExcerpt == stands+marchwarden.ExcerptCut {
			return *c.Span, true
		}
	}
	return evidence.Locate(text, wording(c.RawExcerpt))
}

// attributed is a citation with what may be believed of its source: of strangers, no more than the address tells.
func (f *findings) attributed(c marchwarden.Citation, h replay.Held, m dispatch.Member) marchwarden.Citation {
	c.Locator, c.Unchecked = bare(c), h.How == howReported
	if h.How == howRefetched {
		c.Title, c.Published, c.FetchedAt = h.Title, h.Published, &h.FetchedAt
	}
	if m.Trust == dispatch.Own {
		return c
	}
	c.Source, c.Title = plaintext.Line(c.Source, maxWord), plaintext.Line(c.Title, maxTopic)
	c.Authority, c.Origin = "", locator.Host(c.Locator)
	if c.Origin == "" {
		c.Origin = "researcher " + m.Name
	}
	if c.Source != "web" { // what it calls a file or a database was not seen here
		c.Authority = marchwarden.LowAuthority
	}
	if c.Unchecked {
		c.Published = ""
	}
	return c
}

// bare is the locator of the document, without the place in it.
func bare(c marchwarden.Citation) string {
	if document, _ := verify.CutPlace(c.Locator); c.Source == "file" {
		return document
	}
	return c.Locator
}
