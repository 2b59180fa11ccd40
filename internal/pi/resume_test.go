package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// busy is a crew with parallel rihlas, follow-ups and one that fails.
func busy() *crew {
	c := newCrew("web", "arxiv", "files", "broken")
	c.fails["broken"] = true
	c.leads["web"], c.leads["arxiv"] = "files", "web"
	return c
}

// An investigation that is cut off after any line goes on to the same result. A
// rihla that came back is not sent again; one that was under way goes on as the same
// run if the record names it, and is sent anew otherwise.
func TestInvestigationCutAtEveryLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), busy())
		want, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, want)
		if len(want.Rihlas) < 6 || len(want.Decisions) < 3 || len(want.Citations) < 2 {
			t.Fatalf("too little happens: %d rihlas, %+v, %d citations", len(want.Rihlas), want.Decisions, len(want.Citations))
		}
		lines := len(s.Log(t).Steps)
		for k := 1; k <= lines; k += 61 / times(61, 20) {
			c := s.cut(t, resumetest.Memory(t), k, k%3*30)
			done, open := rihlas(c.Log(t))
			c.forget()
			res, err := c.resume(t.Context(), nil)
			if err != nil {
				t.Fatalf("cut after %d: %v", k, err)
			}
			c.whole(t, res)
			if diff := cmp.Diff(string(resumetest.Encode(t, want)), string(resumetest.Encode(t, res))); diff != "" {
				t.Fatalf("cut after %d of %d:\n%s\n%s", k, lines, diff, c.Raw(t))
			}
			calls := saidOf(c.forget())
			for asked := range done {
				if slices.Contains(calls, asked) {
					t.Fatalf("cut after %d: %s came back and is sent again: %v", k, asked, calls)
				}
			}
			retried := 0
			for asked, run := range open {
				want := asked
				if run != "" {
					member, _, _ := strings.Cut(asked, " ")
					want = member + " resume " + run
				}
				if !slices.Contains(calls, want) {
					t.Fatalf("cut after %d: %s was under way as %q, asked are %v", k, asked, run, calls)
				}
			}
			for _, st := range c.Log(t).Steps {
				if r, ok := st.(*trace.RihlaComplete); ok && r.Retried {
					retried++
				}
			}
			if retried != len(open) {
				t.Fatalf("cut after %d: %d are marked as retried, of %v", k, retried, open)
			}
			if len(slices.Compact(calls)) != len(calls) {
				t.Fatalf("cut after %d: something is sent twice: %v", k, calls)
			}
		}
		t.Logf("%d lines", lines)
	})
}

func ptr(n int) *int { return &n }

// A run that cannot go on is begun anew, and a stranger's is never gone on with.
func TestARihlaThatCannotGoOnIsSentAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "stranger"))
		s.members[1].Trust = "known"
		want, err := s.ask(t.Context(), marchwarden.Constraints{})
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for i, st := range s.Log(t).Steps {
			switch st := st.(type) {
			case *trace.RihlaUnderWay:
				at = i + 1
				if st.Number != 1 {
					t.Errorf("the run of a stranger is named: %+v", st)
				}
			case *trace.Rihla:
				at = i + 1
			}
		}
		c := s.cut(t, resumetest.Memory(t), at, 0)
		run := idOf("web", crewQuestion).String()
		c.refuse[run] = true
		c.forget()
		res, err := c.resume(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		c.whole(t, res)
		if diff := cmp.Diff([]string{"stranger " + crewQuestion, "web " + crewQuestion, "web resume " + run}, saidOf(c.forget())); diff != "" {
			t.Error(diff)
		}
		if !bytes.Equal(resumetest.Encode(t, want), resumetest.Encode(t, res)) {
			t.Errorf("another result:\n%s\n%s", resumetest.Encode(t, want), resumetest.Encode(t, res))
		}
	})
}

// A rihla that cuts the investigation off again and again is given up one day.
func TestARihlaThatAlwaysCutsOffIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "arxiv"))
		if _, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)}); err != nil {
			t.Fatal(err)
		}
		for cuts := 1; ; cuts++ {
			at := 0
			for i, st := range s.Log(t).Steps {
				if r, ok := st.(*trace.Rihla); ok && r.Number == 1 {
					at = i + 1
				}
			}
			s = s.cut(t, resumetest.Memory(t), at, 0)
			s.newID = func() marchwarden.TraceID { return idOf("another run", fmt.Sprint(cuts)) }
			s.forget()
			res, err := s.resume(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			runs := map[marchwarden.TraceID]bool{} // it is the same run, however often it is cut off
			for _, st := range s.Log(t).Steps {
				if r, ok := st.(*trace.Rihla); ok && r.Number == 1 {
					runs[r.TraceID] = true
				}
			}
			if len(runs) != 1 || runs[marchwarden.TraceID{}] {
				t.Fatalf("after %d cuts it was sent as %v", cuts, runs)
			}
			sent := slices.ContainsFunc(s.forget(), func(c crewCall) bool { return c.member == "web" })
			said := strings.Contains(string(resumetest.Encode(t, res)), "not tried again")
			if sent == said {
				t.Fatalf("after %d cuts it was sent: %v, and given up: %v", cuts, sent, said)
			}
			if said {
				t.Logf("after %d cuts", cuts)
				// The other rihla may have been under way each time, too.
				if !slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, "web: given up: 1 of the steps") }) {
					t.Errorf("warnings %q", res.Warnings)
				}
				break
			}
			if cuts > 20 {
				t.Fatal("it is never given up")
			}
		}
	})
}

// An investigation that its caller stopped when any rihla was sent goes on to one
// that has at least its evidence.
func TestInvestigationInterruptedAtEveryRihla(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		for n := 1; ; n++ {
			s := newStudy(t, resumetest.Memory(t), busy())
			ctx, cancel := context.WithCancel(t.Context())
			s.hook = func(i int) {
				if i == n {
					cancel()
				}
			}
			part, err := s.ask(ctx, marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
			stopped := ctx.Err() != nil
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			if !stopped {
				break
			}
			runs++
			s.whole(t, part)
			s.forget()
			res, err := s.resume(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			for _, c := range s.forget() {
				if c.req.Resume == "" && slices.ContainsFunc(part.Rihlas, func(r marchwarden.Rihla) bool {
					return r.Researcher == c.member && r.Question == c.req.Question && r.Citations > 0
				}) {
					t.Errorf("stopped at %d: %s is asked anew", n, c)
				}
			}
			if len(res.Citations) < len(part.Citations) || s.Log(t).Complete().Interrupted {
				t.Errorf("stopped at %d: %d citations became %d", n, len(part.Citations), len(res.Citations))
			}
			for _, name := range []string{"web", "arxiv", "files"} {
				if !slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool {
					return r.Researcher == name && r.Question == crewQuestion && r.Citations == s.has
				}) {
					t.Errorf("stopped at %d: not all of %s in %+v", n, name, res.Rihlas)
				}
			}
		}
		if t.Logf("%d interruptions", runs); runs == 0 {
			t.Error("nothing was interrupted")
		}
	})
}
