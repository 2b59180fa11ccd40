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

func rich(t testing.TB) (*marchwarden.Result, ScreenOptions) {
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
	return r, ScreenOptions{
		Question: "What are ideal crops for a garden in Utah?",
		Limits:   marchwarden.Preset(marchwarden.Balanced),
		Library:  "embedded library (30 documents)",
		Sources:  7,
		Cost:     "no cost",
		Hints:    []string{"search your own documents: marchwarden ask --library DIR \"…\"", "search the web: put a key into .env; marchwarden doctor lists them"},
		Timings:  []Timing{{"index", 41 * time.Millisecond}, {"search", 3200 * time.Microsecond}, {"synthesise", 120 * time.Millisecond}},
	}
}

func refusal(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	_, o := rich(t)
	o.Question, o.Sources = "Who won the 1987 Zorblax regatta?", 0
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
func short(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	r, o := rich(t)
	r.ShortAnswer = &marchwarden.ShortAnswer{Text: "Peas, spinach and lettuce", Citation: 1, Span: &marchwarden.Span{End: 25}, Kind: marchwarden.ShortSpan}
	r.Answer = "They are sown as soon as the soil can be worked. [1]"
	r.Claims[0].Support, r.Gaps, r.Contradictions = marchwarden.Quoted, nil, nil
	return r, o
}

// blocky is rich with an answer of every kind of block.
func blocky(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	r, o := rich(t)
	r.Blocks = wired(t).Blocks
	r.Blocks[3].Columns = append(r.Blocks[3].Columns, "What the growers of the valley say about it")
	for i := range r.Blocks[3].Rows {
		r.Blocks[3].Rows[i] = append(r.Blocks[3].Rows[i], marchwarden.Cell{Text: "It does well in most years, and where the snow lies long it does better than wheat would", Citations: []int{3, 4}})
	}
	return r, o
}

func wide(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	r, o := rich(t)
	o.Question = "東京の人口は何人ですか？"
	o.Library = "~/ノート (3 documents)"
	r.Answer = "東京都の人口は約1400万人で、日本の都道府県の中で最も多く、世界でも有数の大都市圏を形成している。 [1] Zürich naïvely counted 👩‍🌾🌽 in cafe\u0301s. [2]\n\n| 都市 | 人口 |\n|---|---|\n| 東京 | 1400万 |\n| 大阪市 | 277万 [3] |\n"
	r.Citations[0].Title = "東京都の人口統計"
	r.Citations[0].RawExcerpt = "東京都の人口は約1400万人で、日本の都道府県の中で最も多く、世界でも有数の大都市圏を形成している。"
	r.Contradictions[0].A.RawExcerpt = "人口は約1400万人で、日本の都道府県の中で最も多いとされている。"
	return r, o
}

// contradicting has two contradictions, the second of which cites nothing and
// says little.
func contradicting(t testing.TB) (*marchwarden.Result, ScreenOptions) {
	r, _ := rich(t)
	second := marchwarden.Contradiction{Subject: "frost", A: marchwarden.Side{Locator: "a.md", Value: "15 May"}, B: marchwarden.Side{Locator: "https://extension.example.edu/horticulture/utah/vegetables/frost", RawExcerpt: marchwarden.ExcerptNonText}}
	return &marchwarden.Result{Answer: "The sources disagree. [1]", Citations: r.Citations[1:2], Contradictions: append(r.Contradictions, second)}, ScreenOptions{}
}

func screenOf(t testing.TB, st term.Style, r *marchwarden.Result, o ScreenOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Screen(&b, st, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestResultGolden(t *testing.T) {
	type maker func(testing.TB) (*marchwarden.Result, ScreenOptions)
	for _, tc := range []struct {
		name string
		st   term.Style
		make maker
		loud bool
	}{
		{"rich", term.Style{}, rich, false},
		{"blocks", term.Style{}, blocky, false},
		{"blocks-50", term.Style{Width: 50}, blocky, false},
		{"rich-color", term.Style{Color: true, Width: 80}, rich, false},
		{"rich-verbose-100", term.Style{Width: 100}, rich, true},
		{"rich-50", term.Style{Width: 50}, rich, false},
		{"refusal", term.Style{}, refusal, false},
		{"short-color", term.Style{Color: true, Width: 80}, short, false},
		{"contradiction-100", term.Style{Width: 100}, contradicting, false},
		{"contradiction-50", term.Style{Width: 50}, contradicting, false},
		{"wide", term.Style{Width: 80}, wide, false},
		{"wide-50", term.Style{Width: 50}, wide, false},
		{"investigation", term.Style{}, investigated, false},
		{"investigation-50", term.Style{Width: 50}, investigated, false},
		{"investigation-verbose-100", term.Style{Width: 100, Color: true}, investigated, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, o := tc.make(t)
			o.Verbose = tc.loud
			got := screenOf(t, tc.st, r, o)
			golden(t, tc.name, got)
			for l := range strings.Lines(stripSGR(got)) {
				l = strings.TrimSuffix(l, "\n")
				if n := uniseg.StringWidth(l); n > textWidth(tc.st) && !strings.Contains(l, "marchwarden ") && !strings.Contains(l, "https://") {
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
	return []string{"\x1b[31m", "\x1b]0;owned\a", "\x1b]52;c;eA==\x1b\\", "\u009b2J", "\u202e", "\u2066\u200b\U000e0041", "\r", "\b\b", "\x1bc", "\x1bP$q\x1b\\", "\xff"}
}

// firstControl is where text has something that must not reach a terminal, or -1.
func firstControl(s string) int {
	return strings.IndexFunc(s, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) })
}

var sgrPattern = regexp.MustCompile("\x1b\\[[0-9;]*m")

func stripSGR(s string) string { return sgrPattern.ReplaceAllString(s, "") }

func TestColourAddsNoWords(t *testing.T) {
	for _, make := range []func(testing.TB) (*marchwarden.Result, ScreenOptions){rich, refusal, short, wide, investigated} {
		r, o := make(t)
		coloured := screenOf(t, term.Style{Color: true, Width: 80}, r, o)
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
		for _, st := range []term.Style{{}, {Width: 50}, {Color: true, Width: 80}} {
			r, o := rich(t)
			r.Rihlas, r.Closest = []marchwarden.Rihla{{}}, []marchwarden.Closest{{}}
			poison(reflect.ValueOf(r).Elem(), hostile)
			r.ShortAnswer = &marchwarden.ShortAnswer{Text: "peas " + hostile, Citation: 99, Kind: marchwarden.ShortSpan}
			poison(reflect.ValueOf(&o).Elem(), hostile)
			o.Verbose = true
			got := screenOf(t, st, r, o)
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
	got := screenOf(t, term.Style{}, r, ScreenOptions{Sources: -1, Verbose: true})
	for _, want := range []string{"no answer\n", "none cited\n", "0 sources cited", "authority unknown", "recency unknown"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	if strings.Contains(got, "trace") {
		t.Error("an invalid trace id is shown")
	}
}

func TestScreenWriteErrors(t *testing.T) {
	if err := Screen(failing{}, term.Style{}, &marchwarden.Result{}, ScreenOptions{}); !errors.Is(err, os.ErrClosed) {
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
	var buf bytes.Buffer
	if err := Screen(&buf, term.Style{}, r, ScreenOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(buf.String(), detail); n != 1 {
		t.Errorf("the contradiction stands %d times in\n%s", n, buf.String())
	}
	if !strings.Contains(buf.String(), "soil") {
		t.Error("another gap is gone")
	}
}

// What was searched is a library only where it is one.
func TestHeader(t *testing.T) {
	r, o := rich(t)
	o.Library, o.Searched = "", "the web by \x1b[31mtavily+searxng"
	var b strings.Builder
	if err := Screen(&b, term.Style{}, r, o); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), o.Question+"\nsearched: the web by tavily+searxng\n\n"; !strings.HasPrefix(got, want) {
		t.Errorf("it begins %q, want %q", got[:min(len(got), len(want))], want)
	}
}

// What a reader must know stands on the first line, and who wrote beside the model.
func TestWarningsComeFirst(t *testing.T) {
	res := &marchwarden.Result{Answer: "Peas like cool soil.", Warnings: []string{"some/model did not write this answer\x1b[2J"},
		CostMetadata: marchwarden.CostMetadata{ModelID: "some/model", ReasonerID: "extractive/4"}}
	var out strings.Builder
	if err := Screen(&out, term.Style{}, res, ScreenOptions{Question: "What do peas like?"}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.HasPrefix(text, "warning: some/model did not write this answer\nWhat do peas like?\n") || !strings.Contains(text, "written by extractive/4") {
		t.Errorf("%s", text)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }
