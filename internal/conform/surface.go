package conform

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// inputs are the fields of a request and their types, by path.
var inputs = []struct {
	path, kind string
	optional   bool // of the contract, so that leaving it out is not worth a word
}{
	{"question", "string", false},
	{"context", "string", false},
	{"depth", "string", false},
	{"constraints", "object", false},
	{"constraints.max_iterations", "integer", false},
	{"constraints.token_budget", "integer", false},
	{"constraints.max_sources", "integer", false},
	{"constraints.source_filter", "string", true},
	{"resume", "string", true},
}

// surface looks at what the server says of itself.
func (b *bench) surface() {
	offer := b.session.Surface()
	n := len(offer.Tools)
	b.verdict("one-tool", n == 1, "research is its one tool", Fail, fmt.Sprintf("it has %d tools; a researcher has one, research", n))
	b.verdict("contract-version", offer.Contract != "", "keeps contract "+offer.Contract,
		Warn, fmt.Sprintf("the tool names no version of the contract; set _meta %q to %q", "marchwarden/contract", marchwarden.ContractVersion))
	b.input(offer.Input)
	b.verdict("output-schema", offer.Output != nil, "the tool has an output schema", Warn, "the tool has no output schema")
}

// input holds the input schema to the fields of a request.
func (b *bench) input(schema json.RawMessage) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		b.note("input-schema", Fail, "the input schema is no JSON object")
		return
	}
	s := shape{root}
	var wrong, missing []string
	for _, in := range inputs {
		field, ok := s.field(root, in.path)
		switch {
		case !ok && !in.optional:
			missing = append(missing, in.path)
		case ok && !s.accepts(field, in.kind):
			wrong = append(wrong, fmt.Sprintf("%s must be of type %s", in.path, in.kind))
		}
	}
	wrong = append(wrong, s.demands(root, "", "question")...)
	if constraints, ok := s.field(root, "constraints"); ok {
		wrong = append(wrong, s.demands(constraints, "constraints.")...)
	}
	b.verdict("input-schema", len(wrong) == 0, "the fields of a request have the right types, and others are allowed", Fail, strings.Join(wrong, "; "))
	b.verdict("input-optional", len(missing) == 0, "the input schema names every field of a request", Warn, "the input schema does not name "+strings.Join(missing, ", "))
}

// shape reads a JSON schema: types, unions of them, and references within the schema.
type shape struct{ root map[string]any }

// maxNesting ends references that lead in a circle.
const maxNesting = 16

// variants are the schemas that a value may satisfy.
func (s shape) variants(v any, depth int) []map[string]any {
	m, ok := v.(map[string]any)
	if !ok || depth > maxNesting {
		return nil
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.variants(s.resolve(ref), depth+1)
	}
	var all []map[string]any
	for _, union := range []string{"anyOf", "oneOf", "allOf"} {
		members, _ := m[union].([]any)
		for _, member := range members {
			all = append(all, s.variants(member, depth+1)...)
		}
	}
	if len(all) > 0 {
		return all
	}
	return []map[string]any{m}
}

func (s shape) resolve(ref string) any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	var at any = s.root
	for step := range strings.SplitSeq(path, "/") {
		m, _ := at.(map[string]any)
		at = m[step]
	}
	return at
}

// field finds a property by its path.
func (s shape) field(schema any, path string) (any, bool) {
	name, rest, nested := strings.Cut(path, ".")
	for _, v := range s.variants(schema, 0) {
		properties, _ := v["properties"].(map[string]any)
		if found, ok := properties[name]; ok {
			if !nested {
				return found, true
			}
			return s.field(found, rest)
		}
	}
	return nil, false
}

// accepts tells whether a value of the kind can satisfy the schema.
func (s shape) accepts(schema any, kind string) bool {
	if allowed, ok := schema.(bool); ok {
		return allowed
	}
	return slices.ContainsFunc(s.variants(schema, 0), func(v map[string]any) bool {
		types, several := v["type"].([]any)
		if !several {
			types = []any{v["type"]}
		}
		return slices.ContainsFunc(types, func(t any) bool { return t == kind || t == nil || kind == "integer" && t == "number" })
	})
}

// demands are what an object asks for beyond the contract: other fields, or that there be none.
func (s shape) demands(schema any, prefix string, known ...string) []string {
	var wrong []string
	for _, v := range s.variants(schema, 0) {
		required, _ := v["required"].([]any)
		for _, name := range required[:min(len(required), 20)] {
			if field, _ := name.(string); !slices.Contains(known, field) {
				wrong = append(wrong, fmt.Sprintf("%s%s must not be required", prefix, plaintext.Line(field, maxShown)))
			}
		}
		if v["additionalProperties"] == false {
			where := cmp.Or(strings.TrimSuffix(prefix, "."), "the request")
			wrong = append(wrong, where+" must allow fields that are not known (additionalProperties)")
		}
	}
	return wrong
}
