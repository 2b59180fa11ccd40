package marchwarden_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const someID = "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"

func constrained(c marchwarden.Constraints) marchwarden.Request {
	return marchwarden.Request{Question: "Why?", Constraints: &c}
}

func TestValidate(t *testing.T) {
	type req = marchwarden.Request
	type con = marchwarden.Constraints
	for _, c := range []struct {
		name string
		req  req
		want string // the error's text, "" for none
	}{
		{"one character", req{Question: "?"}, ""},
		{"question at the limit", req{Question: strings.Repeat("q", 500)}, ""},
		{"question over the limit", req{Question: strings.Repeat("q", 501)}, "question: must be at most 500 characters, has 501"},
		{"500 emoji are 500 characters", req{Question: strings.Repeat("😀", 500)}, ""},
		{"501 emoji", req{Question: strings.Repeat("😀", 501)}, "question: must be at most 500 characters, has 501"},
		{"combining marks count", req{Question: strings.Repeat("e\u0301", 251)}, "question: must be at most 500 characters, has 502"},
		{"no question", req{}, "question: must not be blank"},
		{"blank question", req{Question: " \t\n\u00a0\u2003"}, "question: must not be blank"},
		{"question not UTF-8", req{Question: "a\xff"}, "question: must be valid UTF-8"},
		{"context empty", req{Question: "?", Context: ""}, ""},
		{"context at the limit", req{Question: "?", Context: strings.Repeat("é", 2000)}, ""},
		{"context over the limit", req{Question: "?", Context: strings.Repeat("é", 2001)}, "context: must be at most 2000 characters, has 2001"},
		{"context not UTF-8", req{Question: "?", Context: "\xc3("}, "context: must be valid UTF-8"},
		{"shallow", req{Question: "?", Depth: "shallow"}, ""},
		{"balanced", req{Question: "?", Depth: "balanced"}, ""},
		{"deep", req{Question: "?", Depth: "deep"}, ""},
		{"another depth", req{Question: "?", Depth: "Deep"}, `depth: must be shallow, balanced or deep, not "Deep"`},
		{"a long depth is clipped", req{Question: "?", Depth: marchwarden.Depth(strings.Repeat("x", 50))}, `depth: must be shallow, balanced or deep, not "` + strings.Repeat("x", 40) + `…"`},
		{"no constraint", constrained(con{}), ""},
		{"iterations 0", constrained(con{MaxIterations: new(0)}), "constraints.max_iterations: must be from 1 to 20, not 0"},
		{"iterations -1", constrained(con{MaxIterations: new(-1)}), "constraints.max_iterations: must be from 1 to 20, not -1"},
		{"iterations 1", constrained(con{MaxIterations: new(1)}), ""},
		{"iterations 20", constrained(con{MaxIterations: new(20)}), ""},
		{"iterations 21", constrained(con{MaxIterations: new(21)}), "constraints.max_iterations: must be from 1 to 20, not 21"},
		{"tokens 999", constrained(con{TokenBudget: new(999)}), "constraints.token_budget: must be at least 1000, not 999"},
		{"tokens 1000", constrained(con{TokenBudget: new(1000)}), ""},
		{"tokens without end", constrained(con{TokenBudget: new(1 << 40)}), ""},
		{"sources 0", constrained(con{MaxSources: new(0)}), "constraints.max_sources: must be at least 1, not 0"},
		{"sources 1", constrained(con{MaxSources: new(1)}), ""},
		{"filter", constrained(con{SourceFilter: ".gov,.edu"}), ""},
		{"bad filter", constrained(con{SourceFilter: ".gov;.edu"}), `constraints.source_filter: must be comma-separated domains or suffixes, not ".gov;.edu"`},
		{"every form", req{Question: "?", Format: "table", Length: 20, Audience: strings.Repeat("é", 500), Instructions: "Metric units.", Follow: someID}, ""},
		{"another form", req{Question: "?", Format: "essay"}, `format: must be brief, answer, report or table, not "essay"`},
		{"length 19", req{Question: "?", Length: 19}, "length: must be from 20 to 5000 words, not 19"},
		{"length 5001", req{Question: "?", Length: 5001}, "length: must be from 20 to 5000 words, not 5001"},
		{"audience over the limit", req{Question: "?", Audience: strings.Repeat("é", 501)}, "audience: must be at most 500 characters, has 501"},
		{"instructions not UTF-8", req{Question: "?", Instructions: "\xff"}, "instructions: must be valid UTF-8"},
		{"follow no id", req{Question: "?", Follow: "last"}, `follow: "last" is not a trace id`},
		{"follow without a question", req{Follow: someID}, "question: must not be blank"},
		{"follow and resume", req{Question: "?", Follow: someID, Resume: someID}, "follow: cannot be given together with resume"},
		{"no money", constrained(con{MaxCostUSD: new(0.0)}), "constraints.max_cost_usd: must be more than 0 and at most 10000, not 0"},
		{"money", constrained(con{MaxCostUSD: new(0.5)}), ""},
		{"output 199", constrained(con{MaxOutputTokens: new(199)}), "constraints.max_output_tokens: must be at least 200, not 199"},
		{"dates", constrained(con{Since: "2024-01-01", Until: "2024-01-01"}), ""},
		{"no such day", constrained(con{Since: "2024-02-30"}), `constraints.since: must be a date such as 2024-05-31, not "2024-02-30"`},
		{"until before since", constrained(con{Since: "2024-01-02", Until: "2024-01-01"}), "constraints.until: must not be before since, 2024-01-02"},
		{"resume alone", req{Resume: someID}, ""},
		{"resume and a question", req{Resume: someID, Question: "?"}, ""},
		{"resume and a blank question", req{Resume: someID, Question: " "}, "question: must not be blank"},
		{"resume that is no id", req{Resume: "../../etc/passwd"}, `resume: "../../etc/passwd" is not a trace id`},
		{"resume does not excuse the rest", req{Resume: someID, Depth: "x"}, `depth: must be shallow, balanced or deep, not "x"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.req.Validate()
			if c.want == "" {
				if err != nil {
					t.Errorf("Validate() = %v, want nil", err)
				}
				return
			}
			if err == nil || err.Error() != c.want {
				t.Fatalf("Validate() = %v, want %q", err, c.want)
			}
			var e *marchwarden.Error
			if !errors.Is(err, marchwarden.CodeInvalid) || !errors.As(err, &e) || !strings.HasPrefix(c.want, e.Field+": ") {
				t.Errorf("code %q, field %q, want invalid and the field in front of the text", marchwarden.CodeOf(err), e.Field)
			}
		})
	}
}

func TestPresetsAndOverrides(t *testing.T) {
	type lim = marchwarden.Limits
	type con = marchwarden.Constraints
	for _, c := range []struct {
		depth marchwarden.Depth
		con   *con
		want  lim
	}{
		{"shallow", nil, lim{2, 5000, 5, 0}},
		{"balanced", nil, lim{5, 20000, 10, 0}},
		{"", nil, lim{5, 20000, 10, 0}},
		{"deep", nil, lim{8, 60000, 20, 0}},
		{"deep", &con{}, lim{8, 60000, 20, 0}},
		{"deep", &con{MaxCostUSD: new(0.5)}, lim{8, 60000, 20, 0.5}},
		{"deep", &con{SourceFilter: ".gov"}, lim{8, 60000, 20, 0}},
		{"shallow", &con{MaxIterations: new(20)}, lim{20, 5000, 5, 0}},
		{"shallow", &con{TokenBudget: new(1000)}, lim{2, 1000, 5, 0}},
		{"", &con{MaxSources: new(1)}, lim{5, 20000, 1, 0}},
		{"deep", &con{MaxIterations: new(1), TokenBudget: new(90000), MaxSources: new(99)}, lim{1, 90000, 99, 0}},
		{"mystical", nil, lim{}},
	} {
		got := marchwarden.Request{Question: "?", Depth: c.depth, Constraints: c.con}.Limits()
		if got != c.want {
			t.Errorf("depth %q with %+v: %+v, want %+v", c.depth, c.con, got, c.want)
		}
		if c.con == nil && marchwarden.Preset(c.depth) != c.want {
			t.Errorf("Preset(%q) = %+v, want %+v", c.depth, marchwarden.Preset(c.depth), c.want)
		}
	}
}

func TestRequestFilter(t *testing.T) {
	if f := (marchwarden.Request{}).Filter(); !f.Empty() {
		t.Errorf("a request without constraints has the filter %q", f)
	}
	if f := constrained(marchwarden.Constraints{SourceFilter: " .GOV, nasa.gov."}).Filter(); f.String() != ".gov,nasa.gov" {
		t.Errorf("the filter is %q", f)
	}
	// A request that was never validated must not turn its filter into no filter.
	if f := constrained(marchwarden.Constraints{SourceFilter: "a b"}).Filter(); f.Allows("example.com") {
		t.Error("a filter that cannot be read allows everything")
	}
}

func TestDecodeRequestNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{``, "request: is not a JSON object"},
		{`{`, "request: is not a JSON object"},
		{`[]`, "request: must be an object, not array"},
		{`"why?"`, "request: must be an object, not string"},
		{`null`, "question: must not be blank"},
		{`{"question":"a"} x`, "request: has text after the JSON object"},
		{`{"question":"a"}{"question":"b"}`, "request: has text after the JSON object"},
		{`{"question":["a"]}`, "question: must be a string, not array"},
		{`{"question":"a","depth":2}`, "depth: must be a string, not number"},
		{`{"question":"a","constraints":[]}`, "constraints: must be an object, not array"},
		{`{"question":"a","constraints":{"max_iterations":"3"}}`, "constraints.max_iterations: must be an integer, not string"},
		{`{"question":"a","constraints":{"max_iterations":1.5}}`, "constraints.max_iterations: must be an integer, not number 1.5"},
		{`{"question":"a","constraints":{"token_budget":1e30}}`, "constraints.token_budget: must be an integer, not number 1e30"},
		{`{"question":"a","constraints":{"max_sources":true}}`, "constraints.max_sources: must be an integer, not bool"},
		{`{"question":"a","constraints":{"source_filter":[".gov"]}}`, "constraints.source_filter: must be a string, not array"},
		{`{"question":"a","resume":7}`, "resume: must be a string, not number"},
		{"{\"question\":\"a\xff\"}", "request: must be valid UTF-8"},
		{`{"question":"` + strings.Repeat("a", marchwarden.MaxRequestBytes) + `"}`, "request: must be at most 65536 bytes, has 65551"},
	} {
		r, err := marchwarden.DecodeRequest([]byte(c.data))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || !errors.Is(err, marchwarden.CodeInvalid) {
			t.Errorf("DecodeRequest(%.60q) = %+v, %v, want %q", c.data, r, err, c.want)
		}
	}
}

// The largest texts fit into the byte limit even when every character is escaped.
func TestLongestTextsFitTheWire(t *testing.T) {
	data := `{"question":"` + strings.Repeat(`\ud83d\ude00`, 500) + `","context":"` + strings.Repeat(`\ud83d\ude00`, 2000) + `"}`
	if len(data) > marchwarden.MaxRequestBytes/2 {
		t.Errorf("%d bytes, want at most half of %d", len(data), marchwarden.MaxRequestBytes)
	}
	if _, err := marchwarden.DecodeRequest([]byte(data)); err != nil {
		t.Error(err)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	for _, seed := range []string{
		`{"question":"What is the capital of France?","depth":"shallow"}`,
		`{"question":"q","context":"c","depth":"deep","constraints":{"max_iterations":3,"token_budget":5000,"max_sources":2,"source_filter":".gov, NASA.gov."}}`,
		`{"resume":"` + someID + `"}`, `{"question":"\ud800\u0000","constraints":{}}`, `{"question":null}`, `[`, "\xff", `{"question":"q","constraints":{"source_filter":"bücher.example"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := marchwarden.DecodeRequest(data)
		if err != nil {
			if !errors.Is(err, marchwarden.CodeInvalid) {
				t.Fatalf("refused with code %q: %v", marchwarden.CodeOf(err), err)
			}
			return
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("accepted, but Validate says %v", err)
		}
		_, _ = r.Limits(), r.Filter()
		again := encodeRequest(t, r)
		if len(again) > marchwarden.MaxRequestBytes {
			return // a filter near the limit can grow by its escapes
		}
		back, err := marchwarden.DecodeRequest(again)
		if err != nil {
			t.Fatalf("re-encoded as %s and refused: %v", again, err)
		}
		if diff := cmp.Diff(r, back); diff != "" {
			t.Fatalf("changed on the way (-first +second):\n%s", diff)
		}
	})
}

func TestErrorsAreNotEncodedByAccident(t *testing.T) {
	// Codes cross the wire as their text.
	if b, err := json.Marshal(marchwarden.CodeDenied); err != nil || string(b) != `"denied"` {
		t.Errorf("a code is encoded as %s, %v", b, err)
	}
}
