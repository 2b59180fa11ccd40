package marchwarden_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

var update = flag.Bool("update", false, "rewrite the golden schemas")

func TestSchemasAreGolden(t *testing.T) {
	for name, got := range map[string][]byte{"request": marchwarden.RequestSchema(), "result": marchwarden.ResultSchema()} {
		path := filepath.Join("testdata", "schema", name+".json")
		got = append(bytes.Clone(got), '\n')
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s schema; if the change keeps version 1, run go test . -update (-golden +generated):\n%s", name, diff)
		}
	}
}

// Tool callers of several kinds read the schemas; these keywords some refuse.
func TestSchemasStayPortable(t *testing.T) {
	for name, s := range map[string]json.RawMessage{"request": marchwarden.RequestSchema(), "result": marchwarden.ResultSchema()} {
		for _, word := range []string{`"anyOf"`, `"oneOf"`, `"allOf"`, `"$ref"`, `"$defs"`, `"null"`, `"type": [`, `"additionalProperties"`} {
			if bytes.Contains(s, []byte(word)) {
				t.Errorf("the %s schema has %s", name, word)
			}
		}
	}
	if strings.Count(string(marchwarden.RequestSchema()), `"default"`) != 1 {
		t.Error("only depth has a default: an unset constraint means the depth's preset")
	}
}

type validator struct {
	t *testing.T
	s *jsonschema.Resolved
}

func compile(t *testing.T, raw json.RawMessage) validator {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return validator{t, resolved}
}

func (v validator) check(data []byte) error {
	v.t.Helper()
	var instance any
	if err := json.Unmarshal(data, &instance); err != nil {
		v.t.Fatalf("%s: %v", data, err)
	}
	return v.s.Validate(instance)
}

func TestGoldenExchangesSatisfyTheSchemas(t *testing.T) {
	for kind, schema := range map[string]json.RawMessage{"request": marchwarden.RequestSchema(), "result": marchwarden.ResultSchema()} {
		v := compile(t, schema)
		for name, data := range wireFiles(t, kind) {
			if err := v.check(data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The decoder and the schema give one verdict on every request, but for the
// differences named here, each with its reason.
func TestSchemaAndDecoderAgreeOnRequests(t *testing.T) {
	const (
		blank  = "JSON Schema has no portable word for blank, or for one of two fields"
		syntax = "the syntax of a filter is beyond a portable pattern"
		unset  = "the decoder reads null and an empty string as unset"
		number = "JSON Schema takes 3.0 and any size for an integer; Go does not"
	)
	q := func(rest string) string { return `{"question":"Why?"` + rest + `}` }
	con := func(c string) string { return q(`,"constraints":{` + c + `}`) }
	v := compile(t, marchwarden.RequestSchema())
	for _, c := range []struct {
		data       string
		valid      bool
		difference string // why the schema says the opposite; "" when it does not
	}{
		{q(``), true, ""},
		{`{"question":"` + strings.Repeat("😀", 500) + `"}`, true, ""},
		{`{"question":"` + strings.Repeat("😀", 501) + `"}`, false, ""},
		{`{"question":""}`, false, ""},
		{`{"question":7}`, false, ""},
		{`{"question":["Why?"]}`, false, ""},
		{q(`,"context":"` + strings.Repeat("é", 2000) + `"`), true, ""},
		{q(`,"context":"` + strings.Repeat("é", 2001) + `"`), false, ""},
		{q(`,"context":1`), false, ""},
		{q(`,"depth":"shallow"`), true, ""}, {q(`,"depth":"balanced"`), true, ""}, {q(`,"depth":"deep"`), true, ""},
		{q(`,"depth":"Deep"`), false, ""}, {q(`,"depth":"medium"`), false, ""}, {q(`,"depth":3`), false, ""},
		{q(`,"constraints":{}`), true, ""}, {q(`,"constraints":[]`), false, ""}, {q(`,"constraints":"none"`), false, ""},
		{con(`"max_iterations":0`), false, ""}, {con(`"max_iterations":1`), true, ""}, {con(`"max_iterations":20`), true, ""}, {con(`"max_iterations":21`), false, ""},
		{con(`"max_iterations":-3`), false, ""}, {con(`"max_iterations":2.5`), false, ""}, {con(`"max_iterations":"2"`), false, ""},
		{con(`"token_budget":999`), false, ""}, {con(`"token_budget":1000`), true, ""}, {con(`"token_budget":true`), false, ""},
		{con(`"max_sources":0`), false, ""}, {con(`"max_sources":1`), true, ""}, {con(`"max_sources":{}`), false, ""},
		{con(`"source_filter":".gov,.edu"`), true, ""}, {con(`"source_filter":""`), true, ""}, {con(`"source_filter":[".gov"]`), false, ""},
		{`{"resume":"` + someID + `"}`, true, ""}, {`{"resume":"` + strings.ToUpper(someID) + `"}`, true, ""},
		{`{"resume":"latest"}`, false, ""}, {`{"resume":"../` + someID[3:] + `"}`, false, ""}, {q(`,"resume":"` + someID + `0"`), false, ""}, {q(`,"resume":1`), false, ""},
		{q(`,"unknown":{"a":1}`), true, ""}, {con(`"unknown":null`), true, ""},

		{`{}`, false, blank}, {`{"question":" \n"}`, false, blank}, {`{"resume":"` + someID + `","question":" "}`, false, blank},
		{con(`"source_filter":"https://nasa.gov"`), false, syntax}, {con(`"source_filter":".gov;.edu"`), false, syntax},
		{q(`,"depth":""`), true, unset}, {q(`,"resume":""`), true, unset}, {`{"question":"","resume":"` + someID + `"}`, true, unset},
		{q(`,"context":null`), true, unset}, {q(`,"depth":null`), true, unset}, {q(`,"constraints":null`), true, unset}, {con(`"max_sources":null`), true, unset},
		{con(`"max_iterations":3.0`), false, number}, {con(`"token_budget":1e30`), false, number},
	} {
		_, err := marchwarden.DecodeRequest([]byte(c.data))
		if (err == nil) != c.valid {
			t.Errorf("DecodeRequest(%.80s): %v, want valid %v", c.data, err, c.valid)
		}
		schemaErr := v.check([]byte(c.data))
		if (schemaErr == nil) != (c.valid == (c.difference == "")) {
			t.Errorf("schema on %.80s: %v; decoder valid %v, known difference %q", c.data, schemaErr, c.valid, c.difference)
		}
	}
	// Text that is not UTF-8 is refused by the decoder and is no JSON to a schema.
	if _, err := marchwarden.DecodeRequest([]byte("{\"question\":\"\xff\"}")); err == nil {
		t.Error("DecodeRequest accepts text that is not UTF-8")
	}
}

// Every bound, enum and required field of a result is in its schema: breaking
// one of a valid result makes it invalid.
func TestResultSchemaRefuses(t *testing.T) {
	v := compile(t, marchwarden.ResultSchema())
	golden := wireFiles(t, "result")
	load := func(name string) map[string]any {
		var m map[string]any
		if err := json.Unmarshal(golden[name+".result.json"], &m); err != nil {
			t.Fatal(err)
		}
		return m
	}
	long := strings.Repeat("x", 501)
	for _, c := range []struct {
		path  string // of the value to replace
		value any
	}{
		{"answer", 1}, {"answer", nil}, {"citations", nil}, {"gaps", nil}, {"discovery_events", nil}, {"open_questions", nil},
		{"confidence", 1.01}, {"confidence", -0.01}, {"confidence", "high"},
		{"citations.0.source", 1}, {"citations.0.locator", 1}, {"citations.0.title", 1}, {"citations.0.raw_excerpt", long}, {"citations.0.confidence", 2}, {"citations.0.confidence", -1},
		{"citations.0.snippet", strings.Repeat("x", 49)}, {"citations.0.snippet", strings.Repeat("x", 201)},
		{"citations.0.content_hash", "sha256:abc"}, {"citations.0.content_hash", "md5:" + strings.Repeat("a", 64)}, {"citations.0.content_hash", "sha256:" + strings.Repeat("A", 64)},
		{"citations.0.span.start", -1}, {"citations.0.span.end", 0}, {"citations.0.span.start", 0.5}, {"citations.0.fetched_at", 3},
		{"gaps.0.category", "not_found"}, {"gaps.0.category", ""}, {"gaps.0.topic", 1}, {"gaps.0.detail", 1},
		{"discovery_events.0.type", "rumour"}, {"discovery_events.0.query", 1}, {"discovery_events.0.reason", 1},
		{"open_questions.0.priority", "urgent"}, {"open_questions.0.question", 1}, {"open_questions.0.context", 1},
		{"confidence_factors.num_corroborating_sources", -1}, {"confidence_factors.source_authority", "supreme"}, {"confidence_factors.contradiction_detected", "no"},
		{"confidence_factors.query_specificity_match", 1.5}, {"confidence_factors.query_specificity_match", -0.5}, {"confidence_factors.budget_exhausted", 0}, {"confidence_factors.recency", "old"},
		{"cost_metadata.tokens_used", -1}, {"cost_metadata.tokens_used", 1.5}, {"cost_metadata.iterations_run", -1}, {"cost_metadata.wall_time_sec", -0.1}, {"cost_metadata.budget_exhausted", "no"}, {"cost_metadata.model_id", 4},
		{"trace_id", "latest"}, {"trace_id", ""}, {"trace_id", 4},
		{"claims.0.support", "maybe"}, {"claims.0.citations.0", 0}, {"claims.0.citations", nil}, {"claims.0.text", 1},
		{"contradictions.0.a", nil}, {"contradictions.0.b.raw_excerpt", 1}, {"contradictions.0.subject", 1},
	} {
		m := load("utah-crops")
		replace(t, m, c.path, c.value)
		if data, err := json.Marshal(m); err != nil || v.check(data) == nil {
			t.Errorf("%s = %v passes the schema (%v)", c.path, c.value, err)
		}
	}
	m := load("history-of-ai")
	replace(t, m, "rihlas.0.trace_id", "x")
	if data, err := json.Marshal(m); err != nil || v.check(data) == nil {
		t.Errorf("a rihla with a bad trace id passes the schema (%v)", err)
	}
	for _, required := range []string{"answer", "citations", "gaps", "discovery_events", "open_questions", "confidence", "confidence_factors", "cost_metadata", "trace_id"} {
		m := load("utah-crops")
		delete(m, required)
		if data, err := json.Marshal(m); err != nil || v.check(data) == nil {
			t.Errorf("a result without %s passes the schema (%v)", required, err)
		}
	}
	for _, optional := range []string{"claims", "rihlas", "contradictions"} {
		m := load("utah-crops")
		delete(m, optional)
		if data, err := json.Marshal(m); err != nil || v.check(data) != nil {
			t.Errorf("a result without %s fails the schema (%v)", optional, err)
		}
	}
}

// replace sets the value at a dotted path; the path must exist, but for its last
// name.
func replace(t *testing.T, v any, path string, value any) {
	t.Helper()
	name, rest, more := strings.Cut(path, ".")
	switch v := v.(type) {
	case map[string]any:
		if !more {
			v[name] = value
			return
		}
		replace(t, v[name], rest, value)
	case []any:
		if len(v) == 0 || name != "0" {
			t.Fatalf("no element %s", path)
		}
		if !more {
			v[0] = value
			return
		}
		replace(t, v[0], rest, value)
	default:
		t.Fatalf("nothing at %s", path)
	}
}
