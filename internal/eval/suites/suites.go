// Package suites lists the evaluation suites and the trainers that there are. It owns
// the list and the golden test over all of it, and nothing of what they measure.
package suites

import (
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/answers"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/conflict"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/folders"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/multihop"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/retrieval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/support"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/texts"
)

// All are the suites, by name.
func All() []eval.Suite {
	return byName(slices.Concat(
		answers.Suites(),
		conflict.Suites(),
		folders.Suites(),
		multihop.Suites(),
		retrieval.Suites(),
		support.Suites(),
		texts.Suites(),
	), func(s eval.Suite) string { return s.Name })
}

// Trainers are what can be trained, by name.
func Trainers() []eval.Trainer {
	return byName(support.Trainers(), func(t eval.Trainer) string { return t.Name })
}

func byName[T any](list []T, name func(T) string) []T {
	slices.SortFunc(list, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return list
}
