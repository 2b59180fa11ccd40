package page

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report"
	h "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/report/markup"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/watch"
)

var began = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func ptr(v float64) *float64 { return &v }

func unitOf(v marchwarden.Unit) *marchwarden.Unit { return &v }

// idOf is the id of a sample run.
func idOf(n int) marchwarden.TraceID {
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("01950000-0000-7000-8000-%012d", n))
	if err != nil {
		panic(err)
	}
	return id
}

func panel(e Evidence) h.Node { return e.Panel() }

// show is one page as a function of its view.
type show struct {
	name  string
	view  any // a pointer to it
	write func(view any) h.Node
}

func page[V any](name string, v V, write func(V) h.Node) show {
	return show{name, &v, func(view any) h.Node { return write(*view.(*V)) }}
}

// typical are all pages as they look on a good day.
func typical() []show {
	return []show{
		page("ask", sampleAsk(), Ask.Page),
		page("ask-faults", faultyAsk(), Ask.Page),
		page("run", Run{Frame: sampleFrame("Watching"), ID: "0195-a", Question: question, Live: sampleLive(), CanCancel: true}, Run.Page),
		page("live", sampleLive(), Live.Node),
		page("answer", sampleAnswer(7, false), Answer.Page),
		page("answer-source", sampleAnswer(7, true), Answer.Page),
		page("panel", sampleEvidence(2), panel),
		page("panel-lost", Evidence{RunID: "0195-a", Number: 1, Of: 1, Problem: "its bytes are not what their hash says", Cited: marchwarden.Citation{RawExcerpt: "What was said.", Unchecked: true}}, panel),
		page("source", sampleSource(), Source.Page),
		page("history", sampleHistory(), History.Page),
		page("watch", sampleWatch(), Watch.Page),
		page("library", sampleLibrary(), Library.Page),
		page("drift", sampleDrift(), Drift.Page),
		page("signin", SignIn{Frame: Frame{Title: "Sign in", CSRF: "t", Bare: true}, Team: true, Problem: "this token is not known", Hint: "ask for a new one", Next: "/history"}, SignIn.Page),
		page("signin-link", SignIn{Frame: Frame{Title: "Sign in", CSRF: "t", Bare: true}}, SignIn.Page),
		page("problem", Problem{Frame: sampleFrame("Not found"), Status: 404, Headline: "There is no such run", Message: "no run has the id 0195-z", Hint: "look for it in the history", Code: "not_found", Back: "/history"}, Problem.Page),
		page("confirm", Deletion{Frame: sampleFrame("Delete"), ID: "0195-a", Question: question, Facts: []report.Fact{{Label: "Asked", Value: "14 March 2026"}, {Label: "Citations", Value: "7"}}}, Deletion.Page),
	}
}

// empty are all pages with nothing in their views.
func empty() []show {
	return []show{
		page("ask", Ask{}, Ask.Page), page("run", Run{}, Run.Page), page("live", Live{}, Live.Node), page("answer", Answer{}, Answer.Page),
		page("answer-source", Answer{Evidence: &Evidence{}}, Answer.Page), page("panel", Evidence{}, panel), page("source", Source{}, Source.Page), page("history", History{}, History.Page),
		page("watch", Watch{}, Watch.Page), page("library", Library{}, Library.Page), page("drift", Drift{}, Drift.Page), page("signin", SignIn{}, SignIn.Page),
		page("problem", Problem{}, Problem.Page), page("confirm", Deletion{}, Deletion.Page),
	}
}

func (s show) render() []byte { return []byte(s.write(s.view).String()) }

const question = "When is the last frost in the upper valley, and how much has it moved since 1990?"

func sampleFrame(title string) Frame {
	return Frame{Title: title, CSRF: "c5rf", User: "ada@lab", Notice: ""}
}

func sampleAsk() Ask {
	return Ask{
		Frame: sampleFrame("Ask"), Question: question, Researchers: []Choice{
			{Name: "files", Scope: "Your folders: notes, papers, tables (1,204 documents)", On: true},
			{Name: "web", Scope: "Pages of the web", OpenWorld: true, On: true},
			{Name: "arxiv", Scope: "Preprints in physics, mathematics and computing", OpenWorld: true},
			{Name: "lab", Scope: "Measurements of the lab", OpenWorld: true, Down: "it does not answer since 09:12"},
		},
		Examples: []string{"When does it freeze?"}, Running: sampleEntries()[:1], Recent: sampleEntries()[1:], Mind: "claude-sonnet",
	}
}

func faultyAsk() Ask {
	a := sampleAsk()
	a.Question, a.Context, a.TokenBudget, a.Depth = "\n"+strings.Repeat("why ", 130), "what I know", "12", "deep"
	a.Faults = []Fault{{"question", "must be at most 500 characters, has 520", "put what you already know into context"}, {"token_budget", "must be at least 1000, not 12", ""}, {"researcher", "choose at least one", ""}, {"", "the queue is full", "try again in a minute"}}
	return a
}

func sampleEntries() []run.Entry {
	return []run.Entry{
		{ID: idOf(1), Question: "Which heat pumps keep their output below −15 °C?", Standing: run.Standing{Status: run.Running}, Began: began, Researcher: "pi"},
		{ID: idOf(2), Question: question, Standing: run.Standing{Status: run.Complete}, Began: began.Add(-time.Hour), Researcher: "pi", Confidence: unitOf(.82), Citations: 7, CostUSD: ptr(.04),
			Answer: "…the average last frost now falls on 26 April, nine days earlier than in 1990…"},
		{ID: idOf(3), Question: "Who proved the four colour theorem, and with which programs?", Standing: run.Standing{Status: run.Complete, Imported: true}, Began: began.Add(-26 * time.Hour), Researcher: "files", Confidence: unitOf(.55), Citations: 3},
		{ID: idOf(4), Question: "كم عدد سكان القاهرة في عام 2020؟", Standing: run.Standing{Status: run.Interrupted, Partial: true}, Began: began.Add(-50 * time.Hour), Researcher: "web", Confidence: unitOf(.31), Citations: 1, CostUSD: ptr(.11)},
		{ID: idOf(5), Question: "", Standing: run.Standing{Status: run.Damaged, Problem: "line 14: checksum does not fit"}},
	}
}

func sampleGaps() []report.GapGroup {
	return []report.GapGroup{
		{Words: "Not found in what was searched", Gaps: []report.Gap{{Topic: "frost records of the upper valley before 1990", Detail: "no hit in 1,204 documents", Done: []string{"followed by rihla 2: another researcher gets the question"}}}},
		{Words: "Could not be reached or read", Gaps: []report.Gap{{Topic: "the yearbook of the weather service", Detail: "the server answered 403 (it wants a login)", Done: []string{"left for a person to look at"}}}},
	}
}

func sampleDiscoveries() []Discovery {
	return []Discovery{{marchwarden.DiscoveryEvent{Type: marchwarden.NewSource, Query: "growing season trends alpine valleys 1990–2020", Reason: "a review cites station data that is not in the folders", SuggestedResearcher: "arxiv", SourceLocator: "https://arxiv.org/abs/2101.00001"}, "web"}}
}

func sampleDecisions() []marchwarden.Decision {
	return []marchwarden.Decision{{About: "discovery", Topic: "growing season trends alpine valleys", Action: marchwarden.Dispatched, Reason: "arxiv is in the network", Rihla: 3}, {About: "gap", Topic: "the yearbook of the weather service", Action: marchwarden.Flagged}}
}

func sampleLive() Live {
	return Live{
		Summary: "2 of 3 researchers are back; web is reading its fourth document.", Elapsed: 33 * time.Second,
		Board: run.Board{Tokens: 8120, Budget: 20000, Decisions: sampleDecisions(), Lanes: []run.Lane{
			{Number: 1, Researcher: "files", Question: question, State: "done", Doing: "3 citations", Documents: 4, Citations: 3},
			{Number: 2, Researcher: "web", Question: question, State: "reading", Doing: "meteo.example/valley/frost-days", Documents: 3, Read: []string{"https://meteo.example/valley/frost-days", "notes/<garden>.md"}, Citations: 1},
			{Number: 3, Researcher: "arxiv", Question: "growing season trends alpine valleys", State: "failed", Doing: "the service did not answer in time"},
		}},
		Gaps: sampleGaps(), Discoveries: sampleDiscoveries(),
	}
}

func sampleEvidence(n int) Evidence {
	return Evidence{
		RunID: "0195-a", Number: n, Of: 7, Author: "Regional Weather Service",
		Cited: marchwarden.Citation{Title: "Frost days in the upper valley, 1961–2025", Locator: "https://meteo.example/valley/frost-days", Source: "web", Origin: "meteo.example",
			Published: "2025-11-02", FetchedAt: &began, Authority: "high", ContentHash: "sha256:3f1c9a" + strings.Repeat("0b", 29), Span: &marchwarden.Span{Start: 1204, End: 1336}, Confidence: .8},
		Claims: []report.ClaimView{{Number: 2, Text: "The last frost now falls on 26 April on average.", Verdict: "supported", Sources: []int{n}}}, State: "unchanged", Detail: "the text is the same", CheckedAt: began.Add(48 * time.Hour),
		Window: &report.Window{
			Before:  "Since 1961 the station at the mill has been read every morning. The hut was moved twice, in 1974 and in 1998, and both series were joined by two years of parallel readings.\n\nIn the first normal period the last frost fell on 5 May. ",
			Excerpt: "In the period from 1991 to 2020 the average last frost falls on 26 April, nine days earlier; in three of the last ten years there was none after the 15th.",
			After:   " The earliest was 2 April 2024.\n\nThe number of frost days a year fell from 112 to 91. Most of the change is in March and in November; the number of days on which the soil froze fell by half.",
			Earlier: 300, Later: 9000,
		}, Notes: []string{"The page was rendered with scripts."},
	}
}

func sampleBody(n int) h.Node {
	var b strings.Builder
	res := &marchwarden.Result{Citations: make([]marchwarden.Citation, n)}
	verdicts := []marchwarden.Support{"supported", "supported", "partial", "supported", "unsupported", "unchecked", "supported"}
	for i := 1; i <= n; i++ {
		s := sentences[i%len(sentences)]
		fmt.Fprintf(&b, "%s [%d] ", s, i)
		if i%4 == 0 {
			b.WriteString("\n\n")
		}
		res.Claims = append(res.Claims, marchwarden.Claim{Text: s, Citations: []int{i}, Support: verdicts[i%len(verdicts)]})
	}
	res.Answer = b.String()
	return report.AnswerHTML(res)
}

var sentences = []string{
	"In the upper valley the last frost of spring now falls on 26 April on average.",
	"That is nine days earlier than in the normal period that ended in 1990, when it fell on 5 May.",
	"In three of the last ten years there was no frost after the middle of the month.",
	"The number of frost days a year fell from 112 to 91, most of it in March and in November.",
	"Slopes above the mill keep their frost about a week longer than the floor of the valley.",
}

func sampleAnswer(n int, open bool) Answer {
	a := Answer{
		Frame: sampleFrame(question), ID: "0195-a", Partial: true, Body: sampleBody(n), States: map[int]string{},
		Report: report.Report{Question: question, StartedAt: began, Result: &marchwarden.Result{Confidence: .82, CostMetadata: marchwarden.CostMetadata{WallTimeSec: 41},
			OpenQuestions: []marchwarden.OpenQuestion{{Question: "Do the slopes follow the floor of the valley?", Context: "only one station is on a slope", Priority: "medium"}}}},
		View: report.View{
			Notices: []string{"One source could not be stored."}, Lead: "26 April on average", LeadsTo: 1,
			Closest: []report.SideView{{Heading: "Frost days", Locator: "https://meteo.example/valley/frost-days", Excerpt: "The number of frost days a year fell.", Facts: []string{"it speaks of frost"}}},
			Contradictions: []report.ContradictionView{{About: "last frost: date", Detail: "One source says 26 April, the other 1 May.", Sides: [2]report.SideView{
				{Source: 1, Heading: "Frost days in the upper valley", Locator: "https://meteo.example/valley/frost-days", Excerpt: "the average last frost falls on 26 April", Value: "26 April", Facts: []string{"published 2025-11-02", "authority high", "reported by web"}},
				{Source: 2, Heading: "notes/garden.md", Locator: "notes/garden.md", Excerpt: "Never plant out before the first of May:\nthe last frost comes then.", Value: "1 May", Facts: []string{"published 2011-04-03"}}}}},
			Factors: []report.Fact{{Label: "Independent origins", Value: "3"}, {Label: "Authority of the sources", Value: "high"}, {Label: "Evidence on what was asked", Value: "0.84"},
				{Label: "Recency", Value: "current"}, {Label: "Contradictions", Value: "one found"}, {Label: "Budget", Value: "not exhausted"}},
			Gaps:       sampleGaps(),
			Rihlas:     []report.Item{{Head: "files", Text: question, Facts: []string{"general researchers get the whole question", "3 citations"}}, {Head: "web", Text: question, Facts: []string{"after rihla 1", "4 citations"}}},
			Cost:       []report.Fact{{Label: "Tokens", Value: "14,210 of 20,000"}, {Label: "Cost", Value: "$0.04"}, {Label: "Nothing"}},
			Provenance: []report.Fact{{Label: "Trace", Value: "0195-a"}, {Label: "Marchwarden", Value: "1.9.0"}},
		},
		Discoveries: sampleDiscoveries(), Decisions: sampleDecisions()[:1],
		Drift: "checked 16 March: 6 sources unchanged, 1 gone",
		Can:   Can{Resume: true, Rerun: true, Check: true, Delete: true, More: 10000, Exports: []Format{{Name: "html", About: "a report as one page"}, {Name: "md", About: "a report in Markdown"}, {Name: "mwz", About: "everything, to be checked anywhere"}, {Name: "json", About: "the result"}, {Name: "bibtex", About: "the sources"}}},
	}
	for i := 1; i <= n; i++ {
		a.View.Claims = append(a.View.Claims, report.ClaimView{Number: i, Text: sentences[i%len(sentences)], Verdict: []string{"supported", "partial", "unsupported", "unchecked", "quoted"}[i%5], Sources: []int{i}})
		a.View.Sources = append(a.View.Sources, report.SourceView{Number: i, Heading: "Frost days in the upper valley, 1961–2025", Document: fmt.Sprintf("https://meteo.example/valley/frost-days/%d", i/2), Published: "2025-11-02", Excerpt: sentences[i%len(sentences)]})
		a.View.Documents = append(a.View.Documents, []int{i})
		a.States[i] = []string{"", "unchanged", "gone"}[i%3]
	}
	if open {
		e := sampleEvidence(2)
		a.Evidence = &e
	}
	return a
}

func sampleSource() Source {
	e := sampleEvidence(2)
	return Source{Frame: sampleFrame("Frost days"), RunID: "0195-a", Question: question, Evidence: e, Excerpts: []report.SourceView{{Number: 2, Excerpt: "In the period from 1991 to 2020 the average last frost"}, {Number: 5, Excerpt: "The valley opens to the south-west."}}}
}

func sampleHistory() History {
	return History{
		Frame: sampleFrame("History"), Words: `frost "upper valley"`, Statuses: []Option{{"complete", true}, {"interrupted", false}, {"running", false}, {"damaged", false}},
		Researchers: []Option{{"pi", false}, {"web", false}}, Entries: sampleEntries(), Total: 35, From: 21, To: 25,
		Newer: url.Values{"q": {`frost "upper valley"`}}, Older: url.Values{"q": {`frost "upper valley"`}, "offset": {"40"}}, Faults: []Fault{{"q", "must be at most 64 words", ""}},
	}
}

func sampleWatch() Watch {
	return Watch{Frame: sampleFrame("Watched questions"), CanRemove: true, Questions: []watch.Question{{ID: idOf(1), Last: idOf(2), Every: 7 * 24 * time.Hour, Due: began, Request: marchwarden.Request{Question: question},
		Reports: []watch.Report{{At: began, TraceID: idOf(1)}, {At: began, TraceID: idOf(2), Before: idOf(1), Unchanged: 3, Claims: []watch.Claim{{State: watch.Changed, Text: "It was lit in 1887.", Now: "It was lit in 1878.", Detail: "It was lit in 1878."}},
			Sources: []watch.Source{{State: watch.Changed, Locator: "https://example.org/lamp", Title: "The lamp", Detail: "it moved"}}}, {At: began, Failed: "no model"}}}}}
}

func sampleLibrary() Library {
	f := sampleFrame("Library")
	f.Library = true
	return Library{Frame: f, Going: "Reading a folder: 50 of 1,204 files", Faults: []Fault{{"path", "does not exist", "name one that does"}},
		Folders: []Folder{{Path: "/home/ada/papers", Files: 1204, Bytes: 1 << 20, Updated: began}, {Path: "/mnt/<gone>", Missing: true}, {Path: "/srv/notes", Given: true}, {Path: "/home/ada/new"}}}
}

func sampleDrift() Drift {
	return Drift{Frame: sampleFrame("Drift"), ID: "0195-a", Question: question, CheckedAt: began, Summary: "7 sources: 5 unchanged, 1 changed, 1 gone; 1 claim lost evidence", CanCheck: true, Report: drift.Report{
		Sources: []drift.Source{
			{Title: "Frost days in the upper valley", Locator: "https://meteo.example/valley/frost-days", State: drift.Changed, MovedTo: "https://meteo.example/frost", FetchedAt: began, Citations: []int{1, 2}},
			{Locator: "https://gone.example/", State: drift.Unreachable, Why: drift.Gone, Detail: "the server answered 404", Citations: []int{3, 9}}},
		Passages: []drift.Passage{{Citation: 1, State: drift.Altered, Excerpt: "falls on 26 April", Now: "falls on 24 April"},
			{Citation: 2, State: drift.Present, Excerpt: "nine days earlier"}, {Citation: 3, State: drift.Missing, Excerpt: "once upon a time"}},
		Claims: []drift.Claim{{Text: sentences[0], State: drift.Kept, Citations: []int{1, 2}}, {Text: sentences[1], State: drift.Weakened, Citations: []int{3}}, {Text: sentences[2], State: drift.Lost}}}}
}
