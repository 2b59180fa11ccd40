package replay

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
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

// Heard is what a user answered, question by question, "" to one that was passed over, and how long that took.
type Heard struct {
	Answers []string      `json:"answers,omitempty"`
	Took    time.Duration `json:"took"`
	Moment
}

// Clarify records what the user answers to questions, so that a rerun and a run that goes on need no user.
func Clarify(ctx context.Context, j Journal, questions []string, ask func(context.Context) []string, clock func() time.Duration) (Heard, error) {
	return do(ctx, j, Effect{
		Kind:  trace.ActionClarified,
		Input: struct{ Questions []string }{questions},
		Done: func(out []byte, err error) trace.Recorded {
			h := read[Heard](out)
			return &trace.Clarified{Head: outcomeHead(err, "asked the user: %s", strings.Join(questions, " ")), Questions: questions,
				Answers: h.Answers, After: h.Elapsed, Took: h.Took, Interrupted: h.Interrupted}
		},
	}, func(ctx context.Context) (Heard, error) {
		began := clock()
		answers := ask(ctx)
		at := clock()
		return Heard{Answers: answers, Took: at - began, Moment: Moment{Elapsed: at, Interrupted: ctx.Err() != nil}}, nil
	})
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

// Embedded is what an embedder gave, and the tokens that it was charged for.
type Embedded struct {
	Vectors []embed.Vector
	Tokens  int
}

// packed is the stored form: the numbers of all vectors, four bytes each, the lowest first.
type packed struct {
	Texts   int    `json:"texts,omitempty"`
	Numbers []byte `json:"numbers,omitempty"`
	Tokens  int    `json:"tokens,omitempty"`
}

func pack(e Embedded) packed {
	p := packed{Texts: len(e.Vectors), Tokens: e.Tokens}
	for _, v := range e.Vectors {
		for _, x := range v {
			p.Numbers = binary.LittleEndian.AppendUint32(p.Numbers, math.Float32bits(x))
		}
	}
	return p
}

func (p packed) unpack(texts int) (Embedded, error) {
	e := Embedded{Tokens: p.Tokens}
	if p.Texts == 0 {
		return e, nil
	}
	each := len(p.Numbers) / 4 / p.Texts
	if p.Texts != texts || each == 0 || len(p.Numbers) != 4*each*p.Texts {
		return e, journalError(marchwarden.CodeCorrupt, nil, "read recorded vectors: %d bytes for %d texts", len(p.Numbers), texts)
	}
	for range p.Texts {
		v := make(embed.Vector, each)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(p.Numbers[4*i:]))
		}
		e.Vectors, p.Numbers = append(e.Vectors, v), p.Numbers[4*each:]
	}
	return e, nil
}

// Embed records that texts were embedded, by run, with the model of an id. What it
// gave in spite of an error is the tokens alone.
func Embed(ctx context.Context, j Journal, id string, texts []string, run func(context.Context) (Embedded, error)) (Embedded, error) {
	p, err := do(ctx, j, Effect{
		Kind: trace.ActionEmbedComplete,
		Input: struct {
			Model string
			Texts []string
		}{id, texts},
		Begin: &trace.Embed{Head: head("ask %s for the vectors of %d texts", id, len(texts)), Model: id, Texts: len(texts)},
		Done: func(out []byte, err error) trace.Recorded {
			p := read[packed](out)
			return &trace.EmbedComplete{Head: outcomeHead(err, "%d vectors for %d tokens", p.Texts, p.Tokens), Model: id, Texts: len(texts), TokensIn: p.Tokens}
		},
	}, func(ctx context.Context) (packed, error) {
		e, err := run(ctx)
		if err != nil {
			e.Vectors = nil
		}
		return pack(e), err
	})
	if err != nil {
		return Embedded{Tokens: p.Tokens}, err
	}
	return p.unpack(len(texts))
}

// SearchVectors records what vectors a search has had made by the model of an id: the
// tokens that were charged, and why they failed if they did. The vectors themselves
// are in its hits.
func SearchVectors(ctx context.Context, j Journal, id, engine string, q search.Query, spent func() (int, error)) (int, error) {
	p, err := do(ctx, j, Effect{
		Kind: trace.ActionEmbedComplete,
		Input: struct {
			Model, Engine, Query string
			Limit                int
			Filter, Since, Until string
		}{id, engine, q.Text, q.Limit, q.Filter.String(), q.Since, q.Until},
		Done: func(out []byte, err error) trace.Recorded {
			p := read[packed](out)
			return &trace.EmbedComplete{Head: outcomeHead(err, "vectors for %q took %d tokens", q.Text, p.Tokens), Model: id, Query: q.Text, TokensIn: p.Tokens}
		},
	}, func(context.Context) (packed, error) {
		tokens, err := spent()
		return packed{Tokens: tokens}, err
	})
	return p.Tokens, err
}
