package eval

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/metric"
)

// Verdict is what a difference between two runs is.
type Verdict string

// The verdicts on B against A. Noise is a difference that chance explains as well: the
// interval that holds 95 of 100 resamplings includes zero.
const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Noise  Verdict = "noise"
	// Untold is the verdict on a metric that is no mean over cases, such as an area
	// under a curve, where drawn cases cannot be scored anew.
	Untold Verdict = "untold"
)

// Compared is one metric of two runs, over the cases that both have.
type Compared struct {
	Metric string  `json:"metric"`
	A      float64 `json:"a"` // over the cases of both, unless the verdict is untold: then as reported
	B      float64 `json:"b"`
	Cases  int     `json:"cases"` // that are behind it in both
	// Difference is B less A, and lies between Low and High in 95 of 100 resamplings. P
	// is how likely one so large is by chance alone.
	Difference float64 `json:"difference"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	P          float64 `json:"p"`
	Verdict    Verdict `json:"verdict"`
}

// How often cases are drawn anew: for a metric that is a mean, and for one that has to be
// scored every time.
const (
	rounds      = 10000
	scoreRounds = 1000
)

// Compare holds run B against run A by a paired bootstrap over the cases that both have,
// metric by metric in the order of A. Score is that of the suite's session, for metrics
// that are no mean over cases; nil leaves those untold. Runs of different suites, of
// different data, or without a case in common are CodeInvalid.
func Compare(a, b *Report, score func([]Row) []Metric, seed uint64) ([]Compared, error) {
	refuse := func(format string, args ...any) error {
		return &marchwarden.Error{Code: marchwarden.CodeInvalid, Message: "these reports cannot be compared: " + fmt.Sprintf(format, args...)}
	}
	if a.Suite != b.Suite {
		return nil, refuse("one is of the suite %s, the other of %s", a.Suite, b.Suite)
	}
	if !slices.Equal(a.Data, b.Data) {
		return nil, refuse("they were made on different data%s", differing(a.Data, b.Data))
	}
	pairs := pairUp(a.Rows, b.Rows)
	if len(pairs) == 0 {
		return nil, refuse("they have no case in common")
	}
	scored := resample(pairs, score, seed)
	var out []Compared
	for _, m := range a.Metrics {
		other, ok := b.Metric(m.Name)
		if !ok {
			continue
		}
		c, ok := byMeans(m.Name, pairs, seed)
		if !ok {
			c, ok = scored[m.Name]
		}
		if !ok {
			out = append(out, Compared{Metric: m.Name, A: m.Value, B: other.Value, Difference: other.Value - m.Value, P: 1, Verdict: Untold})
			continue
		}
		c.Verdict = c.judge(a.Bar(m.Name).Bar)
		out = append(out, c)
	}
	return out, nil
}

// byMeans compares a metric of which every row has its part.
func byMeans(name string, pairs [][2]Row, seed uint64) (Compared, bool) {
	var va, vb []float64
	for _, p := range pairs {
		x, inA := p[0].Values[name]
		y, inB := p[1].Values[name]
		if inA && inB {
			va, vb = append(va, x), append(vb, y)
		}
	}
	if len(va) == 0 {
		return Compared{}, false
	}
	d := metric.Bootstrap(va, vb, rounds, seed)
	return Compared{Metric: name, A: mean(va), B: mean(vb), Cases: len(va), Difference: d.Mean, Low: d.Low, High: d.High, P: d.P}, true
}

// resample scores cases that are drawn with repetitions, the same for both runs, and
// compares every metric that both always have.
func resample(pairs [][2]Row, score func([]Row) []Metric, seed uint64) map[string]Compared {
	out := map[string]Compared{}
	if score == nil {
		return out
	}
	rng := rand.New(rand.NewPCG(seed, 0x73636f7265))
	differences := map[string][]float64{}
	drawn := [2][]Row{make([]Row, len(pairs)), make([]Row, len(pairs))}
	for round := -1; round < scoreRounds; round++ { // at first as they are
		for i := range pairs {
			p := pairs[i]
			if round >= 0 {
				p = pairs[rng.IntN(len(pairs))]
			}
			drawn[0][i], drawn[1][i] = p[0], p[1]
		}
		theirs := map[string]float64{}
		for _, m := range score(drawn[1]) {
			theirs[m.Name] = m.Value
		}
		for _, m := range score(drawn[0]) {
			b, ok := theirs[m.Name]
			switch {
			case !ok:
			case round < 0:
				out[m.Name] = Compared{Metric: m.Name, A: m.Value, B: b, Cases: len(pairs), Difference: b - m.Value}
			default:
				differences[m.Name] = append(differences[m.Name], b-m.Value)
			}
		}
	}
	for name, c := range out {
		if list := differences[name]; len(list) > scoreRounds/2 { // else the metric is about too few cases
			out[name] = c.within(list)
		} else {
			delete(out, name)
		}
	}
	return out
}

// within takes the interval from differences of drawn cases.
func (c Compared) within(list []float64) Compared {
	slices.Sort(list)
	extreme := 0
	for _, d := range list {
		if math.Abs(d-c.Difference) >= math.Abs(c.Difference)-1e-12 { // as it would be around zero
			extreme++
		}
	}
	n := float64(len(list))
	c.Low, c.High = list[int(0.025*n)], list[min(len(list)-1, int(0.975*n))]
	c.P = float64(extreme+1) / (n + 1)
	return c
}

// judge calls a difference by its direction, which is up unless the bar is a ceiling or
// says that less is better.
func (c Compared) judge(bar Bar) Verdict {
	up := bar.AtMost == 0 && !bar.Smaller
	switch {
	case c.Low <= 0 && c.High >= 0:
		return Noise
	case c.Low > 0 == up:
		return Better
	}
	return Worse
}

// pairUp matches rows by their case, in the order of a.
func pairUp(a, b []Row) (pairs [][2]Row) {
	at := make(map[string]int, len(b))
	for i, r := range b {
		at[r.ID] = i
	}
	for _, r := range a {
		if i, ok := at[r.ID]; ok {
			pairs = append(pairs, [2]Row{r, b[i]})
		}
	}
	return pairs
}

// differing names the first file that is not the same.
func differing(a, b []File) string {
	for _, f := range a {
		if !slices.Contains(b, f) {
			return ": " + f.Name
		}
	}
	return ""
}

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
