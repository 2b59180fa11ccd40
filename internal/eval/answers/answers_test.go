package answers

import (
	"math"
	"slices"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

type object = map[string]any

func suite(t *testing.T, name string) eval.Suite {
	t.Helper()
	at := slices.IndexFunc(Suites(), func(s eval.Suite) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("no suite %q", name)
	}
	return Suites()[at]
}

// article is a SQuAD article of one paragraph.
func article(title, context string, qas ...object) object {
	return object{"title": title, "paragraphs": []object{{"context": context, "qas": qas}}}
}

func asks(id, question string, answers ...string) object {
	return object{"id": id, "question": question, "answers": answers, "is_impossible": len(answers) == 0}
}

func squadData(t *testing.T) evaltest.Data {
	return evaltest.Data{"qa/squad2.jsonl.gz": evaltest.Lines(t,
		article("Harn_Mill", "Harn Mill stands on the river Lowick. Harn Mill was built in 1731 by Ann Bee. The mill ground corn until 1902.",
			asks("a1", "When was Harn Mill built?", "1731"),
			asks("a2", "Who built Harn Mill?", "Ann Bee"),
			asks("a3", "Why was the Zorblat of Quexley never demolished?")),
		article("Lowick", "The Lowick is a river of 40 miles. Trout live in the upper Lowick. The Lowick floods in spring.",
			asks("b1", "How long is the Lowick?", "40 miles"),
			asks("b2", "Which gold mines of Atlantis does the president of Mars own?")),
	)}
}

func TestSquad2(t *testing.T) {
	r := evaltest.Run(t, suite(t, "squad2"), evaltest.Env(t, squadData(t).Folder(), nil), 0)
	for metric, want := range map[string]float64{"answer@1": 1, "answer@3": 1, "answerable refused": 0, "unanswerable refused": 1, "answerability AUROC": 1, "cited": 1} {
		if got := evaltest.Value(t, r, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
	for _, row := range r.Rows {
		if _, ok := row.Values["answer@3"]; ok != (row.Values[answerable] == 1) || row.Group == "" {
			t.Errorf("row %+v", row)
		}
	}
}

func TestClapnq(t *testing.T) {
	sentences := []string{"The heron is a wading bird .", "Its neck is long .", "Herons eat fish and frogs , which they spear with the bill .", "The town hall of Bray is red ."}
	data := evaltest.Data{"qa/clapnq.jsonl.gz": evaltest.Lines(t,
		object{"id": "1", "answerable": true, "input": "what do herons eat", "passages": []object{{"title": "Heron", "sentences": sentences}},
			"output": []object{{"selected_sentences": []string{sentences[0], sentences[2]}}}},
		object{"id": "2", "answerable": false, "input": "who painted the ceiling of the opera", "passages": []object{{"title": "Otter", "sentences": []string{"An otter swims ."}}}, "output": []object{{"selected_sentences": []string{}}}},
	)}
	r := evaltest.Run(t, suite(t, "clapnq"), evaltest.Env(t, data.Folder(), nil), 0)
	if got := evaltest.Value(t, r, "lead-2 F1"); got != 0.5 {
		t.Errorf("lead-2 is %v, want one of two sentences found by two: 0.5", got)
	}
	if got := evaltest.Value(t, r, "sentence F1"); got < 0.66 {
		t.Errorf("sentence F1 is %v", got)
	}
	if got, want := evaltest.Value(t, r, "times lead-2"), evaltest.Value(t, r, "sentence F1")/0.5; math.Abs(got-want) > 1e-9 {
		t.Errorf("times lead-2 is %v, want %v", got, want)
	}
}

func TestSentencesThatWereCutOtherwise(t *testing.T) {
	c := clapCase{Passages: []struct {
		Title     string   `json:"title"`
		Sentences []string `json:"sentences"`
	}{{Sentences: []string{"One . Two more words here and there .", "Three ."}}}}
	if got := c.places([]string{"Two more words here and there ."}); !got[0] || got[1] {
		t.Errorf("places %v", got)
	}
	for _, k := range []struct {
		said, want map[int]bool
		strange    int
		f1         float64
	}{
		{map[int]bool{0: true}, map[int]bool{0: true, 1: true}, 0, 2.0 / 3},
		{map[int]bool{0: true}, map[int]bool{0: true}, 2, 0.5},
		{map[int]bool{1: true}, map[int]bool{0: true}, 0, 0},
		{nil, nil, 0, 0},
	} {
		if got := f1(k.said, k.want, k.strange); math.Abs(got-k.f1) > 1e-9 {
			t.Errorf("f1 of %v against %v and %d strange ones is %v, want %v", k.said, k.want, k.strange, got, k.f1)
		}
	}
}

func TestOtherSuites(t *testing.T) {
	data := evaltest.Data{
		"qa/mtrag-un.jsonl.gz": evaltest.Lines(t, object{
			"task_id": "t1", "Collection": "fiqa", "answerability": []string{"ANSWERABLE"}, "contexts": []object{{"document_id": "d 1", "text": "A bond pays interest twice a year."}},
			"input": []object{{"speaker": "user", "text": "What is a bond?"}, {"speaker": "agent", "text": "A loan."}, {"speaker": "user", "text": "How often does a bond pay interest?"}},
		}, object{
			"task_id": "t2", "Collection": "fiqa", "answerability": []string{"UNANSWERABLE"}, "contexts": []object{},
			"input": []object{{"speaker": "user", "text": "Which zeppelins does the moon tax?"}},
		}),
		"qa/pubmedqa.jsonl.gz": evaltest.Lines(t,
			object{"pmid": "1", "QUESTION": "Does zinc shorten the common cold?", "CONTEXTS": []string{"Zinc did not shorten the common cold in 90 patients."}, "LONG_ANSWER": "Zinc does not shorten the common cold.", "final_decision": "no"},
			object{"pmid": "2", "QUESTION": "Is tea safe for the heart?", "CONTEXTS": []string{"Tea was safe for the heart in a cohort of 200 people."}, "LONG_ANSWER": "Tea is safe.", "final_decision": "yes"}),
		"qa/selfaware.jsonl.gz": evaltest.Lines(t,
			object{"question_id": 1, "question": "What is the meaning of life?", "answerable": false, "source": "x"},
			object{"question_id": 2, "question": "Who wrote Hamlet?", "answerable": true, "source": "y"}),
	}
	for name, want := range map[string]map[string]float64{
		"mtrag":     {"answerability AUROC": 1, "unanswerable refused": 1, "answerable refused": 0},
		"pubmedqa":  {"document@1": 1, "decision": 1, "always yes": 0.5},
		"selfaware": {"unanswerable refused": 1, "answerable refused": 1},
	} {
		r := evaltest.Run(t, suite(t, name), evaltest.Env(t, data.Folder(), nil), 0)
		for metric, v := range want {
			if got := evaltest.Value(t, r, metric); got != v {
				t.Errorf("%s: %s is %v, want %v", name, metric, got, v)
			}
		}
	}
}

func TestTitled(t *testing.T) {
	if got := titled("One\nline", "text"); got != "---\ntitle: One line\n---\ntext\n" {
		t.Errorf("%q", got)
	}
}
