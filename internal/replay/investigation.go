package replay

import (
	"context"
	"errors"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Journey identifies one rihla of an investigation.
type Journey struct {
	Number     int
	Researcher string
	Request    marchwarden.Request
	Reason     string
	Parent     int
	TraceID    marchwarden.TraceID // that its run is to have; zero if it is not given
}

// journeyTries is how often a journey is begun: a researcher resumes its own run.
const journeyTries = 8

// Rihla records one journey: who was asked what, and the report. A failed one is
// an outcome like any other.
func Rihla(ctx context.Context, j Journal, r Journey, run func(context.Context) (*marchwarden.Result, error)) (*marchwarden.Result, error) {
	return do(ctx, j, Effect{
		Kind: trace.ActionRihlaComplete,
		Input: struct {
			Number     int
			Researcher string
			Request    marchwarden.Request
		}{r.Number, r.Researcher, r.Request},
		Begin: &trace.Rihla{Head: head("send %s to find out: %s (%s)", r.Researcher, r.Request.Question, r.Reason),
			Number: r.Number, Researcher: r.Researcher, Question: r.Request.Question, Reason: r.Reason, Parent: r.Parent, TraceID: r.TraceID},
		Tries: journeyTries,
		Done: func(out []byte, err error) trace.Recorded {
			s := &trace.RihlaComplete{Head: outcomeHead(err, ""), Number: r.Number, Researcher: r.Researcher}
			if res := read[*marchwarden.Result](out); err == nil && res != nil {
				s.Head = head("%s reported %d citations and %d gaps", r.Researcher, len(res.Citations), len(res.Gaps))
				s.TraceID, s.Citations, s.Gaps, s.TokensUsed = res.TraceID, len(res.Citations), len(res.Gaps), res.CostMetadata.TokensUsed
				if usd := res.CostMetadata.CostUSD; usd != nil && r.TraceID.Valid() { // a stranger has no id from us
					s.CostUSD = *usd
				}
			}
			return s
		},
	}, run)
}

// Arrived is which journey ended next, and what clock and caller said then.
type Arrived struct {
	Number int  `json:"number"`         // 0 when none came back, although the time was over
	Over   bool `json:"over,omitempty"` // the time is over, or the caller's patience
	Moment
}

// Arrival records which journey's report is looked at n-th. wait is asked only
// when the record does not know; a rerun hears the order of the record from it.
func Arrival(ctx context.Context, j Journal, n int, wait func(context.Context) (number int), clock func() time.Duration) (Arrived, error) {
	return do(ctx, j, Effect{
		Kind:  trace.ActionArrival,
		Input: struct{ N int }{n},
		Done: func(out []byte, err error) trace.Recorded {
			a := read[Arrived](out)
			s := &trace.Arrival{Head: head("report %d is that of rihla %d, after %s", n, a.Number, a.Elapsed.Round(time.Millisecond)), Number: a.Number, Interrupted: a.Interrupted}
			switch {
			case a.Number == 0 && a.Interrupted:
				s.Decision = "the caller has stopped the run"
			case a.Number == 0:
				s.Decision = "no further report came in time"
			}
			return s
		},
	}, func(ctx context.Context) (Arrived, error) {
		number := wait(ctx)
		gone := context.Cause(ctx)
		return Arrived{Number: number, Over: gone != nil, Moment: Moment{Elapsed: clock(), Interrupted: gone != nil && !errors.Is(gone, context.DeadlineExceeded)}}, nil
	})
}

// Held is a cited document as an investigator got hold of it.
type Held struct {
	Text blob.Ref `json:"text"` // zero when there is none
	// How is "stored" for the bytes that the researcher handed over by hash,
	// "refetched" for a document that was fetched again, "reported" for the bare
	// excerpt.
	How       string    `json:"how"`
	Title     string    `json:"title,omitempty"`
	Published string    `json:"published,omitempty"`
	FetchedAt time.Time `json:"fetched_at,omitzero"`
}

// Evidence records how the document behind a citation was got hold of.
func Evidence(ctx context.Context, j Journal, member string, c marchwarden.Citation, get func(context.Context) (Held, error)) (Held, error) {
	return do(ctx, j, Effect{
		Kind: trace.ActionEvidence,
		Input: struct {
			Member, Locator, Hash, Excerpt string
		}{member, c.Locator, c.ContentHash, c.RawExcerpt},
		Done: func(out []byte, err error) trace.Recorded {
			h := read[Held](out)
			return &trace.Evidence{Head: outcomeHead(err, "%s: %s", c.Locator, h.How), Member: member, Locator: c.Locator, ContentHash: h.Text, How: h.How}
		},
	}, get)
}
