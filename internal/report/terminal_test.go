package report

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func screenID(t testing.TB) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func rich(t testing.TB) (*marchwarden.Result, Options) {
	at := time.Date(2026, 11, 14, 23, 30, 0, 0, time.UTC)
	cite := func(title, locator, excerpt string, confidence marchwarden.Unit) marchwarden.Citation {
		return marchwarden.Citation{
			Source: "file", Title: title, Locator: locator, RawExcerpt: excerpt, Confidence: confidence, FetchedAt: &at,
			ContentHash: "sha256:" + strings.Repeat("0123456789abcdef", 4), Span: &marchwarden.Span{Start: 1204, End: 1204 + len(excerpt)},
		}
	}
	r := &marchwarden.Result{
		Answer: "Peas, spinach and lettuce can be sown along the Wasatch Front as soon as the soil can be worked, usually in the middle of March. [1] " +
			"Warm-season crops wait until the last frost, around 15 May in Salt Lake City. [2][3]\n\n" +
			"## Above 6,000 feet\n\n" +
			"- Short-season tomatoes ripen in *most* years when started indoors. [2]\n" +
			"- **Root crops** such as carrots and beets tolerate the cold nights that come with the elevation, and keep well in the ground. [4]\n" +
			"  1. sow in `May`\n  2. harvest before the ground freezes\n\n" +
			"> Water deeply and seldom. [1]\n",
		Citations: []marchwarden.Citation{
			cite("Growing seasons of northern Utah", "library:utah-seasons.md", "Peas, spinach and lettuce can be sown along the Wasatch Front as soon as the soil can be\nworked, usually in the middle of March.", 0.91),
			cite("Tomatoes at elevation", "library:utah-tomatoes.md", "Short-season tomatoes ripen in most years above 6,000 feet when started indoors [7].", 0.78),
			cite("", "https://extension.example.edu/horticulture/utah/vegetables/when-to-plant-in-the-intermountain-west?region=north", "The average last frost in Salt Lake City is around 15 May.", 0.84),
			cite("Mountain gardens", "library:utah-mountain.md", "Tomatoes rarely ripen above 6,000 feet without a greenhouse; carrots and beets tolerate the cold nights.", 0.8),
		},
		Gaps: []marchwarden.Gap{
			{Topic: "frost dates of Kanab", Category: marchwarden.SourceNotFound, Detail: "no stored document gives them"},
			{Topic: "county yields", Category: marchwarden.BudgetExhausted, Detail: "the source cap of 10 was reached first"},
			{Topic: "ripening of tomatoes", Category: marchwarden.ContradictorySources, Detail: "two documents disagree and neither is dated"},
			{Topic: "soil maps", Category: marchwarden.SourceNotFound, Detail: "no stored document speaks of them"},
		},
		DiscoveryEvents: []marchwarden.DiscoveryEvent{{Type: marchwarden.RelatedResearch, SuggestedResearcher: "arxiv", Query: "cold tolerance of Solanum lycopersicum", Reason: "a trial of 41 cultivars is mentioned", SourceLocator: "library:utah-tomatoes.md"}},
		OpenQuestions: []marchwarden.OpenQuestion{
			{Question: "Which cultivars were tried?", Context: "the document names no cultivar", Priority: marchwarden.Medium, SourceLocator: "library:utah-tomatoes.md"},
			{Question: "Do tomatoes ripen above 6,000 feet without a greenhouse?", Context: "two documents disagree", Priority: marchwarden.High},
		},
		Confidence:        0.82,
		ConfidenceFactors: marchwarden.ConfidenceFactors{NumCorroboratingSources: 4, SourceAuthority: marchwarden.MediumAuthority, ContradictionDetected: true, QuerySpecificityMatch: 0.91, Recency: marchwarden.Current},
		CostMetadata:      marchwarden.CostMetadata{TokensUsed: 1830, IterationsRun: 2, WallTimeSec: 0.1834, ModelID: "extractive/1"},
		TraceID:           screenID(t),
		Claims:            []marchwarden.Claim{{Support: marchwarden.Supported}, {Support: marchwarden.Supported}, {Support: marchwarden.Partial}},
		Contradictions: []marchwarden.Contradiction{{
			Subject: "tomatoes above 6,000 feet", Attribute: "ripening", Detail: "one document says most years, the other says rarely",
			A: marchwarden.Side{Locator: "library:utah-tomatoes.md", Value: "in most years", RawExcerpt: "Short-season tomatoes ripen in most years above 6,000 feet when started indoors [7]."},
			B: marchwarden.Side{Locator: "library:utah-mountain.md", Value: "rarely", RawExcerpt: "Tomatoes rarely ripen above 6,000 feet without a greenhouse; carrots and beets tolerate the cold nights."},
		}},
	}
	return r, Options{
		Searched: "embedded library (30 documents)",
		Cost:     "no cost",
		Hints:    []string{"search your own documents: marchwarden ask --library DIR \"…\""},
	}
}

func refusal(t testing.TB) (*marchwarden.Result, Options) {
	_, o := rich(t)
	r := &marchwarden.Result{
		Answer:            "Nothing in the library answers this question.",
		Gaps:              []marchwarden.Gap{{Topic: "Zorblax regatta", Category: marchwarden.SourceNotFound, Detail: "no document mentions it"}},
		Confidence:        0.05,
		ConfidenceFactors: marchwarden.ConfidenceFactors{SourceAuthority: marchwarden.LowAuthority},
		CostMetadata:      marchwarden.CostMetadata{IterationsRun: 1, TokensUsed: 212, WallTimeSec: 0.0041, ModelID: "extractive/1"},
		TraceID:           screenID(t),
		ShortAnswer:       &marchwarden.ShortAnswer{Kind: marchwarden.ShortUnknown},
	}
	r.CostMetadata.SourcesRead = 3
	for _, title := range []string{"Regattas", "", "one too many"} {
		r.Closest = append(r.Closest, marchwarden.Closest{Source: "file", Locator: "library:regattas.md#L4", Title: title, RawExcerpt: "The regatta of 1986 was won by the\nSea Otter, and that of 1988 was not held.", Reason: "it speaks of regattas, and not of 1987"})
	}
	r.Normalize()
	return r, o
}

// short is rich with a short answer and claims that are copied.
func short(t testing.TB) (*marchwarden.Result, Options) {
	r, o := rich(t)
	r.ShortAnswer = &marchwarden.ShortAnswer{Text: "Peas, spinach and lettuce", Citation: 1, Span: &marchwarden.Span{End: 25}, Kind: marchwarden.ShortSpan}
	r.Answer = "They are sown as soon as the soil can be worked. [1]"
	r.Claims[0].Support, r.Gaps, r.Contradictions = marchwarden.Quoted, nil, nil
	return r, o
}

// blocky is rich with an answer of every kind of block.
func blocky(t testing.TB) (*marchwarden.Result, Options) {
	r, o := rich(t)
	r.Blocks = wired(t).Blocks
	r.Blocks[3].Columns = append(r.Blocks[3].Columns, "What the growers of the valley say about it")
	for i := range r.Blocks[3].Rows {
		r.Blocks[3].Rows[i] = append(r.Blocks[3].Rows[i], marchwarden.Cell{Text: "It does well in most years, and where the snow lies long it does better than wheat would", Citations: []int{3, 4}})
	}
	return r, o
}

func wide(t testing.TB) (*marchwarden.Result, Options) {
	r, o := rich(t)
	o.Searched = "~/ノート (3 documents)"
	r.Answer = "東京都の人口は約1400万人で、日本の都道府県の中で最も多く、世界でも有数の大都市圏を形成している。 [1] Zürich naïvely counted 👩‍🌾🌽 in cafe\u0301s. [2]\n\n| 都市 | 人口 |\n|---|---|\n| 東京 | 1400万 |\n| 大阪市 | 277万 [3] |\n"
	r.Citations[0].Title = "東京都の人口統計"
	r.Citations[0].RawExcerpt = "東京都の人口は約1400万人で、日本の都道府県の中で最も多く、世界でも有数の大都市圏を形成している。"
	r.Contradictions[0].A.RawExcerpt = "人口は約1400万人で、日本の都道府県の中で最も多いとされている。"
	return r, o
}

// contradicting has two contradictions, the second of which cites nothing and
// says little.
func contradicting(t testing.TB) (*marchwarden.Result, Options) {
	r, _ := rich(t)
	second := marchwarden.Contradiction{Subject: "frost", A: marchwarden.Side{Locator: "a.md", Value: "15 May"}, B: marchwarden.Side{Locator: "https://extension.example.edu/horticulture/utah/vegetables/frost", RawExcerpt: marchwarden.ExcerptNonText}}
	return &marchwarden.Result{Answer: "The sources disagree. [1]", Citations: r.Citations[1:2], Contradictions: append(r.Contradictions, second)}, Options{}
}

func screenOf(t testing.TB, st term.Style, r *marchwarden.Result, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Screen(&b, st, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// offline is what there is where nothing can be reached.
func offline(t testing.TB) (*marchwarden.Result, Options) {
	r, o := refusal(t)
	r.Answer, r.Closest, o.Searched = "No researcher brought evidence.", nil, "the web by wikipedia"
	r.Gaps = []marchwarden.Gap{
		{Topic: `search of wikipedia for "Nobel"`, Category: marchwarden.AccessDenied, Detail: "the search engine failed: wikipedia: no answer: dial tcp: lookup en.wikipedia.org: no such host"},
		{Topic: `search of arxiv for "Nobel"`, Category: marchwarden.AccessDenied, Detail: "skipped"},
	}
	return r, o
}

// filed is an answer from files: one is cited twice, one is a PDF, one was not checked here.
func filed(t testing.TB) (*marchwarden.Result, Options) {
	r, o := short(t)
	for i, at := range []string{"/home/ann/notes/a b.md#L12", "/home/ann/notes/a b.md#L40", "/home/ann/papers/" + strings.Repeat("deep/", 14) + "frost.pdf#page=3", "https://example.org/frost#when"} {
		r.Citations[i].Locator, r.Citations[i].Title = at, "A title that says at some length what the document is about"
	}
	r.Citations[3].Unchecked, r.Citations[3].Source = true, "almanac"
	for i := range r.Claims {
		r.Claims[i].Support = marchwarden.Quoted
	}
	return r, o
}

func TestResultGolden(t *testing.T) {
	type maker func(testing.TB) (*marchwarden.Result, Options)
	for _, tc := range []struct {
		name string
		st   term.Style
		make maker
	}{
		{"rich", term.Style{}, rich},
		{"blocks", term.Style{}, blocky},
		{"blocks-50", term.Style{Width: 50}, blocky},
		{"rich-color", term.Style{Color: true, Width: 80}, rich},
		{"rich-50", term.Style{Width: 50}, rich},
		{"refusal", term.Style{}, refusal},
		{"offline", term.Style{}, offline},
		{"short-color", term.Style{Color: true, Width: 80}, short},
		{"contradiction-100", term.Style{Width: 100}, contradicting},
		{"contradiction-50", term.Style{Width: 50}, contradicting},
		{"wide", term.Style{Width: 80}, wide},
		{"wide-50", term.Style{Width: 50}, wide},
		{"investigation", term.Style{Width: 80}, investigated},
		{"files-links", term.Style{Width: 80, Links: true}, filed},
		{"files-40", term.Style{Width: 20}, filed},
		{"files", term.Style{}, filed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, o := tc.make(t)
			got := screenOf(t, tc.st, r, o)
			golden(t, tc.name, got)
			for l := range strings.Lines(stripSGR(got)) {
				l = strings.TrimSuffix(l, "\n")
				if n := uniseg.StringWidth(l); n > textWidth(tc.st) && tc.st.Width > 0 && !strings.Contains(l, "marchwarden ") {
					t.Errorf("line of %d cells on a page of %d: %q", n, textWidth(tc.st), l)
				}
				if strings.HasSuffix(l, " ") {
					t.Errorf("trailing space: %q", l)
				}
			}
		})
	}
}

// textWidth is how wide a page of a style may be.
func textWidth(st term.Style) int {
	if st.Width == 0 {
		return 80
	}
	return min(max(st.Width, 40), 120)
}

// hostileTexts are texts that want to act on a terminal.
func hostileTexts() []string {
	return []string{"\x1b[31m", "\x1b]0;owned\a", "\x1b]52;c;eA==\x1b\\", "\u009b2J", "\u202e", "\u2066\u200b\U000e0041", "\r", "\b\b", "\x1bc", "\x1bP$q\x1b\\", "\x1b]8;;http://evil.example\x1b\\", "\xff"}
}

// firstControl is where text has something that must not reach a terminal, or -1.
func firstControl(s string) int {
	return strings.IndexFunc(s, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) })
}

// sgrPattern finds colours, and links to what is visible ASCII.
var sgrPattern = regexp.MustCompile("\x1b\\[[0-9;]*m|\x1b\\]8;;[!-~]*\x1b\\\\")

func stripSGR(s string) string { return sgrPattern.ReplaceAllString(s, "") }

func TestColourAddsNoWords(t *testing.T) {
	for _, make := range []func(testing.TB) (*marchwarden.Result, Options){rich, refusal, short, wide, investigated, filed} {
		r, o := make(t)
		coloured := screenOf(t, term.Style{Color: true, Width: 80, Links: true}, r, o)
		if !strings.Contains(coloured, "\x1b[") {
			t.Error("no colour")
		}
		if diff := cmp.Diff(screenOf(t, term.Style{Width: 80}, r, o), stripSGR(coloured)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestResultLeavesInputAlone(t *testing.T) {
	r, o := rich(t)
	want, _ := rich(t)
	screenOf(t, term.Style{}, r, o)
	if !reflect.DeepEqual(want, r) {
		t.Error("the result was changed")
	}
}

// poison puts a hostile text before every string of a value, its slices and
// pointers, and grows a nil slice to one element first.
func poison(v reflect.Value, hostile string) {
	switch v.Kind() {
	case reflect.String:
		if v.CanSet() {
			v.SetString(hostile + v.String())
		}
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		for i := range v.Len() {
			poison(v.Index(i), hostile)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[marchwarden.TraceID]() || v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			poison(v.Field(i), hostile)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), hostile)
		}
	}
}

func TestHostileResult(t *testing.T) {
	hostiles := append([]string{
		"&#27;[31m &#x9b;2J &#7; &#8238; &#13;", // entities that a Markdown reader resolves
		"```\n\x1b[2J\u202e\tcode\r\n```\n",
		"<div>\x1b]0;t\a</div>\n",
		"[a](<http://x/&#27;[31m>) ![b](http://x/\u009b1m) <http://x/\u200b>",
		"| a\x1b[1m | b |\n|---|---|\n| &#27; | &#10; |\n",
		strings.Repeat("> ", 3000) + "deep", strings.Repeat("- ", 300) + "deep", strings.Repeat("*", 4000), strings.Repeat("[", 4000),
	}, hostileTexts()...)
	for i, hostile := range hostiles {
		for _, st := range []term.Style{{}, {Width: 50}, {Color: true, Width: 80, Links: true}} {
			r, o := filed(t)
			r.Rihlas, r.Closest = []marchwarden.Rihla{{}}, []marchwarden.Closest{{}}
			poison(reflect.ValueOf(r).Elem(), hostile)
			r.ShortAnswer = &marchwarden.ShortAnswer{Text: "peas " + hostile, Citation: 99, Kind: marchwarden.ShortSpan}
			poison(reflect.ValueOf(&o).Elem(), hostile)
			got := screenOf(t, st, r, o) + readingPage(t, st, &Report{Result: r}, Options{Verbose: true})
			if strings.Contains(got, "\x1b]8;;http://evil") {
				t.Errorf("a link that is not ours: %q", got)
			}
			if st.Color {
				got = stripSGR(got)
			}
			if at := firstControl(got); at >= 0 {
				t.Fatalf("hostile text %d, style %+v: control character at %d: %q", i, st, at, got[max(0, at-20):min(len(got), at+20)])
			}
		}
	}
}

func TestResultOddNumbers(t *testing.T) {
	r := &marchwarden.Result{Confidence: marchwarden.Unit(math.NaN()), CostMetadata: marchwarden.CostMetadata{TokensUsed: math.MinInt, WallTimeSec: math.Inf(1)}}
	if got := screenOf(t, term.Style{}, r, Options{}); !strings.HasPrefix(got, "I don't know: there is no answer.\n") || strings.Contains(got, "sure") {
		t.Error(got)
	}
}

// Only what can be opened safely is a link.
func TestAddress(t *testing.T) {
	for locator, want := range map[string]string{
		"/home/ann/a b.md#L12":         "file:///home/ann/a%20b.md",
		"/home/ann/\x1b]8;;x\x07.md":   "file:///home/ann/%1B%5D8;;x%07.md",
		"https://example.org/a":        "https://example.org/a",
		"embedded:utah.md#L3":          "",
		"notes/a.md":                   "",
		"//host/share/a.md":            "",
		"javascript:alert(1)":          "",
		"file:///etc/passwd":           "",
		"db:shop.sqlite?orders#rows=1": "",
	} {
		source := "file"
		if strings.Contains(locator, "://") || strings.HasPrefix(locator, "arxiv:") || strings.HasPrefix(locator, "doi:") {
			source = "web"
		}
		if got := address(marchwarden.Citation{Source: source, Locator: locator}); got != want {
			t.Errorf("%q leads to %q, want %q", locator, got, want)
		}
	}
	for _, c := range []marchwarden.Citation{{Source: "almanac", Locator: "/etc/passwd"}, {Source: "file", Locator: "/etc/passwd", Unchecked: true}} {
		if got := address(c); got != "" {
			t.Errorf("%+v leads to %q", c, got)
		}
	}
}

// What is said of an answer is what the judge said of its sentences, and no more.
func TestGrounds(t *testing.T) {
	for want, all := range map[string][]marchwarden.Support{
		"from 1 document":                    {},
		"quoted from 1 document":             {marchwarden.Quoted, marchwarden.Quoted},
		"supported by 1 document":            {marchwarden.Supported},
		"supported in part, from 1 document": {marchwarden.Partial, marchwarden.Partial},
		"4 sentences from 1 document, 1 supported, 1 quoted, 1 not supported, 1 not checked": {marchwarden.Supported, marchwarden.Quoted, marchwarden.Unsupported, "holy"},
		"2 sentences from 1 document, 1 supported, 1 supported in part":                      {marchwarden.Supported, marchwarden.Partial},
	} {
		r := &marchwarden.Result{Citations: []marchwarden.Citation{{Locator: "a.md#L1"}, {Locator: "a.md#L2"}}, CostMetadata: marchwarden.CostMetadata{ModelID: "openai/gpt-test"}}
		for _, s := range all {
			r.Claims = append(r.Claims, marchwarden.Claim{Support: s})
		}
		if got := strings.Join(Grounds(r), ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		r.CostMetadata.ModelID = "extractive/4"
		if got := strings.Join(Grounds(r), ", "); strings.Contains(strings.ReplaceAll(got, "not supported", ""), "supported") {
			t.Errorf("copied text is %q", got)
		}
	}
}

func TestScreenWriteErrors(t *testing.T) {
	if err := Screen(failing{}, term.Style{}, &marchwarden.Result{}, Options{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Screen: %v", err)
	}
}

func TestAContradictionIsShownOnce(t *testing.T) {
	detail := "one says most years, the other rarely"
	r := &marchwarden.Result{
		Answer:          "x",
		Contradictions:  []marchwarden.Contradiction{{Subject: "tomatoes", Attribute: "ripening", Detail: detail}},
		Gaps:            []marchwarden.Gap{{Topic: "tomatoes", Category: marchwarden.ContradictorySources, Detail: detail}, {Topic: "soil", Category: marchwarden.SourceNotFound, Detail: "nothing"}},
		DiscoveryEvents: []marchwarden.DiscoveryEvent{{Type: marchwarden.ContradictionDetected, Query: "tomatoes", Reason: detail}},
	}
	got := screenOf(t, term.Style{}, r, Options{})
	if n := strings.Count(got, "tomatoes"); n != 1 {
		t.Errorf("the contradiction stands %d times in\n%s", n, got)
	}
	if !strings.Contains(got, "Not found: soil\n") {
		t.Error("another gap is gone")
	}
}

// What a reader must know stands on the first line.
func TestWarningsComeFirst(t *testing.T) {
	res := &marchwarden.Result{Answer: "Peas like cool soil.", Warnings: []string{"some/model did not write this answer\x1b[2J"},
		CostMetadata: marchwarden.CostMetadata{ModelID: "some/model", ReasonerID: "extractive/4"}}
	if text := screenOf(t, term.Style{}, res, Options{}); !strings.HasPrefix(text, "warning: some/model did not write this answer\nPeas like") {
		t.Errorf("%s", text)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
