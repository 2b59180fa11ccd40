package verify

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/conflict"
)

// Contradictions are the pairs of sentences among some passages that cannot both
// hold: see conflict.Find.
func Contradictions(question string, set *evidence.Set, among []evidence.ID) []marchwarden.Contradiction {
	return conflict.Find(question, set, among)
}
