// Package report writes what a run found: on a terminal, and as files that people keep and
// pass on, which are a report in Markdown or as one page of HTML, and a list of the
// cited sources for reference managers. Every form has the answer, the evidence, what is missing
// and how to check it.
//
// It owns the form. It judges nothing: verdicts, confidence and gaps are those of
// the result, and whether the result still stands is package verify's to say; but an
// excerpt that is not what the stored text says is not shown as if it were. All text
// of a result comes from outside and reaches no file as markup.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
	"unique"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Report is what a report is made of. Gather fills it from a record; a caller that has a result by
// other means may fill it by hand: only Result must be set. The functions that take a Report do not
// change it.
type Report struct {
	Question   string             // as it was understood
	Asked      string             // as it was typed, if that is another; "" else
	Turns      []trace.Turn       // of the conversation before it, the first one first
	Researcher string             // who answered
	Version    string             // of the program that ran
	StartedAt  time.Time          // zero when not known
	Limits     marchwarden.Limits // with what was added when the run was resumed
	Result     *marchwarden.Result
	// Sources are the cited sources, one for each citation and in their order; a
	// missing one is a source whose text is not at hand.
	Sources []Source
	// Checked is what became of the sources when they were last fetched again, in a
	// line; "" when they were not.
	Checked string
	// Problems are what could not be read of the record, for people.
	Problems []string
}

// Source is what is stored of a cited source.
type Source struct {
	// Text is the stored text that the citation's span is in; "" when it has none, or
	// when it is not to be had.
	Text string
	// Problem says why the excerpt cannot be shown at its place; "" when it can, and
	// when there is nothing to show, as for a source that is no text.
	Problem string
	// Page is the document as it was recorded; zero when the record has none.
	Page fetch.Page
	// Paper is what was recorded of a scholarly paper; nil for other sources.
	Paper *Paper
}

// Gather collects what is needed for a report on a run. A run without a result is
// CodeUnsupported, and a result that cannot be read is an error. Other damage to the
// record costs the report what is damaged, and it says so: see Problems and
// Source.Problem.
func Gather(ctx context.Context, s run.Store, of *run.Run) (*Report, error) {
	_, res, err := s.Result(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	r := &Report{Question: cmp.Or(res.CompletedQuestion, of.Start.Request.Question), Researcher: of.Start.Researcher, Version: of.Start.Version,
		StartedAt: of.Start.StartedAt.UTC(), Limits: of.Start.LimitsNow(), Result: res}
	if res.CompletedQuestion != "" {
		r.Asked = of.Start.Request.Question
	}
	r.Turns = run.TurnsBefore(ctx, s, of)
	docs, err := s.Documents(ctx, of)
	if err := r.damage(err); err != nil {
		return nil, fmt.Errorf("read the documents: %w", err)
	}
	r.Sources = make([]Source, len(res.Citations))
	for i, c := range res.Citations {
		src := &r.Sources[i]
		src.Page = pageOf(docs, c)
		if src.Text, src.Problem, err = stored(ctx, s.Blobs, c); err != nil {
			return nil, fmt.Errorf("read source %d: %w", i+1, err)
		}
		src.Text = unique.Make(src.Text).Value() // one that is cited often is held once
		src.Paper, err = paperOf(ctx, s.Blobs, src.Page)
		if err := r.damage(err); err != nil {
			return nil, fmt.Errorf("read source %d: %w", i+1, err)
		}
	}
	return r, nil
}

func (r *Report) damage(err error) error {
	if marchwarden.CodeOf(err) == marchwarden.CodeCorrupt {
		r.Problems = append(r.Problems, err.Error())
		return nil
	}
	return err
}

func pageOf(docs []run.Document, c marchwarden.Citation) fetch.Page {
	found := fetch.Page{}
	for _, d := range docs {
		switch {
		case c.ContentHash == "" || d.Hash().String() != c.ContentHash:
		case d.Locator == whole(c.Locator):
			return d.Page
		case !found.Text.Valid():
			found = d.Page // the same text at another place
		}
	}
	return found
}

// whole is the locator of a document without the place in it.
func whole(locator string) string {
	document, _ := verify.CutPlace(locator)
	return document
}

// stored is the text that a citation names, or what is wrong with it. The error is for a store that fails.
func stored(ctx context.Context, blobs blob.Store, c marchwarden.Citation) (text, problem string, err error) {
	if c.RawExcerpt == marchwarden.ExcerptNonText {
		return "", "", nil
	}
	if c.ContentHash == "" || c.Span == nil {
		return "", "the result does not say where the excerpt stands", nil
	}
	content, err := blob.Evidence(ctx, blobs, c.ContentHash)
	switch code := marchwarden.CodeOf(err); {
	case err == nil:
	case code == marchwarden.CodeNotFound:
		return "", "the text is not stored", nil
	case errors.Is(err, blob.ErrCorrupt), code == marchwarden.CodeInvalid:
		return "", "the stored text is damaged", nil
	default:
		return "", "", err
	}
	if !c.Span.In(len(content)) {
		return "", "the excerpt's place is outside the stored text", nil
	}
	if cut := string(content[c.Span.Start:c.Span.End]); c.RawExcerpt != cut && c.RawExcerpt != cut+marchwarden.ExcerptCut {
		return "", "the excerpt is not what stands at its place in the stored text", nil
	}
	return string(content), "", nil
}

func (r *Report) source(i int) Source {
	if i < len(r.Sources) {
		return r.Sources[i]
	}
	return Source{}
}
