package page

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/chart"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/web/prose"
)

var began = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func number(v float64) *float64 { return &v }

// newSet is the pages as they are served.
func newSet(t testing.TB) *Set {
	t.Helper()
	s, err := New(Sheet{"chart.css", []byte(chart.Style)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// show is one page as a function of its view.
type show struct {
	name  string
	view  any // a pointer to it
	write func(s *Set, w io.Writer, view any) error
}

func page[V any](name string, v V, write func(*Set, io.Writer, V) error) show {
	return show{name, &v, func(s *Set, w io.Writer, view any) error { return write(s, w, *view.(*V)) }}
}

// typical are all pages as they look on a good day.
func typical() []show {
	return []show{
		page("ask", sampleAsk(), (*Set).Ask),
		page("ask-faults", faultyAsk(), (*Set).Ask),
		page("run", Run{Frame: sampleFrame("Watching"), ID: "0195-a", Question: question, Context: "Zone 7b, heavy soil.", Live: sampleLive(), CanCancel: true}, (*Set).Run),
		page("live", sampleLive(), (*Set).Live),
		page("live-over", Live{ID: "0195-a", State: "Done", Over: true, Summary: "It has ended.", Tokens: 3, Budget: 9}, (*Set).Live),
		page("answer", sampleAnswer(7, false), (*Set).Answer),
		page("answer-source", sampleAnswer(7, true), (*Set).Answer),
		page("panel", sampleEvidence(2), (*Set).Panel),
		page("panel-lost", Evidence{RunID: "0195-a", Number: 1, Of: 1, Problem: "its bytes are not what their hash says", Excerpt: "What was said.", Unchecked: true}, (*Set).Panel),
		page("source", sampleSource(), (*Set).Source),
		page("history", sampleHistory(), (*Set).History),
		page("numbers", sampleNumbers(), (*Set).Numbers),
		page("compare", sampleCompare(), (*Set).Compare),
		page("drift", sampleDrift(), (*Set).Drift),
		page("signin", SignIn{Frame: Frame{Title: "Sign in", CSRF: "t", Bare: true}, Team: true, Problem: "this token is not known", Hint: "ask for a new one", Next: "/history", Elsewhere: true}, (*Set).SignIn),
		page("signin-link", SignIn{Frame: Frame{Title: "Sign in", CSRF: "t", Bare: true}}, (*Set).SignIn),
		page("problem", Problem{Frame: sampleFrame("Not found"), Status: 404, Headline: "There is no such run", Message: "no run has the id 0195-z", Hint: "look for it in the history", Code: "not_found", Back: "/history"}, (*Set).Problem),
		page("confirm", Confirm{Frame: sampleFrame("Delete"), ID: "0195-a", Question: question, Act: Delete, Headline: "Delete this run?", Message: "Its record and its answer go. What it read stays while other runs cite it.", Facts: []Fact{{"Asked", "14 March 2026"}, {"Citations", "7"}}, Button: "Delete it"}, (*Set).Confirm),
	}
}

// empty are all pages with nothing in their views.
func empty() []show {
	return []show{
		page("ask", Ask{}, (*Set).Ask), page("run", Run{}, (*Set).Run), page("live", Live{}, (*Set).Live), page("answer", Answer{}, (*Set).Answer),
		page("answer-source", Answer{Evidence: &Evidence{}}, (*Set).Answer), page("panel", Evidence{}, (*Set).Panel), page("source", Source{}, (*Set).Source), page("history", History{}, (*Set).History),
		page("numbers", Numbers{}, (*Set).Numbers), page("compare", Compare{Claims: []Pair{{}}}, (*Set).Compare), page("drift", Drift{}, (*Set).Drift), page("signin", SignIn{}, (*Set).SignIn),
		page("problem", Problem{}, (*Set).Problem), page("confirm", Confirm{}, (*Set).Confirm),
	}
}

func (s show) render(t testing.TB, set *Set) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.write(set, &b, s.view); err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	return b.Bytes()
}

const question = "When is the last frost in the upper valley, and how much has it moved since 1990?"

func sampleFrame(title string) Frame {
	return Frame{Title: title, CSRF: "c5rf", User: "ada@lab", Notice: ""}
}

func sampleAsk() Ask {
	return Ask{
		Frame: sampleFrame("Ask"), Question: question, Researchers: []Choice{
			{Name: "files", Scope: "Your folders: notes, papers, tables (1,204 documents)", Chosen: true},
			{Name: "web", Scope: "Pages of the web", Leaves: true, Where: "Brave Search, then the pages it finds", Chosen: true},
			{Name: "arxiv", Scope: "Preprints in physics, mathematics and computing", Leaves: true, Where: "export.arxiv.org"},
			{Name: "lab", Scope: "Measurements of the lab", Leaves: true, Down: "it does not answer since 09:12"},
		},
		Running: sampleEntries()[:1], Recent: sampleEntries()[1:], Mind: "claude-sonnet",
	}
}

func faultyAsk() Ask {
	a := sampleAsk()
	a.Question, a.Context, a.TokenBudget, a.Depth = "\n"+strings.Repeat("why ", 130), "what I know", "12", "deep"
	a.Faults = []Fault{{"question", "must be at most 500 characters, has 520", "put what you already know into context"}, {"token_budget", "must be at least 1000, not 12", ""}, {"researcher", "choose at least one", ""}, {"", "the queue is full", "try again in a minute"}}
	return a
}

func sampleEntries() []Entry {
	return []Entry{
		{ID: "0195-r", Question: "Which heat pumps keep their output below −15 °C?", Status: "running", Began: began, Researcher: "pi", Tokens: 8120},
		{ID: "0195-a", Question: question, Status: "complete", Began: began.Add(-time.Hour), Took: 41 * time.Second, Researcher: "pi", Confidence: number(.82), Citations: 7, Gaps: 2, Tokens: 14210, Cost: "$0.04",
			Snippet: []Piece{{Text: "…the average last "}, {Text: "frost", Mark: true}, {Text: " now falls on 26 April, nine days earlier than in 1990…"}}},
		{ID: "0195-b", Question: "Who proved the four colour theorem, and with which programs?", Status: "complete", Began: began.Add(-26 * time.Hour), Took: 12 * time.Second, Researcher: "files", Confidence: number(.55), Citations: 3, Tokens: 3120, Imported: true},
		{ID: "0195-c", Question: "كم عدد سكان القاهرة في عام 2020؟", Status: "interrupted", Partial: true, Began: began.Add(-50 * time.Hour), Took: 3 * time.Minute, Researcher: "web", Confidence: number(.31), Citations: 1, Gaps: 3, Tokens: 20000, Cost: "$0.11"},
		{ID: "0195-d", Question: "", Status: "damaged", Problem: "line 14: checksum does not fit"},
	}
}

func sampleGaps() []GapGroup {
	return []GapGroup{
		{"Not found in what was searched", []Gap{{Topic: "frost records of the upper valley before 1990", Detail: "no hit in 1,204 documents", From: "files", Done: []string{"followed by rihla 2: another researcher gets the question"}}}},
		{"Could not be reached or read", []Gap{{Topic: "the yearbook of the weather service", Detail: "the server answered 403 (it wants a login)", From: "web", Done: []string{"left for a person to look at"}}}},
	}
}

func sampleDiscoveries() []Discovery {
	return []Discovery{{Kind: "new source", Query: "growing season trends alpine valleys 1990–2020", Reason: "a review cites station data that is not in the folders", Suggested: "arxiv", Locator: "https://arxiv.org/abs/2101.00001", From: "web"}}
}

func sampleDecisions() []Decision {
	return []Decision{{About: "discovery", Topic: "growing season trends alpine valleys", Action: "followed", Reason: "arxiv is in the network", Rihla: 3}, {About: "gap", Topic: "the yearbook of the weather service", Action: "left for a person to look at"}}
}

func sampleLanes(going bool) template.HTML {
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	l := chart.Timeline{Title: "Researchers at work", Began: began, Now: at(33), Going: going, Lanes: []chart.Lane{
		{Label: "pi", Segments: []chart.Segment{{State: "planning", From: at(0), To: at(4), Critical: true}, {State: "writing", From: at(27)}}},
		{Label: "1 files", Segments: []chart.Segment{{State: "planned", From: at(3), To: at(4)}, {State: "searching", From: at(4), To: at(7)}, {State: "reading", From: at(7), To: at(12)}, {State: "done", From: at(12), To: at(12)}}},
		{Label: "2 web", Segments: []chart.Segment{{State: "planned", From: at(3), To: at(5)}, {State: "searching", From: at(5), To: at(11), Critical: true}, {State: "reading", From: at(11), To: at(24), Critical: true}, {State: "writing", From: at(24), To: at(27), Critical: true}, {State: "done", From: at(27), To: at(27)}}},
		{Label: "3 arxiv", Segments: []chart.Segment{{State: "planned", From: at(12), To: at(14)}, {State: "searching", From: at(14), To: at(19)}, {State: "failed", From: at(19), To: at(19)}}},
	}}
	return chart.Lanes(l).Figure()
}

func sampleLive() Live {
	return Live{
		ID: "0195-a", State: "Reading", Summary: "2 of 3 researchers are back; web is reading its fourth document.", Began: began, Elapsed: 33 * time.Second,
		Tokens: 8120, Budget: 20000, Citations: 4, Lanes: sampleLanes(true),
		Journeys: []Journey{
			{Number: 1, Researcher: "files", Question: question, State: "done", Doing: "3 citations", Iteration: 2, Tokens: 2100, Budget: 5000, Searches: 3, Documents: 4, Citations: 3},
			{Number: 2, Researcher: "web", Question: question, State: "reading", Doing: "meteo.example/valley/frost-days", Iteration: 1, Tokens: 4300, Budget: 7000, Searches: 1, Documents: 3, Citations: 1},
			{Number: 3, Researcher: "arxiv", Question: "growing season trends alpine valleys", State: "failed", Doing: "the service did not answer in time", Searches: 1},
		},
		Gaps: sampleGaps(), Discoveries: sampleDiscoveries(), Decisions: sampleDecisions(),
	}
}

func sampleEvidence(n int) Evidence {
	return Evidence{
		RunID: "0195-a", Number: n, Of: 7, Title: "Frost days in the upper valley, 1961–2025", Locator: "https://meteo.example/valley/frost-days", Kind: "web", Author: "Regional Weather Service", Origin: "meteo.example",
		Published: "2025-11-02", Fetched: began, Authority: "high", Hash: "sha256:3f1c9a" + strings.Repeat("0b", 29), Start: 1204, End: 1336, Confidence: number(.8),
		Claims: []Claim{{Number: 2, Text: "The last frost now falls on 26 April on average.", Support: "supported", Citations: []int{n}}}, State: "unchanged", Detail: "the text is the same", CheckedAt: began.Add(48 * time.Hour),
		Text: []Piece{
			{Text: "Since 1961 the station at the mill has been read every morning. The hut was moved twice, in 1974 and in 1998, and both series were joined by two years of parallel readings.\n\nIn the first normal period the last frost fell on 5 May. "},
			{Text: "In the period from 1991 to 2020 the average last frost falls on 26 April, nine days earlier; in three of the last ten years there was none after the 15th.", Number: n},
			{Text: " The earliest was 2 April 2024.\n\nThe number of frost days a year fell from 112 to 91. Most of the change is in March and in November; the number of days on which the soil froze fell by half."},
		}, CutBefore: true, CutAfter: true, Notes: []string{"The page was rendered with scripts."},
	}
}

func sampleBody(n int) template.HTML {
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
	return prose.Answer(res)
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
		Frame: sampleFrame(question), ID: "0195-a", Question: question, Context: "Zone 7b, heavy soil.", Researcher: "pi", Began: began, Took: 41 * time.Second, Partial: true, Warnings: []string{"One source could not be stored."}, Lead: "26 April on average", LeadsTo: 1, Closest: []Near{{"Frost days", "https://meteo.example/valley/frost-days", "The number of frost days a year fell.", "it speaks of frost"}}, Body: sampleBody(n),
		Confidence: Confidence{Value: .82, Words: "Of answers with this score, about 8 in 10 were right.", Factors: []Factor{
			{"Independent origins", "3", number(.75), "pages of one publisher count once"}, {"Authority of the sources", "high", number(1), "weather service, university"},
			{"Evidence on what was asked", "0.84", number(.84), "how much of the question the excerpts speak to"}, {"Recency", "current", number(1), "the newest source is under a year old"},
			{"Contradictions", "one found", number(.3), "lowers the score"}, {"Budget", "not exhausted", nil, ""}}},
		Contradictions: []Contradiction{{"last frost", "date", "One source says 26 April, the other 1 May.",
			Side{1, "Frost days in the upper valley", "https://meteo.example/valley/frost-days", "the average last frost falls on 26 April", "26 April", "2025-11-02", "high", "web"},
			Side{2, "", "notes/garden.md", "Never plant out before the first of May:\nthe last frost comes then.", "1 May", "2011-04-03", "low", "files"}, []string{"left for a person to look at: nobody else can be asked"}}},
		Gaps: sampleGaps(), Discoveries: sampleDiscoveries(), Decisions: sampleDecisions()[:1], Questions: []OpenQuestion{{"Do the slopes follow the floor of the valley?", "only one station is on a slope", "medium"}},
		Rihlas: []Rihla{{1, 0, "files", question, "general researchers get the whole question", "3 citations", "0195-f", 3, 2100, 9 * time.Second}, {2, 1, "web", question, "files found nothing before 1990", "4 citations", "", 4, 6100, 24 * time.Second}},
		Lanes:  sampleLanes(false), Cost: []Fact{{"Tokens", "14,210 of 20,000"}, {"Cost", "$0.04"}, {"Model", "claude-sonnet"}, {"Documents read", "11"}, {"Nothing", ""}},
		Stages:     chart.Share("", []chart.Stage{{Name: "planning", Tokens: 1200, Time: 4 * time.Second, Critical: 4 * time.Second}, {Name: "searching", Tokens: 0, Time: 14 * time.Second, Critical: 6 * time.Second}, {Name: "reading", Tokens: 5100, Time: 18 * time.Second, Critical: 13 * time.Second}, {Name: "writing", Tokens: 7900, Time: 9 * time.Second, Critical: 9 * time.Second}}).Figure(),
		Provenance: []Fact{{"Trace", "0195-a"}, {"Marchwarden", "1.9.0"}}, Drift: "checked 16 March: 6 sources unchanged, 1 gone",
		Can: Can{Resume: true, Rerun: true, Check: true, Delete: true, More: 10000, Exports: []Export{{"html", "a report as one page"}, {"md", "a report in Markdown"}, {"mwz", "everything, to be checked anywhere"}, {"json", "the result"}, {"bibtex", "the sources"}}},
	}
	for i := 1; i <= n; i++ {
		a.Claims = append(a.Claims, Claim{i, sentences[i%len(sentences)], []string{"supported", "partial", "unsupported", "unchecked", "quoted"}[i%5], []int{i}})
		a.Sources = append(a.Sources, SourceLine{i, "Frost days in the upper valley, 1961–2025", fmt.Sprintf("https://meteo.example/valley/frost-days/%d", i), "2025-11-02", "high", []string{"", "unchanged", "gone"}[i%3]})
	}
	if open {
		e := sampleEvidence(2)
		a.Evidence = &e
	}
	return a
}

func sampleSource() Source {
	e := sampleEvidence(2)
	e.CutBefore, e.CutAfter = false, false
	e.Text = append([]Piece{{Text: "The valley opens to the south-west.", Number: 5}, {Text: " It is cold.\n\n"}}, e.Text...)
	return Source{Frame: sampleFrame("Frost days"), RunID: "0195-a", Question: question, Evidence: e, Cut: true, Excerpts: []SourceLine{{Number: 2, Title: "In the period from 1991 to 2020 the average last frost"}, {Number: 5, Title: "The valley opens to the south-west."}}}
}

func sampleHistory() History {
	return History{
		Frame: sampleFrame("History"), Words: `frost "upper valley"`, Statuses: []Option{{"complete", "Complete", true, 31}, {"interrupted", "Interrupted", false, 2}, {"running", "Running", false, 1}, {"damaged", "Damaged", false, 1}},
		Researchers: []Option{{"pi", "pi", false, 20}, {"web", "web", false, 9}}, MinConfidence: "0.5", Since: "2026-01-01", Entries: sampleEntries(), Total: 35, From: 21, To: 25,
		Newer: url.Values{"q": {`frost "upper valley"`}}, Older: url.Values{"q": {`frost "upper valley"`}, "offset": {"40"}}, With: "0195-b", Faults: []Fault{{"max_cost", "must be a number, not x", ""}}, MaxCost: "x",
	}
}

func sampleNumbers() Numbers {
	var costs []chart.Cost
	for i := range 40 {
		costs = append(costs, chart.Cost{Day: began.AddDate(0, 0, -i%14), Model: []string{"claude-sonnet", "gpt-mini"}[i%2], USD: number(float64(i%7) * .013)})
	}
	return Numbers{Frame: sampleFrame("Numbers"), Spans: []Option{{"7", "7 days", false, 0}, {"30", "30 days", true, 0}, {"365", "A year", false, 0}}, Facts: []Fact{{"Runs", "35"}, {"Tokens", "412,000"}, {"Cost", "$1.91"}, {"Nothing", ""}},
		Figures: []Figure{{"Cost by day and model", "Runs whose price is not known are not in it.", chart.Bars("", costs).Figure()}, {"Budget use", "How much of what they were allowed runs used.", chart.Use("", []chart.Budget{{Label: "last frost", Used: 14210, Allowed: 20000}, {Label: "heat pumps", Used: 8120, Allowed: 20000}, {Label: "Cairo", Used: 20000, Allowed: 20000}}).Figure()},
			{"Tokens and time by stage", "", sampleAnswer(1, false).Stages}}}
}

func sampleCompare() Compare {
	es := sampleEntries()
	return Compare{Frame: sampleFrame("Compare"), A: es[1], B: es[3], Rows: []Measure{{"Confidence", "0.82", "0.31", "−0.51"}, {"Tokens", "14,210", "20,000", "+5,790"}},
		Claims:  []Pair{{&Claim{1, sentences[0], "supported", []int{1}}, &Claim{2, sentences[0], "supported", []int{1}}, false}, {&Claim{2, sentences[1], "supported", nil}, &Claim{3, sentences[1], "partial", nil}, true}, {A: &Claim{3, sentences[2], "partial", nil}}, {B: &Claim{4, sentences[3], "unchecked", nil}}},
		Sources: []Shared{{"Frost days in the upper valley", "https://meteo.example/valley/frost-days", true, true}, {"Notes of a gardener", "notes/garden.md", false, true}}, Gaps: []Shared{{"frost records before 1990", "", true, false}}}
}

func sampleDrift() Drift {
	return Drift{Frame: sampleFrame("Drift"), ID: "0195-a", Question: question, CheckedAt: began, Summary: "7 sources: 5 unchanged, 1 changed, 1 gone; 1 claim lost evidence", CanCheck: true,
		Sources: []DriftSource{
			{Title: "Frost days in the upper valley", Locator: "https://meteo.example/valley/frost-days", State: "changed", MovedTo: "https://meteo.example/frost", Fetched: began, Passages: []DriftPassage{{1, "altered", "falls on 26 April", []Edit{{Text: "falls on"}, {Text: "26", Went: true}, {Text: "24", Came: true}, {Text: "April"}}}, {2, "present", "nine days earlier", nil}}},
			{Locator: "https://gone.example/", State: "gone", Detail: "the server answered 404", Passages: []DriftPassage{{3, "missing", "once upon a time", nil}}}},
		Claims: []DriftClaim{{sentences[0], "kept", []int{1, 2}}, {sentences[1], "weakened", []int{3}}, {sentences[2], "lost", nil}}}
}
