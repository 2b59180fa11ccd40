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

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/stat"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// trees are how the model is fitted. Between 120 and 300 trees, of depth 2 or 3,
// cross-validation saw little difference.
var trees = metric.TreeOptions{Trees: 120, Depth: 2, Rate: 0.04, MinLeaf: 30, Rows: 0.5, Seed: 1}

const (
	folds = 5
	// most rows of a set with one outcome that are fitted on, so that a large set is
	// not heard alone.
	mostOfOutcome = 600
	// and most of a set of short passages: with more of them, FEVER-Symmetric is told less well.
	mostOfShort = 120
)

// example is a pair in numbers.
type example struct {
	pair
	of   set
	read verify.ClaimReading
}

func (x example) supported() bool { return x.label == verify.VerdictSupported }

func (x example) contradicted() bool { return x.label == verify.VerdictContradicted }

// values are those of the features by words alone, or of all.
func (x example) values(withReader bool) []float64 {
	return x.read.Values[:len(verify.FeatureNames(withReader))]
}

// parallel is how many pairs are measured at once.
const parallel = 2

// measure turns pairs into numbers.
func measure(ctx context.Context, r reader.Reader, of set, pairs []pair) ([]example, error) {
	out := make([]example, len(pairs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, p := range pairs {
		g.Go(func() error {
			read, err := verify.ReadClaim(ctx, r, p.claim, p.evidence())
			if err == nil && r != nil && !read.Read {
				err = errors.New("the reader says nothing of a pair")
			}
			out[i] = example{p, of, read}
			return err
		})
	}
	return out, g.Wait()
}

// fit fits a model to examples.
func fit(xs []example, withReader bool) *stat.Trees {
	x, y := make([][]float64, len(xs)), make([]float64, len(xs))
	for i, e := range xs {
		x[i], y[i] = e.values(withReader), number(e.supported())
	}
	m := metric.FitTrees(x, y, verify.FeatureNames(withReader), trees)
	return &m
}

// thinned are the examples of each set, of each outcome no more than so many, spread
// evenly.
func thinned(xs []example) []example {
	count := map[string]int{}
	key := func(x example) string { return fmt.Sprint(x.of.name, x.supported()) }
	for _, x := range xs {
		count[key(x)]++
	}
	seen := map[string]int{}
	return kept(xs, func(x example) bool {
		k := key(x)
		n, all := seen[k], count[k]
		seen[k]++
		most := mostOfOutcome
		if x.of.short {
			most = mostOfShort
		}
		return all <= most || n*most/all != (n+1)*most/all
	})
}

// foldsOf deals examples into folds; those of one group share it.
func foldsOf(xs []example, dealing uint64) []int {
	groups := make([]string, len(xs))
	for i, x := range xs {
		groups[i] = x.of.name + "\x00" + x.group
	}
	return metric.Folds(groups, folds, dealing)
}

// unseen are the probabilities of examples by models that were fitted without their
// fold.
func unseen(xs []example, withReader bool, dealing uint64) []float64 {
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
			m := fit(thinned(rest), withReader)
			for i, x := range xs {
				if fold[i] == k {
					p[i] = m.Score(x.values(withReader))
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
	t := eval.Trainer{Name: "support", Writes: "internal/verify/weights.json", Fit: train}
	for _, s := range trained() {
		t.Files = append(t.Files, s.files...)
	}
	return []eval.Trainer{t}
}

// trained are the sets that fitting reads: to fit on, or to read cuts off.
func trained() []set {
	return slices.DeleteFunc(slices.Clone(sets), func(s set) bool { return s.name == "averitec" })
}

// train fits the weights of the judge.
func train(ctx context.Context, env eval.Env) ([]byte, string, error) {
	if env.Reader == nil {
		return nil, "", errors.New("the judge is fitted with and without a reader: there must be one")
	}
	var all []example
	var from []string
	for _, s := range trained() {
		pairs, err := s.pairs(env.Data)
		if err != nil {
			return nil, "", err
		}
		env.Say(fmt.Sprintf("measure %d pairs of %s", len(pairs), s.name))
		xs, err := measure(ctx, env.Reader, s, pairs)
		if err != nil {
			return nil, "", err
		}
		all = append(all, xs...)
		if s.fitted {
			from = append(from, s.name)
		}
	}
	w := verify.Weights{Made: env.Now.Format("2006-01-02"), Command: "marchwarden-lab train support --write", Data: strings.Join(from, ", "), ReadBy: env.Reader.ID()}
	var words, read string
	w.Words, words = model(all, false)
	w.Reader, read = model(all, true)
	b, err := json.Marshal(w)
	if err != nil {
		return nil, "", fmt.Errorf("encode weights: %w", err)
	}
	b = bytes.ReplaceAll(b, []byte("}],[{"), []byte("}],\n[{")) // a line for each tree
	_, err = verify.ParseWeights(b)
	return append(b, '\n'), "by words:\n" + words + "with the reader:\n" + read, err
}

// model fits a model and reads the cuts off what was predicted for unseen pairs.
func model(all []example, withReader bool) (verify.WeightsModel, string) {
	if !withReader { // of claims in other words, words tell nothing
		all = slices.Clone(all)
		for i := range all {
			all[i].read.Read, all[i].read.Entailed, all[i].read.Contradicted = false, 0, 0
			all[i].of.fitted = all[i].of.fitted && !all[i].of.short
		}
	}
	on := kept(all, func(x example) bool { return x.of.fitted })
	m := verify.WeightsModel{Support: fit(thinned(on), withReader)}
	round(m.Support)
	p := map[string]float64{}
	for _, x := range all {
		p[x.key()] = m.Support.Score(x.values(withReader))
	}
	for i, v := range unseen(on, withReader, 1) {
		p[on[i].key()] = v
	}
	m.Cuts = cuts(all, p)
	return m, summary(all, p, m.Cuts)
}

func kept(xs []example, is func(example) bool) []example {
	return slices.DeleteFunc(slices.Clone(xs), func(x example) bool { return !is(x) })
}
