// Package support holds the suites that measure whether claims stand on their
// evidence: the judge of package verify against labels of people, beside plain
// word overlap in the same run, and how answers are split into claims. It owns the
// reading of these sets and the training of the judge's weights; the judge itself
// knows no data.
package support

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// about is what 'marchwarden-lab list' says of the suites.
var about = map[string]eval.Suite{
	"attributionbench": {Title: "AttributionBench: sentences of answers against what they cite", Licence: "research use",
		Measures: "support judge, 5-fold by question: macro-F1, AUROC",
		Bars:     []eval.Bar{{Metric: "macro_f1", AtLeast: 0.72, Known: "word overlap .655, fine-tuned GPT-3.5 about .80"}, {Metric: "overlap_macro_f1", Known: ".655"}}},
	"wice": {Title: "WiCE: sentences of Wikipedia against the pages they cite", Licence: "ODC-BY",
		Measures: "support judge, never fitted on: AUROC of supported against partially and not supported",
		Bars:     []eval.Bar{{Metric: "shipped_auroc", AtLeast: 0.80, Known: "word overlap .725, T5-3B .897"}, {Metric: "overlap_auroc", Known: ".725"}}},
	"scifact-claims": {Title: "SciFact: claims against abstracts", Licence: "ODC-By, CC BY 4.0", Measures: "support judge, never fitted on: support, contradiction"},
	"climate-fever":  {Title: "Climate-FEVER: claims about the climate against sentences of Wikipedia", Licence: "see its source", Measures: "support judge: support, contradiction"},
	"healthver":      {Title: "HealthVer: claims about health against findings", Licence: "see its source", Measures: "support judge: support, contradiction"},
	"fever-symmetric": {Title: "FEVER-Symmetric: claims each with a text for and a text against it", Licence: "see its source",
		Measures: "support judge, never fitted on: support, contradiction",
		Bars:     []eval.Bar{{Metric: "shipped_auroc", AtLeast: 0.85}, {Metric: "conflict_found", AtLeast: 0.5}}},
	"averitec": {Title: "AVeriTeC: claims against answers that fact-checkers found", Licence: "CC BY-NC: measured on, never fitted on", Measures: "support judge: support, contradiction"},
	"ordinary": {Title: "claims in other words about ordinary documents, written for this project", Licence: "that of this project", Measures: "support judge: support, contradiction"},
	"everyday": {Title: "claims that differ from a paragraph or a table of an ordinary document in one thing, or in words only", Licence: "that of this project", Measures: "support judge: false claims called supported"},
	"claims": {Title: "claims that differ from a passage in one thing, or in words only, written for this project", Licence: "that of this project",
		Measures: "support judge: false claims called supported",
		Bars:     []eval.Bar{{Metric: "said_supported_right", AtLeast: 0.9}}},
}

// crossed is the set whose bars are for models that have not seen the pair: they are
// fitted anew, fold by fold, on the set itself.
var crossed = map[string]bool{"attributionbench": true}

// Suites are those of this package.
func Suites() []eval.Suite {
	out := []eval.Suite{factSuite()}
	for _, s := range sets {
		suite := about[s.name]
		suite.Name, suite.Files, suite.Own = s.name, s.files, own
		suite.Open = func(_ context.Context, env eval.Env) (eval.Session, error) { return open(s, env) }
		out = append(out, suite)
	}
	return out
}

// session is one set.
type session struct {
	judge *verify.Judge
	ids   []string
	pairs map[string]pair
	// cross fits a crossed set fold by fold, when a case is run for the first time: one
	// whose cases are only counted is not fitted. By pair, it gives what models said that
	// had not seen it, one a dealing; nil for a set that is not crossed.
	cross func(ctx context.Context) (map[string][]float64, error)
}

// dealings is how often the pairs are dealt into folds: which ones come together is
// chance, and worth a point of macro-F1.
const dealings = 3

func open(s set, env eval.Env) (eval.Session, error) {
	pairs, err := s.pairs(env.Data)
	if err != nil {
		return nil, err
	}
	out := &session{judge: verify.NewJudge(env.Reader), pairs: map[string]pair{}}
	for _, p := range pairs {
		out.ids = append(out.ids, p.id)
		out.pairs[p.id] = p
	}
	if crossed[s.name] {
		out.cross = once(func(ctx context.Context) (map[string][]float64, error) { return cross(ctx, s, env, pairs) })
	}
	return out, nil
}

// once is a function that is called once, with the context of the first caller.
func once[T any](f func(context.Context) (T, error)) func(context.Context) (T, error) {
	var first sync.Once
	var value T
	var err error
	return func(ctx context.Context) (T, error) {
		first.Do(func() { value, err = f(ctx) })
		return value, err
	}
}

// cross fits the folds of a set.
func cross(ctx context.Context, s set, env eval.Env, pairs []pair) (map[string][]float64, error) {
	env.Say(fmt.Sprintf("fit %d folds of %d pairs, dealt %d times", folds, len(pairs), dealings))
	xs, err := measure(ctx, env.Reader, s, pairs)
	if err != nil {
		return nil, err
	}
	out := map[string][]float64{}
	for d := range dealings {
		for i, p := range unseen(xs, env.Reader != nil, env.Seed+uint64(d)) {
			out[xs[i].id] = append(out[xs[i].id], p)
		}
	}
	return out, nil
}

// Cases are the pairs.
func (s *session) Cases() []string { return s.ids }

// Close has nothing to free.
func (s *session) Close() error { return nil }

// Run judges one pair.
func (s *session) Run(ctx context.Context, id string) (eval.Row, error) {
	p, ok := s.pairs[id]
	if !ok {
		return eval.Row{}, marchwarden.Errorf(marchwarden.CodeNotFound, "no case %q", id)
	}
	o, err := s.judge.Judge(ctx, p.claim, p.evidence())
	if err != nil {
		return eval.Row{}, err
	}
	v := map[string]float64{
		"supported": number(p.label == verify.VerdictSupported), "contradicted": number(p.label == verify.VerdictContradicted), "overlap": overlap(p.claim, p.excerpts),
		"p_shipped": o.Support, "p_conflict": o.Conflict, "said": float64(place(o.Verdict)), "label": float64(place(p.label)),
	}
	if s.cross != nil {
		said, err := s.cross(ctx)
		if err != nil {
			return eval.Row{}, err
		}
		for d, p := range said[id] {
			v[unseenName(d)] = p
		}
	}
	return eval.Row{ID: id, Group: p.group, Values: v, Note: string(o.Verdict)}, nil
}

// verdicts in the order of their numbers in a row.
var verdicts = []verify.Verdict{verify.VerdictUnsupported, verify.VerdictSupported, verify.VerdictPartial, verify.VerdictContradicted, verify.VerdictUnchecked}

func place(v verify.Verdict) int {
	for i, known := range verdicts {
		if v == known {
			return i
		}
	}
	return -1
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func unseenName(dealing int) string { return "p_unseen_" + strconv.Itoa(dealing+1) }

// Score holds the probabilities and the verdicts against the labels. Where models were
// fitted fold by fold, macro_f1, auroc and accuracy are theirs, the mean of all
// dealings; those of the judge as it is shipped are always told, and mean something
// only on pairs it was not fitted on.
func (s *session) Score(rows []eval.Row) []eval.Metric {
	var out []eval.Metric
	for d := 0; len(rows) > 0 && hasValue(rows[0], unseenName(d)); d++ {
		for i, m := range ranked(rows, "", unseenName(d)) {
			if d == 0 {
				out = append(out, m)
				continue
			}
			out[i].Value += (m.Value - out[i].Value) / float64(d+1)
		}
	}
	out = append(out, ranked(rows, "shipped_", "p_shipped")...)
	out = append(out, overlapMetrics(rows)...)
	return append(out, verdictMetrics(rows)...)
}

func hasValue(r eval.Row, name string) bool {
	_, ok := r.Values[name]
	return ok
}

// ranked are the metrics of a probability of support.
func ranked(rows []eval.Row, prefix, value string) []eval.Metric {
	var truth, said []int
	right := 0.0
	for _, r := range rows {
		t, p := int(r.Values["supported"]), 0
		if r.Values[value] >= 0.5 {
			p = 1
		}
		truth, said = append(truth, t), append(said, p)
		right += number(t == p)
	}
	return []eval.Metric{
		{Name: prefix + "macro_f1", Value: metric.MacroF1(truth, said, 2), N: len(rows)},
		{Name: prefix + "auroc", Value: area(rows, "supported", value), N: len(rows)},
		{Name: prefix + "accuracy", Value: right / float64(max(1, len(rows))), N: len(rows)},
	}
}

// area is how well a value tells pairs with a mark from those without.
func area(rows []eval.Row, mark, value string) float64 {
	var with, without []float64
	for _, r := range rows {
		if r.Values[mark] > 0 {
			with = append(with, r.Values[value])
		} else {
			without = append(without, r.Values[value])
		}
	}
	return metric.AUROC(with, without)
}

// overlapMetrics are those of plain word overlap, at the best threshold there is for it
// on these very rows: more than it could reach on others.
func overlapMetrics(rows []eval.Row) []eval.Metric {
	best := 0.0
	for cut := 0.2; cut < 1; cut += 0.01 {
		var truth, said []int
		for _, r := range rows {
			truth, said = append(truth, int(r.Values["supported"])), append(said, int(number(r.Values["overlap"] >= cut)))
		}
		best = max(best, metric.MacroF1(truth, said, 2))
	}
	return []eval.Metric{
		{Name: "overlap_macro_f1", Value: best, N: len(rows)},
		{Name: "overlap_auroc", Value: area(rows, "supported", "overlap"), N: len(rows)},
	}
}

// verdictMetrics are those of the five words of the judge as it is shipped: how often
// it gives a verdict, how often that one is right, and contradictions.
func verdictMetrics(rows []eval.Row) []eval.Metric {
	said := func(r eval.Row) verify.Verdict {
		if n := int(r.Values["said"]); n >= 0 && n < len(verdicts) {
			return verdicts[n]
		}
		return verify.VerdictUnchecked // a report may come from anywhere
	}
	share := func(name string, of, holds func(eval.Row) bool) eval.Metric {
		n, ok := 0, 0.0
		for _, r := range rows {
			if of(r) {
				n++
				ok += number(holds(r))
			}
		}
		return eval.Metric{Name: name, Value: ok / float64(max(1, n)), N: n}
	}
	all := func(eval.Row) bool { return true }
	right := func(r eval.Row) bool { return r.Values["supported"] > 0 }
	denied := func(r eval.Row) bool { return r.Values["contradicted"] > 0 }
	says := func(vs ...verify.Verdict) func(eval.Row) bool {
		return func(r eval.Row) bool {
			for _, v := range vs {
				if said(r) == v {
					return true
				}
			}
			return false
		}
	}
	out := []eval.Metric{
		share("checked", all, func(r eval.Row) bool { return said(r) != verify.VerdictUnchecked }),
		share("said_supported_right", says(verify.VerdictSupported), right),
		share("said_otherwise_right", says(verify.VerdictUnsupported, verify.VerdictPartial, verify.VerdictContradicted), func(r eval.Row) bool { return !right(r) }),
	}
	for _, r := range rows {
		if denied(r) {
			return append(out,
				eval.Metric{Name: "conflict_auroc", Value: area(rows, "contradicted", "p_conflict"), N: len(rows)},
				found(rows),
				share("conflict_precision", says(verify.VerdictContradicted), denied),
				share("conflict_recall", denied, says(verify.VerdictContradicted)))
		}
	}
	return out
}

// found is the share of the contradicted claims that are found by the probability of it
// where four of five that it finds are.
func found(rows []eval.Row) eval.Metric {
	at := func(r eval.Row) float64 { return r.Values["p_conflict"] }
	is := func(r eval.Row) bool { return r.Values["contradicted"] > 0 }
	from := cut(slices.Clone(rows), at, is, 0.8)
	m := eval.Metric{Name: "conflict_found"}
	for _, r := range rows {
		if is(r) {
			m.N++
			m.Value += number(at(r) >= from)
		}
	}
	m.Value /= float64(max(1, m.N))
	return m
}
