package model

import (
	"crypto/sha256"
	_ "embed" // the prompts
	"encoding/hex"
	"encoding/json"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// The instructions, one file each. They are sent as they stand, so that a
// provider can cache them and a trace can name them by their hash.
var (
	//go:embed prompts/step.md
	stepText string
	//go:embed prompts/write.md
	writeText string
	//go:embed prompts/judge.md
	judgeText string
	//go:embed prompts/repair.md
	repairText string

	stepPrompt   = newPrompt("step", stepText)
	writePrompt  = newPrompt("write", writeText)
	judgePrompt  = newPrompt("judge", judgeText)
	repairPrompt = newPrompt("repair", repairText)
)

// prompt is a file of instructions.
type prompt struct{ name, text, hash string }

func newPrompt(name, text string) prompt {
	sum := sha256.Sum256([]byte(text))
	return prompt{name, text, "sha256:" + hex.EncodeToString(sum[:])}
}

// call begins a call with the prompt's instructions.
func (p prompt) call() llm.Call {
	return llm.Call{Prompt: p.name, Template: p.hash, System: p.text}
}

// The names of the tools.
const (
	toolSearch = "web_search"
	toolRead   = "read_page"
)

var tools = []llm.Tool{
	{Name: toolSearch, Description: "Search", Schema: json.RawMessage(
		`{"type":"object","properties":{"query":{"type":"string"},"reason":{"type":"string"},"since":{"type":"string"},"until":{"type":"string"}},"required":["query"]}`)},
	{Name: toolRead, Description: "Read", Schema: json.RawMessage(
		`{"type":"object","properties":{"id":{"type":"string"},"reason":{"type":"string"}}}`)},
}

// The parts of the schemas. They keep to what every provider with structured
// output takes: no unions, all properties required, none besides.
const (
	claimItems     = `{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},"passages":{"type":"array","items":{"type":"string"}},"new_paragraph":{"type":"boolean"}},"required":["text","passages","new_paragraph"],"additionalProperties":false}}`
	gapItems       = `{"type":"array","items":{"type":"object","properties":{"topic":{"type":"string"},"category":{"type":"string"},"detail":{"type":"string"}},"required":["topic","category","detail"],"additionalProperties":false}}`
	discoveryItems = `{"type":"array","items":{"type":"object","properties":{"type":{"type":"string"},"researcher":{"type":"string"},"query":{"type":"string"},"reason":{"type":"string"},"passage":{"type":"string"}},"required":["type","researcher","query","reason","passage"],"additionalProperties":false}}`
	openItems      = `{"type":"array","items":{"type":"object","properties":{"question":{"type":"string"},"context":{"type":"string"},"priority":{"type":"string"},"passage":{"type":"string"}},"required":["question","context","priority","passage"],"additionalProperties":false}}`
)

var (
	// writeSchema asks for everything an answer can have.
	writeSchema = json.RawMessage(`{"type":"object","properties":{"claims":` + claimItems + `,"gaps":` + gapItems + `,"discoveries":` + discoveryItems + `,"open_questions":` + openItems +
		`},"required":["claims","gaps","discoveries","open_questions"],"additionalProperties":false}`)
	// leanSchema leaves out what a small budget cannot afford: the full one costs
	// as much as five passages.
	leanSchema = json.RawMessage(`{"type":"object","properties":{"claims":` + claimItems + `,"gaps":` + gapItems + `},"required":["claims","gaps"],"additionalProperties":false}`)

	judgeSchema = json.RawMessage(`{"type":"object","properties":{"verdicts":{"type":"array","items":{"type":"object","properties":{"claim":{"type":"integer"},"support":{"type":"string"}},"required":["claim","support"],"additionalProperties":false}}},"required":["verdicts"],"additionalProperties":false}`)
)

// view cleans text from outside for one prompt. Only what is shown is changed,
// never what is stored.
type view struct {
	nonce   string
	markers *regexp.Regexp // the nonce, and what looks like a marker
}

// forged is what text from outside must not look like: the brackets of a marker,
// and the words by which chat templates tell who speaks.
const forged = `[<＜‹〈⟨«]{3,}|[>＞›〉⟩»]{3,}|<[|｜]|[|｜]>|<</?SYS>>|\[/?INST\]|</?think>|<(?:start|end)_of_turn>`

var (
	forgedMarker = regexp.MustCompile(`(?i)` + forged)
	// forgedLabel is what looks like the label of a passage or of a hit.
	forgedLabel = regexp.MustCompile(`(?i)\[[SHLU]\d{1,9}(?:\.\d{1,9})?(?:[,; ]+[SHLU]\d{1,9}(?:\.\d{1,9})?)*\]`)
)

func newView(nonce string) view {
	if nonce = strings.TrimSpace(nonce); nonce == "" {
		return view{"data", forgedMarker}
	}
	return view{nonce, regexp.MustCompile(`(?i)` + regexp.QuoteMeta(nonce) + `|` + forged)}
}

// line is text from outside on one line of at most n characters: without
// controls, invisible characters, forged markers and labels, white space folded.
// A longer text is cut at a word and ends in "…".
func (v view) line(s string, n int) string {
	return clip(stripped(clipBytes(s, 4*n+64), v.markers, forgedLabel), n)
}

// unmarked is line for a model's own words, in which labels mean something.
func (v view) unmarked(s string) string { return stripped(s, v.markers) }

// layers is how deep forgeries may hide in each other.
const layers = 4

// stripped is the visible text without what matches, nor what taking that out
// lets appear. Of a text that hides forgeries in forgeries nothing is left: it is
// no honest text, and looking further would cost too much.
func stripped(s string, forgeries ...*regexp.Regexp) string {
	s = visible(s)
	for range layers {
		before := len(s)
		for _, f := range forgeries {
			s = f.ReplaceAllString(s, "")
		}
		if len(s) == before {
			return strings.Join(strings.Fields(s), " ")
		}
	}
	return ""
}

// open and end are the markers around text from outside.
func (v view) open(kind string) string { return "<<<" + kind + " " + v.nonce + ">>>\n" }
func (v view) end() string             { return "<<<end " + v.nonce + ">>>\n" }

// block puts lines between markers; without lines there is none.
func (v view) block(kind string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return v.open(kind) + strings.Join(lines, "\n") + "\n" + v.end()
}

// visible drops what cannot be seen: controls, formats, tags, bidirectional and
// zero-width characters, private use. Breaks and tabs become spaces, bytes that
// are no UTF-8 the replacement character.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= ' ' && r <= '~':
			return r
		case unicode.IsSpace(r):
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), unicode.Is(unicode.Variation_Selector, r):
			return -1
		case unicode.IsGraphic(r):
			return r
		}
		return utf8.RuneError
	}, s)
}

// clip shortens s to at most n characters, at a word where one is near.
func clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	cut := string(runes[:max(0, n-1)])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)*2/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}

// clipBytes bounds the work on a text without splitting a character.
func clipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// clipTokens shortens s to an estimated number of tokens.
func clipTokens(s string, n int) string {
	for {
		have := llm.EstimateText(s)
		if have <= n || s == "" {
			return s
		}
		s = clipBytes(s, min(len(s)-1, len(s)*max(0, n)/have))
	}
}
