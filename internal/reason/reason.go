// Package reason decides what to look at next and writes claims that cite
// passages by id. It owns the Reasoner interface and its values. A reasoner
// reaches nothing outside the process by itself: the loop runs the searches and
// fetches it asks for, and the grounding gate cuts the excerpts.
package reason

import (
	"context"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// State is what is known at a point of a run. The loop owns it and changes it
// between calls only; a reasoner reads it and charges the meter.
type State struct {
	Request   marchwarden.Request
	Limits    marchwarden.Limits
	Now       time.Time // when the run started; the only clock a reasoner has
	Iteration int       // from 1
	Searches  []Searched
	Evidence  *evidence.Set
	Asked     map[string]bool  // locators that were asked for, whatever came of it
	Failed    map[string]error // of these, those that could not be read, and why
	Meter     *budget.Meter
	// Given are the addresses in the caller's own words, which may be read without
	// a search.
	Given []string
	// Model is the language model, or nil for a reasoner that has none. It is metered:
	// a call that does not fit the budget fails with CodeExhausted before anything
	// is spent. No other model is in a reasoner's reach.
	Model llm.Model
	// Scale is how much more than the estimate the provider counts, as far as this
	// run has seen: at least 1, and what the model's reservations are made with.
	// Nil is 1.
	Scale func() float64
	// Paid reports whether the model has cost tokens in this run. Nil is no.
	Paid func() bool
	// Vectors makes sentence vectors, or is nil for a run that has none. It is metered
	// and recorded where it has to be; what it fails at is a gap already, and the reasoner
	// goes on without.
	Vectors embed.Embedder
	// Reader reads a question together with a passage, or is nil for a run that has
	// none. It gives the same bits everywhere, and needs no record.
	Reader reader.Reader
	// Nonce is a word that no page of this run can know; it marks where untrusted
	// text begins and ends in a prompt.
	Nonce string
	// Guide says what a search may ask for where that is not plain words, such as
	// the tables of a database and that a query may be SQL; "" for nothing.
	Guide string
	// Drafted is told the sentences that a model has written so far, each time that there are others: they may turn out
	// differently, and are for those who wait. Nil is not told; calls come from any goroutine, one at a time.
	Drafted func(claims []Claim)
	// Questions are what the evidence was gathered for beside the question itself: the parts of a plan.
	Questions []string
	// Interrupted is set when the caller has stopped the run: what is written now
	// must be written at once, without a model.
	Interrupted bool
	// Past is how many ends of its own the run has gone past: what kept a reasoner from
	// its model before may be over.
	Past int
}

// Form is the form that the answer is to have. By earlier rules every answer is paragraphs.
func (s *State) Form() marchwarden.Format {
	if s.Evidence.Earlier {
		return marchwarden.Plain
	}
	return s.Request.Form()
}

// Offered reports whether a locator may be read: it is in the caller's own
// words, a hit of a search of this run, or a link on a page that was read.
func (s *State) Offered(locator string) bool {
	hit := func(h search.Hit) bool { return h.Locator == locator }
	return slices.Contains(s.Given, locator) ||
		slices.ContainsFunc(s.Searches, func(sd Searched) bool { return slices.ContainsFunc(sd.Hits, hit) }) ||
		slices.ContainsFunc(s.Evidence.Sources(), func(src *evidence.Source) bool { return slices.Contains(src.Page.Links, locator) })
}

// Searched is a search that was run and what it gave.
type Searched struct {
	Query     string
	Reason    string
	Iteration int
	Hits      []search.Hit
	Err       error // nil unless an engine failed; another's hits may be there all the same
}

// Plan is what to search and to read in one iteration. A plan without either
// ends the gathering.
type Plan struct {
	Searches []Search
	// Reads are documents to read beside the searches, of those that are offered
	// already; the loop refuses and counts any other.
	Reads    []Read
	Decision string // a sentence for people: why these, or why stop
	// Complete reports, of a plan without searches, whether nothing is left to
	// look for (true) or the reasoner has merely no further idea (false).
	Complete bool
}

// Search is one query to run.
type Search struct {
	Query  string
	Reason string
	// ByWords asks for what has the words of the query, whatever else means the same:
	// it is a name.
	ByWords bool
	// Since and Until bound the date of publication, 2006-01-02, or "".
	Since, Until string
}

// Read is one document chosen for reading.
type Read struct {
	Locator string
	Reason  string
}

// Draft is what the reasoner wants to say. Nothing in it is trusted: the gate
// drops passage ids that do not exist and sentences without support.
type Draft struct {
	// By is the id of the reasoner that wrote it in place of the one that was asked, or "".
	By     string
	Claims []Claim
	// Blocks are the claims in typed parts; nil are paragraphs, as the claims say.
	Blocks []Block
	// Refusal says why there is no answer; used when Claims is empty. It is a
	// sentence of the program's, never a model's: that would be an answer without a
	// citation.
	Refusal string
	// Short is the answer in a few words, or nil. Closest are the passages nearest to
	// the question, the nearest first; used when Claims is empty.
	Short          *Short
	Closest        []Near
	Gaps           []marchwarden.Gap
	Discoveries    []marchwarden.DiscoveryEvent
	OpenQuestions  []marchwarden.OpenQuestion
	Contradictions []marchwarden.Contradiction
	// Match is how much of what was asked the chosen evidence speaks to, 0 to 1;
	// it becomes query_specificity_match.
	Match float64
	// Judged is how many claims were judged both by a model and by the judge without
	// one, and Agreed on how many of them the two said the same of being supported.
	Judged, Agreed int
}

// Claim is one sentence of the answer and the passages it rests on.
type Claim struct {
	Text      string // one sentence, Markdown, without markers
	Passages  []evidence.ID
	Spans     []marchwarden.Span // where in each passage's document the support stands; nil = the whole passage
	Paragraph bool               // begins a new paragraph
	Support   marchwarden.Support
	// Conflict says, of a claim that is unsupported, how its passages speak against
	// it; "" if they merely do not state it.
	Conflict string
	Judge    string // who gave the verdict: marchwarden.JudgeLocal or JudgeBoth
}

// Block is one typed part of a draft.
type Block struct {
	Type    marchwarden.BlockType
	Level   int    // of a heading
	Text    string // of a heading
	Asks    string // of a heading: the question that the section is about; it stands in for a Text that the gate refuses
	Claims  []int  // of Draft.Claims, from 0: the sentences of a paragraph or the entries of a list
	Ordered bool
	Columns []string
	Rows    [][]Cell
	Passage evidence.ID // of a quote
}

// Paragraphs are claims as the blocks that they are without any.
func Paragraphs(claims []Claim) []Block {
	var out []Block
	for i, c := range claims {
		if c.Paragraph || len(out) == 0 {
			out = append(out, Block{Type: marchwarden.Paragraph})
		}
		out[len(out)-1].Claims = append(out[len(out)-1].Claims, i)
	}
	return out
}

// mostDraft is how many characters of a draft an event has.
const mostDraft = 4000

// Drafting is the event that shows what of a run's draft is written, the last of it if it is long.
func Drafting(run marchwarden.TraceID, claims []Claim) marchwarden.Event {
	var b strings.Builder
	for i, c := range claims {
		switch {
		case i > 0 && c.Paragraph:
			b.WriteString("\n\n")
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(plaintext.Line(c.Text, mostDraft))
	}
	text := []rune(b.String())
	return marchwarden.Event{Stage: marchwarden.StageSynthesize, TraceID: run, Message: lexicon.Counted(len(claims), "sentence", "sentences") + " drafted", Draft: string(text[max(0, len(text)-mostDraft):])}
}

// Join appends a part to a draft: its claims, its blocks and its gaps.
func (d *Draft) Join(part Draft) {
	for _, b := range part.Blocks {
		b.Claims = slices.Clone(b.Claims)
		for i := range b.Claims {
			b.Claims[i] += len(d.Claims)
		}
		d.Blocks = append(d.Blocks, b)
	}
	d.Claims, d.Gaps = append(d.Claims, part.Claims...), append(d.Gaps, part.Gaps...)
}

// Once takes out what says again, in the same words, what was said before. Every claim must be in a block.
func (d *Draft) Once() {
	said := map[string]bool{}
	var claims []Claim
	for i := range d.Blocks {
		var left []int
		for _, k := range d.Blocks[i].Claims {
			if key := lexicon.SameWords(d.Claims[k].Text); !said[key] {
				said[key] = true
				left, claims = append(left, len(claims)), append(claims, d.Claims[k])
			}
		}
		d.Blocks[i].Claims = left
	}
	d.Claims = claims
}

// Cell is one cell of a table, and the passages that its words stand in.
type Cell struct {
	Text     string
	Passages []evidence.ID
}

// Short is where the short answer stands; the gate cuts it out. With ShortUnknown
// nothing else is set, and no claim may stand.
type Short struct {
	Passage evidence.ID
	Span    marchwarden.Span // of bytes in the text of the passage's document: the words, or for yes and no the sentence that decides
	Kind    marchwarden.ShortKind
}

// Near is a passage that comes close to the question and does not answer it.
type Near struct {
	Passage evidence.ID
	Span    marchwarden.Span // of bytes in the text of its document; zero is the whole passage
	Reason  string           // what it is near by, in a few words of the program's
}

// Reasoner decides what a researcher looks at and says. Implementations are deterministic given
// the state and the model calls they make, so that a run can be replayed.
type Reasoner interface {
	// ID names the reasoner and its version, such as "extractive/1"; it becomes
	// cost_metadata.model_id.
	ID() string
	// Plan says what to search and read in this iteration, or that gathering is
	// over. A plan may come with an error: what failed, and how to go on all the same.
	Plan(ctx context.Context, s *State) (Plan, error)
	// Choose picks which of the hits to read, best first. The loop cuts the list
	// at the sources that are left and never reads a locator twice. It asks no model.
	Choose(s *State, hits []search.Hit) []Read
	// Write answers from the evidence. A draft may come with an error: what failed,
	// and what could be written all the same. It spends tokens through the state's
	// meter and must leave the budget whole when it cannot.
	Write(ctx context.Context, s *State) (Draft, error)
}
