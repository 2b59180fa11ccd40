package limit

import (
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"50/s":      {N: 50, Per: time.Second},
		"0.5/s":     {N: 0.5, Per: time.Second},
		"400_000/m": {N: 400000, Per: time.Minute},
		"1000/hour": {N: 1000, Per: time.Hour},
		"20/day":    {N: 20, Per: Day},
		" 3 / MIN ": {N: 3, Per: time.Minute},
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"":        "does not say in how long",
		"50":      "does not say in how long",
		"x/s":     "does not begin with a number",
		"/s":      "does not begin with a number",
		"-1/s":    "must be above 0",
		"0/s":     "must be above 0",
		"NaN/s":   "must be above 0",
		"Inf/day": "at most",
		"5/week":  "must be per s, m, h or day",
		"5/":      "must be per s, m, h or day",
	} {
		_, err := ParseRate(text)
		if err == nil || !strings.Contains(err.Error(), want) || marchwarden.CodeOf(err) != marchwarden.CodeInvalid || marchwarden.HintOf(err) == "" {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestParseRules(t *testing.T) {
	texts := []string{"anthropic requests 50/s", "Anthropic tokens 400000/m", "anthropic money 20/day", "host:* requests 2/s", "host:example.org requests 0.5/s", "host:www.* requests 3/s"}
	rules, err := ParseRules(texts)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"anthropic/requests":              "50/s",
		"anthropic/tokens":                "400000/m",
		"anthropic/money":                 "$20/day",
		"host:example.org/requests":       "0.5/s",
		"host:other.org/requests":         "2/s",
		"host:www.example.org/requests":   "3/s",
		"host:www.example.org/a/requests": "3/s",
		"host:other.org/tokens":           "",
		"openai/requests":                 "",
		"anthropic":                       "",
		"":                                "",
	} {
		rate, ok := rules.For(key)
		got := ""
		if ok {
			got = rate.String()
		}
		if got != want {
			t.Errorf("%q is limited to %q, want %q", key, got, want)
		}
	}
	if rate, _ := rules.For("anthropic/money"); rate.N != 20*Millionths {
		t.Errorf("$20 are %v", rate.N)
	}
	for text, want := range map[string]string{
		"anthropic 50/s":              "must be a subject, a measure and a rate",
		"anthropic bytes 50/s":        "the measure must be",
		"anthropic money 20/h":        "money is limited by the day",
		"anthropic tokens 100/s":      "tokens are limited by the minute",
		"h*st requests 1/s":           "a star at its end",
		"a/b requests 1/s":            "no slash",
		"anthropic requests 0.5/m":    "less than one",
		"anthropic money 0.0000001/d": "less than one",
		"anthropic requests many/s":   "does not begin with a number",
	} {
		if _, err := ParseRules([]string{text}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) || marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := ParseRules([]string{"a\x1b[1m requests 1/s"}); marchwarden.CodeOf(err) != marchwarden.CodeInvalid || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("a control sequence: %v", err)
	}
	if _, err := ParseRules([]string{"a requests 1/s", "A requests 2/s"}); err == nil || !strings.Contains(err.Error(), "another") {
		t.Errorf("two rules of one kind: %v", err)
	}
}
