package pi_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// TestWallTime has four researchers who take equally long: together they take as
// long as one, and what planning and writing take.
func TestWallTime(t *testing.T) {
	const latency = 500 * time.Millisecond
	var roles []role
	for _, name := range []string{"one", "two", "three", "four"} {
		at := "https://" + name + ".example/"
		said := answering(doc{At: at, Text: "The Kessler dam is 120 metres high, says " + name + "."})
		roles = append(roles, role{Member: dispatch.Member{Name: name}, Acts: map[string][]act{"quick": {said}, "slow": {said.lasting(latency)}}})
	}
	tr, o := gather(t, roles...), newOffice(t)
	timed := func(pace string) time.Duration {
		began := time.Now()
		if _, err := o.pi(pi.Config{Dispatcher: tr, Minds: minds(), Options: pi.Options{MaxDepth: -1}}).Research(t.Context(), marchwarden.Request{Question: dam, Context: pace}, nil); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	tr.warm(t)
	var tries []string
	for range 3 { // a busy machine may miss it once
		own := timed("quick")
		began := time.Now()
		tokens, sources := 5000, 5
		if _, err := tr.Dispatch(t.Context(), "one", marchwarden.Request{Question: dam, Context: "slow", Constraints: &marchwarden.Constraints{TokenBudget: &tokens, MaxSources: &sources}}, nil); err != nil {
			t.Fatal(err)
		}
		one := time.Since(began)
		all := timed("slow")
		tries = append(tries, fmt.Sprintf("four took %s, one %s, planning and writing %s", all, one, own))
		if all <= time.Duration(1.15*float64(one))+own {
			t.Log(tries[len(tries)-1])
			return
		}
	}
	t.Error(strings.Join(tries, "; "))
}

// TestInterrupt cancels investigations at all moments: each gives what it has, in
// time, with a closed trace, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	onRoads(t, func(t *testing.T, o *office) {
		var mu sync.Mutex // guards moments
		moments := map[string]int{}
		together(o.times(50, 10), 10, func(i int) {
			moment := time.Duration(dice("moment", i).IntN(600)) * time.Millisecond
			kind := interrupted(t, o, moment)
			mu.Lock()
			defer mu.Unlock()
			moments[kind]++
		})
		for later := time.Second; moments["partial"] == 0 && later < time.Minute; later *= 2 { // a busy machine has little by then
			moments[interrupted(t, o, later)]++
		}
		t.Logf("%v", moments)
		if moments["partial"] == 0 {
			t.Error("nothing was interrupted in the middle")
		}
	}, overStream)
}

func interrupted(t *testing.T, o *office, moment time.Duration) string {
	said := func(name string) act {
		return answering(doc{At: "https://" + name + ".example/", Text: "The Kessler dam is 120 metres high, says " + name + "."})
	}
	tr := gather(t,
		role{Member: dispatch.Member{Name: "quick"}, Acts: map[string][]act{"": {said("quick").discovery(marchwarden.NewSource, "slow", "old maps")}}},
		role{Member: dispatch.Member{Name: "slow"}, Acts: map[string][]act{"": {said("slow").lasting(300 * time.Millisecond)}}},
		role{Member: dispatch.Member{Name: "hanging"}, Acts: map[string][]act{"": {{How: "hang"}}}})
	tr.warm(t)
	cfg := pi.Config{Dispatcher: tr}
	investigator := o.pi(cfg) // and its network, before time counts
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(moment, cancel)
	began := time.Now()
	res, err := investigator.Research(ctx, marchwarden.Request{Question: dam}, nil)
	if took := time.Since(began); took > moment+20*time.Second {
		t.Errorf("after %s: it took %s", moment, took)
	}
	if closed := tr.Close(); closed != nil {
		t.Error(closed)
	}
	for _, name := range []string{"quick", "slow", "hanging"} {
		for _, e := range tr.entries(t, name) {
			if p, err := os.FindProcess(e.PID); err == nil && !errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
				t.Errorf("after %s: %s is still there", moment, name)
			}
		}
	}
	if err != nil {
		if marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
			t.Errorf("after %s: %v", moment, err)
		}
		return "error"
	}
	log := o.audit(t, cfg, res)
	if !log.Complete().Interrupted || !res.CostMetadata.BudgetExhausted {
		t.Errorf("after %s: the result does not say that it was interrupted", moment)
	}
	for _, c := range res.Citations {
		if !strings.HasPrefix(c.RawExcerpt, "The Kessler dam") {
			t.Errorf("%+v", c)
		}
	}
	if slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return strings.Contains(g.Detail, "not in the document") }) {
		t.Errorf("after %s: an honest researcher is called a liar: %+v", moment, res.Gaps)
	}
	if len(res.Citations) == 0 {
		return "nothing yet"
	}
	return "partial"
}

// TestNothingIsLeft holds the number of goroutines after runs, interrupted or not.
func TestNothingIsLeft(t *testing.T) {
	before := goleak.IgnoreCurrent()
	for _, moment := range []time.Duration{0, 150 * time.Millisecond, 400 * time.Millisecond} {
		interrupted(t, newOffice(t), moment)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestEventsStream watches a slow researcher at work: its progress comes while it
// works, and says whose it is.
func TestEventsStream(t *testing.T) { onRoads(t, eventsStream, overStream) }

func eventsStream(t *testing.T, o *office) {
	said := answering(doc{At: "https://slow.example/", Text: height})
	quick := answering(doc{At: "https://quick.example/", Text: height})
	tr := gather(t,
		role{Member: dispatch.Member{Name: "slow"}, Every: 50 * time.Millisecond, Acts: map[string][]act{"": {said.lasting(800 * time.Millisecond)}}},
		role{Member: dispatch.Member{Name: "quick"}, Acts: map[string][]act{"": {quick.discovery(marchwarden.NewSource, "slow", "old maps")}}})
	type heard struct {
		marchwarden.Event
		at time.Time
	}
	var events []heard
	cfg := pi.Config{Dispatcher: tr}
	res, err := o.pi(cfg).Research(t.Context(), marchwarden.Request{Question: dam}, func(e marchwarden.Event) {
		events = append(events, heard{e, time.Now()}) // one event at a time, as the contract says
	})
	ended := time.Now()
	if err != nil {
		t.Fatal(err)
	}
	o.audit(t, cfg, res)
	pages, lead := map[int]int{}, time.Duration(0)
	sent, done := map[int]bool{}, map[int]bool{}
	for _, e := range events {
		if e.TraceID != res.TraceID {
			t.Errorf("%+v is of another run", e.Event)
		}
		if e.Rihla > 0 && e.Researcher != res.Rihlas[e.Rihla-1].Researcher || (e.Rihla == 0) != (e.Researcher == "") {
			t.Errorf("%+v does not say whose it is", e.Event)
		}
		switch {
		case strings.HasPrefix(e.Message, "sent: "):
			sent[e.Rihla] = true
		case strings.HasPrefix(e.Message, "page "):
			pages[e.Rihla]++
			lead = max(lead, ended.Sub(e.at))
			if e.Researcher != "slow" || done[e.Rihla] || e.Stage != marchwarden.StageFetch {
				t.Errorf("%+v", e.Event)
			}
		case e.Stage == marchwarden.StageDone && e.Rihla > 0:
			done[e.Rihla] = true
		}
	}
	for i, r := range res.Rihlas {
		if !sent[i+1] || !done[i+1] || r.Researcher == "slow" && pages[i+1] < 3 {
			t.Errorf("rihla %d: sent %t, done %t, %d pages", i+1, sent[i+1], done[i+1], pages[i+1])
		}
	}
	if lead < 100*time.Millisecond || len(res.Rihlas) < 3 {
		t.Errorf("the first page was heard of only %s before the end of %d rihlas", lead, len(res.Rihlas))
	}
}
