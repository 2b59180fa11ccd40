package support

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

func suite(t *testing.T, name string) eval.Suite {
	t.Helper()
	for _, s := range Suites() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no suite %q", name)
	return eval.Suite{}
}

type row map[string]any

// towns are texts, each about something of its own.
func towns(n int) (texts, claims []string) {
	things := []string{"bridge", "harbour", "library", "market", "theatre", "museum", "station", "garden"}
	for i := range n {
		town, thing := fmt.Sprintf("Town%c%c", 'A'+i%26, 'a'+i/26), things[i%len(things)]
		texts = append(texts, fmt.Sprintf("%s lies on a river. Its %s was opened in %d by the council. Many people go there in summer.", town, thing, 1800+i))
		claims = append(claims, fmt.Sprintf("The council opened the %s of %s in %d.", thing, town, 1800+i))
	}
	return texts, claims
}

func attribution(t *testing.T, n int) []byte {
	texts, claims := towns(n)
	var rows []any
	for i := range n {
		label, ref := "attributable", texts[i]
		if i%2 == 1 {
			label, ref = "not attributable", texts[(i+3)%n]
		}
		rows = append(rows, row{"claim": claims[i], "question": fmt.Sprint("q", i/2), "references": []string{ref}, "attribution_label": label})
	}
	return evaltest.Lines(t, rows...)
}

// TestCrossed: what supports and what does not is told apart by models that have not
// seen the pair, and a report has the baseline beside it.
func TestCrossed(t *testing.T) {
	data := evaltest.Data{"citations/attributionbench.jsonl.gz": attribution(t, 300)}
	r := evaltest.Run(t, suite(t, "attributionbench"), evaltest.Env(t, data.Folder(), nil), 0)
	for _, m := range []string{"macro_f1", "auroc", "accuracy", "overlap_auroc", "overlap_macro_f1"} {
		if v := evaltest.Value(t, r, m); v < 0.9 {
			t.Errorf("%s is %.3f", m, v)
		}
	}
	if v := evaltest.Value(t, r, "checked"); v < 0 || v > 1 {
		t.Errorf("checked is %v", v)
	}
	again := evaltest.Run(t, suite(t, "attributionbench"), evaltest.Env(t, data.Folder(), nil), 0)
	if !slices.Equal(r.Metrics, again.Metrics) {
		t.Errorf("%v and then %v", r.Metrics, again.Metrics)
	}
}

// TestPartialIsNotSupported: WiCE's middle label counts as not supported.
func TestPartialIsNotSupported(t *testing.T) {
	texts, claims := towns(240)
	var rows []any
	for i := range texts {
		label, claim := "supported", claims[i]
		if i%3 == 1 {
			label, claim = "partially_supported", "The council opened a zoo, a bakery and an airport beside the old abbey, and "+claim
		} else if i%3 == 2 {
			label, claim = "not_supported", "Bananas ripen quickly beside apples in closed paper bags."
		}
		rows = append(rows, row{"claim": claim, "evidence": strings.SplitAfter(texts[i], ". "), "label": label, "meta": row{"claim_title": fmt.Sprint(i)}})
	}
	data := evaltest.Data{"citations/wice.jsonl.gz": evaltest.Lines(t, rows...)}
	r := evaltest.Run(t, suite(t, "wice"), evaltest.Env(t, data.Folder(), nil), 0)
	supported := 0
	for _, c := range r.Rows {
		supported += int(c.Values["supported"])
	}
	if supported != 80 {
		t.Errorf("%d of 240 count as supported", supported)
	}
}

func TestOtherSets(t *testing.T) {
	texts, claims := towns(4)
	data := evaltest.Data{
		"claims/healthver.jsonl.gz": evaltest.Lines(t, row{"claim": claims[0], "evidence": texts[0], "label": "Supports", "topic_ip": "1"},
			row{"claim": claims[1], "evidence": texts[1], "label": "Refutes", "topic_ip": "1"}, row{"claim": claims[2], "evidence": texts[3], "label": "Neutral", "topic_ip": "2"}),
		"claims/fever-symmetric.jsonl.gz": evaltest.Lines(t, row{"claim": "a b", "evidence": "x", "label": "SUPPORTS"}, row{"claim": "c d", "evidence": "x", "label": "REFUTES"},
			row{"claim": "c d", "evidence": "y", "label": "SUPPORTS"}, row{"claim": "e f", "evidence": "z", "label": "SUPPORTS"}),
		"claims/climate-fever.jsonl.gz":  evaltest.Lines(t, row{"claim": claims[0], "claim_id": "7", "evidences": []row{{"evidence": texts[0], "evidence_label": "SUPPORTS"}, {"evidence": texts[1], "evidence_label": "NOT_ENOUGH_INFO"}}}),
		"claims/scifact-train.jsonl.gz":  evaltest.Lines(t, row{"id": 1, "claim": claims[0], "cited_doc_ids": []int{10, 11}, "evidence": row{"10": []row{{"label": "CONTRADICT"}}}}),
		"claims/scifact-corpus.jsonl.gz": evaltest.Lines(t, row{"doc_id": 10, "abstract": []string{texts[0]}}, row{"doc_id": 11, "abstract": []string{texts[1]}}),
		"claims/averitec.jsonl.gz":       evaltest.Lines(t, row{"claim": claims[0], "label": "Refuted", "questions": []row{{"question": "When?", "answers": []row{{"answer": texts[0]}}}}}),
	}
	for name, want := range map[string][]verify.Verdict{
		"healthver":       {verify.VerdictSupported, verify.VerdictContradicted, verify.VerdictUnsupported},
		"fever-symmetric": {verify.VerdictSupported, verify.VerdictContradicted, verify.VerdictSupported, verify.VerdictSupported},
		"climate-fever":   {verify.VerdictSupported, verify.VerdictUnsupported},
		"scifact-claims":  {verify.VerdictContradicted, verify.VerdictUnsupported},
		"averitec":        {verify.VerdictContradicted},
	} {
		r := evaltest.Run(t, suite(t, name), evaltest.Env(t, data.Folder(), nil), 0)
		var got []verify.Verdict
		for _, c := range r.Rows {
			got = append(got, verdicts[int(c.Values["label"])])
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	pairs, err := feverSymmetric(data.Folder())
	if err != nil || pairs[0].group != pairs[2].group || pairs[0].group == pairs[3].group {
		t.Errorf("%+v, %v: pairs that share a claim or a text have one group", pairs, err)
	}
}

// Counting the cases of a set fits nothing; running them fits once, however many at once.
func TestFoldsAreFittedWhenTheyAreWanted(t *testing.T) {
	env := evaltest.Env(t, evaltest.Data{"citations/attributionbench.jsonl.gz": attribution(t, 60)}.Folder(), nil)
	var fits atomic.Int32
	env.Say = func(string) { fits.Add(1) }
	sess, err := suite(t, "attributionbench").Open(t.Context(), env)
	if err != nil || len(sess.Cases()) != 60 || fits.Load() != 0 {
		t.Fatalf("opened with %d fits, %v", fits.Load(), err)
	}
	var g errgroup.Group
	for _, id := range sess.Cases()[:8] {
		g.Go(func() error {
			r, err := sess.Run(t.Context(), id)
			if !hasValue(r, unseenName(dealings-1)) {
				t.Errorf("case %s: %v", id, r.Values)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil || fits.Load() != 1 {
		t.Errorf("%d fits, %v", fits.Load(), err)
	}
	// A report that is compared may come from anywhere.
	for _, m := range sess.Score([]eval.Row{{ID: "1", Values: map[string]float64{"said": 99}}, {ID: "2", Values: map[string]float64{"said": -1}}}) {
		if m.Name == "checked" && m.Value != 0 {
			t.Errorf("verdicts that there are not count as given: %v", m)
		}
	}
}

func TestBadData(t *testing.T) {
	env := func(d evaltest.Data) eval.Env { return evaltest.Env(t, d.Folder(), nil) }
	if _, err := suite(t, "wice").Open(t.Context(), env(nil)); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("without data: %v", err)
	}
	odd := evaltest.Data{"claims/healthver.jsonl.gz": evaltest.Lines(t, row{"claim": "a", "label": "Perhaps"})}
	if _, err := suite(t, "healthver").Open(t.Context(), env(odd)); err == nil || !strings.Contains(err.Error(), `"Perhaps"`) {
		t.Errorf("with an odd label: %v", err)
	}
}

func TestFacts(t *testing.T) {
	facts := func(list ...string) []row {
		var out []row
		for _, f := range list {
			out = append(out, row{"text": f})
		}
		return out
	}
	one := row{"output": "Ann Lee is an American actor, and she wrote two novels. She lives in Ogden.", "annotations": []row{
		{"text": "Ann Lee is an American actor, and she wrote two novels.", "human-atomic-facts": facts("Ann Lee is an actor.", "Ann Lee wrote two novels.")},
		{"text": "She lives", "human-atomic-facts": facts("She lives in Ogden.")},
		{"text": "Nobody judged this."},
	}}
	data := evaltest.Data{"citations/factscore-ChatGPT.jsonl.gz": evaltest.Lines(t, one), "citations/factscore-InstructGPT.jsonl.gz": evaltest.Lines(t, one)}
	r := evaltest.Run(t, suite(t, "factscore"), evaltest.Env(t, data.Folder(), nil), 0)
	for m, want := range map[string]float64{"sentences_exact": 0.5, "fact_in_sentence": 1} {
		if got := evaltest.Value(t, r, m); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %.3f, want %.3f", m, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	var xs []example
	for i := range 100 { // the higher, the more supported; wrong once in ten
		x := example{pair: pair{id: fmt.Sprint(i), label: verify.VerdictUnsupported}}
		if i >= 50 != (i%10 == 0) {
			x.label = verify.VerdictSupported
		}
		xs = append(xs, x)
	}
	at := func(x example) float64 {
		n, _ := strconv.Atoi(x.id)
		return float64(n) / 100
	}
	if c := cut(slices.Clone(xs), at, example.supported, 0.85); c < 0.4 || c > 0.6 {
		t.Errorf("supported from %v", c)
	}
	if c := cut(slices.Clone(xs), at, example.supported, 0.99); c != never {
		t.Errorf("sure from %v", c)
	}
}

// words is a reader that goes by the share of a claim's words.
type words struct{}

func (words) ID() string { return "words" }

func (words) Read(context.Context, string, []reader.Passage) ([]reader.Reading, error) {
	return nil, errors.New("not asked for")
}

func (words) Relate(_ context.Context, pairs []reader.Pair) ([]reader.Relation, error) {
	var out []reader.Relation
	for _, p := range pairs {
		v := overlap(p.Claim, []string{p.Evidence})
		out = append(out, reader.Relation{Entailed: v * 0.9, Contradicted: (1 - v) * 0.9})
	}
	return out, nil
}

// TestTrainer: the weights it makes are weights that the judge takes, and same data
// gives the same.
func TestTrainer(t *testing.T) {
	texts, claims := towns(120)
	var health, climate, fever, wice, science []any
	var corpus []any
	for i := range texts {
		word := []string{"SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO"}[i%3]
		health = append(health, row{"claim": claims[i], "evidence": texts[(i+i%3)%120], "label": []string{"Supports", "Refutes", "Neutral"}[i%3], "topic_ip": fmt.Sprint(i)})
		climate = append(climate, row{"claim": claims[i], "claim_id": fmt.Sprint(i), "evidences": []row{{"evidence": texts[(i+i%3)%120], "evidence_label": word}}})
		fever = append(fever, row{"claim": claims[i], "evidence": texts[(i+i%3)%120], "label": word})
		wice = append(wice, row{"claim": claims[i], "evidence": []string{texts[(i+i%3)%120]}, "label": []string{"supported", "partially_supported", "not_supported"}[i%3]})
		corpus = append(corpus, row{"doc_id": i, "abstract": []string{texts[i]}})
		science = append(science, row{"id": i, "claim": claims[i], "cited_doc_ids": []int{(i + i%3) % 120}, "evidence": row{fmt.Sprint(i): []row{{"label": "SUPPORT"}}}})
	}
	data := evaltest.Data{"citations/attributionbench.jsonl.gz": attribution(t, 120), "citations/wice.jsonl.gz": evaltest.Lines(t, wice...),
		"claims/healthver.jsonl.gz": evaltest.Lines(t, health...), "claims/climate-fever.jsonl.gz": evaltest.Lines(t, climate...), "claims/fever-symmetric.jsonl.gz": evaltest.Lines(t, fever...),
		"claims/scifact-train.jsonl.gz": evaltest.Lines(t, science...), "claims/scifact-corpus.jsonl.gz": evaltest.Lines(t, corpus...)}
	tr := Trainers()[0]
	env := evaltest.Env(t, data.Folder(), nil)
	if _, _, err := tr.Fit(t.Context(), env); err == nil {
		t.Error("weights with a reader were made without one")
	}
	env.Reader = words{}
	a, said, err := tr.Fit(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	b, again, err := tr.Fit(t.Context(), env)
	if err != nil || string(a) != string(b) || said != again {
		t.Errorf("%v: another run makes other weights", err)
	}
	w, err := verify.ParseWeights(a)
	if err != nil || !strings.Contains(said, "wice") {
		t.Fatalf("%v; %s", err, said)
	}
	o, err := verify.NewJudgeWith(w, nil).Judge(t.Context(), "Bananas ripen quickly beside apples in the closed paper bags.", []verify.Excerpt{{Text: texts[0]}})
	if err != nil || o.Support > 0.5 {
		t.Errorf("%+v, %v", o, err)
	}
	if slices.Contains(tr.Files, "claims/averitec.jsonl.gz") {
		t.Error("weights are fitted on a set for non-commercial use")
	}
}
