package loop

import (
	"context"
	"fmt"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// synthesize releases the held tokens and asks the reasoner for its draft. A failure is a gap, never missing sources.
func (r *run) synthesize(ctx context.Context) (reason.Draft, error) {
	r.meter.Hold(0)
	sources, passages := len(r.state.Evidence.Sources()), r.state.Evidence.Len()
	r.live(marchwarden.StageSynthesize, 0, 0, fmt.Sprintf("writing from %d sources", sources))
	if err := r.j.Note(&trace.SynthesisStart{Head: head("write from %d passages of %d sources", passages, sources), Sources: sources, Passages: passages}); err != nil {
		return reason.Draft{}, err
	}
	draft, err := r.cfg.Reasoner.Write(ctx, r.state)
	if replay.Fatal(err) {
		return reason.Draft{}, err
	}
	if err != nil { // a draft may be there all the same
		if marchwarden.CodeOf(err) == marchwarden.CodeCanceled {
			if err := r.cut("writing cut", "writing"); err != nil {
				return reason.Draft{}, err
			}
		}
		r.failed("writing the answer", err)
		if len(draft.Claims) == 0 && draft.Refusal == "" {
			draft.Refusal = "The answer could not be written; see the gaps for what failed."
		}
		if err := r.j.Note(&trace.SynthesisError{Head: head("writing failed: %v", err), Error: marchwarden.CodeOf(err)}); err != nil || len(draft.Claims) == 0 {
			return draft, err
		}
	}
	decision := fmt.Sprintf("%d claims drafted", len(draft.Claims))
	if len(draft.Claims) == 0 {
		decision = "no answer: " + draft.Refusal
	}
	return draft, r.j.Note(&trace.SynthesisComplete{Head: head("%s", decision), Claims: len(draft.Claims)})
}
