package researcher_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// reply is an answer of a model, as JSON.
func reply(fields object) llmtest.Said {
	raw, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	return llmtest.Said{Text: string(raw)}
}

// shown are the ids and texts of the passages in a prompt.
func shown(turn llmtest.Turn) (ids, texts []string) {
	for _, m := range webtest.PassageID.FindAllStringSubmatch(turn.Input, -1) {
		ids, texts = append(ids, m[1]), append(texts, m[2])
	}
	return ids, texts
}

// first is a passage that exists, so that what is claimed gets past the gate.
func first(turn llmtest.Turn) string {
	if ids, _ := shown(turn); len(ids) > 0 {
		return ids[0]
	}
	return "S1.1"
}

// claim is an answer of one sentence on the first passage.
func (sc *scene) claim(turn llmtest.Turn, text string) llmtest.Said {
	return reply(object{"claims": []object{{"text": text, "passages": []string{first(turn)}}}})
}

// everywhere puts words into every text that an answer has, beside good ones.
func (sc *scene) everywhere(turn llmtest.Turn, words string) llmtest.Said {
	ids, texts := shown(turn)
	if len(ids) == 0 {
		return sc.claim(turn, words)
	}
	claims := []object{
		{"text": "Nova Edit " + words + " develops a CRISPR gene therapy.", "passages": []string{ids[0]}, "new_paragraph": true},
		{"text": words, "passages": []string{ids[0], words}},
		{"text": words + " CRISPR", "passages": words},
		{"text": "Vector Cure is a CRISPR startup." + words, "passages": ids},
		{"text": texts[len(texts)-1], "passages": []string{ids[len(ids)-1]}, words: words},
	}
	lead := "CRISPR therapy " + words
	return reply(object{
		"claims": claims,
		"gaps": []object{
			{"topic": lead, "category": "source_not_found", "detail": lead},
			{"topic": words, "category": "budget_exhausted", "detail": words},
			{"topic": lead, "category": words, "detail": lead},
		},
		"discoveries": []object{
			{"type": "new_source", "researcher": words, "query": lead, "reason": lead, "passage": ids[0], "source_locator": words},
			{"type": "related_research", "researcher": "arxiv", "query": words, "reason": words, "passage": words},
		},
		"open_questions": []object{
			{"question": lead, "context": lead, "priority": "high", "passage": ids[0], "source_locator": words},
			{"question": words, "context": words, "priority": "low", "passage": words},
		},
		"answer": words, "citations": []object{{"locator": words, "raw_excerpt": words}},
	})
}

// fabricated invents whole sources.
func fabricated(sc *scene, turn llmtest.Turn) llmtest.Said {
	said := "Smith et al. (doi:10.5555/fabricated.2026.001, https://journal.evil.example/article/17) proved that CRISPR therapy is free."
	source := object{"locator": "https://journal.evil.example/article/17", "source": "web", "title": "A paper", "raw_excerpt": "CRISPR therapy is free", "content_hash": "sha256:" + strings.Repeat("a", 64)}
	return reply(object{
		"claims":         []object{{"text": said, "passages": []string{first(turn)}, "citations": []object{source}}, {"text": said, "passages": []object{source}}, {"text": said, "source": source}},
		"citations":      []object{source},
		"sources":        []object{source},
		"gaps":           []object{{"topic": said, "category": "source_not_found", "detail": said, "locator": source["locator"]}},
		"discoveries":    []object{{"type": "new_source", "researcher": "arxiv", "query": "read 10.5555/fabricated.2026.002", "reason": said, "passage": first(turn), "source_locator": source["locator"]}},
		"open_questions": []object{{"question": "Is https://journal.evil.example/article/17 right?", "context": said, "priority": "high", "passage": first(turn), "source_locator": source["locator"]}},
	})
}

// quotes gives texts where ids belong.
func quotes(sc *scene, turn llmtest.Turn) llmtest.Said {
	_, texts := shown(turn)
	claims := []object{{"text": "CRISPR therapy cures everything.", "passages": []string{"CRISPR therapy cures everything"}}}
	for _, text := range texts {
		claims = append(claims, object{"text": text, "passages": []string{text}}, object{"text": text, "passages": text}, object{"text": text, "quote": text})
	}
	return reply(object{"claims": claims})
}

// unknownIDs cites what was never shown.
func unknownIDs(sc *scene, turn llmtest.Turn) llmtest.Said {
	ids := []string{"S99.1", "S0.0", "S1.99999", "S-1.1", "S1", "H1", "U1", "1", "[1]", "S999999999.999999999", "S01.01", "s1.1.1", "S１.１", "S1.1; S2.2", ""}
	var claims []object
	for i, id := range ids {
		claims = append(claims, object{"text": fmt.Sprintf("CRISPR therapy claim number %d rests on nothing.", i), "passages": []string{id}})
	}
	claims = append(claims, object{"text": "This CRISPR therapy claim has one good id.", "passages": append(ids, first(turn))})
	return reply(object{"claims": claims})
}

// swapped cites for each sentence the passage of another.
func swapped(sc *scene, turn llmtest.Turn) llmtest.Said {
	ids, texts := shown(turn)
	var claims []object
	for i := range ids {
		claims = append(claims, object{"text": texts[i], "passages": []string{ids[(i+len(ids)/2)%len(ids)]}})
	}
	return reply(object{"claims": claims})
}

// oddShapes has no field of the type it should have, but one.
func oddShapes(sc *scene, turn llmtest.Turn) llmtest.Said {
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	return llmtest.Said{Text: `{"claims":[null,7,"a string",[],{"text":7},{"text":null,"passages":null},{"text":["x"],"passages":{"a":1}},` +
		`{"text":"A good CRISPR therapy claim.","passages":["` + first(turn) + `"]},` + deep + `],"gaps":{"topic":1},"discoveries":"none","open_questions":` + deep + `}`}
}

// manyClaims is more than a person can read.
func manyClaims(sc *scene, turn llmtest.Turn) llmtest.Said {
	claims := make([]object, 10_000)
	for i := range claims {
		claims[i] = object{"text": fmt.Sprintf("CRISPR therapy fact %d is here.", i), "passages": []string{first(turn)}}
	}
	return reply(object{"claims": claims, "gaps": claims, "discoveries": claims, "open_questions": claims})
}

// allSupported is a judge that was bought.
func allSupported(_ *scene, _ llmtest.Turn) llmtest.Said {
	var verdicts []object
	for i := range 60 {
		verdicts = append(verdicts, object{"claim": i + 1, "support": "supported"})
	}
	return reply(object{"verdicts": verdicts})
}

// loops are models that never stop.
var loops = []variant{
	{name: "same search", step: always(searchFor("crispr"))},
	{name: "new searches", step: func(_ *scene, turn llmtest.Turn) llmtest.Said {
		return llmtest.Said{Calls: []llm.ToolCall{searchFor(fmt.Sprint("crispr ", turn.N)), searchFor(fmt.Sprint("therapy ", turn.N)), searchFor(fmt.Sprint("startup ", turn.N))}}
	}},
	{name: "64 calls", step: func(_ *scene, turn llmtest.Turn) llmtest.Said {
		var calls []llm.ToolCall
		for i := range 32 {
			calls = append(calls, searchFor(fmt.Sprint("crispr word", turn.N, "x", i)), read(fmt.Sprint("H", i)))
		}
		return llmtest.Said{Calls: calls}
	}},
	{name: "unknown tools", step: func(_ *scene, turn llmtest.Turn) llmtest.Said {
		return llmtest.Said{Calls: []llm.ToolCall{tool(fmt.Sprint("tool", turn.N), object{"x": turn.N})}}
	}},
	{name: "malformed inputs", step: func(_ *scene, turn llmtest.Turn) llmtest.Said {
		return llmtest.Said{Fault: []llmtest.Fault{llmtest.FaultInputBroken, llmtest.FaultInputString, llmtest.FaultUnknownTool, llmtest.FaultManyCalls}[turn.N%4]}
	}},
	{name: "same reads", step: always(searchFor("crispr"), read("H1"), read("H1"), read("H2"))},
	{name: "alternating", step: func(_ *scene, turn llmtest.Turn) llmtest.Said {
		if turn.N%2 == 0 {
			return llmtest.Said{Calls: []llm.ToolCall{searchFor("crispr therapy"), read("H1")}}
		}
		return llmtest.Said{Calls: []llm.ToolCall{searchFor("therapy crispr"), read("H2")}}
	}},
	{name: "empty for ever", step: says(" \n"), write: says("{}"), judge: says("[]")},
	{name: "broken for ever", step: says(`{"calls":[{"name":`), write: says(`{"claims":[{"text":`), judge: says(`{"verdicts":[{"cl`)},
	{name: "cut for ever", step: faulty(llmtest.FaultCut), write: faulty(llmtest.FaultCut), judge: faulty(llmtest.FaultCut)},
}

func faulty(f llmtest.Fault) act {
	return func(_ *scene, turn llmtest.Turn) llmtest.Said {
		said := webtest.Obedient(turn)
		said.Fault = f
		return said
	}
}

// spends are models that use more than they should, or say so.
var spends = []variant{
	spending("most output", func(turn llmtest.Turn, said *llmtest.Said) {
		said.Text += strings.Repeat(" word", 8*turn.MaxTokens)
		said.Stop = llm.StopLength
	}),
	spending("huge queries", func(turn llmtest.Turn, said *llmtest.Said) {
		for i := range said.Calls {
			said.Calls[i] = searchFor("crispr " + strings.Repeat("word ", 20_000))
		}
	}),
	spending("usage of nothing", func(_ llmtest.Turn, said *llmtest.Said) { said.Usage = &llm.Usage{} }),
	spending("usage below zero", func(_ llmtest.Turn, said *llmtest.Said) { said.Usage = &llm.Usage{In: -1_000_000, Out: -1_000_000} }),
	spending("usage beyond all", func(_ llmtest.Turn, said *llmtest.Said) {
		said.Usage = &llm.Usage{In: 100_000_000_000, Out: 100_000_000_000}
	}),
	spending("usage four times", func(turn llmtest.Turn, said *llmtest.Said) {
		said.Usage = &llm.Usage{In: len(turn.Body), Out: 4 * turn.MaxTokens}
	}),
	spending("no usage", func(_ llmtest.Turn, said *llmtest.Said) { said.Fault = llmtest.FaultUsageMissing }),
	spending("strange", func(_ llmtest.Turn, said *llmtest.Said) { said.Fault = llmtest.FaultStrange }),
}

func spending(name string, bend func(llmtest.Turn, *llmtest.Said)) variant {
	do := func(sc *scene, turn llmtest.Turn) llmtest.Said {
		said := webtest.Obedient(turn)
		if webtest.SiteOf(turn) == webtest.SiteStep {
			said = llmtest.Said{Calls: []llm.ToolCall{searchFor(fmt.Sprint("crispr therapy ", turn.N)), searchFor(fmt.Sprint("gene editing ", turn.N))}}
		}
		bend(turn, &said)
		return said
	}
	return variant{name: name, step: do, write: do, judge: do}
}
