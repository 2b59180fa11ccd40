package model

// This part reads along while a reply is written. A sentence that stands in it whole is judged at once, without a model,
// so that the judging ends soon after the draft, and is shown to those who wait. It decides nothing: what counts is the
// whole reply, and a rerun, which has no stream, comes to the same.

import (
	"context"
	"slices"
	"strings"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/panics"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// opinions are what the judge without a model says of sentences on their passages, each found once. They are safe for
// concurrent use.
type opinions struct {
	mu    sync.Mutex // guards found
	found map[string]*opinion
	work  sync.WaitGroup
	turns chan struct{} // as many are found at once as it has places: the program has other work meanwhile
}

type opinion struct {
	done chan struct{} // closed when the rest is set
	verify.Opinion
	err error
}

func newOpinions() *opinions {
	return &opinions{found: map[string]*opinion{}, turns: make(chan struct{}, 2)}
}

// of begins to judge a claim, if that has not begun. It takes milliseconds, and a rerun must come to the same: it is not
// broken off.
func (v *opinions) of(s *reason.State, c reason.Claim) *opinion {
	key := c.Text
	for _, id := range c.Passages {
		key += "\x00" + string(id)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if o := v.found[key]; o != nil {
		return o
	}
	o := &opinion{done: make(chan struct{})}
	v.found[key] = o
	v.work.Go(func() {
		v.turns <- struct{}{}
		defer func() { <-v.turns; close(o.done) }()
		defer panics.Caught(&o.err, "the judge")
		o.Opinion, o.err = verify.NewJudge(s.Reader).Judge(context.Background(), c.Text, cited(s.Evidence, c.Passages))
	})
	return o
}

// judgeLocally is what the judge without a model says of a claim.
func (r *Reasoner) judgeLocally(s *reason.State, c reason.Claim) (verify.Opinion, error) {
	o := r.opinions.of(s, c)
	<-o.done
	return o.Opinion, o.err
}

// readAlong has the sentences of replies, which may be written side by side, judged and shown while they are written;
// read is how they are read.
func (r *Reasoner) readAlong(s *reason.State, calls []llm.Call, read func(s *reason.State, text string) reason.Draft) {
	var mu sync.Mutex // guards said
	said := make([][]reason.Claim, len(calls))
	for i := range calls {
		calls[i].Heard = func(text string) {
			var err error // what goes wrong here is seen again when the reply is whole
			defer panics.Caught(&err, "reading along")
			claims := read(s, text).Claims
			for _, c := range claims {
				if len(cited(s.Evidence, c.Passages)) > 0 { // or the gate will drop it
					r.opinions.of(s, c)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			same := slices.EqualFunc(said[i], claims, func(x, y reason.Claim) bool { return x.Text == y.Text })
			if said[i] = claims; !same && s.Drafted != nil {
				s.Drafted(slices.Concat(said...))
			}
		}
	}
}

// answerBegun is an answer as far as it is written.
func answerBegun(s *reason.State, text string) reason.Draft {
	fields, _ := answerOf(text)
	d, _ := draftOf(s, fields)
	return d
}

// sectionBegun is a section as far as it is written, of whose last block claims may be missing.
func sectionBegun(s *reason.State, text string) reason.Draft {
	raw, _ := llm.Begun(text, 1)
	return sectionOf(s, raw)
}

// cited are the passages that exist, each under its title and headings.
func cited(set *evidence.Set, ids []evidence.ID) []verify.Excerpt {
	var out []verify.Excerpt
	for _, id := range ids {
		if src, ps, ok := set.Passage(id); ok {
			out = append(out, verify.Excerpt{Heading: strings.Trim(src.Page.Title+" › "+ps.Path, " ›"), Text: ps.Text})
		}
	}
	return out
}
