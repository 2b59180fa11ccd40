package llm

// This part is text from outside as a prompt may show it: data between markers that it cannot forge,
// never an instruction.

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

const (
	layers   = 4  // how deep forgeries may hide in each other
	maxItems = 80 // of a list that are looked at
)

// Nonce is a word that the author of a source cannot know: the source was written before the run had an id.
func Nonce(run marchwarden.TraceID) string {
	sum := sha256.Sum256([]byte("marchwarden/nonce/v1/" + run.String()))
	return hex.EncodeToString(sum[:6])
}

// Quoter cleans text from outside for the prompts of one run; what is stored stays. It is safe for concurrent use.
type Quoter struct {
	nonce     string
	forgeries []*regexp.Regexp // the first is the nonce, and what looks like a marker
}

// forged is what text from outside must not look like: brackets of a marker, and tags of chat templates.
const forged = `[<＜‹〈⟨«]{3,}|[>＞›〉⟩»]{3,}|<[|｜]|[|｜]>|<</?SYS>>|\[/?INST\]|</?think>|<(?:start|end)_of_turn>`

var forgedMarker = regexp.MustCompile(`(?i)` + forged)

// NewQuoter makes a quoter whose markers bear a nonce, unknown to those who wrote what is quoted; of a blank one only the
// look-alikes are taken out. also is what else a prompt gives a meaning, such as its labels.
func NewQuoter(nonce string, also ...*regexp.Regexp) Quoter {
	markers := forgedMarker
	if nonce = strings.TrimSpace(nonce); nonce == "" {
		nonce = "data"
	} else {
		markers = regexp.MustCompile(`(?i)` + regexp.QuoteMeta(nonce) + `|` + forged)
	}
	return Quoter{nonce, append([]*regexp.Regexp{markers}, also...)}
}

// Line is Text of at most n characters. A longer text is cut at a word and ends in
// "…", and of one that is very much longer only the beginning is looked at.
func (v Quoter) Line(s string, n int) string { return Clip(v.Text(ClipBytes(s, 4*n+64)), n) }

// Text is text from outside on one line: without controls, invisible characters and
// forgeries, white space folded.
func (v Quoter) Text(s string) string { return stripped(s, v.forgeries) }

// Unmarked is Text of a model's own words, in which nothing but markers is forged.
func (v Quoter) Unmarked(s string) string { return stripped(s, v.forgeries[:1]) }

// stripped is the visible text without what matches, nor what taking that out lets appear. Of a text that hides
// forgeries in forgeries nothing is left.
func stripped(s string, forgeries []*regexp.Regexp) string {
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

// Open is the marker before a quotation of some kind, with its line break.
func (v Quoter) Open(kind string) string { return "<<<" + kind + " " + v.nonce + ">>>\n" }

// End is the marker after a quotation, with its line break.
func (v Quoter) End() string { return "<<<end " + v.nonce + ">>>\n" }

// Block puts clean lines between markers; without lines there is none.
func (v Quoter) Block(kind string, lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return v.Open(kind) + strings.Join(lines, "\n") + "\n" + v.End()
}

// visible drops what cannot be seen. Breaks and tabs become spaces, bytes that are no UTF-8 the replacement character.
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

// Clip shortens s to at most n characters, the last of them "…", at a word where one is near. Nothing is cleaned.
func Clip(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	cut := string([]rune(s)[:max(0, n-1)])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)*2/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:") + "…"
}

// ClipBytes bounds the work on a text without splitting a character.
func ClipBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// What the callers of models share: how a call is begun and priced, and how a reply is read.

// Prompt is a file of instructions. It is sent as it stands, so that a provider can cache it and a
// trace can name it by its hash.
type Prompt struct{ Name, Text string }

// Call begins a call with the instructions.
func (p Prompt) Call() Call {
	sum := sha256.Sum256([]byte(p.Text))
	return Call{Prompt: p.Name, Template: "sha256:" + hex.EncodeToString(sum[:]), System: p.Text}
}

// Scaled is what a provider counts for an estimate. scale is Metered.Scale, or nil.
func Scaled(scale func() float64, tokens int) int {
	return int(math.Ceil(float64(tokens) * atLeastOne(scale)))
}

// Unscaled is the estimate that a provider's count has room for.
func Unscaled(scale func() float64, tokens int) int { return int(float64(tokens) / atLeastOne(scale)) }

// Price is what the metered model will reserve for a call.
func Price(scale func() float64, c Call) int { return Scaled(scale, Estimate(c)) + c.MaxTokens }

func atLeastOne(scale func() float64) float64 {
	if scale == nil {
		return 1
	}
	return max(1, scale())
}

// Question is what is asked, with what the caller knows already, in lines of the program's.
func (v Quoter) Question(req marchwarden.Request, budget int, now time.Time) string {
	text := "Question: " + v.Line(req.Question, marchwarden.MaxQuestionChars) + "\n"
	if known := v.Line(req.Context, min(marchwarden.MaxContextChars, budget/20)); known != "" {
		text += "Context: " + known + "\n"
	}
	if f := req.Filter(); !f.Empty() {
		only, not := []string{}, []string{}
		for e := range strings.SplitSeq(f.String(), ",") {
			if name, bars := strings.CutPrefix(e, "!"); bars {
				not = append(not, name)
			} else {
				only = append(only, e)
			}
		}
		said := ""
		if len(only) > 0 {
			said = "only " + strings.Join(only, ",")
		}
		if len(not) > 0 {
			said = strings.TrimSpace(said + " not " + strings.Join(not, ","))
		}
		text += "Sources: " + v.Line(said, 200) + "\n"
	}
	if c := req.Constraints; c != nil && c.Since+c.Until != "" {
		text += "Published: from " + cmp.Or(c.Since, "any date") + " to " + cmp.Or(c.Until, "today") + "\n"
	}
	return text + "Today: " + now.Format(time.DateOnly) + "\n"
}

// Text is a JSON string; anything else is none.
func Text(raw json.RawMessage) (string, bool) {
	var s string
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}

// Named are the fields of a JSON object.
type Named map[string]json.RawMessage

// Text is a field that is a string, "" for one that is anything else.
func (n Named) Text(field string) string {
	s, _ := Text(n[field])
	return s
}

// Fields are the fields of a JSON object, nil for anything else.
func Fields(raw json.RawMessage) Named {
	var fields Named
	if json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	return fields
}

// List is the first elements of a JSON array; an object stands for a list of it.
func List(raw json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) == nil {
		return items[:min(len(items), maxItems)]
	}
	if Fields(raw) != nil {
		return []json.RawMessage{raw}
	}
	return nil
}

// ListIn is the list in a model's text: alone, or as a field of an object.
func ListIn(text, field string) []json.RawMessage {
	raw, _ := Object(text)
	if fields := Fields(raw); fields != nil {
		raw = fields[field]
	}
	return List(raw)
}

// CallsIn are the tool calls that a model without tool use writes as JSON into its text: in a field
// calls, as a list, alone, or each after the tag that models are trained on.
func CallsIn(text string) []ToolCall {
	blocks := strings.Split(text, "<tool_call>")
	if len(blocks) > 1 {
		blocks = blocks[1:]
	}
	var out []ToolCall
	for _, b := range blocks {
		raw, _ := Object(b)
		items := List(raw)
		if calls, ok := Fields(raw)["calls"]; ok {
			items = List(calls)
		}
		for _, item := range items {
			if c, ok := callIn(Fields(item)); ok {
				out = append(out, c)
			}
		}
	}
	return out
}

// callIn reads one call: {"tool", "input"} as adapters ask for it, or {"name", "arguments"} and the like.
func callIn(fields Named) (ToolCall, bool) {
	if name := fields.Text("tool"); name != "" {
		return ToolCall{Name: name, Input: ToolInput(string(fields["input"]))}, true
	}
	name := fields.Text("name")
	for _, key := range []string{"input", "arguments", "parameters"} {
		if input, ok := fields[key]; ok && name != "" {
			return ToolCall{Name: name, Input: input}, true
		}
	}
	return ToolCall{}, false
}
