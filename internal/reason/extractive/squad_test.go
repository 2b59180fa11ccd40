package extractive

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/budget"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/squadtest"
)

var (
	fit    = flag.String("fit", "", "write the features of Match to this file")
	every  = flag.Int("every", 3, "measure every nth question; 1 to fit")
	misses = flag.Int("misses", 0, "print this many answerable questions whose answer was missed")
)

// outcome is one question's result.
type outcome struct {
	half       int // 0 fitted on, 1 checked on
	answerable bool
	hit        [3]bool // the gold answer is in the first 1, 2, 3 citations
	refused    bool
	quarrels   int
	match      float64
	feat       [numMatch]float64
	took       time.Duration
}

func stateOf(question string, set *evidence.Set, l marchwarden.Limits) *reason.State {
	return &reason.State{
		Request: marchwarden.Request{Question: question}, Limits: l, Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		Iteration: 1, Evidence: set, Meter: budget.New(l, 0),
	}
}

// excerpts are the citations of a draft in order, each once.
func excerpts(d reason.Draft, set *evidence.Set) []string {
	type key struct {
		n int
		s marchwarden.Span
	}
	seen := map[key]bool{}
	var out []string
	for _, c := range d.Claims {
		for i, id := range c.Passages {
			src, _, _ := set.Passage(id)
			k := key{src.N, c.Spans[i]}
			if seen[k] {
				continue
			}
			seen[k] = true
			e, _ := evidence.Excerpt(src.Text, c.Spans[i])
			out = append(out, e)
		}
	}
	return out
}

func measureSquad(t *testing.T, articles []squadtest.Article) []outcome {
	r := New()
	limits := marchwarden.Preset(marchwarden.Balanced)
	var out []outcome
	missed := 0
	for ai, a := range articles {
		full := &evidence.Set{}
		for i, p := range a.Paragraphs {
			full.Add(fetch.Page{Locator: fmt.Sprintf("%03d.md", i), Title: a.Name(), Source: "file", Text: blob.Of([]byte(p.Context))}, p.Context)
		}
		asked := 0
		for _, p := range a.Paragraphs {
			for _, qa := range p.QAs {
				if asked++; asked%*every != 0 {
					continue
				}
				st, d, _ := shelf{full}.run(t, marchwarden.Request{Question: qa.Question})
				set := st.Evidence
				start := time.Now()
				if _, err := r.Write(context.Background(), stateOf(qa.Question, set, limits)); err != nil {
					t.Fatal(err)
				}
				o := outcome{half: ai % 2, answerable: !qa.Impossible, refused: len(d.Claims) == 0, quarrels: len(d.Contradictions), match: d.Match, took: time.Since(start)}
				ex := excerpts(d, set)
				for k := range 3 {
					for _, e := range ex[:min(k+1, len(ex))] {
						o.hit[k] = o.hit[k] || qa.HeldIn(e)
					}
				}
				if o.answerable && !o.hit[2] && missed < *misses {
					missed++
					t.Logf("MISSED %s\n  gold %q\n  in %s\n  refused=%v match=%.3f %v", qa.Question, qa.Answers, p.Context, o.refused, o.match, ex)
				}
				if *fit != "" {
					o.feat = featuresOf(qa.Question, set, limits)
				}
				out = append(out, o)
			}
		}
	}
	return out
}

func featuresOf(text string, set *evidence.Set, l marchwarden.Limits) [numMatch]float64 {
	q := question.Read(text, "", 2026)
	r := read(&q, set, rank(&q, set, wanted(l, len(q.Parts))))
	b := r.best()
	if b < 0 {
		return [numMatch]float64{}
	}
	return r.measure(b)
}

func auroc(os []outcome, score func(outcome) float64) float64 {
	var pos, neg []float64
	for _, o := range os {
		if o.answerable {
			pos = append(pos, score(o))
		} else {
			neg = append(neg, score(o))
		}
	}
	return squadtest.AUROC(pos, neg)
}

func report(t *testing.T, name string, os []outcome) (hit3, auc, refused float64) {
	var n, h1, h2, h3, ref, unref, un float64
	var took []time.Duration
	quarrels := 0
	for _, o := range os {
		quarrels += o.quarrels
		took = append(took, o.took)
		if !o.answerable {
			un++
			if o.refused {
				unref++
			}
			continue
		}
		n++
		for k, h := range []*float64{&h1, &h2, &h3} {
			if o.hit[k] {
				*h++
			}
		}
		if o.refused {
			ref++
		}
	}
	slices.Sort(took)
	for _, yes := range []bool{true, false} {
		var ms []float64
		for _, o := range os {
			if o.answerable == yes {
				ms = append(ms, o.match)
			}
		}
		slices.Sort(ms)
		t.Logf("%-8s answerable=%-5v match at 2%% %.2f, 10%% %.2f, 25%% %.2f, 50%% %.2f, 75%% %.2f, 90%% %.2f", name, yes,
			ms[len(ms)/50], ms[len(ms)/10], ms[len(ms)/4], ms[len(ms)/2], ms[len(ms)*3/4], ms[len(ms)*9/10])
	}
	auc = auroc(os, func(o outcome) float64 { return o.match })
	t.Logf("%-8s AUROC of Match in steps of 1/40: %.4f", name, auroc(os, func(o outcome) float64 { return math.Round(40 * o.match) }))
	t.Logf("%-8s n=%d hit@1 %.4f hit@2 %.4f hit@3 %.4f | AUROC %.4f | wrongly refused %.4f, rightly refused %.4f | %d contradictions | write p50 %v p99 %v",
		name, len(os), h1/n, h2/n, h3/n, auc, ref/n, unref/un, quarrels, took[len(took)/2], took[len(took)*99/100])
	return h3 / n, auc, ref / n
}

// TestSquad measures the reasoner on real questions. The bars are those of the
// product, checked on the articles whose questions fitted nothing.
func TestSquad(t *testing.T) {
	if testing.Short() {
		t.Skip("takes many seconds")
	}
	all := measureSquad(t, squadtest.Read(t))
	if *fit != "" {
		fitMatch(t, all)
	}
	halves := [2][]outcome{}
	for _, o := range all {
		halves[o.half] = append(halves[o.half], o)
	}
	report(t, "fitted", halves[0])
	report(t, "all", all)
	hit, auc, refused := report(t, "checked", halves[1])
	if hit < 0.80 {
		t.Errorf("the answer is in the first 3 citations of %.3f of the questions, want 0.80", hit)
	}
	if auc < 0.65 {
		t.Errorf("AUROC %.3f, want 0.65", auc)
	}
	if refused > 0.03 {
		t.Errorf("%.3f of the answerable questions are refused, want 0.03", refused)
	}
}

// fitMatch writes the features of all questions for an outside fit.
func fitMatch(t *testing.T, all []outcome) {
	f, err := os.Create(*fit)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range numMatch {
		fmt.Fprintf(f, "f%d ", i)
	}
	fmt.Fprintln(f)
	fmt.Fprintln(f, strings.Trim(fmt.Sprint(matchSigns), "[]"))
	for _, o := range all {
		y := 0
		if o.answerable {
			y = 1
		}
		fmt.Fprintln(f, o.half, y, strings.Trim(fmt.Sprint(o.feat), "[]"))
	}
}
