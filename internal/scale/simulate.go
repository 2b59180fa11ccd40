package scale

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	window  = 1800.0 // seconds of the busiest hour that are simulated
	warmup  = 600.0  // of those, not counted: everything begins empty
	most    = 60.0   // rihlas a second that are played; of more, a part is, in a part of the cluster
	tick    = 0.01   // seconds
	lease   = 15.0   // until a silent worker is given up
	beats   = 4.0    // heartbeats in a lease
	repeats = 4.0    // seconds that are done again after a death: the call under way
	spread  = 0.6    // of how long rihlas take, about their mean
)

// Run is what the simulation of the busiest half hour saw.
type Run struct {
	InFlight    float64 // at the most
	Waits       Wait    // of a rihla for a slot, in seconds
	Appends     float64 // in the mean second
	AppendsPeak float64 // in the busiest second
	AppendWaits Wait    // of an append for those before it, in seconds
}

// Wait is how long something waited.
type Wait struct{ P50, P99 float64 }

// slots are the times at which slots become free, the earliest first.
type slots []float64

func (s slots) Len() int           { return len(s) }
func (s slots) Less(i, j int) bool { return s[i] < s[j] }
func (s slots) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *slots) Push(x any)        { *s = append(*s, x.(float64)) }
func (s *slots) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}

// Simulate plays the busiest half hour: rihlas arrive, wait for a slot of some host, take
// their time and append to the log as they go; hosts die, and others go on. The same load
// gives the same run.
func Simulate(l Load) Run {
	r := rand.New(rand.NewPCG(l.Seed, 0x6d61726368776172))
	rate := l.perSecond() * l.Peak
	part := max(1, math.Ceil(rate/most))
	rate /= part
	free := make(slots, max(1, int(float64(l.Hosts*l.Slots)/part)))
	// How much appending and how many rihlas begin and end in each tick.
	appending, going := make([]float64, int(window/tick)+2), make([]float64, int(window/tick)+2)
	var run Run
	var waits []float64
	dies := l.Lost / day / float64(l.Hosts) // a host, in a second
	for now := r.ExpFloat64() / rate; now < window; now += r.ExpFloat64() / rate {
		begin := max(now, free[0])
		takes := l.Seconds * math.Exp(spread*r.NormFloat64()-spread*spread/2)
		ends := begin + takes
		if death := r.ExpFloat64() / max(dies, 1e-12); death < takes {
			ends += lease + repeats
		}
		free[0] = ends
		heap.Fix(&free, 0)
		if now >= warmup {
			waits = append(waits, begin-now)
		}
		from, to := at(begin), at(ends)
		if each := (l.appends() - l.evidenceAppends()) / float64(max(1, int((ends-begin)/tick))); from < len(appending)-1 {
			appending[from] += each * part
			appending[to] -= each * part
			going[from] += part
			going[to] -= part
		}
	}
	run.Waits = percentiles(waits)
	run.throughLog(r, l, appending, going)
	return run
}

func at(t float64) int { return min(int(t/tick), int(window/tick)+1) }

// evidenceAppends are those that go to another stream than the log.
func (l Load) evidenceAppends() float64 {
	if l.Evidence != InHubs {
		return 0
	}
	count, _ := l.blobs()
	return count
}

// throughLog has what is appended pass through the log, tick by tick: its leader takes so
// many a second, and the rest waits. Of several streams it follows one, to which every
// so-manieth task goes.
func (run *Run) throughLog(r *rand.Rand, l Load, appending, going []float64) {
	capacity := appendsAtMost.Value * tick
	var mean, there, backlog, second, total float64
	var waits []float64
	first := int(warmup / tick)
	inSecond := int(1 / tick)
	for i := range int(window / tick) {
		mean += appending[i]
		there += going[i]
		come := poisson(r, mean/float64(l.Shards))
		backlog = max(0, backlog+come-capacity)
		if i < first {
			continue
		}
		run.InFlight = max(run.InFlight, there)
		total += come
		second += come
		if (i-first)%inSecond == inSecond-1 {
			run.AppendsPeak = max(run.AppendsPeak, second*float64(l.Shards))
			second = 0
		}
		waits = append(waits, backlog/capacity*tick)
	}
	run.Appends = total / (window - warmup) * float64(l.Shards)
	run.AppendWaits = percentiles(waits)
}

// poisson is how often something happens that happens mean times.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 30 {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, p, limit := -1.0, 1.0, math.Exp(-mean)
	for p > limit || n < 0 {
		p *= r.Float64()
		n++
	}
	return n
}

func percentiles(values []float64) Wait {
	if len(values) == 0 {
		return Wait{}
	}
	slices.Sort(values)
	return Wait{P50: values[len(values)/2], P99: values[len(values)*99/100]}
}
