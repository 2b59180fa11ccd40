package researcher

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

func TestCustoms(t *testing.T) {
	c := newCustoms([]string{"sk-Ünï.key+1", "short", "sk-Ünï.key+1-and-more", ""})
	for text, held := range map[string]bool{
		"the key sk-Ünï.key+1 is here":         true,
		"SK-ÜNÏ.KEY+1":                         true,
		"s k - Ü n ï . k e y + 1":              true,
		"sk\u200b-Ünï\u00ad.key+1":             true,
		"q=%73k%2dÜnï%2Ekey%2b1&x":             true,
		`"\u0073k-Ünï.key+1"`:                  true,
		"736b2dc39c6ec3af2e6b65792b31":         true,
		"c2stw5xuw68ua2V5KzE=":                 true,
		"sk-%C3%9Cn%c3%afx.key+1":              false,
		"q=sk-%C3%9Cn%C3%AF.key%2B1":           true,
		"%":                                    false,
		"%zz \\u00 \\u00z":                     false,
		"sk-Ünïxkey+1":                         false, // a dot is a dot
		"short":                                false,
		"sk-Ünï.key":                           false,
		strings.Repeat("CRISPR therapy ", 999): false,
	} {
		if err := c.check(text); (err != nil) != held || err != nil && !errors.Is(err, marchwarden.CodeDenied) {
			t.Errorf("%q: %v", text, err)
		}
		if got := c.without(text); c.check(got) != nil || !held && got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := c.without("a sk-Ünï.key+1-and-more b"); got != "a REDACTED b" {
		t.Errorf("%q", got)
	}
	if none := newCustoms([]string{"short"}); len(none.forms) > 0 || none.check("short") != nil {
		t.Errorf("%v", none)
	}
}

// A long reply is looked through in a moment.
func TestCustomsAreQuick(t *testing.T) {
	c := newCustoms([]string{"sk-" + strings.Repeat("ab", 50), "tvly-" + strings.Repeat("xy", 20), "sssssssssssssssssssssssz"})
	for _, unit := range []string{"s", "sk-ab ", "%73", "\u200b", "CRISPR ", "sk-Ünï"} {
		began := time.Now()
		_ = c.without(strings.Repeat(unit, 1<<18/len(unit)))
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("%q: %v", unit, took)
		} else {
			t.Logf("%q: %v", unit, took)
		}
	}
}

type loose struct{ llm.Model }

func (loose) Generate(context.Context, llm.Call) (llm.Reply, error) {
	return llm.Reply{Text: "it is secret-key-1", Usage: llm.Usage{In: 7}, Calls: []llm.ToolCall{
		{Name: "secret-key-1", Input: json.RawMessage(`{"query":"secret-key-1"}`)}, {Name: "web_search", Input: json.RawMessage(`{}`)},
	}}, marchwarden.Errorf(marchwarden.CodeTruncated, "cut")
}

// A discreet model says all but secrets, and passes on everything else.
func TestDiscreet(t *testing.T) {
	d := &discreet{loose{}, newCustoms([]string{"secret-key-1"})}
	reply, err := d.Generate(t.Context(), llm.Call{})
	raw, _ := json.Marshal(reply) // plain values
	if !errors.Is(err, marchwarden.CodeTruncated) || reply.Usage.In != 7 || strings.Contains(string(raw), "secret") || !json.Valid(reply.Calls[0].Input) {
		t.Errorf("%s, %v", raw, err)
	}
}
