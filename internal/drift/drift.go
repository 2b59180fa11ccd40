// Package drift finds out what became of the sources of a result: it has every
// document fetched again that the result cites, and says of each whether it
// changed, of each cited passage whether it still stands there, and of each claim
// whether it still has its evidence.
//
// It owns these judgements and the file in which they are kept. It does not fetch
// itself, never changes a result or a record, and keeps nothing of what was
// fetched. Whether a citation stands in the stored bytes is package verify's to
// say.
//
//	drift.go    the report and the check as a whole
//	source.go   one document
//	passage.go  one passage in the text of now
//	retracted.go  papers that were taken back
//	report.go   the reports of earlier checks, and a report for people
package drift

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

// Format is the version of a Report. Fields are only ever added to it; readers take
// a report of a later version for none.
const Format = 1

// parallel is how many documents are asked for at the same time.
const parallel = 4

// State is what became of a document.
type State string

// The states of a document.
const (
	Unchanged   State = "unchanged"   // the bytes are the same, or the text is
	Changed     State = "changed"     // there is another text
	Unreachable State = "unreachable" // it could not be had; Why says how
	Unchecked   State = "unchecked"   // it was not asked for; Detail says why
)

// Why is how a document could not be had.
type Why string

// The reasons.
const (
	Gone       Why = "gone"       // its place answers that there is no such document
	Refused    Why = "refused"    // robots.txt, the server, the guard or a permission forbids it
	Unanswered Why = "unanswered" // no answer, none in time, or none that can be read
)

// Standing is what became of a passage.
type Standing string

// The standings of a passage. Of a document that is gone every passage is missing;
// of one that is unreachable otherwise, or unchecked, all that is known is unknown.
const (
	Present Standing = "present" // it is there, on whatever place of the page
	Altered Standing = "altered" // it is there in another wording
	Missing Standing = "missing"
	Unknown Standing = "unknown"
)

// Hold is what became of a claim.
type Hold string

// The holds. A claim with a passage that is present and none that is lost is kept,
// whatever is unknown.
const (
	Kept     Hold = "kept"
	Weakened Hold = "weakened" // it lost some of its evidence
	Lost     Hold = "lost"     // it lost all of it
	Unsure   Hold = "unknown"  // nothing is known of any of it
)

// Report is one check of a result. The same answers give the same report.
type Report struct {
	Format    int                 `json:"format"`
	TraceID   marchwarden.TraceID `json:"trace_id"`
	CheckedAt time.Time           `json:"checked_at"`
	Sources   []Source            `json:"sources"`
	Passages  []Passage           `json:"passages"` // one for each citation, in their order
	Claims    []Claim             `json:"claims"`
}

// Source is a cited document.
type Source struct {
	Locator     string    `json:"locator"`
	Title       string    `json:"title,omitempty"`
	ContentHash string    `json:"content_hash"` // of the text that was cited
	FetchedAt   time.Time `json:"fetched_at,omitzero"`
	State       State     `json:"state"`
	Why         Why       `json:"why,omitempty"`
	// Detail says more, in words: the error, or what the state rests on.
	Detail string `json:"detail,omitempty"`
	// MovedTo is where the document is now, if that is somewhere else.
	MovedTo string `json:"moved_to,omitempty"`
	// Retracted says that the paper was taken back, and what is known of that.
	Retracted string `json:"retracted,omitempty"`
	Citations []int  `json:"citations"` // counted from one
}

// Passage is a cited excerpt.
type Passage struct {
	Citation int      `json:"citation"` // counted from one
	Locator  string   `json:"locator"`
	State    Standing `json:"state"`
	Excerpt  string   `json:"excerpt"`
	Now      string   `json:"now,omitempty"` // the wording of an altered passage
}

// Claim is a sentence of the answer.
type Claim struct {
	Text      string `json:"text"`
	Citations []int  `json:"citations"`
	State     Hold   `json:"state"`
}

// Config is what a check works with. Store and Now are required. The caller closes
// what it passes in.
type Config struct {
	Store run.Store
	// Fetchers fetch documents, by the kind of source that Page.Source names. A
	// document of another kind is Unchecked. One that is a fetch.Refetcher is asked
	// as such. They put what they fetch into Fetched, which a check leaves to its caller.
	Fetchers map[string]fetch.Fetcher
	Fetched  blob.Store
	// Extract reads the recorded bytes again where another version of the extractor
	// read them; nil leaves the text as it was read.
	Extract *extract.Extractor
	Now     func() time.Time
	// Retracted are those of locators of the web and of papers that name papers which were taken
	// back, each with what is known of it; nil asks nothing.
	Retracted func(ctx context.Context, locators []string) map[string]string
	// Told hears of each document when it is done; nil hears nothing.
	Told func(Source)
}

// Check fetches the documents again that the result of a run cites, each once, and
// nothing else. A document that cannot be had is a state, not an error: errors are
// a record that cannot be read, and CodeCanceled when ctx ended. With the latter comes
// a report in which every document that was not reached by then is Unchecked.
func Check(ctx context.Context, cfg Config, run *run.Run) (Report, error) {
	_, res, err := cfg.Store.Result(ctx, run)
	if err != nil {
		return Report{}, err
	}
	docs, err := cfg.Store.Documents(ctx, run)
	if err != nil {
		return Report{}, err
	}
	rep := Report{Format: Format, TraceID: run.ID, CheckedAt: cfg.Now().UTC().Truncate(time.Second), Sources: []Source{}, Passages: make([]Passage, len(res.Citations)), Claims: []Claim{}}
	cited := gather(docs, res.Citations)
	rep.Sources = append(rep.Sources, make([]Source, len(cited))...)
	var telling sync.Mutex
	var g errgroup.Group // each looks at ctx itself, and says so for its own document
	g.SetLimit(parallel)
	for i, c := range cited {
		g.Go(func() error {
			src, passages := cfg.look(ctx, c, res.Citations)
			ended := ctx.Err()
			if ended != nil {
				src, passages = unknown(c, res.Citations)
				src.Detail = "the check was stopped before"
			}
			rep.Sources[i] = src
			for j, n := range c.numbers {
				rep.Passages[n-1] = passages[j] // a citation is of one document
			}
			if cfg.Told != nil && ended == nil {
				telling.Lock()
				defer telling.Unlock()
				cfg.Told(src)
			}
			return ended
		})
	}
	err = g.Wait()
	cfg.retracted(ctx, rep.Sources, res.Citations)
	for _, c := range res.Claims {
		rep.Claims = append(rep.Claims, Claim{Text: c.Text, Citations: slices.Clone(c.Citations), State: rep.hold(c.Citations)})
	}
	return rep, marchwarden.Wrap(err, marchwarden.CodeCanceled, "check the sources")
}

// retracted notes which of the documents are papers that were taken back. Names of files and rows stay here.
func (cfg Config) retracted(ctx context.Context, sources []Source, citations []marchwarden.Citation) {
	var public []string
	for _, s := range sources {
		if kind := citations[s.Citations[0]-1].Source; kind == "web" || kind == "arxiv" {
			public = append(public, s.Locator)
		}
	}
	if cfg.Retracted == nil || len(public) == 0 || ctx.Err() != nil {
		return
	}
	found := cfg.Retracted(ctx, public)
	for i, s := range sources {
		sources[i].Retracted = found[s.Locator]
	}
}

// hold is what became of a claim with these citations.
func (r Report) hold(numbers []int) Hold {
	var present, lost int
	for _, n := range numbers {
		if n < 1 || n > len(r.Passages) {
			continue
		}
		switch r.Passages[n-1].State {
		case Present:
			present++
		case Altered, Missing:
			lost++
		}
	}
	switch {
	case lost > 0 && lost == len(numbers):
		return Lost
	case lost > 0:
		return Weakened
	case present > 0:
		return Kept
	}
	return Unsure
}

// Drifted reports whether evidence was lost: a passage is altered or missing, or a
// document is gone or was taken back.
func (r Report) Drifted() bool {
	return slices.ContainsFunc(r.Passages, func(p Passage) bool { return p.State == Altered || p.State == Missing }) ||
		slices.ContainsFunc(r.Sources, func(s Source) bool { return s.Why == Gone || s.Retracted != "" })
}

// Incomplete reports whether some document could not be had or was not asked for.
func (r Report) Incomplete() bool {
	return slices.ContainsFunc(r.Sources, func(s Source) bool { return s.State == Unreachable || s.State == Unchecked })
}

type cited struct {
	doc     *run.Document // nil if there is none in the record
	numbers []int         // of the citations, counted from one
}

// gather puts the citations together by their documents, in the order of these.
func gather(docs []run.Document, citations []marchwarden.Citation) []cited {
	var all []cited
	for i, c := range citations {
		doc := behind(docs, c)
		same := func(o cited) bool {
			first := citations[o.numbers[0]-1]
			return doc == o.doc && (doc != nil || first.Locator == c.Locator && first.ContentHash == c.ContentHash)
		}
		if at := slices.IndexFunc(all, same); at >= 0 {
			all[at].numbers = append(all[at].numbers, i+1)
			continue
		}
		all = append(all, cited{doc, []int{i + 1}})
	}
	return all
}

// behind finds the document that a citation is of. A citation of a file may name a
// line or page behind the locator. What was fetched here is preferred to what
// another researcher handed over.
func behind(docs []run.Document, c marchwarden.Citation) *run.Document {
	var found *run.Document
	for i := range docs {
		d := &docs[i]
		if d.Hash().String() != c.ContentHash {
			continue
		}
		place, of := strings.CutPrefix(c.Locator, d.Locator)
		if !of || place != "" && !strings.HasPrefix(place, "#") {
			continue
		}
		if d.Source != "" {
			return d
		}
		if found == nil {
			found = d
		}
	}
	return found
}
