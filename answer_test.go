package marchwarden_test

import (
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func TestShortAnswerForm(t *testing.T) {
	at := &marchwarden.Span{Start: 3, End: 8}
	for name, c := range map[string]struct {
		short marchwarden.ShortAnswer
		says  string // "" for one that is well formed
	}{
		"span":             {marchwarden.ShortAnswer{Text: "Paris", Citation: 2, Span: at, Kind: "span"}, ""},
		"yes":              {marchwarden.ShortAnswer{Text: "yes", Citation: 1, Span: at, Kind: "yes"}, ""},
		"unknown":          {marchwarden.ShortAnswer{Kind: "unknown"}, ""},
		"no kind":          {marchwarden.ShortAnswer{Text: "Paris", Citation: 1, Span: at}, "kind"},
		"unknown, said":    {marchwarden.ShortAnswer{Text: "Paris", Kind: "unknown"}, "no words"},
		"unknown, cited":   {marchwarden.ShortAnswer{Citation: 1, Kind: "unknown"}, "no words"},
		"no citation":      {marchwarden.ShortAnswer{Text: "Paris", Span: at, Kind: "span"}, "citation 0"},
		"no such citation": {marchwarden.ShortAnswer{Text: "Paris", Citation: 3, Span: at, Kind: "span"}, "citation 3"},
		"no span":          {marchwarden.ShortAnswer{Text: "Paris", Citation: 1, Kind: "value"}, "no span"},
		"endless":          {marchwarden.ShortAnswer{Text: strings.Repeat("é", 501), Citation: 1, Span: at, Kind: "span"}, "500"},
	} {
		err := c.short.Validate(2)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestLead(t *testing.T) {
	for _, c := range []struct {
		answer, text string
		kind         marchwarden.ShortKind
		read         int
		want         string
	}{
		{"It is Paris. [1]", "Paris", "span", 0, "Paris"},
		{"It is Paris. [1]", " Paris\n France ", "span", 0, "Paris France"},
		{"Paris is the capital. [1]", "Paris", "span", 0, ""},
		{"Paris", "Paris", "value", 0, ""},
		{"Parisians say so. [1]", "Paris", "span", 0, "Paris"},
		{`1986\. That was it. [1]`, "1986.", "span", 0, ""},
		{"Dogs may come in. [1]", "yes", "yes", 0, "Yes"},
		{"Yes, dogs may come in. [1]", "yes", "yes", 0, ""},
		{"No dogs are allowed. [1]", "no", "no", 0, "No"},
		{"Nothing says so.", "", "unknown", 0, "I don't know."},
		{"Nothing says so.", "", "unknown", 1, "I don't know. One document was looked through."},
		{"Nothing says so.", "", "unknown", 7, "I don't know. 7 documents were looked through."},
		{"Nothing says so.", "Paris", "certain", 0, ""},
		{"", "", "span", 0, ""},
	} {
		r := marchwarden.Result{Answer: c.answer, ShortAnswer: &marchwarden.ShortAnswer{Text: c.text, Kind: c.kind}}
		r.CostMetadata.SourcesRead = c.read
		if got := r.Lead(); got != c.want {
			t.Errorf("%q, %s %q: %q, want %q", c.answer, c.kind, c.text, got, c.want)
		}
	}
	if got := (&marchwarden.Result{Answer: "It is Paris."}).Lead(); got != "" {
		t.Errorf("a result without a short answer leads with %q", got)
	}
}
