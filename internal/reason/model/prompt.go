package model

import (
	"embed"
	"encoding/json"
	"regexp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// The instructions, one file each.
//
//go:embed prompts
var files embed.FS

func instructions(name string) string {
	text, err := files.ReadFile("prompts/" + name + ".md")
	if err != nil {
		panic(err) // it is in the program
	}
	return string(text)
}

func prompt(name string) llm.Prompt { return llm.Prompt{Name: name, Text: instructions(name)} }

const (
	toolSearch = "web_search"
	toolRead   = "read_page"
	toolNote   = "note"
)

// tools are for small budgets, fullTools for others; with the last of them only in calls that begin alike.
var (
	tools = []llm.Tool{
		{Name: toolSearch, Description: "Search", Schema: json.RawMessage(
			`{"type":"object","properties":{"query":{"type":"string"},"reason":{"type":"string"},"since":{"type":"string"},"until":{"type":"string"}},"required":["query"]}`)},
		{Name: toolRead, Description: "Read", Schema: json.RawMessage(
			`{"type":"object","properties":{"id":{"type":"string"},"reason":{"type":"string"}}}`)},
	}
	fullTools = []llm.Tool{
		{Name: toolSearch, Description: "Finds documents. The next turn shows hits, with ids H1, H2…, and passages of the best, which are read at once.", Schema: json.RawMessage(
			`{"type":"object","properties":{"query":{"type":"string","description":"words that the document has, for one part of the question"},"reason":{"type":"string","description":"which part, in a few words"},` +
				`"since":{"type":"string","description":"published from YYYY-MM-DD on"},"until":{"type":"string"}},"required":["query","reason"]}`)},
		{Name: toolRead, Description: "Reads a document that was shown. The next turn shows passages of it.", Schema: json.RawMessage(
			`{"type":"object","properties":{"id":{"type":"string","description":"H3, L1 or U1, as shown"},"reason":{"type":"string"}},"required":["id","reason"]}`)},
		{Name: toolNote, Description: "Keeps your plan for the next turn, which shows it to you.", Schema: json.RawMessage(
			`{"type":"object","properties":{"plan":{"type":"string","description":"the parts of the question, each with the passages that answer it"},"missing":{"type":"string","description":"what is still to be found"}},"required":["plan","missing"]}`)},
	}
)

// The parts of the schemas, strict as providers want them.
const (
	idItems        = `{"type":"array","items":{"type":"string"}}`
	saidItems      = `{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"passages":` + idItems + `},"required":["text","passages"],"additionalProperties":false}}`
	claimItems     = `{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"passages":{"type":"array","items":{"type":"string"}},"new_paragraph":{"type":"boolean"}},"required":["text","passages","new_paragraph"],"additionalProperties":false}}`
	gapItems       = `{"type":"array","items":{"type":"object","properties":{"topic":{"type":"string"},"category":{"type":"string"},"detail":{"type":"string"}},"required":["topic","category","detail"],"additionalProperties":false}}`
	discoveryItems = `{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"researcher":{"type":"string"},"query":{"type":"string"},"reason":{"type":"string"},"passage":{"type":"string"}},"required":["type","researcher","query","reason","passage"],"additionalProperties":false}}`
	openItems      = `{"type":"array","items":{"type":"object","properties":{"question":{"type":"string"},"context":{"type":"string"},"priority":{"type":"string"},"passage":{"type":"string"}},"required":["question","context","priority","passage"],"additionalProperties":false}}`
)

var (
	// writeSchema asks for everything an answer can have.
	writeSchema = json.RawMessage(`{"type":"object","properties":{"claims":` + claimItems + `,"gaps":` + gapItems + `,"discoveries":` + discoveryItems + `,"open_questions":` + openItems +
		`},"required":["claims","gaps","discoveries","open_questions"],"additionalProperties":false}`)
	// leanSchema leaves out what a small budget cannot afford: the full one costs as much as five passages.
	leanSchema = json.RawMessage(`{"type":"object","properties":{"claims":` + claimItems + `,"gaps":` + gapItems + `},"required":["claims","gaps"],"additionalProperties":false}`)

	outlineSchema = json.RawMessage(`{"type":"object","properties":{"sections":{"type":"array","items":{"type":"object","properties":{"heading":{"type":"string"},"question":{"type":"string"},"passages":` + idItems +
		`,"form":{"type":"string"}},"required":["heading","question","passages","form"],"additionalProperties":false}}},"required":["sections"],"additionalProperties":false}`)
	sectionSchema = json.RawMessage(`{"type":"object","properties":{"blocks":{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"claims":` + saidItems + `,"columns":` + idItems +
		`,"rows":{"type":"array","items":` + saidItems + `}},"required":["type","claims","columns","rows"],"additionalProperties":false}},"gaps":` + gapItems + `},"required":["blocks","gaps"],"additionalProperties":false}`)
	summarySchema = json.RawMessage(`{"type":"object","properties":{"claims":` + saidItems + `},"required":["claims"],"additionalProperties":false}`)

	judgeSchema = json.RawMessage(`{"type":"object","properties":{"verdicts":{"type":"array","items":{"type":"object","properties":{"claim":{"type":"integer"},"support":{"type":"string"}},"required":["claim","support"],"additionalProperties":false}}},"required":["verdicts"],"additionalProperties":false}`)
)

// forgedLabel is what looks like the label of a passage or of a hit.
var forgedLabel = regexp.MustCompile(`(?i)\[[SHLU]\d{1,9}(?:\.\d{1,9})?(?:[,; ]+[SHLU]\d{1,9}(?:\.\d{1,9})?)*\]`)

// newView is how the prompts of a run show text from outside: without labels, too.
func newView(nonce string) llm.Quoter { return llm.NewQuoter(nonce, forgedLabel) }

// clipTokens shortens s to an estimated number of tokens.
func clipTokens(s string, n int) string {
	for {
		have := llm.EstimateText(s)
		if have <= n || s == "" {
			return s
		}
		s = llm.ClipBytes(s, min(len(s)-1, len(s)*max(0, n)/have))
	}
}
