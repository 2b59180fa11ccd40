package conflict

import (
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

const town = "Ardmoor is a market town in Kirkshire, on the river Tarn, north of Penfold and Lowick. "

func doc(kind, answer, text string) map[string]any {
	return map[string]any{"type": kind, "answer": answer, "text": text}
}

// One question with a conflict that is found, one whose documents speak of different
// towns, and one whose conflict stands where no reader would see it.
func TestRAMDocs(t *testing.T) {
	set := evaltest.Lines(t,
		map[string]any{"question": "When was Ardmoor founded?", "gold_answers": []string{"1204"}, "wrong_answers": []string{"1350"}, "documents": []any{
			doc("correct", "1204", town+"Ardmoor was founded by monks in 1204."),
			doc("misinfo", "1350", town+"Ardmoor was founded by monks in 1350."),
			doc("noise", "unknown", "Kettles are made of copper."),
		}},
		map[string]any{"question": "When was Ardmoor founded?", "gold_answers": []string{"1204", "1871"}, "wrong_answers": []string{}, "documents": []any{
			doc("correct", "1204", town+"Ardmoor was founded by monks in 1204."),
			doc("correct", "1871", "Ardmoor is a village in Westland, New Zealand, near Lake Hope and the Otira Gorge. It was founded in 1871."),
		}},
		map[string]any{"question": "When was Ardmoor founded?", "gold_answers": []string{"1204"}, "wrong_answers": []string{"1350"}, "documents": []any{
			doc("correct", "1204", town+"Ardmoor was founded by monks in 1204."),
			doc("misinfo", "1350", "1204 kettles, 1350 pans."),
		}},
	)
	env := evaltest.Env(t, evaltest.Data{"conflict/ramdocs.jsonl.gz": set}.Folder(), nil)
	report := evaltest.Run(t, ramdocs(), env, 0)
	for metric, want := range map[string]float64{recall: 0.5, alarmed: 0, falseEach: 0, precision: 1, pairRecall: 0.5, runRecall: 0.5, runShown: 0.5} {
		if got := evaltest.Value(t, report, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}

func TestHit(t *testing.T) {
	r := row{Gold: []string{"Edith Marsh"}, Wrong: []string{"Owen Pryce", "Ann Hall"}, Documents: []document{
		{Type: "correct", Answer: "Edith Marsh"}, {Type: "misinfo", Answer: "Owen Pryce"}, {Type: "correct", Answer: "Ann Hall"},
	}}
	side := func(locator, value string) marchwarden.Side {
		return marchwarden.Side{Locator: locator, RawExcerpt: "It was designed by " + value + ".", Value: value}
	}
	for _, c := range []struct {
		name string
		a, b marchwarden.Side
		want bool
	}{
		{"right and wrong", side("d0", "Edith Marsh"), side("d1", "Owen Pryce"), true},
		{"a surname", side("d0", "Marsh"), side("lib:d1.txt#L3", "Pryce"), true},
		{"the same", side("d0", "Edith Marsh"), side("d1", "Edith Marsh"), false},
		{"of something else", side("d0", "Tom Keele"), side("d1", "Owen Pryce"), false},
		{"right for another thing", side("d0", "Edith Marsh"), side("d2", "Ann Hall"), false},
		{"no document", side("d0", "Edith Marsh"), side("d9", "Owen Pryce"), false},
	} {
		if got := r.hit(marchwarden.Contradiction{A: c.a, B: c.b}); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAgreeing(t *testing.T) {
	hotpot := func(question string, texts ...string) map[string]any {
		var context []any
		for _, s := range texts {
			context = append(context, []any{"", []string{s}})
		}
		return map[string]any{"question": question, "context": context}
	}
	data := evaltest.Data{
		"multidoc/hotpot100.jsonl.gz": evaltest.Lines(t,
			hotpot("When was Ardmoor founded?", town+"Ardmoor was founded by monks in 1204.", town+"Ardmoor was founded by monks in 1350."),
			hotpot("When was Ardmoor founded?", town+"Ardmoor was founded by monks in 1204.", town+"Its market is held on Mondays.")),
		"multidoc/musique100-hippo.jsonl.gz": evaltest.Lines(t, map[string]any{"question": "Who?", "paragraphs": []any{map[string]any{"title": "A", "paragraph_text": "A text."}}}),
		"qa/squad2.jsonl.gz": evaltest.Lines(t, map[string]any{"title": "A_B", "paragraphs": []any{
			map[string]any{"context": "A text.", "qas": []any{map[string]any{"question": "What?"}}}}}),
	}
	report := evaltest.Run(t, agreeing(), evaltest.Env(t, data.Folder(), nil), 0)
	if got := evaltest.Value(t, report, falseAlarms); got != 0.25 {
		t.Errorf("%v false alarms for each of four questions, want 0.25", got)
	}
}
