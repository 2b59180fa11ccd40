package verify

import (
	"context"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/conflict"
)

// Contradictions are the pairs of sentences among some passages that cannot both
// hold: see conflict.Find. The reader may be nil. A rerun must come to the same: the end
// of ctx does not break it off.
func Contradictions(ctx context.Context, r reader.Reader, question string, set *evidence.Set, among []evidence.ID) []marchwarden.Contradiction {
	return conflict.Find(context.WithoutCancel(ctx), r, question, set, among)
}
