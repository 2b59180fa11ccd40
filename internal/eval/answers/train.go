package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	scorer "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive/answerable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"golang.org/x/sync/errgroup"
)

// How the refusal scorer is fitted. The values were chosen once; AUROC changes by less
// than 0.003 around them.
const (
	lineL2   = 0.002
	trees    = 160
	treeRate = 0.06
	treeLeaf = 30
	treeRows = 0.7
	asking   = 2 // questions at a time
)

// folds are the numbers of folds of whole articles that the fit is measured by. There are
// few articles, and those of a number fall together by chance: one number says little.
var folds = []int{4, 5, 8}

// Trainers are what this package can fit.
func Trainers() []eval.Trainer {
	return []eval.Trainer{{
		Name: "refusal", Writes: "internal/reason/extractive/answerable/weights.json", Files: []string{squadFile + ".jsonl.gz"},
		Fit: fitRefusal,
	}}
}

// lesson is what the mind met for one question.
type lesson struct {
	row     []float64
	truth   float64
	article string
}

// fitRefusal asks all questions of SQuAD 2.0 with vectors, and fits the scorer to the
// evidence that the mind met for each.
func fitRefusal(ctx context.Context, env eval.Env) ([]byte, string, error) {
	if env.Embed == nil {
		return nil, "", &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "the refusal scorer is fitted with vectors, and there are none",
			Hint: "leave --no-vectors out, and build without -tags nomodel"}
	}
	sess, err := openSquad2(ctx, env)
	if err != nil {
		return nil, "", err
	}
	s := sess.(*squadSession)
	defer s.Close()
	lessons, err := s.lessons(ctx, env.Say)
	if err != nil {
		return nil, "", err
	}
	w := scorer.Weights{Made: env.Now.Format(time.DateOnly), Command: "marchwarden eval train refusal --write",
		Data: fmt.Sprintf("SQuAD 2.0 dev half, %d questions of which %d have an answer", len(lessons), countTrue(lessons))}
	var said strings.Builder
	for _, v := range []struct {
		what string
		into *scorer.Model
		with bool
	}{{"words alone", &w.Words, false}, {"with vectors", &w.Vectors, true}} {
		names := scorer.Names(v.with)
		fmt.Fprintf(&said, "%s: AUROC", v.what)
		for _, k := range folds {
			fmt.Fprintf(&said, " %.4f", aurocOf(lessons, crossed(lessons, names, k)))
		}
		fmt.Fprintf(&said, " over %v folds of whole articles\n", folds)
		*v.into = fit(lessons, names, func(lesson) bool { return true })
		rounded(v.into)
	}
	for _, f := range w.Vectors.Line.Features {
		fmt.Fprintf(&said, "  %+.3f  %s\n", f.Weight, f.Name)
	}
	out, err := json.Marshal(w)
	if err == nil {
		out = lines(out)
		_, err = scorer.Parse(out)
	}
	return out, said.String(), err
}

// lines puts every feature and every tree on a line of its own.
func lines(out []byte) []byte {
	for _, at := range []string{`],[`, `},{"name"`} {
		cut := strings.IndexByte(at, ',') + 1
		out = bytes.ReplaceAll(out, []byte(at), []byte(at[:cut]+"\n"+at[cut:]))
	}
	for _, before := range []string{`"words":`, `"vectors":`, `"trees":{`} {
		out = bytes.ReplaceAll(out, []byte(before), []byte("\n"+before))
	}
	for _, after := range []string{`"features":[`, `"trees":[`} {
		out = bytes.ReplaceAll(out, []byte(after), []byte(after+"\n"))
	}
	return append(out, '\n')
}

// lessons asks every question and keeps what the mind met.
func (s *squadSession) lessons(ctx context.Context, say func(string)) ([]lesson, error) {
	all := make([]lesson, len(s.ids))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(asking)
	var mu sync.Mutex // guards done
	done := 0
	for i, id := range s.ids {
		group.Go(func() error {
			c := s.cases[id]
			all[i] = lesson{truth: number(!c.Impossible), article: c.article}
			watched := scorer.Watch(ctx, func(e *scorer.Evidence) { all[i].row = e.Features() })
			_, err := s.lib.Ask(watched, marchwarden.Request{Question: c.Question})
			mu.Lock()
			defer mu.Unlock()
			if done++; done%500 == 0 {
				say(fmt.Sprintf("%d of %d questions", done, len(s.ids)))
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var met []lesson
	for _, l := range all {
		if len(l.row) == len(scorer.Names(true)) {
			met = append(met, l)
		}
	}
	return met, nil
}

func countTrue(ls []lesson) int {
	n := 0
	for _, l := range ls {
		n += int(l.truth)
	}
	return n
}

// fit fits both halves of a model to the lessons that are wanted.
func fit(ls []lesson, names []string, wanted func(lesson) bool) scorer.Model {
	var x [][]float64
	var y []float64
	for _, l := range ls {
		if wanted(l) {
			x, y = append(x, l.row[:len(names)]), append(y, l.truth)
		}
	}
	line := stat.FitLogistic(x, y, names, lineL2)
	sum := stat.FitTrees(x, y, names, stat.TreeOptions{Trees: trees, Rate: treeRate, MinLeaf: treeLeaf, Rows: treeRows, Seed: 7})
	return scorer.Model{Line: &line, Trees: &sum}
}

// crossed are the odds of each lesson by a model that has seen no lesson of its article.
func crossed(ls []lesson, names []string, folds int) []float64 {
	articles := make([]string, len(ls))
	for i, l := range ls {
		articles[i] = l.article
	}
	fold := stat.Folds(articles, folds, 1)
	of := map[string]int{}
	for i, l := range ls {
		of[l.article] = fold[i]
	}
	odds := make([]float64, len(ls))
	for k := range folds {
		m := fit(ls, names, func(l lesson) bool { return of[l.article] != k })
		for i, l := range ls {
			if fold[i] == k {
				odds[i] = m.Odds(l.row[:len(names)])
			}
		}
	}
	return odds
}

func aurocOf(ls []lesson, odds []float64) float64 {
	var yes, no []float64
	for i, l := range ls {
		if l.truth == 1 {
			yes = append(yes, odds[i])
		} else {
			no = append(no, odds[i])
		}
	}
	return stat.AUROC(yes, no)
}

// rounded keeps five digits of every number: more would only make the file unreadable.
func rounded(m *scorer.Model) {
	short := func(v *float64) { *v = math.Round(*v*1e5) / 1e5 }
	short(&m.Line.Bias)
	for i := range m.Line.Features {
		f := &m.Line.Features[i]
		short(&f.Mean)
		short(&f.Scale)
		short(&f.Weight)
	}
	short(&m.Trees.Base)
	for _, t := range m.Trees.Trees {
		for i := range t {
			short(&t[i].At)
			short(&t[i].Add)
		}
	}
}
