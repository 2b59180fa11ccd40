// Package model is the reasoner that asks a language model: what to search and read
// next, what the evidence says, and whether each sentence stands in it. It owns
// the prompts, what of the evidence is shown in them, and the reading of the
// replies. It reaches nothing but the metered model of the reason.State.
//
// Nothing a model says is trusted. Pages enter a prompt as lines between markers
// that no page can forge; ids in a reply stand for what this run has met or for
// nothing; a bad item loses that item. What a model fails at, package extractive
// does on the same evidence, and the fault is returned beside it.
//
//	prompt.go  instructions, schemas, markers          plan.go   tool calls → reason.Plan
//	view.go    what a planning step is shown           write.go  the answer, its repair, the fallback
//	pack.go    passages under an allowance, shared     draft.go  reply → reason.Draft
//	judge.go   support of each claim, read along       outline.go, report.go  a report
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/locator"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// Reasoner asks a language model. It serves one run and is not safe for concurrent use. What it does depends on the states
// it was given and the replies it got, in their order, alone.
type Reasoner struct {
	id    string
	plain *extractive.Reasoner // what goes on when the model does not

	told    told            // what the calls so far have in common
	notes   string          // the model's, of the step before
	links   []string        // L1, L2… as they were first shown
	asked   map[string]bool // queries, see lexicon.SameWords
	steps   map[string]bool // the calls of each step so far
	faults  int             // of planning calls
	failed  bool            // a call has failed, for want of something else than tokens
	mute    bool            // no further planning calls
	plainly bool            // this step is planned without the model, which failed
	past    int             // ends of the run, as far as was heard
	thinks  bool            // the model thinks before it answers, which takes tokens

	opinions opinions
}

// Version changes when the prompts, or what is done with a model's words, change: a run that another version recorded
// cannot be rerun by this one.
const Version = "model/7"

// New makes the reasoner of one run. The id is the model's, and becomes the result's model_id.
func New(id string) *Reasoner {
	return &Reasoner{
		id: id, plain: extractive.New(), asked: map[string]bool{}, steps: map[string]bool{},
		opinions: opinions{found: map[string]func() (verify.Opinion, error){}, turns: make(chan struct{}, 2)},
	}
}

// ID is the id that New was given.
func (r *Reasoner) ID() string { return r.id }

// Version is Version: the id says which model is asked, and not by which reasoner.
func (*Reasoner) Version() string { return Version }

// begun is a call of a prompt for a reply by a schema of at most so many tokens, and so many more for a model that thinks.
func (r *Reasoner) begun(name string, schema json.RawMessage, most, more int) llm.Call {
	c := prompt(name).Call()
	c.Schema, c.MaxTokens = schema, most
	if r.thinks {
		c.MaxTokens += min(thinking, more)
	}
	return c
}

// ask makes one call. A refusal of the model is an error with CodeRefused.
func (r *Reasoner) ask(ctx context.Context, s *reason.State, c llm.Call) (llm.Reply, error) {
	reply, err := s.Model.Generate(ctx, c)
	if err == nil {
		err = r.heard(c, reply)
	}
	return reply, err
}

// heard notes how a model answers. A refusal is an error.
func (r *Reasoner) heard(c llm.Call, reply llm.Reply) error {
	seen := reply
	seen.Text = llm.WithoutThinking(reply.Text)
	r.thinks = r.thinks || reply.Usage.Out > 2*seen.Shown()+200 // it took far more tokens than it shows
	if reply.Stop == llm.StopRefusal {
		return marchwarden.Errorf(marchwarden.CodeRefused, "the model would not answer the %s prompt", c.Prompt)
	}
	return nil
}

// apart is the state for the reasoner that stands in for the model. It charges what
// it reads as a model's reading would be. Where the model failed and cost nothing it is
// charged to the run, as if no model had been asked for; else it has a meter of its
// own, since the model may have used up the run's tokens, or have use for them yet.
func (r *Reasoner) apart(s *reason.State) *reason.State {
	if s.Model == nil || r.dead(s) {
		return s
	}
	m := budget.New(s.Limits, 0)
	m.TakeSources(s.Meter.Usage().Sources)
	other := *s
	other.Meter = m
	return &other
}

func (r *Reasoner) dead(s *reason.State) bool { return r.failed && s.Paid != nil && !s.Paid() }

// instead has the reasoner without a model do something, which needs no time. The run's meter learns what ended its work.
func instead[T any](ctx context.Context, r *Reasoner, s *reason.State, do func(context.Context, *reason.State) (T, error)) (T, error) {
	other := r.apart(s)
	made, err := do(context.WithoutCancel(ctx), other)
	if other != s {
		for _, what := range other.Meter.Usage().Exhausted {
			s.Meter.Exhaust(what)
		}
	}
	return made, err
}

// standIn is the plan of the reasoner without a model.
func (r *Reasoner) standIn(ctx context.Context, s *reason.State) (reason.Plan, error) {
	r.plainly = r.failed
	return instead(ctx, r, s, r.plain.Plan)
}

const (
	thinking = 4000 // tokens more that a reply may have of a model that thinks, where there is room for them
	fusionK  = 60
)

// Choose fuses the ranks that this iteration's searches gave and takes the best,
// of different hosts first. It costs no tokens. What is read of a
// step that the model did not plan is chosen without it, too.
func (r *Reasoner) Choose(s *reason.State, hits []search.Hit) []reason.Read {
	if r.plainly {
		return r.plain.Choose(s, hits)
	}
	n := 2
	if s.Iteration <= 1 {
		n = 3
	}
	if s.Limits.MaxSources >= 20 {
		n++
	}
	hosts := map[string]bool{}
	var first, later []search.Hit
	for _, h := range r.fused(s, hits) {
		host := hostOf(h.Locator)
		if host != "" && hosts[host] {
			later = append(later, h)
			continue
		}
		hosts[host] = true
		first = append(first, h)
	}
	best := slices.Concat(first, later)
	reads := []reason.Read{}
	for _, h := range best[:min(n, len(best))] {
		reads = append(reads, reason.Read{Locator: h.Locator, Reason: "among the best hits of this step's searches"})
	}
	return reads
}

// fused are the hits that can still be read, by one over their rank, added up over this iteration's searches.
func (r *Reasoner) fused(s *reason.State, hits []search.Hit) []search.Hit {
	score := fusedRanks(slices.DeleteFunc(slices.Clone(s.Searches), func(sd reason.Searched) bool { return sd.Iteration != s.Iteration }))
	done := readAlready(s)
	var list []search.Hit
	seen := map[string]bool{}
	for _, h := range hits {
		if !seen[h.Locator] && !done[h.Locator] {
			list = append(list, h)
		}
		seen[h.Locator] = true
	}
	slices.SortStableFunc(list, func(a, b search.Hit) int { return cmp.Compare(score[b.Locator], score[a.Locator]) })
	return list
}

// fusedRanks is by locator one over the rank, added up over searches.
func fusedRanks(searches []reason.Searched) map[string]float64 {
	score := map[string]float64{}
	for _, sd := range searches {
		for rank, h := range sd.Hits {
			score[h.Locator] += 1 / float64(fusionK+rank+1)
		}
	}
	return score
}

// readAlready are the locators that were read or could not be.
func readAlready(s *reason.State) map[string]bool {
	done := map[string]bool{}
	maps.Copy(done, s.Asked)
	for locator := range s.Failed {
		done[locator] = true
	}
	for _, src := range s.Evidence.Sources() {
		done[src.Page.Locator] = true
	}
	return done
}

// hostOf is the host of an address as people say it, or "".
func hostOf(loc string) string { return strings.TrimPrefix(locator.Host(loc), "www.") }
