package anthropic

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

func TestFit(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"object","properties":{"b":{"type":"string","minLength":1,"maxLength":9},"a":{"type":"integer","minimum":0}},"required":["b"]}`: `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"integer"}},"required":["b"],"additionalProperties":false}`,
		`{"type":"array","items":{"oneOf":[{"const":1},{"type":"string","format":"uri"}]},"minItems":1,"maxItems":5,"uniqueItems":true}`:         `{"type":"array","items":{"anyOf":[{"const":1},{"type":"string","format":"uri"}]},"minItems":1}`,
		`{"type":["object","null"],"additionalProperties":{"type":"string"}}`:                                                                    `{"type":["object","null"],"additionalProperties":false}`,
		`{"$schema":"x","$defs":{"p":{"type":"object","title":"t"}},"allOf":[{"$ref":"#/$defs/p"}],"minItems":4}`:                                `{"$defs":{"p":{"type":"object","title":"t","additionalProperties":false}},"allOf":[{"$ref":"#/$defs/p"}]}`,
		`{"type":"string","format":"phone","pattern":"^a"}`:                                                                                      `{"type":"string","pattern":"^a"}`,
		`{"items":true}`: `{"items":true}`,
		// A property may have the name of a keyword.
		`{"type":"object","properties":{"maxLength":{"type":"integer"},"format":{"enum":["a"]}}}`: `{"type":"object","properties":{"maxLength":{"type":"integer"},"format":{"enum":["a"]}},"additionalProperties":false}`,
	} {
		got, err := fit(json.RawMessage(in))
		if err != nil || string(got) != want {
			t.Errorf("%s\nbecame %s, %v\nnot    %s", in, got, err, want)
		}
	}
	for _, in := range []string{``, `[]`, `"x"`, `{"properties":[]}`, `{"anyOf":{}}`, `{"items":3}`} {
		if got, err := fit(json.RawMessage(in)); err == nil {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// TestNoProxy looks at the transport, since no proxy of the environment is ever used for the loopback.
func TestNoProxy(t *testing.T) {
	if tr, ok := newClient(nil).Transport.(*http.Transport); !ok || tr.Proxy != nil {
		t.Errorf("the transport of its own is %+v", tr)
	}
}

// TestUsageStaysInBounds feeds any numbers in any order.
func TestUsageStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := llm.Call{Input: strings.Repeat("word ", rapid.IntRange(1, 500).Draw(t, "words")), MaxTokens: rapid.IntRange(1, 10_000).Draw(t, "max")}
		var r reading
		for range rapid.IntRange(0, 3).Draw(t, "reports") {
			n := rapid.SliceOfN(rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, 1000)), 4, 4).Draw(t, "counts")
			r.tally.see(counts{n[0], n[1], n[2], n[3]})
		}
		b := &block{kind: "text"}
		b.body.WriteString(rapid.StringN(0, 50, -1).Draw(t, "said"))
		r.blocks = append(r.blocks, b)
		u := r.usage(c)
		if u.In < 1 || u.In > llm.Estimate(c)*4+100_000 || u.Out < 0 || u.Out > c.MaxTokens*2+1_000 || u.CacheRead < 0 || u.CacheWrite < 0 || u.CacheRead+u.CacheWrite > u.In {
			t.Fatalf("%+v", u)
		}
	})
}
