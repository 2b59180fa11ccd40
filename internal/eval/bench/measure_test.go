package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// raced says that times mean nothing.
var raced = false

// timesCount skips a test where times must not be compared.
func timesCount(t *testing.T) {
	t.Helper()
	if testing.Short() || raced {
		t.Skip("times are compared without -short and without the race detector")
	}
}

// result is one line of the page.
type result struct {
	what     string  // is measured
	ours     string  // number and unit
	baseline string  // what it is compared with
	theirs   string  // number and unit
	ratio    float64 // ours is so many times as good
}

// side is something whose time is taken.
type side struct {
	name string
	run  func()
}

// spent is the time that something took on the clock and of the processors, which is
// less disturbed by what else runs on the machine; 0 where that is unknown.
type spent struct{ clock, processors time.Duration }

func take(run func()) spent {
	began, had := time.Now(), processorTime()
	run()
	return spent{time.Since(began), processorTime() - had}
}

// race runs the sides in turn, rounds times, and returns the best times of each:
// those that were disturbed least.
func race(rounds int, sides ...side) []spent {
	best := slices.Repeat([]spent{{1<<63 - 1, 1<<63 - 1}}, len(sides))
	for range rounds {
		for i, s := range sides {
			took := take(s.run)
			best[i].clock, best[i].processors = min(best[i].clock, took.clock), min(best[i].processors, took.processors)
		}
	}
	return best
}

// rates compares how much of something each side gets done in a second.
func rates(what, unit string, amount float64, rounds int, ours side, others ...side) []result {
	all := work(what, unit, amount, rounds, ours, others...)
	return slices.DeleteFunc(all, func(r result) bool { return r.what != what })
}

// work compares the same, on the clock and in processor time.
func work(what, unit string, amount float64, rounds int, ours side, others ...side) []result {
	best := race(rounds, append([]side{ours}, others...)...)
	rate := func(d time.Duration) string { return number(amount/d.Seconds()) + " " + unit }
	var out []result
	for i, o := range others {
		out = append(out, result{what, rate(best[0].clock), o.name, rate(best[i+1].clock), ratio(best[i+1].clock, best[0].clock)})
		if best[0].processors > 0 {
			out = append(out, result{what + ", of processor time", rate(best[0].processors), o.name, rate(best[i+1].processors), ratio(best[i+1].processors, best[0].processors)})
		}
	}
	return out
}

// times compares how long each side takes.
func times(what string, rounds int, ours side, others ...side) []result {
	best := race(rounds, append([]side{ours}, others...)...)
	var out []result
	for i, o := range others {
		out = append(out, result{what, duration(best[0].clock), o.name, duration(best[i+1].clock), ratio(best[i+1].clock, best[0].clock)})
	}
	return out
}

// percentiles compares the median and the 95th percentile of single calls, and the
// mean of their processor time. Each side is called with every number below n, the
// sides in turn.
func percentiles(what string, n int, ours func(i int), name string, theirs func(i int)) []result {
	var clock [2][]time.Duration
	var processors [2]time.Duration
	for i := range n {
		for j, call := range []func(int){ours, theirs} {
			took := take(func() { call(i) })
			clock[j] = append(clock[j], took.clock)
			processors[j] += took.processors / time.Duration(n)
		}
	}
	var out []result
	for j := range clock {
		slices.Sort(clock[j])
	}
	for _, p := range []int{50, 95} {
		a, b := clock[0][n*p/100], clock[1][n*p/100]
		out = append(out, result{fmt.Sprintf("%s, p%d", what, p), duration(a), name, duration(b), ratio(b, a)})
	}
	if processors[0] > 0 {
		out = append(out, result{what + ", mean processor time", duration(processors[0]), name, duration(processors[1]), ratio(processors[1], processors[0])})
	}
	return out
}

func ratio(theirs, ours time.Duration) float64 { return float64(theirs) / float64(max(1, ours)) }

func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return fmt.Sprintf("%.1f", f)
	default:
		return fmt.Sprintf("%.2f", f)
	}
}

func duration(d time.Duration) string {
	switch {
	case d >= time.Second:
		return number(d.Seconds()) + " s"
	case d >= time.Millisecond:
		return number(d.Seconds()*1e3) + " ms"
	default:
		return number(d.Seconds()*1e6) + " µs"
	}
}

func TestNumbers(t *testing.T) {
	for want, got := range map[string]string{
		"123": number(123.4), "12.3": number(12.34), "1.23": number(1.234),
		"1.50 s": duration(1500 * time.Millisecond), "20.0 ms": duration(20 * time.Millisecond), "7.00 µs": duration(7 * time.Microsecond),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if r := times("x", 2, side{"a", func() {}}, side{"b", func() { time.Sleep(2 * time.Millisecond) }}); len(r) != 1 || r[0].ratio < 2 || r[0].baseline != "b" {
		t.Errorf("a sleep beside nothing gives %+v", r)
	}
}
