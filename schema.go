package marchwarden

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// RequestSchema is the JSON Schema (draft 2020-12) of a request, generated from
// Request. It names every enum and bound that Validate enforces, carries no
// defaults for constraints (unset means the depth's preset), allows unknown
// fields, and leaves question out of the required ones because a request that
// resumes may omit it. Tool callers do not take every keyword: the schema has no
// union of types and no anyOf, so DecodeRequest is looser about null and an empty
// string, which it reads as unset, and stricter about a blank or missing question
// and the syntax of a source filter.
func RequestSchema() json.RawMessage {
	return finish(schemaOf(reflect.TypeFor[Request](), ""), "Marchwarden research request, contract "+ContractVersion)
}

// ResultSchema is the JSON Schema (draft 2020-12) of a result, generated from
// Result.
func ResultSchema() json.RawMessage {
	return finish(schemaOf(reflect.TypeFor[Result](), ""), "Marchwarden research result, contract "+ContractVersion)
}

// enums are the closed sets of values.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[Depth]():         {string(Shallow), string(Balanced), string(Deep)},
	reflect.TypeFor[Format]():        {string(Brief), string(Plain), string(Report), string(Table)},
	reflect.TypeFor[BlockType]():     {string(Heading), string(Paragraph), string(List), string(TableBlock), string(Quote), string(Chart)},
	reflect.TypeFor[GapCategory]():   {string(SourceNotFound), string(AccessDenied), string(BudgetExhausted), string(ContradictorySources), string(ScopeExceeded)},
	reflect.TypeFor[DiscoveryType](): {string(RelatedResearch), string(NewSource), string(ContradictionDetected)},
	reflect.TypeFor[Priority]():      {string(High), string(Medium), string(Low)},
	reflect.TypeFor[Authority]():     {string(HighAuthority), string(MediumAuthority), string(LowAuthority)},
	reflect.TypeFor[Recency]():       {string(Current), string(Recent), string(Dated)},
	reflect.TypeFor[Action]():        {string(Dispatched), string(Accepted), string(Flagged), string(Withheld), string(Capped)},
	reflect.TypeFor[Support]():       {string(Supported), string(Partial), string(Unsupported), string(Unchecked), string(Quoted)},
	reflect.TypeFor[ShortKind]():     {string(ShortSpan), string(ShortYes), string(ShortNo), string(ShortValue), string(ShortUnknown)},
}

// known reports whether a value is one of its closed set.
func known[T ~string](value T) bool {
	return slices.Contains(enums[reflect.TypeFor[T]()], string(value))
}

// schemaNotes are the bounds and descriptions that Go types cannot say, by the
// path of the property. The bounds are the constants that Validate uses.
var schemaNotes = map[string]map[string]any{
	"question":                      {"minLength": 1, "maxLength": MaxQuestionChars, "description": "what to find out, 1 to 500 characters; required unless resume is given"},
	"context":                       {"maxLength": MaxContextChars, "description": "what you already know; the researcher avoids repeating it"},
	"depth":                         {"default": string(Balanced), "description": "how thoroughly to research; picks the constraint preset"},
	"resume":                        {"format": "uuid", "pattern": traceIDPattern, "description": "trace id of an earlier run to go on with, with constraints added to what it had; one with nothing left to do is returned"},
	"constraints":                   {"description": "each value given here overrides the depth's preset"},
	"constraints.max_iterations":    {"minimum": MinIterations, "maximum": MaxIterations, "description": "stop after this many iterations"},
	"constraints.token_budget":      {"minimum": MinTokenBudget, "description": "tokens for the whole research, synthesis included; never exceeded"},
	"constraints.max_sources":       {"minimum": MinSources, "description": "documents fetched and read"},
	"constraints.source_filter":     {"description": "comma-separated domains or suffixes, such as .gov,.edu; nothing else is searched, fetched or cited; !example.com excludes"},
	"constraints.max_cost_usd":      {"exclusiveMinimum": 0, "maximum": MaxCostUSD, "description": "what the models may cost, in US dollars; never exceeded"},
	"constraints.since":             {"format": "date", "description": "use nothing that was published before this day, YYYY-MM-DD"},
	"constraints.until":             {"format": "date", "description": "use nothing that was published after this day, YYYY-MM-DD"},
	"constraints.max_output_tokens": {"minimum": MinOutputTokens, "description": "about how many tokens of text to return; the rest can be read as resources"},
	"format":                        {"description": "form of the answer; by default brief for shallow, answer for balanced, report for deep"},
	"length":                        {"minimum": MinLength, "maximum": MaxLength, "description": "about how many words the answer has"},
	"audience":                      {"maxLength": MaxWritingChars, "description": "for whom to write"},
	"instructions":                  {"maxLength": MaxWritingChars, "description": "how to write, never what is true"},
	"follow":                        {"format": "uuid", "pattern": traceIDPattern, "description": "trace id of an earlier result: the question continues that conversation"},

	"answer":                                       {"description": "Markdown; markers [1], [2]… index citations from one"},
	"citations[].raw_excerpt":                      {"maxLength": MaxExcerptChars, "description": "verbatim from the stored source"},
	"citations[].snippet":                          {"minLength": MinSnippetChars, "maxLength": MaxSnippetChars, "description": "the researcher's own summary"},
	"citations[].content_hash":                     {"pattern": "^sha256:[0-9a-f]{64}$"},
	"citations[].span.start":                       {"minimum": 0},
	"citations[].span.end":                         {"minimum": 1},
	"short_answer":                                 {"description": "the words of the source that answer, or kind unknown when the question is refused"},
	"short_answer.text":                            {"maxLength": MaxExcerptChars},
	"short_answer.citation":                        {"minimum": 1, "description": "indexes citations from one"},
	"short_answer.span":                            {"description": "in that citation's stored text"},
	"short_answer.span.start":                      {"minimum": 0},
	"short_answer.span.end":                        {"minimum": 1},
	"closest":                                      {"description": "with a refusal, the passages nearest to the question; they are no claims"},
	"closest[].raw_excerpt":                        {"maxLength": MaxExcerptChars, "description": "verbatim from the stored source"},
	"closest[].content_hash":                       {"pattern": "^sha256:[0-9a-f]{64}$"},
	"closest[].span.start":                         {"minimum": 0},
	"closest[].span.end":                           {"minimum": 1},
	"blocks":                                       {"description": "the answer as typed parts; answer is their Markdown"},
	"blocks[].citation":                            {"minimum": 1},
	"blocks[].level":                               {"minimum": 1, "maximum": 3},
	"blocks[].claims[].citations[]":                {"minimum": 1},
	"blocks[].items[].citations[]":                 {"minimum": 1},
	"blocks[].rows[][].citations[]":                {"minimum": 1},
	"follows":                                      {"format": "uuid", "pattern": traceIDPattern, "description": "the run whose conversation this one continues"},
	"completed_question":                           {"description": "the question as it was understood"},
	"cost_metadata.cost_usd":                       {"minimum": 0, "description": "what the models cost, in US dollars; absent where a price is unknown"},
	"claims[].judge":                               {"description": "who gave the verdict: local, model+local"},
	"claims[].citations[]":                         {"minimum": 1},
	"trace_id":                                     {"format": "uuid", "pattern": traceIDPattern},
	"rihlas[].trace_id":                            {"format": "uuid", "pattern": traceIDPattern},
	"cost_metadata.tokens_used":                    {"minimum": 0},
	"cost_metadata.iterations_run":                 {"minimum": 0},
	"cost_metadata.wall_time_sec":                  {"minimum": 0},
	"cost_metadata.reasoner_id":                    {"description": "who wrote the answer, where that was not the model asked for"},
	"confidence_factors.num_corroborating_sources": {"minimum": 0},
}

func finish(s map[string]any, title string) json.RawMessage {
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = title
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("marchwarden: schema of our own types: %v", err)) // unreachable: maps of plain values
	}
	return b
}

func schemaOf(t reflect.Type, path string) map[string]any {
	s := shapeOf(t, path)
	if values, ok := enums[t]; ok {
		s["enum"] = values
	}
	for k, v := range schemaNotes[path] {
		s[k] = v
	}
	return s
}

func shapeOf(t reflect.Type, path string) map[string]any {
	switch t {
	case reflect.TypeFor[TraceID]():
		return map[string]any{"type": "string"}
	case reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case reflect.TypeFor[Unit]():
		return map[string]any{"type": "number", "minimum": 0, "maximum": 1}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return shapeOf(t.Elem(), path)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), path+"[]")}
	case reflect.Struct:
		return objectSchema(t, path)
	}
	return map[string]any{"type": jsonType(t.Kind())}
}

func objectSchema(t reflect.Type, path string) map[string]any {
	props := map[string]any{}
	required := []string{}
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		sub := name
		if path != "" {
			sub = path + "." + name
		}
		props[name] = schemaOf(t.Field(i).Type, sub)
		if !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": props}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// jsonType is the JSON Schema type of a Go kind.
func jsonType(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Float64:
		return "number"
	case reflect.Int:
		return "integer"
	case reflect.Slice:
		return "array"
	}
	return "object"
}

// jsonKind is the same word with its article, for error messages.
func jsonKind(k reflect.Kind) string {
	switch w := jsonType(k); w {
	case "integer", "object", "array":
		return "an " + w
	default:
		return "a " + w
	}
}
