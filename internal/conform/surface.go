package conform

import (
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
	switch n := len(offer.Tools); {
	case n == 1:
		b.note("one-tool", Must, Pass, "research is its one tool")
	default:
		b.note("one-tool", Must, Fail, "it has %d tools; a researcher has one, research", n)
	}
	if offer.Contract == "" {
		b.note("contract-version", Should, Warn, "the tool names no version of the contract; set _meta %q to %q", "marchwarden/contract", marchwarden.ContractVersion)
	} else {
		b.note("contract-version", Should, Pass, "keeps contract %s", offer.Contract)
	}
	b.input(offer.Input)
	if offer.Output == nil {
		b.note("output-schema", Should, Warn, "the tool has no output schema")
	} else {
		b.note("output-schema", Should, Pass, "the tool has an output schema")
	}
}

// input holds the input schema to the fields of a request.
func (b *bench) input(schema json.RawMessage) {
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		b.note("input-schema", Must, Fail, "the input schema is no JSON object")
		return
	}
	s := shape{root}
	var wrong, missing []string
	for _, in := range inputs {
		field, ok := s.field(root, in.path)
		switch {
		case !ok && !in.optional:
			missing = append(missing, in.path)
		case ok && !s.accepts(field, in.kind, 0):
			wrong = append(wrong, fmt.Sprintf("%s must be of type %s", in.path, in.kind))
		}
	}
	wrong = append(wrong, s.demands(root, "", "question")...)
	if constraints, ok := s.field(root, "constraints"); ok {
		wrong = append(wrong, s.demands(constraints, "constraints.")...)
	}
	if len(wrong) > 0 {
		b.note("input-schema", Must, Fail, "%s", strings.Join(wrong, "; "))
	} else {
		b.note("input-schema", Must, Pass, "the fields of a request have the right types, and others are allowed")
	}
	if len(missing) > 0 {
		b.note("input-optional", Should, Warn, "the input schema does not name %s", strings.Join(missing, ", "))
	} else {
		b.note("input-optional", Should, Pass, "the input schema names every field of a request")
	}
}

// shape reads a JSON schema as far as servers of all kinds write it: types, unions
// of them, and references within the schema.
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
func (s shape) accepts(schema any, kind string, depth int) bool {
	if allowed, ok := schema.(bool); ok {
		return allowed
	}
	for _, v := range s.variants(schema, depth) {
		switch t := v["type"].(type) {
		case nil:
			return true
		case string:
			if t == kind || (kind == "integer" && t == "number") {
				return true
			}
		case []any:
			if slices.Contains(t, any(kind)) || (kind == "integer" && slices.Contains(t, any("number"))) {
				return true
			}
		}
	}
	return false
}

// demands are what an object asks for beyond the contract: fields that a caller
// does not know, or that there be none it does not know itself.
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
			where := strings.TrimSuffix(prefix, ".")
			if where == "" {
				where = "the request"
			}
			wrong = append(wrong, fmt.Sprintf("%s must allow fields that are not known (additionalProperties)", where))
		}
	}
	return wrong
}
