package scale

import (
	"flag"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/scale.md")

const page = "../../docs/scale.md"

func tenfold() Load {
	l := Target().Times(10)
	l.Hosts, l.Shards, l.HubMemory, l.HubDisk = 2000, 8, 64e9, 2e12
	return l
}

// The tables of the page are those of the simulation.
func TestPageSaysWhatThePlanSays(t *testing.T) {
	tables := map[string]string{
		"target": Plan(Target()).Markdown(), "shipped": Plan(Target().AsShipped()).Markdown(), "tenfold": Plan(tenfold()).Markdown(), "figures": FiguresMarkdown(),
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range tables {
		part := regexp.MustCompile(`(?s)(<!-- ` + name + ` -->\n).*?(<!-- end of ` + name + ` -->)`)
		if len(part.FindAllString(want, -1)) != 1 {
			t.Fatalf("the page does not have one place for %s", name)
		}
		want = part.ReplaceAllString(want, "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
	}
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("docs/scale.md is not what the simulation says; go test ./internal/scale -update writes it (-simulated +page):\n%s", diff)
	}
}

func TestSameLoadSameRun(t *testing.T) {
	if diff := cmp.Diff(Plan(Target()), Plan(Target())); diff != "" {
		t.Errorf("two plans of one load differ:\n%s", diff)
	}
	other := Target()
	other.Seed++
	if Simulate(other) == Simulate(Target()) {
		t.Error("the seed changes nothing")
	}
}

// What goes in goes through: as many are in flight as arrive while one takes its time.
func TestFlowIsKept(t *testing.T) {
	l := Target()
	run := Simulate(l)
	want := l.perSecond() * l.Peak * l.Seconds
	if run.InFlight < want || run.InFlight > want*1.1 {
		t.Errorf("%.0f in flight, want some more than %.0f", run.InFlight, want)
	}
	if want := l.perSecond() * l.Peak * l.appends(); math.Abs(run.Appends/want-1) > 0.05 {
		t.Errorf("%.0f appends a second, want about %.0f", run.Appends, want)
	}
}

// The growth of a plan names what its limits say: at each multiple those that come before
// it, reckoned with the workers that are there then.
func TestGrowthNamesTheLimits(t *testing.T) {
	for name, l := range map[string]Load{"target": Target(), "shipped": Target().AsShipped(), "tenfold": tenfold()} {
		plan := Plan(l)
		for _, s := range plan.Growth {
			if s.Multiple == 1 {
				for _, limit := range plan.Limits {
					if slices.Contains(s.GivesWay, limit.What) != (limit.Multiple < 1) {
						t.Errorf("%s: %s gives way at ×%g, and at the load it is said of %q", name, limit.What, limit.Multiple, s.GivesWay)
					}
				}
			}
			if s.Memory > l.HubMemory*busy != slices.Contains(s.GivesWay, "memory of a hub") {
				t.Errorf("%s at ×%g: memory of %g, and what gives way is %q", name, s.Multiple, s.Memory, s.GivesWay)
			}
		}
	}
	small := Target() // by the arithmetic four slots suffice, but rihlas do not come in turn
	small.Rihlas, small.Hosts, small.Slots = 900, 1, 4
	if got := step(small, 1); limits(small)[0].Multiple < 1 || got.QueueWait < 60 || !slices.Equal(got.GivesWay, []string{workerSlots}) {
		t.Errorf("a wait of %.0f s for a slot, with limits at %v, and what gives way is %q", got.QueueWait, limits(small)[0], got.GivesWay)
	}
}

// Each limit is found by the simulation, too, where the arithmetic says that it is.
func TestSimulationFindsTheLimits(t *testing.T) {
	slots := func(m float64) Run { return Simulate(Target().Times(m)) }
	if w := slots(1.4).Waits.P99; w > 1 {
		t.Errorf("at 1.4 of 1.54: a wait of %.1f s for a slot", w)
	}
	if w := slots(2).Waits.P99; w < 60 {
		t.Errorf("at twice the load: a wait of %.1f s for a slot", w)
	}
	appends := func(m float64, shards int) Run {
		l := Target().Times(m)
		l.Hosts, l.Shards = int(200*m), shards
		return Simulate(l)
	}
	if w := appends(2, 1).AppendWaits.P99; w > 0.1 {
		t.Errorf("at 2 of 2.75: a wait of %.2f s for an append", w)
	}
	if w := appends(3.2, 1).AppendWaits.P99; w < 1 {
		t.Errorf("at 3.2 of 2.75: a wait of %.2f s for an append", w)
	}
	if w := appends(3.2, 8).AppendWaits.P99; w > 0.1 {
		t.Errorf("at 3.2 in eight streams: a wait of %.2f s for an append", w)
	}
}

// More of anything never makes a plan use less, nor a limit come later.
func TestMoreIsNeverLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Target()
		l.Rihlas = rapid.Float64Range(1e3, 1e7).Draw(t, "rihlas")
		l.Pages = rapid.Float64Range(0, 50).Draw(t, "pages")
		l.Evidence = rapid.SampledFrom([]string{InHubs, InS3, InDir}).Draw(t, "evidence")
		more := l
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			more.Rihlas *= 2
		case 1:
			more.Pages += 5
		case 2:
			more.LogDays++
		case 3:
			more.DoneDays *= 3
		}
		a, b := limits(l), limits(more)
		for _, x := range a {
			i := slices.IndexFunc(b, func(y Limit) bool { return y.What == x.What })
			if i < 0 || b[i].Multiple > x.Multiple*(1+1e-9) {
				t.Fatalf("%s at ×%g, and with more at ×%g", x.What, x.Multiple, b[i].Multiple)
			}
		}
		if !slices.IsSortedFunc(a, func(x, y Limit) int { return int(math.Copysign(1, x.Multiple-y.Multiple)) }) {
			t.Fatal("the limits are not in order")
		}
	})
}

func TestCheck(t *testing.T) {
	if err := Target().Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Load){
		"rihlas": func(l *Load) { l.Rihlas = 0 }, "no number": func(l *Load) { l.Seconds = math.NaN() }, "hosts": func(l *Load) { l.Hosts = -1 },
		"hubs": func(l *Load) { l.Hubs = 2 }, "evidence": func(l *Load) { l.Evidence = "tape" }, "endless": func(l *Load) { l.Rihlas = math.Inf(1) },
	} {
		l := Target()
		spoil(&l)
		if l.Check() == nil {
			t.Errorf("%s: not refused", name)
		}
		if got := Plan(l); len(got.Rows) != 0 || len(got.Limits) != 0 {
			t.Errorf("%s: planned all the same", name)
		}
	}
}

func TestWriteText(t *testing.T) {
	var b strings.Builder
	if err := Plan(Target()).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 M rihlas a day on 200 hosts", "rihlas in flight", "slots of the workers", "×1.54", "gives way", "nothing"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
}

func TestAmount(t *testing.T) {
	for _, c := range []struct {
		v          float64
		unit, want string
	}{
		{0, "s", "0"}, {0.0013, "s", "1.30 ms"}, {59, "s", "59 s"}, {600, "s", "10 min"}, {807, "B", "807 B"}, {20171, "B", "20.2 kB"}, {1.5e9, "B/s", "1.50 GB/s"},
		{1e6, "", "1 M"}, {34.72, "/s", "34.7/s"}, {0.018, "", "0.018"}, {20000, "$", "$ 20 k"}, {7.4, "$", "$ 7.40"}, {5.9, "", "5.90"},
	} {
		if got := amount(c.v, c.unit); got != c.want {
			t.Errorf("%g %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}
