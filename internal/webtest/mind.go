package webtest

import (
	"encoding/json"
	"regexp"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
)

// The call sites of the model reasoner, told apart by how their instructions begin.
const (
	SiteStep   = "step"
	SiteWrite  = "write"
	SiteJudge  = "judge"
	SiteRepair = "repair"
	// SiteComplete completes the question of a conversation.
	SiteComplete = "complete"
)

// SiteOf says which call site a turn comes from.
func SiteOf(turn llmtest.Turn) string {
	told := "\n" + turn.System + "\n" + turn.Input
	for begins, site := range map[string]string{"\nYou plan web": SiteStep, "\nYou complete": SiteComplete, "\nAnswer from": SiteWrite, "\nJudge each": SiteJudge} {
		if strings.Contains(told, begins) {
			return site
		}
	}
	return SiteRepair
}

// Tool is a call of a tool.
func Tool(name string, input any) llm.ToolCall {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llm.ToolCall{Name: name, Input: raw}
}

// SearchFor is a call of web_search.
func SearchFor(query string) llm.ToolCall {
	return Tool("web_search", map[string]string{"query": query, "reason": "to find it"})
}

// Read is a call of read_page.
func Read(id string) llm.ToolCall {
	return Tool("read_page", map[string]string{"id": id, "reason": "to read it"})
}

// PassageID finds the passages in an input, with their text.
var PassageID = regexp.MustCompile(`\[(S\d+\.\d+)\] ([^\n]+)`)

// Obedient is a good model: it searches, then writes a claim for each of the
// first passages it is shown, and judges them supported.
func Obedient(turn llmtest.Turn) llmtest.Said {
	switch SiteOf(turn) {
	case SiteStep:
		if !strings.Contains(turn.Input, "[S1.") {
			return llmtest.Said{Calls: []llm.ToolCall{SearchFor("crispr therapy startups"), SearchFor("gene editing companies")}}
		}
		return llmtest.Said{Text: "DONE, the passages answer it"}
	case SiteComplete:
		_, last, _ := strings.Cut(turn.Input, "Last question: ")
		question, _ := json.Marshal(strings.TrimSpace(last)) // a string always has a form
		return llmtest.Said{Text: `{"question":` + string(question) + `}`}
	case SiteWrite, SiteRepair:
		return llmtest.Said{Text: Draft(turn.Input, 6)}
	}
	return llmtest.Said{Text: `{"verdicts":[{"claim":1,"support":"supported"},{"claim":2,"support":"supported"},{"claim":3,"support":"partial"}]}`}
}

// Draft is a reply to the write prompt: n claims that repeat passages.
func Draft(input string, n int) string {
	type claim struct {
		Text         string   `json:"text"`
		Passages     []string `json:"passages"`
		NewParagraph bool     `json:"new_paragraph"`
	}
	out := struct {
		Claims        []claim `json:"claims"`
		Gaps          []any   `json:"gaps"`
		Discoveries   []any   `json:"discoveries"`
		OpenQuestions []any   `json:"open_questions"`
	}{Claims: []claim{}, Gaps: []any{}, Discoveries: []any{}, OpenQuestions: []any{}}
	for i, m := range PassageID.FindAllStringSubmatch(input, -1) {
		if i == n {
			break
		}
		out.Claims = append(out.Claims, claim{Text: m[2], Passages: []string{m[1]}})
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Biotech is a small web about the question that the project began with.
func Biotech() map[string]Page {
	return map[string]Page{
		"/nova":  {Title: "Nova Edit raises money", Text: "Nova Edit, a startup founded in 2023 in Boston, develops a CRISPR gene therapy for sickle cell disease.\n\nThe company raised 40 million dollars in March 2026 for its first clinical trial of the CRISPR therapy.", Links: []string{"/trial"}},
		"/arc":   {Title: "Gene editing companies to watch", Text: "Arc Base is a startup that works on base editing, a form of CRISPR gene editing, for inherited blindness.\n\nNova Edit and Arc Base are the gene editing companies that analysts name most often."},
		"/help":  {Title: "Helix Therapy", Text: "Helix Therapy, founded in 2024, delivers CRISPR therapy to the liver by lipid particles.\n\nIts gene therapy entered a phase 1 trial in 2026 with twelve patients."},
		"/trial": {Title: "Trial registry", Text: "The trial of Nova Edit enrols forty adults with sickle cell disease and ends in 2028.\n\nThe registry lists every CRISPR therapy trial by sponsor."},
		"/cats":  {Title: "Cats", Text: "Cats sleep for about fifteen hours a day.\n\nNothing on this page is about anything else."},
	}
}

// Startups is the question that the project began with.
const Startups = "What emerging startups in biotech are working on CRISPR gene therapy?"
