package report

import (
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup/markuptest"
)

func traceID(t testing.TB, s string) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// sample is a report in which every text from outside has passed plant.
func sample(t testing.TB, plant func(string) string) *Report {
	t.Helper()
	at := time.Date(2026, 11, 14, 9, 30, 0, 0, time.UTC)
	r := &Report{Question: plant("When is the last frost in Salt Lake City?"), Researcher: plant("pi"), Version: "v0.5.0", StartedAt: at,
		Limits: marchwarden.Limits{TokenBudget: 20000}, Problems: []string{plant("read recorded outcome")}}
	res := &marchwarden.Result{Confidence: 0.82, TraceID: traceID(t, "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"), Warnings: []string{plant("the trace could not be stored")},
		ConfidenceFactors: marchwarden.ConfidenceFactors{NumCorroboratingSources: 2, SourceAuthority: marchwarden.HighAuthority, ContradictionDetected: true, QuerySpecificityMatch: 0.9, Recency: marchwarden.Current},
		CostMetadata:      marchwarden.CostMetadata{TokensUsed: 4039, IterationsRun: 2, WallTimeSec: 3.25, ModelID: plant("extractive/2"), SourcesRead: 7}}
	cite := func(source, locator, text, excerpt string, long bool) {
		start := strings.Index(text, excerpt)
		span := marchwarden.Span{Start: start, End: start + len(excerpt)}
		if long {
			excerpt += marchwarden.ExcerptCut
		}
		res.Citations = append(res.Citations, marchwarden.Citation{Source: plant(source), Locator: locator, Title: plant("Frost dates"), RawExcerpt: excerpt, Confidence: 0.9,
			ContentHash: blob.Of([]byte(text)).String(), Span: &span, FetchedAt: &at, Published: plant("2025-03-02"), Origin: plant("example.org"), Authority: marchwarden.HighAuthority})
		r.Sources = append(r.Sources, Source{Text: text, Page: fetch.Page{Author: plant("Ann Bee")}})
	}
	excerpt := plant("The average last frost falls on 26 April.")
	short := "Frost in Utah.\n\n" + excerpt + "\n\nPlant tomatoes later."
	long := strings.Repeat("Weather is weather. ", 400) + excerpt + strings.Repeat(" More of it follows.", 400)
	huge := strings.Repeat("Filler of a long document. ", 4000) + excerpt + strings.Repeat(" The end is far.", 4000)
	cite("web", "https://example.org/frost?a=1&b=_c_", short, excerpt, false)
	cite("file", plant("notes/frost.md")+"#L12", long, excerpt, true)
	cite("file", plant("notes/frost.md")+"#L40", long, "More of it follows.", false)
	cite("arxiv", "arxiv:2401.01234v2", huge, excerpt, true)
	r.Sources[3].Paper = &Paper{Authors: []string{plant("Ann Bee"), "Jan van der Berg"}, More: 3, DOI: "10.1000/xyz_1", Journal: plant("Journal of Frost")}
	res.Citations = append(res.Citations,
		marchwarden.Citation{Source: "web", Locator: plant("javascript:alert(1)"), Title: plant("A photograph"), RawExcerpt: marchwarden.ExcerptNonText, Confidence: 0.2},
		marchwarden.Citation{Source: "web", Locator: "https://gone.example/", RawExcerpt: plant("What nobody can check."), Confidence: 0.2, Unchecked: true})
	r.Sources = append(r.Sources, Source{}, Source{Problem: "the stored text is damaged"})
	claims := []string{plant("The last frost is on 26 April."), plant("It was later in 1990."), plant("Nobody knows about 2030.")}
	res.Claims = []marchwarden.Claim{{Text: claims[0], Citations: []int{1, 2}, Support: marchwarden.Supported}, {Text: claims[1], Citations: []int{3}, Support: marchwarden.Partial},
		{Text: claims[2], Citations: []int{4}, Support: marchwarden.Unchecked}}
	said := func(i int) string { return escaped(plaintext.Fold(claims[i])) }
	res.Answer = said(0) + " [1][2] " + said(1) + " [3]\n\n" + said(2) + " [4]"
	res.ShortAnswer = &marchwarden.ShortAnswer{Text: "On " + plant("26 April"), Citation: 1, Span: &marchwarden.Span{Start: 0, End: 8}, Kind: marchwarden.ShortSpan}
	for _, at := range []string{"https://near.example/a_b_", plant("javascript:alert(2)"), plant("one too many")} {
		res.Closest = append(res.Closest, marchwarden.Closest{Source: plant("web"), Locator: at, Title: plant("Of ice"), RawExcerpt: plant("Ice melts\nin May."), Reason: plant("it speaks of May")})
	}
	for _, c := range []marchwarden.GapCategory{marchwarden.ScopeExceeded, marchwarden.SourceNotFound, marchwarden.GapCategory(plant("new_category"))} {
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: plant("frost in 1890"), Category: c, Detail: plant("3 documents were read")})
	}
	res.Decisions = []marchwarden.Decision{{About: string(marchwarden.SourceNotFound), Topic: plant("frost in 1890"), From: 1, Action: marchwarden.Dispatched, Reason: plant("somebody else may know"), Rihla: 2}}
	res.DiscoveryEvents = []marchwarden.DiscoveryEvent{{Type: marchwarden.NewSource, SuggestedResearcher: plant("arxiv"), Query: plant("frost models"), Reason: plant("cited there"), SourceLocator: plant("https://example.org/frost")}}
	res.OpenQuestions = []marchwarden.OpenQuestion{{Question: plant("What of Logan?"), Context: plant("it is colder"), Priority: marchwarden.Low},
		{Question: plant("What of St George?"), Context: plant("it is warmer"), Priority: marchwarden.High, SourceLocator: plant("notes/frost.md")}}
	res.Rihlas = []marchwarden.Rihla{{Researcher: plant("files"), Question: plant("last frost?"), Reason: plant("its scope"), Outcome: plant("2 citations"), Citations: 2, TokensUsed: 1200, WallTimeSec: 0.5,
		TraceID: traceID(t, "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a11")}, {Researcher: plant("web"), Question: plant("frost in 1890?"), Outcome: plant("found nothing"), Parent: 1}}
	res.Contradictions = []marchwarden.Contradiction{{Subject: plant("last frost"), Attribute: plant("date"), Detail: plant("two dates are given"),
		A: marchwarden.Side{Locator: "https://example.org/frost?a=1&b=_c_", RawExcerpt: excerpt, Value: plant("26 April"), Title: plant("Frost dates"), Published: plant("2025-03-02"), Authority: marchwarden.HighAuthority, Researcher: plant("web")},
		B: marchwarden.Side{Locator: plant("https://evil.example/a b"), RawExcerpt: plant("The last frost\nfalls on 15 May."), Value: plant("15 May"), Title: plant("Other dates")}}}
	r.Result = res
	return r
}

// plain plants nothing.
func plain(s string) string { return s }

// payloads are texts that want to be more than text.
var payloads = markuptest.Payloads
