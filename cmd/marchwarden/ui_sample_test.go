//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/ledger"
)

// sampleQuestion is what the runs of the pictures are about.
const sampleQuestion = "How did lighthouses change from oil to electric light, and when?"

// printedSource is a source that is from a PDF: its title, and its paragraphs in lines of one length, around a figure.
func printedSource(src handSource) handSource {
	var page strings.Builder
	escaped := strings.NewReplacer("\\", "\\\\", "(", "\\(", ")", "\\)")
	line := func(font string, size, x, y int, text string) {
		fmt.Fprintf(&page, "BT /%s %d Tf %d %d Td (%s) Tj ET\n", font, size, x, y, escaped.Replace(text))
	}
	line("F2", 24, 72, 700, src.title)
	y := 660
	for paragraph := range strings.SplitSeq(src.before+src.excerpt+src.after, "\n\n") {
		text := ""
		for _, word := range append(strings.Fields(paragraph), "") {
			if len(text)+1+len(word) > 78 || word == "" {
				line("F1", 13, 72, y, text)
				text, y = "", y-18
			}
			text = strings.TrimSpace(text + " " + word)
		}
		y -= 9
	}
	// A tower on a rock, its lantern, and the beams.
	fmt.Fprintf(&page, "0.1 0.35 0.5 rg 0.1 0.35 0.5 RG 2 w 296 90 m 316 90 l 312 168 l 300 168 l f 298 172 16 14 re f 296 188 m 306 200 l 316 188 l f 300 179 m 200 200 l S 300 179 m 200 160 l S 312 179 m 412 200 l S 312 179 m 412 160 l S 0.6 0.6 0.6 RG 1 w 230 88 m 382 88 l S\n0 g\n")
	line("F1", 11, 217, 66, "Fig. 1. The tower, and the reach of its light.")
	objects := []string{"<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> /Contents 4 0 R >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", page.Len(), &page),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman >>", "<< /Type /Font /Subtype /Type1 /BaseFont /Times-Bold >>"}
	out := "%PDF-1.4\n"
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	src.pdf = []byte(out + table + fmt.Sprintf("trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, len(out)))
	return src
}

// lampSources are what the sample cites.
var lampSources = []handSource{
	printedSource(handSource{kind: "file", title: "The first electric lighthouses", locator: "papers:electric-lighthouses.pdf#page=1", origin: "papers", published: "2019-04-02", authority: marchwarden.HighAuthority,
		before: "Before 1850 nearly every light on the coast burned oil. Keepers trimmed wicks through the night, and soot dulled the glass within hours. A lamp of three wicks, behind the best of lenses, was seen at twenty miles in clear air and at two in fog.\n\n" +
			"An arc between two rods of carbon had been shown in lecture rooms since 1808. It was brighter than anything that burned, and it lasted minutes: batteries ran down, and the rods had to be moved together by hand as they wore away.\n\n",
		excerpt: "In December 1858 South Foreland became the first lighthouse to show an electric light, from a carbon arc lamp fed by a magneto machine.",
		after: "\n\nFaraday, who advised the corporation that kept the lights, reported that the light was steady and strong. The machines were costly: two steam engines had to be kept running whenever the lamp was lit.\n\nThe trial ended in 1860, and the lamp was moved to Dungeness.\n\n" +
			"Seen from the French coast, the new light stood out from all others along the strait. Masters of ships praised it in fog and complained of its glare on clear nights, and pilots asked that it be kept."}),
	{kind: "web", title: "Dungeness: an experiment", locator: "https://example.net/dungeness", origin: "example.net", published: "2021-09-14", authority: marchwarden.MediumAuthority,
		before:  "The lamp came to Dungeness in 1862. ",
		excerpt: "The arc lamp at Dungeness was given up for oil again in 1874 because of the expense.",
		after:   " Captains had complained of its glare."},
	{kind: "file", title: "Keeper's notes", locator: "lib://notes/keeper.md", origin: "notes",
		before:  "# Souter\n\n",
		excerpt: "Souter Lighthouse, lit on 11 January 1871, was the first that was built for electric light.",
		after:   "\n\nIts arc lamps were changed for oil in 1914."},
	{kind: "web", title: "Lamps of the twentieth century", locator: "https://example.org/history/filament", origin: "example.org", published: "2022-01-20", authority: marchwarden.HighAuthority,
		before:  "Arc lamps needed a keeper at hand. ",
		excerpt: "From the 1920s on filament lamps, which needed no tending, replaced oil at most stations.",
		after:   " By 1960 few oil lights were left."},
}

// sampleRun is an investigation with something in every part of its page.
func sampleRun(question string, began time.Time) handRun {
	claims := []marchwarden.Claim{
		{Text: "Electric light came to lighthouses in 1858, when South Foreland showed a carbon arc lamp.", Citations: []int{1}, Support: marchwarden.Supported},
		{Text: "The trial went on at Dungeness and was given up in 1874 because of the expense.", Citations: []int{2}, Support: marchwarden.Supported},
		{Text: "Souter, lit in 1871, was the first that was built for it.", Citations: []int{3}, Support: marchwarden.Supported},
		{Text: "Most stations changed from oil in the 1920s and later, to filament lamps that needed no keeper.", Citations: []int{4, 1}, Support: marchwarden.Partial},
	}
	res := &marchwarden.Result{Confidence: 0.74, Claims: claims,
		Answer: "Electric light came to lighthouses in 1858, when South Foreland showed a carbon arc lamp. [1] The trial went on at Dungeness and was given up in 1874 because of the expense. [2] " +
			"Souter, lit in 1871, was the first that was built for it. [3]\n\nMost stations changed from oil in the 1920s and later, to filament lamps that needed no keeper. [4] [1]",
		ConfidenceFactors: marchwarden.ConfidenceFactors{NumCorroboratingSources: 3, SourceAuthority: marchwarden.HighAuthority, ContradictionDetected: true, QuerySpecificityMatch: 0.8, Recency: marchwarden.Recent},
		Gaps: []marchwarden.Gap{
			{Topic: "Lights outside Europe", Category: marchwarden.SourceNotFound, Detail: "nothing in the library or on the pages that were found speaks of them"},
			{Topic: "https://example.net/archive", Category: marchwarden.AccessDenied, Detail: "the page asks for a login"}},
		Contradictions: []marchwarden.Contradiction{{Subject: "the arc lamp at Dungeness", Attribute: "end", Detail: "Two sources give different years.",
			A: marchwarden.Side{Locator: lampSources[1].locator, Title: lampSources[1].title, RawExcerpt: lampSources[1].excerpt, Value: "1874", Published: "2021-09-14", Authority: marchwarden.MediumAuthority, Researcher: "web"},
			B: marchwarden.Side{Locator: "https://example.com/lamps", Title: "Lamps and lenses", RawExcerpt: "The electric light at Dungeness was put out in 1875.", Value: "1875", Published: "2003-05-01", Authority: marchwarden.LowAuthority, Researcher: "web"}}},
		DiscoveryEvents: []marchwarden.DiscoveryEvent{{Type: marchwarden.RelatedResearch, SuggestedResearcher: "arxiv", Query: "luminous intensity of early arc lamps", Reason: "a page cites measurements", SourceLocator: "https://example.org/measurements"}},
		OpenQuestions:   []marchwarden.OpenQuestion{{Question: "When was the last oil light put out?", Context: "the sources end in 1960", Priority: marchwarden.Medium}},
		Decisions: []marchwarden.Decision{
			{About: "source_not_found", Topic: "Lights outside Europe", From: 2, Action: marchwarden.Accepted, Reason: "no researcher covers it"},
			{About: "open_question", Topic: "When was the last oil light put out?", From: 2, Action: marchwarden.Flagged, Reason: "it is left to you"}},
		Rihlas: []marchwarden.Rihla{
			{Researcher: "files", Question: "What do the notes say about electric lighthouses?", Reason: "own notes first", Outcome: "came back", Citations: 1, TokensUsed: 4200, WallTimeSec: 9},
			{Researcher: "web", Question: question, Reason: "dates and places", Outcome: "came back", Citations: 3, TokensUsed: 4200, WallTimeSec: 24}},
		CostMetadata: marchwarden.CostMetadata{TokensUsed: 18250, IterationsRun: 4, ModelID: "openai/gpt-4.1-mini", SourcesRead: 9},
	}
	return handRun{question: question, model: "openai/gpt-4.1-mini", began: began, took: 34 * time.Second, sources: lampSources, result: res,
		rihlas: []handRihla{
			{researcher: "files", question: "What do the notes say about electric lighthouses?", reason: "own notes first", sent: 2, search: 2, read: 4, write: 7, check: 10, end: 11},
			{researcher: "web", question: question, reason: "dates and places", sent: 2, search: 3, read: 9, write: 19, check: 24, end: 26,
				gaps: res.Gaps, discoveries: res.DiscoveryEvents}}}
}

// writeSample fills a home for pictures: runs of three weeks, their costs, and a check of the sample's sources.
// The page of the sample's own run is /runs/ and the id that it gives.
func writeSample(h *byHand) marchwarden.TraceID {
	h.t.Helper()
	costs := filepath.Join(h.kept, "costs.jsonl")
	for i, q := range []string{"Which crops grow well in a garden in Utah?", "What emerging startups work on CRISPR gene therapy?", "How fast do glaciers in the Alps retreat?",
		"When was the Lake Vettern boathouse built?", "Who invented the Fresnel lens, and why?", "Which birds winter on the island?", "How is sea fog forecast?", "What did a keeper earn in 1900?"} {
		for again := range 2 {
			began := handNoon.Add(-time.Duration(i*2+again) * 24 * time.Hour)
			model := []string{"openai/gpt-4.1-mini", "anthropic/claude-haiku-4-5"}[(i/2+again)%2]
			res := &marchwarden.Result{Answer: "The sources that were found agree on it.", Confidence: marchwarden.Unit(0.35 + 0.07*float64((i+again)%9)),
				CostMetadata: marchwarden.CostMetadata{TokensUsed: 4000 + 3100*((i+again)%8), ModelID: model}}
			id, w := h.put(handRun{question: q, researcher: []string{"files", "web", "arxiv"}[(i+again)%3], model: model, began: began, took: time.Duration(8+i*5) * time.Second,
				sources: lampSources[:1+i%3], result: res, going: i == 5 && again == 0})
			if w != nil {
				if err := w.Close(); err != nil {
					h.t.Fatal(err)
				}
			}
			prices, _ := ledger.Prices(nil).Of(model)
			usd, known := prices.Cost(model, ledger.Tokens{In: res.CostMetadata.TokensUsed * 4 / 5, Out: res.CostMetadata.TokensUsed / 5})
			if !known {
				h.t.Fatalf("nobody knows what %s costs", model)
			}
			if err := ledger.Append(costs, ledger.Entry{Time: began, TraceID: id, Researcher: "web", Question: q, Model: model, TokensUsed: res.CostMetadata.TokensUsed, WallTimeSec: 9, CostUSD: &usd, Outcome: ledger.Answered}); err != nil {
				h.t.Fatal(err)
			}
		}
	}
	asked := sampleRun(sampleQuestion, handNoon.Add(26*time.Hour))
	id, _ := h.put(asked)
	rep := drift.Report{TraceID: id, CheckedAt: handNoon.Add(72 * time.Hour)}
	for i, src := range lampSources {
		state, standing, holds := drift.Unchanged, drift.Present, drift.Kept
		now := ""
		if i == 1 {
			state, standing, holds = drift.Changed, drift.Altered, drift.Lost
			now = "The arc lamp at Dungeness was given up for oil again in 1875 because of the cost."
		}
		rep.Sources = append(rep.Sources, drift.Source{Locator: src.locator, Title: src.title, State: state, Citations: []int{i + 1}})
		rep.Passages = append(rep.Passages, drift.Passage{Citation: i + 1, Locator: src.locator, State: standing, Excerpt: src.excerpt, Now: now})
		rep.Claims = append(rep.Claims, drift.Claim{Text: asked.result.Claims[i].Text, Citations: []int{i + 1}, State: holds})
	}
	if err := drift.Keep(h.kept, rep); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// sampleLive is an investigation in its 42nd second.
func sampleLive() handRun {
	return handRun{question: sampleQuestion, going: true, began: time.Now().Add(-42 * time.Second), rihlas: []handRihla{
		{researcher: "files", question: "What do the notes say about electric lighthouses?", reason: "own notes first", sent: 2, search: 2, read: 4, write: 9, check: 13, end: 15},
		{researcher: "web", question: "When did lighthouses change to electric light?", reason: "dates and places", sent: 2, search: 3, read: 12, write: 30},
		{researcher: "arxiv", question: "How strong were early arc lamps?", reason: "a page cites measurements", sent: 16, search: 20, read: 33},
		{researcher: "web", question: "Which oil lights were the last?", reason: "an open question", sent: 28, search: 36},
		{researcher: "database", question: "How many stations had electric light by year?", reason: "counts", sent: 4, search: 6, end: 14, failed: "the database does not answer",
			gaps: []marchwarden.Gap{{Topic: "Stations by year", Category: marchwarden.AccessDenied, Detail: "the database does not answer"}}},
	}}
}
