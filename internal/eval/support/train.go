package support

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify/judge"
)

// How the models are fitted. Between 120 and 300 trees, of depth 2 or 3, cross-validation
// saw little difference.
var (
	supportTrees  = stat.TreeOptions{Trees: 300, Depth: 2, Rate: 0.025, MinLeaf: 20, Rows: 0.5, Seed: 1}
	conflictTrees = stat.TreeOptions{Trees: 80, Depth: 2, Rate: 0.08, MinLeaf: 20, Rows: 0.5, Seed: 1}
)

const (
	folds = 5
	// most rows of a set with one outcome that are fitted on, so that a large set is
	// not heard alone.
	mostOfOutcome = 600
)

// example is a pair in numbers.
type example struct {
	pair
	set    string
	words  []float64
	vector []float64 // nil without vectors
	clash  bool      // there is a sign of conflict that can be named
	plain  bool      // and it is outright
	uses   set       // what it may be fitted for
}

func (x example) values(vectors bool) []float64 {
	if vectors {
		return x.vector
	}
	return x.words
}

// parallel is how many pairs are measured at once.
const parallel = 2

// measure turns pairs into numbers.
func measure(ctx context.Context, e embed.Embedder, of set, pairs []pair) ([]example, error) {
	out := make([]example, len(pairs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	names := len(judge.Names(false))
	for i, p := range pairs {
		g.Go(func() error {
			r, err := judge.Read(ctx, e, p.claim, p.excerpts)
			if err != nil {
				return err
			}
			if e != nil && !r.Vectors {
				return errors.New("there are no vectors for a pair")
			}
			out[i] = example{pair: p, set: of.name, uses: of, clash: r.Conflict, plain: r.Outright, words: r.Values[:names:names]}
			if r.Vectors {
				out[i].vector = r.Values
			}
			return nil
		})
	}
	return out, g.Wait()
}

// outcome is what a model is to find, and how it is fitted.
type outcome struct {
	is    func(example) bool
	trees stat.TreeOptions
}

var (
	supported    = outcome{func(x example) bool { return x.label == judge.Supported }, supportTrees}
	contradicted = outcome{func(x example) bool { return x.label == judge.Contradicted }, conflictTrees}
)

// fit fits a model to examples.
func fit(xs []example, vectors bool, o outcome) *stat.Trees {
	x, y := make([][]float64, len(xs)), make([]float64, len(xs))
	for i, e := range xs {
		x[i] = e.values(vectors)
		if o.is(e) {
			y[i] = 1
		}
	}
	m := stat.FitTrees(x, y, judge.Names(vectors), o.trees)
	return &m
}

// thinned are the examples of each set, of each outcome no more than so many, spread
// evenly.
func thinned(xs []example, o outcome) []example {
	count := map[string]int{}
	key := func(x example) string { return fmt.Sprint(x.set, o.is(x)) }
	for _, x := range xs {
		count[key(x)]++
	}
	seen := map[string]int{}
	var out []example
	for _, x := range xs {
		k := key(x)
		n, all := seen[k], count[k]
		seen[k]++
		if all <= mostOfOutcome || n*mostOfOutcome/all != (n+1)*mostOfOutcome/all {
			out = append(out, x)
		}
	}
	return out
}

// foldsOf deals examples into folds; those of one group share it.
func foldsOf(xs []example, dealing uint64) []int {
	groups := make([]string, len(xs))
	for i, x := range xs {
		groups[i] = x.set + "\x00" + x.group
	}
	return stat.Folds(groups, folds, dealing)
}

// unseen are the probabilities of examples by models that were fitted without their
// fold.
func unseen(xs []example, vectors bool, o outcome, dealing uint64) []float64 {
	fold := foldsOf(xs, dealing)
	p := make([]float64, len(xs))
	var g errgroup.Group
	g.SetLimit(parallel)
	for k := range folds {
		g.Go(func() error {
			var rest []example
			for i, x := range xs {
				if fold[i] != k {
					rest = append(rest, x)
				}
			}
			m := fit(thinned(rest, o), vectors, o)
			for i, x := range xs {
				if fold[i] == k {
					p[i] = m.Score(x.values(vectors))
				}
			}
			return nil
		})
	}
	_ = g.Wait() // none of them fails
	return p
}

// Trainers are what this package can fit.
func Trainers() []eval.Trainer {
	t := eval.Trainer{Name: "support", Writes: "internal/verify/judge/weights.json", Fit: train}
	for _, s := range sets {
		if s.support || s.conflict {
			t.Files = append(t.Files, s.files...)
		}
	}
	return []eval.Trainer{t}
}

// train fits the weights of the judge.
func train(ctx context.Context, env eval.Env) ([]byte, string, error) {
	if env.Embed == nil {
		return nil, "", errors.New("the judge is fitted with and without vectors: there must be an embedder")
	}
	var all []example
	var from []string
	for _, s := range sets {
		if !s.support && !s.conflict {
			continue
		}
		pairs, err := s.read(env.Data)
		if err != nil {
			return nil, "", err
		}
		env.Say(fmt.Sprintf("measure %d pairs of %s", len(pairs), s.name))
		xs, err := measure(ctx, env.Embed, s, pairs)
		if err != nil {
			return nil, "", err
		}
		all = append(all, xs...)
		from = append(from, s.name)
	}
	w := judge.Weights{Made: env.Now.Format("2006-01-02"), Command: "marchwarden eval train support --write", Data: strings.Join(from, ", ")}
	var said strings.Builder
	for _, vectors := range []bool{false, true} {
		m, summary := models(all, vectors)
		fmt.Fprintf(&said, "%s:\n%s", map[bool]string{false: "by words", true: "by words and vectors"}[vectors], summary)
		if vectors {
			w.Vectors = m
		} else {
			w.Words = m
		}
	}
	b, err := json.Marshal(w)
	if err != nil {
		return nil, "", fmt.Errorf("encode weights: %w", err)
	}
	b = bytes.ReplaceAll(b, []byte("}],[{"), []byte("}],\n[{")) // a line for each tree
	_, err = judge.Parse(b)
	return append(b, '\n'), said.String(), err
}

// models fits both models of one kind of features and reads the cuts off what was
// predicted for unseen pairs.
func models(all []example, vectors bool) (judge.Models, string) {
	stated := kept(all, func(x example) bool { return x.uses.support })
	denied := kept(all, func(x example) bool { return x.uses.conflict })
	p, q := unseen(stated, vectors, supported, 1), unseen(denied, vectors, contradicted, 1)
	shown := slices.Clone(q)
	for i, x := range denied {
		if !x.clash {
			shown[i] = 0 // the judge does not call these contradicted, however likely
		}
	}
	m := judge.Models{
		Support: fit(thinned(stated, supported), vectors, supported), Conflict: fit(thinned(denied, contradicted), vectors, contradicted),
		Cuts: judge.Cuts{
			Supported:    cutAbove(stated, p, supported, sureSupported),
			Unsupported:  cutBelow(stated, p, supported, sureUnsupported),
			Contradicted: cutAbove(denied, shown, contradicted, sureContradicted),
		},
	}
	m.Support.Data, m.Conflict.Data = strings.Join(namesOf(stated), ", "), strings.Join(namesOf(denied), ", ")
	for _, t := range []*stat.Trees{m.Support, m.Conflict} {
		round(t)
	}
	return m, summary(all, keyed(stated, p), keyed(denied, q), vectors, m.Cuts)
}

func kept(xs []example, is func(example) bool) []example {
	return slices.DeleteFunc(slices.Clone(xs), func(x example) bool { return !is(x) })
}
