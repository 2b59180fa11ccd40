package multihop

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

// The plain ranking takes words as they stand: a plural is another word.
func TestPlainWords(t *testing.T) {
	if d := cmp.Diff([]string{"the", "copper", "kettles", "of", "1988"}, plainWords("The copper-kettles (of 1988)!")); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// A question of two paragraphs, of which the second has hardly a word of it, in a
// library of more than eight that have more.
func TestPooled(t *testing.T) {
	context := []any{
		[]any{"Harbour Lights (film)", []string{"Harbour Lights is a film of 1988.", " It was directed by Mara Quill."}},
		[]any{"Mara Quill", []string{"Mara Quill comes from Oslo."}},
	}
	for _, n := range []string{"One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine"} {
		context = append(context, []any{"Festival " + n, []string{"At the festival " + n + " a film was shown whose director was born in the town."}})
	}
	data := evaltest.Data{
		"multidoc/hotpot100.jsonl.gz": evaltest.Lines(t, map[string]any{
			"question": "In which town was the director of the film Harbour Lights born?", "context": context,
			"supporting_facts": []any{[]any{"Harbour Lights (film)", 1}, []any{"Mara Quill", 0}},
		}),
		"multidoc/musique100-hippo.jsonl.gz": evaltest.Lines(t, map[string]any{
			"question": "Where is the Ardmoor Kettle Works?", "paragraphs": []any{
				map[string]any{"title": "Ardmoor Kettle Works", "paragraph_text": "The Ardmoor Kettle Works is in Penfold.", "is_supporting": true},
			},
		}),
	}
	report := evaltest.Run(t, pooled(), evaltest.Env(t, data.Folder(), nil), 0)
	for metric, want := range map[string]float64{allRead: 1, allPlain: 0.5, overPlain: 2, "HotpotQA: " + allPlain: 0, "MuSiQue: " + allRead: 1} {
		if got := evaltest.Value(t, report, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}

func TestRAG(t *testing.T) {
	fact := func(title, fact string) map[string]any {
		return map[string]any{"title": title, "fact": fact, "source": "The Herald", "published_at": "2023-10-31T02:30:32+00:00"}
	}
	data := evaltest.Data{"multidoc/multihop-rag.jsonl.gz": evaltest.Lines(t,
		map[string]any{"question": "Which harbour did the Tarn flood?", "question_type": "inference_query", "answer": "Penfold", "evidence_list": []any{
			fact("Floods", "The Tarn flooded the harbour of Penfold."), fact("Kettles", "Copper is dear."),
		}},
		map[string]any{"question": "Who won the chess cup of Atlantis?", "question_type": "null_query", "answer": "Insufficient information.", "evidence_list": []any{}},
	)}
	report := evaltest.Run(t, rag(), evaltest.Env(t, data.Folder(), nil), 0)
	for metric, want := range map[string]float64{hits10: 0.5, allHits: 0, refusal: 1} {
		if got := evaltest.Value(t, report, metric); got != want {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}

func TestFanout(t *testing.T) {
	sub := func(q string, needs ...string) map[string]any {
		return map[string]any{"question": q, "depends_on": needs, "decomposition": []any{}}
	}
	data := evaltest.Data{"multidoc/fanoutqa.jsonl.gz": evaltest.Lines(t,
		map[string]any{"question": "Which is older, the Tarn Bridge or the Penfold Mill?", "decomposition": []any{
			sub("How old is the Tarn Bridge?"), sub("How old is the Penfold Mill?"), sub("Who won the chess cup of Atlantis?", "x"),
		}},
		map[string]any{"question": "What is copper?", "decomposition": []any{sub("What is copper?")}},
	)}
	report := evaltest.Run(t, fanout(), evaltest.Env(t, data.Folder(), nil), 0)
	for metric, want := range map[string]float64{byWords: 1.0 / 3, openWords: 0.5, entities: 1, plannedN: 1} {
		if got := evaltest.Value(t, report, metric); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, want %v", metric, got, want)
		}
	}
}
