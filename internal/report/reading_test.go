package report

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
)

// readingSample is a report in which every text from outside has passed plant.
func readingSample(t testing.TB, plant func(string) string) *Report {
	t.Helper()
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 14, 9, 30, 0, 0, time.UTC)
	r := &Report{Question: plant("When is the last frost in Salt Lake City?"), Researcher: plant("pi"), Version: "v0.5.0", StartedAt: at, Limits: marchwarden.Limits{TokenBudget: 20000}}
	res := &marchwarden.Result{Confidence: 0.82, TraceID: id, Warnings: []string{plant("the ledger could not be written")},
		ConfidenceFactors: marchwarden.ConfidenceFactors{NumCorroboratingSources: 2, SourceAuthority: marchwarden.HighAuthority, ContradictionDetected: true, QuerySpecificityMatch: 0.9, Recency: marchwarden.Current},
		CostMetadata:      marchwarden.CostMetadata{TokensUsed: 4039, IterationsRun: 2, WallTimeSec: 3.25, ModelID: plant("extractive/2"), SourcesRead: 7}}
	r.Result = res
	cite := func(locator, before, excerpt, after, problem string) {
		c := marchwarden.Citation{Source: plant("web"), Locator: locator, Title: plant("Frost dates"), RawExcerpt: excerpt, Confidence: 0.9, Published: plant("2025-03-02"), Authority: marchwarden.HighAuthority,
			ContentHash: "sha256:" + strings.Repeat("ab", 32), FetchedAt: &at}
		src := Source{Problem: problem}
		if problem == "" {
			src.Text, c.Span = before+excerpt+after, &marchwarden.Span{Start: len(before), End: len(before) + len(excerpt)}
		}
		res.Citations, r.Sources = append(res.Citations, c), append(r.Sources, src)
	}
	excerpt := plant("The average last frost falls on 26 April.")
	cite("https://example.org/frost", "Frost in Utah.\n\n"+plant("It freezes late. "), excerpt, plant(" Plant tomatoes later.")+"\n\n\tAnd peppers.", "")
	cite("notes/frost.md#L12", strings.Repeat("Weather is weather.\n", 80), excerpt, strings.Repeat(" More of it follows.", 60), "")
	cite("https://gone.example/"+strings.Repeat("long/", 20), "", plant("What nobody can check."), "", plant("the stored text is damaged"))
	res.Citations = append(res.Citations, marchwarden.Citation{Source: "web", Locator: "https://example.org/photo", RawExcerpt: marchwarden.ExcerptNonText, Unchecked: true})
	res.Claims = []marchwarden.Claim{{Text: plant("The last frost is on 26 April."), Citations: []int{1, 2}, Support: marchwarden.Supported}, {Text: plant("It was later in 1990."), Citations: []int{2}, Support: marchwarden.Partial},
		{Text: plant("Nobody knows about 2030."), Citations: []int{3}, Support: marchwarden.Unsupported}}
	res.Answer = res.Claims[0].Text + " [1][2] " + res.Claims[1].Text + " [2]\n\n" + res.Claims[2].Text + " [3] And a word without any."
	res.ShortAnswer = &marchwarden.ShortAnswer{Text: "On " + plant("26 April"), Citation: 9, Kind: marchwarden.ShortSpan}
	res.Claims = append(res.Claims, marchwarden.Claim{Text: plant("It freezes late."), Citations: []int{1}, Support: marchwarden.Quoted})
	res.Answer += "\n\n" + res.Claims[3].Text + " [1]"
	for range 3 {
		res.Closest = append(res.Closest, marchwarden.Closest{Source: plant("web"), Locator: "https://near.example/", Title: plant("Of ice"), RawExcerpt: plant("Ice melts\nin May."), Reason: plant("it speaks of May")})
	}
	res.Gaps = []marchwarden.Gap{{Topic: plant("frost in 1890"), Category: marchwarden.SourceNotFound, Detail: plant("3 documents were read")}, {Topic: plant("frost on Mars"), Category: marchwarden.GapCategory(plant("new_category"))}}
	res.Decisions = []marchwarden.Decision{{About: string(marchwarden.SourceNotFound), Topic: plant("frost in 1890"), From: 1, Action: marchwarden.Dispatched, Reason: plant("somebody else may know"), Rihla: 2}}
	res.OpenQuestions = []marchwarden.OpenQuestion{{Question: plant("What of Logan?"), Context: plant("it is colder"), Priority: marchwarden.Low}}
	res.DiscoveryEvents = []marchwarden.DiscoveryEvent{{Type: marchwarden.NewSource, SuggestedResearcher: plant("arxiv"), Query: plant("frost models"), Reason: plant("cited there")}}
	res.Rihlas = []marchwarden.Rihla{{Researcher: plant("files"), Question: plant("last frost?"), Outcome: plant("2 citations")}}
	res.Contradictions = []marchwarden.Contradiction{{Subject: plant("last frost"), Attribute: plant("date"), Detail: plant("two dates are given"),
		A: marchwarden.Side{Locator: "https://example.org/frost", RawExcerpt: excerpt, Value: plant("26 April"), Title: plant("Frost dates"), Authority: marchwarden.HighAuthority},
		B: marchwarden.Side{Locator: plant("https://other.example/"), RawExcerpt: plant("The last frost\nfalls on 15 May."), Value: plant("15 May")}}}
	return r
}

func same(s string) string { return s }

func readingPage(t testing.TB, st term.Style, r *Report, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Reading(&b, st, r, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadingGolden(t *testing.T) {
	for name, c := range map[string]struct {
		st term.Style
		o  Options
	}{"pipe": {}, "narrow": {st: term.Style{Width: 50}}, "verbose": {term.Style{Width: 100, Color: true}, Options{Verbose: true, Cost: "no cost"}}} {
		t.Run(name, func(t *testing.T) {
			got, path := readingPage(t, c.st, readingSample(t, same), c.o), filepath.Join("testdata", "reading-"+name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// Colour adds no words; and whatever the texts hold, no control character gets out, no
// line is too wide but those to be copied, and no text looks like an excerpt.
func TestReadingHostile(t *testing.T) {
	for _, h := range []string{"", "\x1b[31m", "\x1b]0;owned\a", "\x1b]52;c;eA==\x1b\\", "\u009b2J", "\u202e", "\u2066\u200b\U000e0041", "\r", "\b\b", "\x1bc", "\x1bP$q\x1b\\", "\n┃ » forged «\n", "\n[1] forged\n", "\xff"} {
		r := readingSample(t, func(s string) string { return s[:len(s)/2] + h + s[len(s)/2:] })
		for _, width := range []int{0, 40, 80, 120, 300} {
			got := readingPage(t, term.Style{Width: width, Color: true}, r, Options{Verbose: true})
			bare := sgrPattern.ReplaceAllString(got, "")
			if bare != readingPage(t, term.Style{Width: width}, r, Options{Verbose: true}) {
				t.Errorf("%q: colour changes words", h)
			}
			evidence, _, _ := strings.Cut(bare, "\nContradictions\n")
			if strings.Contains(evidence, "┃ » forged") || strings.Contains(evidence, "┃ ┃") {
				t.Errorf("%q forges an excerpt:\n%s", h, evidence)
			}
			for l := range strings.Lines(bare) {
				l = strings.TrimSuffix(l, "\n")
				if strings.ContainsFunc(l, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
					t.Errorf("%q: %q", h, l)
				}
				most := min(max(width, 40), 120)
				if width == 0 {
					most = 80
				}
				if term.Width(l) > most && strings.ContainsRune(strings.TrimSpace(l), ' ') && !strings.Contains(l, "marchwarden ") {
					t.Errorf("%q: %d cells of %d: %q", h, term.Width(l), most, l)
				}
			}
		}
	}
}

// An excerpt stands as it is between its marks, wherever it was wrapped.
func TestReadingExcerptIsMarked(t *testing.T) {
	r := readingSample(t, same)
	got := readingPage(t, term.Style{Width: 40}, r, Options{})
	var marked strings.Builder
	for l := range strings.Lines(got) {
		if _, text, ok := strings.Cut(l, "┃ "); ok {
			marked.WriteString(strings.TrimSpace(text) + " ")
		}
	}
	if n := strings.Count(marked.String(), "» "+r.Result.Citations[0].RawExcerpt+" «"); n != 4 { // [1], [2], and both again
		t.Errorf("%d times: %s", n, marked.String())
	}
	if strings.Contains(marked.String(), "tomatoes") || strings.Contains(marked.String(), "Weather") {
		t.Errorf("what is no excerpt is marked: %s", marked.String())
	}
}

func TestReadingEmpty(t *testing.T) {
	got := readingPage(t, term.Style{}, &Report{Result: &marchwarden.Result{}}, Options{})
	if !strings.HasPrefix(got, "Research report\n0 citations · confidence 0.00\n\nNo answer.\n") {
		t.Errorf("%s", got)
	}
	if err := Reading(failing{}, term.Style{}, readingSample(t, same), Options{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("%v", err)
	}
}
