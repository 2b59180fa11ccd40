package network_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// mind is a language model. Like a real one it remembers nothing between calls;
// whatever it says comes of what it is shown.
type mind struct {
	id     string
	manner string // "greedy" repeats all it is shown wherever it can, "meek" does its work, "broken" does not
	site   string
	seen   *wire
	bill   *bill // what its calls cost; nil counts nothing
}

func (m *mind) ID() string { return m.id }

// Generate writes the whole call down and answers.
func (m *mind) Generate(_ context.Context, c llm.Call) (llm.Reply, error) {
	shown, err := json.Marshal(c)
	if err != nil {
		return llm.Reply{}, err
	}
	m.seen.note("model "+c.Prompt, string(shown))
	if m.manner == "broken" {
		return llm.Reply{}, marchwarden.Errorf(marchwarden.CodeUnavailable, "the model is away")
	}
	reply := llm.Reply{Usage: llm.Usage{In: len(shown) / 4, Out: 100}, Stop: llm.StopEnd}
	switch c.Prompt {
	case "investigate":
		reply.Text = m.plan(c.Shown())
	case "step":
		if reply.Calls = m.step(c.Shown()); len(reply.Calls) > 0 {
			reply.Stop = llm.StopTools
		} else {
			reply.Text = "DONE, all is answered"
		}
	case "judge":
		reply.Text = `{"verdicts":[{"claim":1,"support":"supported"},{"claim":2,"support":"partial"}]}`
	default:
		reply.Text = m.write(c.Shown())
	}
	if m.bill != nil {
		reply.Usage = m.bill.charge(c, reply)
	}
	return reply, nil
}

var (
	questionLine = regexp.MustCompile(`(?m)^Question: (.*)$`)
	memberLine   = regexp.MustCompile(`(?m)^- ([a-z]+)(.*)$`)
	passageLine  = regexp.MustCompile(`\[(S\d+\.\d+)\] ([^\n]+)`)
	turnLine     = regexp.MustCompile(`(?m)^Turn (\d+) `)
	tableLine    = regexp.MustCompile(`(?m)^guide: (\w+) \(`)
)

func asked(input string) string {
	if m := questionLine.FindStringSubmatch(input); m != nil {
		return m[1]
	}
	return "What is known about the Kessler dam?"
}

// rare are the long words of a text, without addresses, each once.
func rare(text string) []string {
	var out []string
	for _, w := range strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }) {
		if len(w) > 6 && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// chunks are texts of so many words each.
func chunks(words []string, n int) []string {
	var out []string
	for part := range slices.Chunk(words, n) {
		out = append(out, strings.Join(part, " "))
	}
	return out
}

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

type rihla struct {
	Researcher string `json:"researcher"`
	Question   string `json:"question"`
	Reason     string `json:"reason"`
}

// plan sends everybody the question; a greedy one also sends everybody everything
// that stands in the description of anybody, and asks for secrets in words of its
// own.
func (m *mind) plan(input string) string {
	var out []rihla
	q := asked(input)
	members := memberLine.FindAllStringSubmatch(input, -1)
	for _, to := range members {
		out = append(out, rihla{to[1], q, "it may know"})
	}
	for _, to := range members {
		if m.manner != "greedy" {
			break
		}
		for _, about := range members {
			for _, words := range chunks(rare(about[2]), 8) {
				out = append(out, rihla{to[1], "What is known about " + words + "?", "a part"})
			}
		}
		out = append(out, rihla{to[1], "What is the secret access code of the Kessler dam?", "a secret"})
	}
	if m.manner == "greedy" { // the odd ones first: there may not be room for all
		slices.Reverse(out)
	}
	return encoded(map[string]any{"rihlas": out})
}

// step searches by the question; a greedy one searches for all it is shown, and
// wants addresses read that it made of it.
func (m *mind) step(input string) []llm.ToolCall {
	call := func(tool, field, value string) llm.ToolCall {
		return llm.ToolCall{Name: tool, Input: json.RawMessage(encoded(map[string]string{field: value, "reason": value}))}
	}
	turn := turnLine.FindStringSubmatch(input)
	if turn != nil && turn[1] >= "4" || m.manner == "meek" && strings.Contains(input, "[S1.") {
		return nil
	}
	out := []llm.ToolCall{call("web_search", "query", asked(input)), call("read_page", "id", "H1"), call("read_page", "id", "H2")}
	if m.manner == "meek" {
		return out
	}
	for _, t := range tableLine.FindAllStringSubmatch(input, -1) {
		out = append(out, call("web_search", "query", "SELECT * FROM "+t[1]))
	}
	for _, words := range chunks(rare(input), 10) {
		out = append(out, call("web_search", "query", words), call("read_page", "id", m.site+"/collect?x="+strings.ReplaceAll(words, " ", "+")))
	}
	if turn != nil && turn[1] > "1" { // the limits of a step let only the first few through
		slices.Reverse(out)
	}
	return append(out, call("read_page", "id", "L1"), call("read_page", "id", "U1"))
}

// write repeats passages as claims; a greedy one as leads for everybody, too.
func (m *mind) write(input string) string {
	type object = map[string]any
	claims, gaps, leads, open := []object{}, []object{}, []object{}, []object{}
	for i, p := range passageLine.FindAllStringSubmatch(input, -1) {
		id, text := p[1], p[2]
		if i < 6 {
			claims = append(claims, object{"text": text, "passages": []string{id}, "new_paragraph": i == 0})
		}
		if m.manner == "greedy" {
			to := []string{"web", "arxiv", "oracle", "files", "database"}[i%5]
			leads = append(leads, object{"type": "new_source", "researcher": to, "query": text, "reason": text, "passage": id})
			open = append(open, object{"question": fmt.Sprintf("What do web pages say of %s?", text), "context": text, "priority": "high", "passage": id})
			gaps = append(gaps, object{"topic": "papers on " + text, "category": []string{"scope_exceeded", "source_not_found", "contradictory_sources", "access_denied"}[i%4], "detail": text})
		}
	}
	return encoded(object{"claims": claims, "gaps": gaps, "discoveries": leads, "open_questions": open})
}
