package conform

import (
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// inputs are the fields of a request, by path, each with a value that it takes.
var inputs = []struct {
	path     string
	value    any
	optional bool // of the contract, so that leaving it out is not worth a word
}{
	{"question", "What is it?", false},
	{"context", "known already", false},
	{"depth", "shallow", false},
	{"constraints", map[string]any{}, false},
	{"constraints.max_iterations", 2.0, false},
	{"constraints.token_budget", 5000.0, false},
	{"constraints.max_sources", 5.0, false},
	{"constraints.source_filter", ".gov", true},
	{"resume", "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10", true},
}

// surface looks at what the server says of itself.
func (b *bench) surface() {
	offer := b.session.Surface()
	n := len(offer.Tools)
	b.verdict("one-tool", n == 1, "research is its one tool", Fail, fmt.Sprintf("it has %d tools; a researcher has one, research", n))
	b.verdict("contract-version", offer.Contract != "", "keeps contract "+offer.Contract,
		Warn, fmt.Sprintf("the tool names no version of the contract; set _meta %q to %q", "marchwarden/contract", marchwarden.ContractVersion))
	b.input(offer)
	b.verdict("output-schema", offer.Output != nil, "the tool has an output schema", Warn, "the tool has no output schema")
}

// input holds the input schema to the fields of a request: it must take what a field may hold, and
// names a field if it refuses what the field may not.
func (b *bench) input(offer client.Surface) {
	var wrong, missing []string
	for _, in := range inputs {
		if err := offer.Accepts(asking(in.path, in.value)); err != nil {
			wrong = append(wrong, fmt.Sprintf("%s must take %v: %s", in.path, in.value, plaintext.Line(err.Error(), maxShown)))
		} else if !in.optional && offer.Accepts(asking(in.path, []any{})) == nil {
			missing = append(missing, in.path)
		}
	}
	for _, path := range []string{"field_of_tomorrow", "constraints.field_of_tomorrow"} {
		if err := offer.Accepts(asking(path, true)); err != nil {
			wrong = append(wrong, "further fields must be allowed: "+plaintext.Line(err.Error(), maxShown))
		}
	}
	b.judge("input-schema", wrong, "the fields of a request have the right types, and others are allowed")
	if offer.Accepts(asking("question", "What is it?")) != nil {
		b.note("input-optional", Skipped, "a question alone is refused, so it cannot be told which fields there are")
		return
	}
	b.verdict("input-optional", len(missing) == 0, "the input schema names every field of a request", Warn, "the input schema does not name "+strings.Join(missing, ", "))
}

// asking is a request with one field, by its path, beside the question.
func asking(path string, value any) map[string]any {
	args := map[string]any{"question": "What is it?"}
	if outer, inner, nested := strings.Cut(path, "."); nested {
		args[outer] = map[string]any{inner: value}
	} else {
		args[path] = value
	}
	return args
}
