package confidence_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/confidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

var now = time.Date(2026, 11, 15, 0, 0, 0, 0, time.UTC)

type doc struct{ origin, text, published string }

// cited makes an input in which every document is cited once.
func cited(docs ...doc) confidence.Input {
	in := confidence.Input{Match: 1, Now: now}
	for i, d := range docs {
		in.Sources = append(in.Sources, &evidence.Source{N: i + 1, Text: d.text,
			Page: fetch.Page{Source: "web", Origin: d.origin, Published: d.published, Text: blob.Of([]byte(d.text))}})
		in.Grounded.Sources = append(in.Grounded.Sources, i+1)
		in.Grounded.Claims = append(in.Grounded.Claims, marchwarden.Claim{Support: marchwarden.Supported})
		in.Grounded.Claims[0].Citations = append(in.Grounded.Claims[0].Citations, i+1)
	}
	return in
}

// long makes a text of n words that do not repeat each other.
func long(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		for d := i; d > 0 || b.Len() == 0; d /= 26 {
			b.WriteByte(byte('a' + d%26))
		}
		b.WriteString(prefix + " ")
	}
	return b.String()
}

// words makes a text of n distinct words.
func words(prefix string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%c%c ", prefix, 'a'+i/26, 'a'+i%26)
	}
	return b.String()
}

func TestOriginsAreIndependent(t *testing.T) {
	same := words("w", 200)
	almost := same + "and a footer of this mirror"
	dated := "On 3 March 2026, copy 17. " + words("y", 20)
	tests := []struct {
		name string
		docs []doc
		want int
	}{
		{"one", []doc{{"a.org", same, ""}}, 1},
		{"two pages of one site", []doc{{"a.org", same, ""}, {"a.org", words("x", 200), ""}}, 1},
		{"two sites", []doc{{"a.org", same, ""}, {"b.org", words("x", 200), ""}}, 2},
		{"mirrors of a long text", []doc{{"a.org", long("x", 300_000), ""}, {"b.org", long("x", 290_000), ""}, {"c.org", "A footer. " + long("x", 300_000), ""}}, 1},
		{"long texts", []doc{{"a.org", long("x", 300_000), ""}, {"b.org", long("y", 300_000), ""}, {"c.org", same, ""}}, 3},
		{"a long text and a part of it", []doc{{"a.org", long("x", 300_000), ""}, {"b.org", long("x", 150_000), ""}}, 2},
		{"six mirrors of one text", []doc{{"a.org", same, ""}, {"b.org", same, ""}, {"c.org", almost, ""}, {"d.org", same, ""}, {"e.org", almost, ""}, {"f.org", same, ""}}, 1},
		{"short copies with other dates", []doc{{"a.org", dated, ""}, {"b.org", strings.NewReplacer("3", "14", "17", "4").Replace(dated), ""}}, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, _ := confidence.Assess(cited(tt.docs...))
			if f.NumCorroboratingSources != tt.want {
				t.Errorf("%d origins, want %d", f.NumCorroboratingSources, tt.want)
			}
		})
	}
}

// A text that is compared with no other is not read.
func TestALoneTextIsNotRead(t *testing.T) {
	in := cited(doc{"a.org", strings.Repeat("word after word ", 1<<20), ""}, doc{"a.org", strings.Repeat("on and on ", 1<<20), ""})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	confidence.Assess(in)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated", n)
	}
}

func TestRecency(t *testing.T) {
	for published, want := range map[string]marchwarden.Recency{
		"": "", "soon": "", "2026-01-01": marchwarden.Current, "2025-11-15": marchwarden.Recent, "2024-06-01": marchwarden.Recent, "2020-01-01": marchwarden.Dated, "2031-01-01": "",
	} {
		f, _ := confidence.Assess(cited(doc{"a.org", "text", published}))
		if f.Recency != want {
			t.Errorf("published %q: recency %q, want %q", published, f.Recency, want)
		}
	}
}

func TestAuthority(t *testing.T) {
	for _, tt := range []struct {
		source, origin string
		want           marchwarden.Authority
	}{
		{"web", "extension.usu.edu", marchwarden.HighAuthority},
		{"web", "www.nasa.gov", marchwarden.HighAuthority},
		{"file", "usda.gov", marchwarden.MediumAuthority}, // it only says so
		{"web", "notgov", marchwarden.LowAuthority},
		{"web", "edu.example.com", marchwarden.LowAuthority},
		{"file", "embedded library", marchwarden.MediumAuthority},
		{"web", "blog.example.com", marchwarden.LowAuthority},
	} {
		if got := confidence.Authority(fetch.Page{Source: tt.source, Origin: tt.origin}); got != tt.want {
			t.Errorf("%s %s: %s, want %s", tt.source, tt.origin, got, tt.want)
		}
	}
}

// TestRubric holds the score to what the contract says of its ranges.
func TestRubric(t *testing.T) {
	strong := cited(doc{"a.gov", words("a", 99), "2026-05-01"}, doc{"b.edu", words("b", 99), ""}, doc{"c.gov", words("c", 99), ""})
	score := func(change func(*confidence.Input)) marchwarden.Unit {
		in := strong
		if change != nil {
			change(&in)
		}
		_, s := confidence.Assess(in)
		return s
	}
	if s := score(nil); s < 0.9 {
		t.Errorf("several independent strong sources give %.2f, want at least 0.9", s)
	}
	if s := score(func(in *confidence.Input) { in.Grounded.Contradictions = []marchwarden.Contradiction{{}} }); s >= 0.7 {
		t.Errorf("with a contradiction: %.2f, want below 0.7", s)
	}
	if s := score(func(in *confidence.Input) { in.BudgetExhausted = true }); s >= 0.8 {
		t.Errorf("with the budget exhausted: %.2f, want below 0.8", s)
	}
	if s := score(func(in *confidence.Input) { *in = cited(doc{"a.gov", words("a", 99), "2026-05-01"}) }); s >= 0.9 {
		t.Errorf("one origin: %.2f, want below 0.9", s)
	}
	if s := score(func(in *confidence.Input) { in.Grounded = verify.Grounded{} }); s >= 0.3 {
		t.Errorf("no citation: %.2f, want below 0.3", s)
	}
	if s := score(func(in *confidence.Input) { in.Match = 0.2 }); s >= 0.6 {
		t.Errorf("many strong sources that hardly speak to the question give %.2f, want below 0.6", s)
	}
	last := marchwarden.Unit(0)
	for m := 0.0; m <= 1; m += 0.1 {
		s := score(func(in *confidence.Input) { in.Match = m })
		if s < last {
			t.Errorf("the score falls from %.2f to %.2f as match rises to %.1f", last, s, m)
		}
		last = s
	}
}

// The authority of several sources is that of the middle one, and a high and a low
// one are medium together.
func TestAuthorityOfSeveral(t *testing.T) {
	for _, tt := range []struct {
		origins []string
		want    marchwarden.Authority
	}{
		{nil, marchwarden.LowAuthority},
		{[]string{"a.edu", "b.org"}, marchwarden.MediumAuthority},
		{[]string{"a.edu", "b.org", "c.org"}, marchwarden.LowAuthority},
		{[]string{"a.edu", "b.gov", "c.org"}, marchwarden.HighAuthority},
		{[]string{"a.edu", "b.gov", "c.org", "d.com"}, marchwarden.MediumAuthority},
	} {
		var docs []doc
		for i, o := range tt.origins {
			docs = append(docs, doc{o, words(string(rune('k'+i)), 50), ""})
		}
		if f, _ := confidence.Assess(cited(docs...)); f.SourceAuthority != tt.want {
			t.Errorf("%v: %s, want %s", tt.origins, f.SourceAuthority, tt.want)
		}
	}
}
