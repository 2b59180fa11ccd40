package marchwarden_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// wireFiles are the golden requests or results, by name.
func wireFiles(t *testing.T, kind string) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/wire/*." + kind + ".json")
	if err != nil || len(names) < 3 {
		t.Fatalf("%d golden %ss, %v, want at least the three example exchanges", len(names), kind, err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		data, err := os.ReadFile(n)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(n)] = data
	}
	return files
}

// encodeRequest is a request in the form that EncodeResult gives a result.
func encodeRequest(t *testing.T, r marchwarden.Request) []byte {
	t.Helper()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func encodeResult(t *testing.T, r *marchwarden.Result) []byte {
	t.Helper()
	data, err := marchwarden.EncodeResult(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The wire form of version 1 is frozen: a byte that changes here is a break of
// the contract, unless it is a new optional field.
func TestWireRequestsComeBackByteForByte(t *testing.T) {
	for name, data := range wireFiles(t, "request") {
		r, err := marchwarden.DecodeRequest(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(string(data), string(encodeRequest(t, r))); diff != "" {
			t.Errorf("%s (-file +encoded):\n%s", name, diff)
		}
	}
}

func TestWireResultsComeBackByteForByte(t *testing.T) {
	for name, data := range wireFiles(t, "result") {
		r, err := marchwarden.DecodeResult(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(string(data), string(encodeResult(t, r))); diff != "" {
			t.Errorf("%s (-file +encoded):\n%s", name, diff)
		}
	}
}

func TestWireExamplesSayWhatTheContractSays(t *testing.T) {
	results := wireFiles(t, "result")
	load := func(name string) *marchwarden.Result {
		r, err := marchwarden.DecodeResult(results[name])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	france := load("capital-of-france.result.json")
	if len(france.Citations) != 1 || len(france.Gaps) != 0 || france.Confidence < 0.98 || france.CostMetadata.IterationsRun != 1 {
		t.Errorf("the capital of France: %d citations, %d gaps, confidence %v, %d iterations", len(france.Citations), len(france.Gaps), france.Confidence, france.CostMetadata.IterationsRun)
	}
	history := load("history-of-ai.result.json")
	if history.Gaps[0].Category != marchwarden.BudgetExhausted || history.DiscoveryEvents[0].SuggestedResearcher != "arxiv" ||
		math.Abs(float64(history.Confidence)-0.55) > 0.05 || history.CostMetadata.TokensUsed > 5000 || !history.CostMetadata.BudgetExhausted {
		t.Errorf("the history of AI: %+v", history)
	}
	utah := load("utah-crops.result.json")
	if len(utah.Contradictions) == 0 || len(utah.Gaps) == 0 || len(utah.DiscoveryEvents) == 0 || len(utah.OpenQuestions) == 0 {
		t.Errorf("crops in Utah lacks a contradiction, a gap, a discovery or an open question: %+v", utah)
	}
}

// Every field of every type of the contract is in at least one golden file, so
// that none can change unseen.
func TestWireFilesShowEveryField(t *testing.T) {
	for kind, typ := range map[string]reflect.Type{
		"request": reflect.TypeFor[marchwarden.Request](),
		"result":  reflect.TypeFor[marchwarden.Result](),
	} {
		shown := map[string]bool{}
		for name, data := range wireFiles(t, kind) {
			var v any
			if err := json.Unmarshal(data, &v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			jsonPaths(v, "", shown)
		}
		declared := map[string]bool{}
		typePaths(t, typ, "", declared)
		for path := range declared {
			if !shown[path] {
				t.Errorf("no golden %s has the field %s: add it to a file in testdata/wire", kind, path)
			}
		}
		for path := range shown {
			if !declared[path] {
				t.Errorf("a golden %s has the field %s, which no type declares", kind, path)
			}
		}
	}
}

// The enums of the golden results cover every declared value.
func TestWireFilesShowEveryEnumValue(t *testing.T) {
	all := ""
	for _, kind := range []string{"request", "result"} {
		for _, data := range wireFiles(t, kind) {
			all += string(data)
		}
	}
	for _, v := range []string{"shallow", "deep", "source_not_found", "access_denied", "budget_exhausted", "contradictory_sources", "scope_exceeded",
		"related_research", "new_source", "contradiction", "high", "medium", "low", "current", "dated", "supported", "partial", "unsupported", "unchecked",
		"quoted", "span", "unknown"} {
		if !strings.Contains(all, `:"`+v+`"`) {
			t.Errorf("no golden file has the value %q", v)
		}
	}
}

func jsonPaths(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, sub := range v {
			p := strings.TrimPrefix(path+"."+k, ".")
			into[p] = true
			jsonPaths(sub, p, into)
		}
	case []any:
		for _, sub := range v {
			jsonPaths(sub, path+"[]", into)
		}
	}
}

func typePaths(t *testing.T, typ reflect.Type, path string, into map[string]bool) {
	t.Helper()
	switch {
	case typ.Kind() == reflect.Pointer:
		typePaths(t, typ.Elem(), path, into)
	case typ.Kind() == reflect.Slice:
		typePaths(t, typ.Elem(), path+"[]", into)
	case typ == reflect.TypeFor[time.Time]() || typ == reflect.TypeFor[marchwarden.TraceID]() || typ.Kind() != reflect.Struct:
	default:
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name == "" || name != strings.ToLower(name) {
				t.Errorf("%s.%s has the JSON name %q, want snake case", typ, typ.Field(i).Name, name)
			}
			p := strings.TrimPrefix(path+"."+name, ".")
			into[p] = true
			typePaths(t, typ.Field(i).Type, p, into)
		}
	}
}

func TestDecodingToleratesUnknownFieldsAndNulls(t *testing.T) {
	got, err := marchwarden.DecodeRequest([]byte(`{"question":"Why?","context":null,"depth":null,"resume":null,"version":9,
		"constraints":{"max_iterations":null,"token_budget":null,"max_sources":null,"source_filter":null,"mood":{"a":[1]}}}`))
	want := marchwarden.Request{Question: "Why?", Constraints: &marchwarden.Constraints{}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("request: error %v, difference (-want +got):\n%s", err, diff)
	}
	if got, err := marchwarden.DecodeRequest([]byte(`{"question":"Why?","constraints":null}`)); err != nil || got.Constraints != nil {
		t.Errorf("null constraints give %+v, %v", got, err)
	}
	res, err := marchwarden.DecodeResult([]byte(`{"answer":"a","citations":[{"source":"web","locator":"l","raw_excerpt":"e","confidence":1,"title":null,
		"snippet":null,"content_hash":null,"span":null,"fetched_at":null,"novel":1}],"gaps":null,"discovery_events":null,"open_questions":null,"claims":null,
		"rihlas":null,"contradictions":null,"confidence_factors":{"recency":null},"novel":{"deep":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c := res.Citations[0]; c.Span != nil || c.FetchedAt != nil || c.Title != "" {
		t.Errorf("citation with nulls: %+v", c)
	}
	if res.Gaps == nil || res.DiscoveryEvents == nil || res.OpenQuestions == nil || res.ConfidenceFactors.Recency != "" {
		t.Errorf("result with nulls: %+v", res)
	}
}

func TestEncodingWritesNilListsAsEmptyOnes(t *testing.T) {
	r := &marchwarden.Result{Claims: []marchwarden.Claim{{Text: "t", Support: marchwarden.Unchecked}}}
	got := string(encodeResult(t, r))
	for _, want := range []string{`"citations":[],`, `"gaps":[]`, `"discovery_events":[]`, `"open_questions":[]`, `{"text":"t","citations":[],`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
	if strings.Contains(got, "null") {
		t.Errorf("there is a null in %s", got)
	}
	if r.Citations != nil || r.Claims[0].Citations != nil {
		t.Error("encoding changed the result it was given")
	}
}

func TestEncodingKeepsTextAsItIs(t *testing.T) {
	r := &marchwarden.Result{Answer: `a < b && c > "d" – é 😀`}
	if got := string(encodeResult(t, r)); !strings.Contains(got, `"answer":"a < b && c > \"d\" – é 😀"`) || !strings.HasSuffix(got, "}\n") || strings.Count(got, "\n") != 1 {
		t.Errorf("encoded as %q", got)
	}
}

func TestEncodingRefusesWhatJSONCannotSay(t *testing.T) {
	for name, r := range map[string]*marchwarden.Result{"nil": nil, "NaN": {Confidence: marchwarden.Unit(math.NaN())}} {
		if data, err := marchwarden.EncodeResult(r); err == nil {
			t.Errorf("%s: encoded as %s, want an error", name, data)
		}
	}
}

func TestDecodeResultRefuses(t *testing.T) {
	for _, data := range []string{"", "null", "[]", `"x"`, "{", `{"answer":1}`, `{"trace_id":"../x"}`, `{} {}`, `{"confidence":"high"}`} {
		if r, err := marchwarden.DecodeResult([]byte(data)); r != nil || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("DecodeResult(%q) = %v, %v, want nothing and CodeInvalid", data, r, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for _, c := range []struct {
		span marchwarden.Span
		n    int
		in   bool
	}{
		{marchwarden.Span{Start: 0, End: 1}, 1, true}, {marchwarden.Span{Start: 2, End: 5}, 5, true},
		{marchwarden.Span{Start: 0, End: 0}, 1, false}, {marchwarden.Span{Start: 3, End: 2}, 5, false},
		{marchwarden.Span{Start: -1, End: 2}, 5, false}, {marchwarden.Span{Start: 2, End: 6}, 5, false},
	} {
		if got := c.span.In(c.n); got != c.in {
			t.Errorf("%v.In(%d) = %v", c.span, c.n, got)
		}
	}
	if n := (marchwarden.Span{Start: 2, End: 5}).Len(); n != 3 {
		t.Errorf("Len = %d, want 3", n)
	}
}
