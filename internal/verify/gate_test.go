package verify_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

var ctx = context.Background()

// library stores texts and puts them into a set, as the loop does.
func library(t testing.TB, blobs blob.Store, texts ...string) *evidence.Set {
	t.Helper()
	set := &evidence.Set{}
	for i, text := range texts {
		ref, err := blobs.Put(ctx, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		set.Add(fetch.Page{Locator: string(rune('a'+i)) + ".md", Source: "file", Text: ref, FetchedAt: time.Unix(1, 0).UTC()}, text)
	}
	return set
}

func ground(t testing.TB, blobs blob.Store, set *evidence.Set, d reason.Draft) verify.Grounded {
	t.Helper()
	g, err := verify.Gate(ctx, blobs, set, verify.Basis{Rules: verify.Rules}, d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGateLetsThroughWhatStands(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.", "Corn needs heat.")
	g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{
		{Text: "Peas like cool soil.", Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Supported},
		{Text: "Corn needs heat.", Passages: []evidence.ID{"S2.1", "S1.1"}, Support: marchwarden.Partial, Paragraph: true},
	}})
	if want := "Peas like cool soil. [1]\n\nCorn needs heat. [2][1]"; g.Answer != want {
		t.Errorf("answer %q, want %q", g.Answer, want)
	}
	want := []marchwarden.Claim{
		{Text: "Peas like cool soil.", Citations: []int{1}, Support: marchwarden.Quoted},
		{Text: "Corn needs heat.", Citations: []int{2, 1}, Support: marchwarden.Partial},
	}
	if d := cmp.Diff(want, g.Claims); d != "" {
		t.Error(d)
	}
	if len(g.Citations) != 2 || g.Citations[0].RawExcerpt != "Peas like cool soil." || g.Citations[1].Locator != "b.md" {
		t.Errorf("citations %+v", g.Citations)
	}
}

func TestGateDropsWhatDoesNotStand(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.", "Café.")
	tests := []struct {
		name    string
		claim   reason.Claim
		unknown int
	}{
		{"unknown id", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S9.9"}}, 1},
		{"misspelled id", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"s1.1", "S01.1", "S1.1 "}}, 3},
		{"no id", reason.Claim{Text: "Pigs fly."}, 0},
		{"span outside the text", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S1.1"}, Spans: []marchwarden.Span{{Start: 5, End: 500}}}, 1},
		{"empty span", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S1.1"}, Spans: []marchwarden.Span{{Start: 5, End: 5}}}, 1},
		{"negative span", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S1.1"}, Spans: []marchwarden.Span{{Start: -1, End: 5}}}, 1},
		{"half a character", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S2.1"}, Spans: []marchwarden.Span{{Start: 0, End: 4}}}, 1},
		{"blank span", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S1.1"}, Spans: []marchwarden.Span{{Start: 4, End: 5}}}, 1},
		{"judged unsupported", reason.Claim{Text: "Pigs fly.", Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Unsupported}, 0},
		{"blank sentence", reason.Claim{Text: " \n", Passages: []evidence.ID{"S1.1"}}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{tt.claim}})
			if len(g.Claims) != 0 || strings.Contains(g.Answer, "Pigs") {
				t.Errorf("the claim got through: %q", g.Answer)
			}
			if g.UnknownIDs != tt.unknown || g.DroppedClaims != 1 || len(g.Gaps) != 1 {
				t.Errorf("counted %d unknown ids, %d dropped claims, %d gaps", g.UnknownIDs, g.DroppedClaims, len(g.Gaps))
			}
		})
	}
}

func TestGateNeutralisesForeignMarkup(t *testing.T) {
	for text, want := range map[string]string{
		"Peas [3] like ![x](http://evil.example/?q=1) cool <b>soil</b>.": `Peas like !\[x]\(http://evil.example/?q=1) cool \<b>soil\</b>.`,
		"Use `peas` and *pods* or _soil_ but my_var stays.":              "Use \\`peas\\` and \\*pods\\* or \\_soil\\_ but my_var stays.",
		"1986. That was a good year for peas.":                           `1986\. That was a good year for peas.`,
		"Peas [[1]2] like it [[[3]4]5] cool.":                            "Peas like it cool.",
		"Peas&#91;2&#93; like &lt;b&gt; &amp; AT&T;":                     `Peas\&#91;2\&#93; like \&lt;b\&gt; \&amp; AT\&T;`,
		"# Peas are no heading.":                                         `\# Peas are no heading.`,
		`A backslash \ stays one.`:                                       `A backslash \\ stays one.`,
	} {
		blobs := blob.NewMem()
		set := library(t, blobs, text)
		g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: text, Passages: []evidence.ID{"S1.1"}}}})
		if g.Answer != want+" [1]" {
			t.Errorf("answer %q, want %q", g.Answer, want+" [1]")
		}
		if !strings.HasPrefix(text, g.Citations[0].RawExcerpt) {
			t.Errorf("the excerpt must stay verbatim, is %q", g.Citations[0].RawExcerpt)
		}
		report, err := verify.Check(ctx, blobs, &marchwarden.Result{Answer: g.Answer, Citations: g.Citations, Claims: g.Claims})
		if err != nil || !report.OK() {
			t.Errorf("check: %v %s", err, report)
		}
	}
}

func TestGateKeepsNoVerdictThatThereIsNot(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.")
	for _, given := range []marchwarden.Support{"", "certainly"} {
		g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: "Peas.", Passages: []evidence.ID{"S1.1"}, Support: given}}})
		if g.Claims[0].Support != marchwarden.Unchecked || g.Support[0] != marchwarden.Unchecked {
			t.Errorf("support %q became %q and %q", given, g.Claims[0].Support, g.Support[0])
		}
	}
}

// A refusal quotes what was asked. It must not look cited, or the result would
// be held back as one that does not stand.
func TestGateRefusesWithoutMarkers(t *testing.T) {
	blobs := blob.NewMem()
	g := ground(t, blobs, library(t, blobs, "Peas."), reason.Draft{Refusal: "Nothing answers \"What is [1]\" or *this*."})
	if want := `Nothing answers "What is" or \*this\*.`; g.Answer != want {
		t.Errorf("answer %q, want %q", g.Answer, want)
	}
	report, err := verify.Check(ctx, blobs, &marchwarden.Result{Answer: g.Answer})
	if err != nil || !report.OK() {
		t.Errorf("check: %v %s", err, report)
	}
}

func TestGateRefusesDamagedEvidence(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.")
	empty := blob.NewMem()
	_, err := verify.Gate(ctx, empty, set, verify.Basis{Rules: verify.Rules}, reason.Draft{Claims: []reason.Claim{{Text: "Peas.", Passages: []evidence.ID{"S1.1"}}}})
	if marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
		t.Errorf("error %v, want one with code corrupt", err)
	}
}

func TestGateKeepsOnlyQuotedContradictions(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.", "Peas do not like cool soil.")
	side := func(locator, quote string) marchwarden.Side {
		return marchwarden.Side{Locator: locator, RawExcerpt: quote}
	}
	g := ground(t, blobs, set, reason.Draft{Contradictions: []marchwarden.Contradiction{
		{Subject: "peas", A: side("a.md", "Peas like cool soil."), B: side("b.md", "Peas do not like cool soil.")},
		{Subject: "invented", A: side("a.md", "Peas hate soil."), B: side("b.md", "Peas do not like cool soil.")},
		{Subject: "wrong source", A: side("b.md", "Peas like cool soil."), B: side("b.md", "Peas do not like cool soil.")},
	}})
	if len(g.Contradictions) != 1 || g.DroppedQuotes != 2 {
		t.Errorf("kept %d, dropped %d", len(g.Contradictions), g.DroppedQuotes)
	}
	if len(g.Gaps) != 1 || g.Gaps[0].Category != marchwarden.ContradictorySources {
		t.Errorf("gaps %+v", g.Gaps)
	}
}

// TestEveryExcerptIsStoredBytes is the first promise as a property: whatever
// the documents and whatever is cited, what leaves the gate is in the store.
func TestEveryExcerptIsStoredBytes(t *testing.T) {
	word := rapid.SampledFrom([]string{"peas", "corn.", "Überall", "ﬁnd", "3.5", "e.g.", "(soil)", "\n\n", "日本。", "“quoted”", "no-break", "\t", "a\u00adb", "🌱!"})
	rapid.Check(t, func(rt *rapid.T) {
		blobs := blob.NewMem()
		var texts []string
		for range rapid.IntRange(1, 3).Draw(rt, "documents") {
			texts = append(texts, strings.Join(rapid.SliceOfN(word, 1, 300).Draw(rt, "words"), " "))
		}
		set := library(t, blobs, texts...)
		var d reason.Draft
		for _, p := range set.Passages() {
			c := reason.Claim{Text: "Sentence about " + string(p.ID) + ".", Passages: []evidence.ID{p.ID}}
			if rapid.Bool().Draw(rt, "wide") && len(p.Sentences) > 0 {
				c.Spans = []marchwarden.Span{{Start: p.Span.Start, End: len(set.Sources()[p.Source-1].Text)}}
			}
			d.Claims = append(d.Claims, c)
		}
		g := ground(t, blobs, set, d)
		res := &marchwarden.Result{Answer: g.Answer, Citations: g.Citations, Claims: g.Claims}
		report, err := verify.Check(ctx, blobs, res)
		if err != nil || !report.OK() {
			rt.Fatalf("check: %v %s", err, report)
		}
	})
}

// A sentence that is left out leaves no citation behind: it would count as a
// source that says something.
func TestGateCitesNothingForWhatIsNotSaid(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.", "Corn needs heat.")
	g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{
		{Text: "Peas like hot soil.", Passages: []evidence.ID{"S1.1", "S9.9"}, Support: marchwarden.Unsupported},
		{Text: "[1]", Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Supported},
		{Text: "Corn needs heat.", Passages: []evidence.ID{"S2.1"}, Support: marchwarden.Supported},
	}})
	if len(g.Citations) != 1 || len(g.Sources) != 1 || g.Answer != "Corn needs heat. [1]" || g.DroppedClaims != 2 || g.UnknownIDs != 1 {
		t.Errorf("%+v", g)
	}
}

// No number in brackets that a sentence brings along looks like a marker of ours.
func TestGateTakesForeignMarkersOut(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.")
	for text, want := range map[string]string{
		"Peas [99999] like [ 7 ] cool [１] soil ［2］.": "Peas like cool soil. [1]",
		"Peas ~~dis~~like ~5 soils.":                 `Peas \~\~dis\~\~like \~5 soils. [1]`,
	} {
		g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: text, Passages: []evidence.ID{"S1.1"}, Support: marchwarden.Supported}}})
		if g.Answer != want {
			t.Errorf("%q becomes %q, want %q", text, g.Answer, want)
		}
	}
}

// A citation says in a sentence what it is for, within the bounds of the contract.
func TestCitationsHaveSnippets(t *testing.T) {
	blobs := blob.NewMem()
	long := "Peas like cool soil, and " + strings.Repeat("they like it more than beans do, ", 10) + "as every gardener knows."
	set := library(t, blobs, "Peas like cool soil in spring, and beans like warm soil in summer.", "Corn needs heat.", long)
	set.Sources()[1].Page.Title = "Crops of the high desert and when to sow them"
	for i, tt := range []struct {
		claim string
		id    evidence.ID
		want  string
	}{
		{"Peas like cool soil in spring, and beans like warm soil in summer.", "S1.1", "Peas like cool soil in spring, and beans like warm soil in summer."},
		{"Corn needs heat.", "S2.1", "Crops of the high desert and when to sow them: Corn needs heat."},
		{long, "S3.1", long[:marchwarden.MaxSnippetChars-1] + "…"},
		{"Peas.", "S1.1", ""}, // both are too short
	} {
		g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: tt.claim, Passages: []evidence.ID{tt.id}, Support: marchwarden.Supported}}})
		if len(g.Citations) != 1 || g.Citations[0].Snippet != tt.want {
			t.Errorf("%d: %+v", i, g.Citations)
		}
		if n := utf8.RuneCountInString(tt.want); n > marchwarden.MaxSnippetChars || n > 0 && n < marchwarden.MinSnippetChars {
			t.Errorf("%d: %d characters", i, n)
		}
	}
}
