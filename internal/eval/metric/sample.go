package metric

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Folds deals groups into k folds and returns the fold of every row. Rows of one group
// share a fold, so that what is learnt from a document is never tried on the same one.
// Groups go to the fold with the fewest rows, the largest first, in an order that the
// seed decides among equals.
func Folds(groups []string, k int, seed uint64) []int {
	sizes := map[string]int{}
	var names []string
	for _, g := range groups {
		if sizes[g] == 0 {
			names = append(names, g)
		}
		sizes[g]++
	}
	rng := rand.New(rand.NewPCG(seed, 0x666f6c64))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	slices.SortStableFunc(names, func(a, b string) int { return sizes[b] - sizes[a] })
	filled, at := make([]int, k), map[string]int{}
	for _, g := range names {
		least := 0
		for f := range filled {
			if filled[f] < filled[least] {
				least = f
			}
		}
		at[g] = least
		filled[least] += sizes[g]
	}
	out := make([]int, len(groups))
	for i, g := range groups {
		out[i] = at[g]
	}
	return out
}

// Difference is how much b differs from a, with the bounds between which 95 of 100
// resamplings lie, and how likely so large a mean is if there is no difference.
type Difference struct {
	Mean, Low, High, P float64
}

// Bootstrap compares two measurements of the same cases by drawing cases anew, with
// repetitions, so many rounds.
func Bootstrap(a, b []float64, rounds int, seed uint64) Difference {
	n := min(len(a), len(b))
	if n == 0 || rounds < 1 {
		return Difference{P: 1}
	}
	diff := make([]float64, n)
	mean := 0.0
	for i := range diff {
		diff[i] = b[i] - a[i]
		mean += diff[i] / float64(n)
	}
	rng := rand.New(rand.NewPCG(seed, 0x626f6f74))
	means := make([]float64, rounds)
	extreme := 0.0
	for r := range means {
		for range n {
			means[r] += diff[rng.IntN(n)] / float64(n)
		}
		if math.Abs(means[r]-mean) >= math.Abs(mean)-1e-12 { // as it would be around zero
			extreme++
		}
	}
	slices.Sort(means)
	return Difference{
		Mean: mean, Low: means[int(0.025*float64(rounds))], High: means[min(rounds-1, int(0.975*float64(rounds)))],
		P: (extreme + 1) / float64(rounds+1),
	}
}
