package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// With more budget, what was left out is sent, a rihla of an own member goes on as
// the same run and its report takes the place of the earlier one, and a stranger is
// asked anew.
func TestAnInvestigationGoesOnWithMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "stranger", "arxiv", "files"))
		s.members[1].Trust = dispatch.Known
		first, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(3200), MaxSources: ptr(3)})
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, first)
		sent := saidOf(s.forget())
		if !first.CostMetadata.BudgetExhausted || len(sent) == 4 {
			t.Fatalf("the budget was enough: %+v, %v", first.CostMetadata, sent)
		}
		before := s.Raw(t)
		same, err := s.resume(t.Context(), nil)
		if err != nil || !bytes.Equal(resumetest.Encode(t, same), resumetest.Encode(t, first)) || !bytes.Equal(before, s.Raw(t)) || len(s.forget()) > 0 {
			t.Fatalf("without more something was done: %v", err)
		}
		res, err := s.resume(t.Context(), &marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, res)
		calls := saidOf(s.forget())
		for _, name := range []string{"web", "stranger", "arxiv", "files"} {
			asked, again := name+" "+crewQuestion, name+" resume "+idOf(name, crewQuestion).String()
			want, not := asked, again
			if slices.Contains(sent, asked) && name != "stranger" {
				want, not = again, asked
			}
			if !slices.Contains(calls, want) || slices.Contains(calls, not) {
				t.Errorf("want %q and not %q in %v", want, not, calls)
			}
			if !slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool { return r.Researcher == name && r.Citations == s.has }) {
				t.Errorf("not all of %s is there: %+v", name, res.Rihlas)
			}
		}
		for _, g := range res.Gaps {
			if strings.Contains(g.Detail, "was not asked") {
				t.Errorf("a gap stayed: %+v", g)
			}
		}
	})
}

// A rihla that did not come back when it was told to is sent once more, and not
// once for each part of the investigation.
func TestALostRihlaIsSentOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "deaf"))
		s.deaf["deaf"], s.lasts["deaf"] = true, time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		first, err := s.ask(ctx, marchwarden.Constraints{})
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, first)
		time.Sleep(2 * time.Minute)
		s.forget()
		s.takes("deaf", time.Millisecond)
		s.more = time.Hour
		res, err := s.resume(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, res)
		n := 0
		for _, c := range s.forget() {
			if c.member == "deaf" {
				n++
			}
		}
		if n != 1 || !slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool { return r.Researcher == "deaf" && r.Citations > 0 }) {
			t.Errorf("it was sent %d times: %+v", n, res.Rihlas)
		}
	})
}

// later is a planner of another version.
type later struct{ everybody }

func (later) ID() string { return "everybody/2" }

// An investigation goes on with another planner; that is said, recorded, and what a
// rerun needs.
func TestAnotherPlannerGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), busy())
		if _, err := s.ask(t.Context(), marchwarden.Constraints{}); err != nil {
			t.Fatal(err)
		}
		for k := 1; k < len(s.Log(t).Steps); k += 5 {
			c := s.cut(t, resumetest.Memory(t), k, 0)
			c.minds = pi.Minds{Planner: func(string) pi.Planner { return later{} }, Writer: func(string) reason.Reasoner { return extractive.New() }}
			res, err := c.resume(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			c.whole(t, res)
			if len(c.said) != 1 || !strings.Contains(c.said[0], "everybody/2") {
				t.Errorf("said: %v", c.said)
			}
			if _, _, err := pi.Again(t.Context(), c.Log(t), c.Blobs, s.minds); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
				t.Errorf("a rerun with the planner that began: %v", err)
			}
		}
	})
}

// Whatever is done to an investigation, in whatever order: no report that came back
// is asked for again, the budget of all parts holds, nothing is cited twice, and the
// record gives the same bytes again.
func TestAnySequenceOnAnInvestigation(t *testing.T) {
	n := times(250, 20)
	if os.Getenv("MARCHWARDEN_TEST_FULL") == "torture" {
		n *= 10
	}
	resumetest.Checks(t, n)
	top := resumetest.Memory(t)
	var cases, ops atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		cases.Add(1)
		dir := func() string { return filepath.Join(top, fmt.Sprint(ops.Add(1))) }
		s := newStudy(t, dir(), anyCrew(t))
		defer func() { s.Traces.Close() }()
		s.opts.Parallel = rapid.IntRange(1, 4).Draw(t, "parallel")
		limits := anyLimits(t, true)
		for i := range rapid.IntRange(2, 5).Draw(t, "operations") {
			if i > 0 && rapid.Bool().Draw(t, "cut") {
				was := s
				s = s.cut(t, dir(), rapid.IntRange(1, len(s.Log(t).Steps)).Draw(t, "after"), 0)
				was.Traces.Close()
			}
			s.goOn(t, i, limits)
		}
	})
	t.Logf("%d cases", cases.Load())
}

func anyCrew(t *rapid.T) *crew {
	names := []string{"web", "arxiv", "files", "db", "news"}[:rapid.IntRange(1, 5).Draw(t, "members")]
	c := newCrew(names...)
	c.has, c.silent = rapid.IntRange(1, 6).Draw(t, "documents"), rapid.Bool().Draw(t, "silent")
	for i, name := range names {
		c.lasts[name] = time.Duration(rapid.IntRange(0, 300).Draw(t, "lasts")) * time.Microsecond
		c.fails[name] = rapid.IntRange(0, 5).Draw(t, "fails") == 0
		if rapid.IntRange(0, 3).Draw(t, "stranger") == 0 {
			c.members[i].Trust = dispatch.Known
		}
		if rapid.Bool().Draw(t, "leads") {
			c.leads[name] = rapid.SampledFrom(names).Draw(t, "to")
		}
	}
	return c
}

func anyLimits(t *rapid.T, always bool) *marchwarden.Constraints {
	var c marchwarden.Constraints
	if always || rapid.Bool().Draw(t, "tokens") {
		c.TokenBudget = ptr(rapid.IntRange(1000, 12000).Draw(t, "budget"))
	}
	if always || rapid.Bool().Draw(t, "sources") {
		c.MaxSources = ptr(rapid.IntRange(1, 12).Draw(t, "most sources"))
	}
	return &c
}

// goOn begins an investigation or goes on with it, and holds it to all that it must
// keep.
func (s *study) goOn(t *rapid.T, i int, c *marchwarden.Constraints) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req := marchwarden.Request{Question: crewQuestion, Constraints: c}
	closed := map[string]bool{} // reports that came back whole
	if i > 0 {
		req = marchwarden.Request{Resume: resumetest.ID}
		if more := anyLimits(t, false); *more != (marchwarden.Constraints{}) {
			req.Constraints = more
		}
		closed = s.closed(t)
	}
	s.forget()
	if stop := rapid.IntRange(0, 8).Draw(t, "stopped at"); stop > 0 {
		s.hook = func(n int) {
			if n == stop {
				cancel()
			}
		}
	}
	res, err := s.research(ctx, req)
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Raw(t))
	}
	s.whole(t, res)
	for _, call := range s.forget() {
		if closed[call.String()] {
			t.Fatalf("%s came back and is sent again\n%s", call, s.Raw(t))
		}
	}
}

// closed are the rihlas of a log that came back with all that there was.
func (s *study) closed(t resumetest.T) map[string]bool {
	out := map[string]bool{}
	asked := map[int]string{}
	for _, st := range s.Log(t).Steps {
		switch st := st.(type) {
		case *trace.Rihla:
			asked[st.Number] = st.Researcher + " " + st.Question
		case *trace.RihlaComplete:
			if res, err := replay.Outcome[*marchwarden.Result](context.Background(), s.Blobs, st); err == nil && !res.CostMetadata.BudgetExhausted {
				out[asked[st.Number]] = true
			}
		}
	}
	return out
}

// When the disk is full from any write on, the answer of an investigation is the
// same; what is on the disk can be gone on with.
func TestTheDiskIsFullDuringAnInvestigation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var want *marchwarden.Result
		for left := 10000; left >= 0; left-- {
			s := newStudy(t, resumetest.Memory(t), busy())
			mem := s.Blobs
			disk := &resumetest.FullDisk{Store: mem}
			disk.Room.Store(int64(left))
			s.Blobs = blob.Rescue(disk)
			res, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want, left = res, left-int(disk.Room.Load())
				left -= left % times(1, 4)
				t.Logf("%d writes", left)
				continue
			}
			left -= times(1, 4) - 1
			if len(res.Warnings) != 1 || res.Answer != want.Answer {
				t.Fatalf("room for %d: %q, %s", left, res.Warnings, res.Answer)
			}
			log := s.Log(t)
			if err := replay.CheckBlobs(t.Context(), log, mem); err != nil || log.Complete() != nil {
				t.Fatalf("room for %d: %v, complete %v", left, err, log.Complete() != nil)
			}
			s.Blobs = mem
			again, err := s.resume(t.Context(), nil)
			if err != nil {
				t.Fatalf("room for %d: %v", left, err)
			}
			s.whole(t, again)
			if !bytes.Equal(resumetest.Encode(t, again), resumetest.Encode(t, want)) {
				t.Fatalf("room for %d: another result\n%s\n%s", left, resumetest.Encode(t, again), resumetest.Encode(t, want))
			}
		}
	})
}

// A researcher whose journey could not go on, because there was too little for it, has
// been asked all the same: nobody sends it on the same journey anew.
func TestWhoWasAskedStaysKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "arxiv"))
		s.fails["arxiv"] = true
		if _, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(1994), MaxSources: ptr(12)}); err != nil {
			t.Fatal(err)
		}
		s.forget()
		for _, more := range []marchwarden.Constraints{{MaxSources: ptr(1)}, {TokenBudget: ptr(1001)}, {TokenBudget: ptr(1015)}, {TokenBudget: ptr(9000)}} {
			res, err := s.resume(t.Context(), &more)
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
		}
		calls := saidOf(s.forget())
		if again := "web resume " + idOf("web", crewQuestion).String(); slices.Contains(calls, "web "+crewQuestion) || !slices.Contains(calls, again) {
			t.Errorf("%v, want %s alone of web", calls, again)
		}
	})
}
