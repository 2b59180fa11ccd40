package pi_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/resumetest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// waited is a crew that writes down how long each call was waited for.
type waited struct {
	*crew
	patience []time.Duration
}

func (w *waited) Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	if end, ok := ctx.Deadline(); ok {
		w.mu.Lock()
		w.patience = append(w.patience, time.Until(end))
		w.mu.Unlock()
	}
	return w.crew.Dispatch(ctx, member, req, sink)
}

// clocked is a place for investigations of a crew whose clock runs.
type clocked struct {
	*waited
	resumetest.Place
}

func newClocked(t *testing.T, names ...string) *clocked {
	t.Helper()
	p := resumetest.Open(t, resumetest.Memory(t), time.Now)
	t.Cleanup(func() { p.Traces.Close() })
	return &clocked{&waited{crew: newCrew(names...)}, p}
}

// research investigates, and holds that the rerun gives the same.
func (c *clocked) research(t *testing.T, req marchwarden.Request, lab researcher.Lab) *marchwarden.Result {
	t.Helper()
	c.patience = nil
	return c.over(t, c, req, lab)
}

// over is research with another dispatcher.
func (c *clocked) over(t *testing.T, d dispatch.Dispatcher, req marchwarden.Request, lab researcher.Lab) *marchwarden.Result {
	t.Helper()
	lab.Traces, lab.Blobs, lab.Version, lab.Now, lab.NewID = c.Traces, c.Blobs, "test", time.Now, resumetest.TheID
	res, err := pi.New(pi.Config{Lab: lab, Dispatcher: d, Minds: minds()}).Research(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want, got, err := pi.Again(t.Context(), c.Log(t), c.Blobs, minds()); err != nil || !bytes.Equal(want, got) {
		t.Fatalf("the rerun differs: %v\n%s\n%s", err, want, got)
	}
	return res
}

// An investigation that has ended at its wall time, or past it because it waited for
// somebody late, gives its rihlas what is added to that.
func TestMoreTimeForALateInvestigation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClocked(t, "slow", "deaf")
		c.lasts["slow"], c.lasts["deaf"], c.deaf["deaf"] = 10*time.Minute, time.Hour, true
		first := c.research(t, marchwarden.Request{Question: crewQuestion, Constraints: &marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)}}, researcher.Lab{Deadline: 2 * time.Minute})
		if !first.CostMetadata.BudgetExhausted || first.CostMetadata.WallTimeSec <= 91 {
			t.Fatalf("it was not late: %+v", first.CostMetadata)
		}
		time.Sleep(2 * time.Hour)
		c.takes("deaf", time.Millisecond)
		res := c.research(t, marchwarden.Request{Resume: resumetest.ID, Constraints: &marchwarden.Constraints{TokenBudget: ptr(80000), MaxSources: ptr(40)}}, researcher.Lab{More: 20 * time.Minute})
		if len(c.patience) != 2 || slices.Min(c.patience) < 15*time.Minute {
			t.Errorf("of 20 minutes more, the rihlas got %v", c.patience)
		}
		for _, name := range []string{"slow", "deaf"} {
			if !slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool { return r.Researcher == name && r.Citations == c.has }) {
				t.Errorf("not all of %s is there: %+v", name, res.Rihlas)
			}
		}
		if res.CostMetadata.BudgetExhausted {
			t.Errorf("%+v, %+v", res.CostMetadata, res.Gaps)
		}
	})
}

// A rihla that never comes back is sent once in each part, with the documents that it
// was given before, and none of them leaves anything behind.
func TestARihlaThatIsLostAgainAndAgain(t *testing.T) {
	before := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		c := newClocked(t, "web", "deaf")
		c.deaf["deaf"], c.lasts["deaf"] = true, time.Hour
		sent := func(part int) {
			t.Helper()
			n, sources := 0, 0
			for _, call := range c.forget() {
				if call.member == "deaf" {
					n, sources = n+1, call.req.Limits().MaxSources
				}
			}
			if n != 1 || sources != c.has {
				t.Errorf("part %d: it was sent %d times, last for %d documents", part, n, sources)
			}
		}
		c.research(t, marchwarden.Request{Question: crewQuestion, Constraints: &marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(2 * c.has)}}, researcher.Lab{Deadline: 2 * time.Minute})
		sent(0)
		var res *marchwarden.Result
		for part := 1; part <= 4; part++ {
			if part == 4 {
				time.Sleep(2 * time.Hour)
				c.takes("deaf", time.Millisecond)
			}
			res = c.research(t, marchwarden.Request{Resume: resumetest.ID, Constraints: &marchwarden.Constraints{TokenBudget: ptr(20000 + part)}}, researcher.Lab{More: 2 * time.Minute})
			sent(part)
		}
		if !slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool { return r.Researcher == "deaf" && r.Citations == c.has }) {
			t.Errorf("%+v", res.Rihlas)
		}
		if use := res.CostMetadata; use.SourcesRead > 2*c.has || use.BudgetExhausted {
			t.Errorf("%+v, %+v", use, res.Gaps)
		}
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// A rihla that failed to go on leaves what was there, and the same run is gone on with
// when there is more again.
func TestARihlaThatFailedToGoOnMayDoSoLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "arxiv"))
		first, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(4000), MaxSources: ptr(2)})
		if err != nil {
			t.Fatal(err)
		}
		s.whole(t, first)
		again := "web resume " + idOf("web", crewQuestion).String()
		for part, fails := range []bool{true, true, false} {
			s.forget()
			s.fails["web"] = fails
			res, err := s.resume(t.Context(), &marchwarden.Constraints{TokenBudget: ptr(20000), MaxSources: ptr(10)})
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			if calls := saidOf(s.forget()); !slices.Contains(calls, again) || slices.Contains(calls, "web "+crewQuestion) {
				t.Errorf("part %d: %v, want %s alone of web", part, calls, again)
			}
			all := slices.ContainsFunc(res.Rihlas, func(r marchwarden.Rihla) bool { return r.Researcher == "web" && r.Citations == s.has })
			if all == fails {
				t.Errorf("part %d: all of web is there: %v: %+v", part, all, res.Rihlas)
			}
		}
	})
}

// leaving is a writer whose caller leaves when it is done.
type leaving struct {
	reason.Reasoner
	leave context.CancelFunc
}

func (l leaving) Write(ctx context.Context, s *reason.State) (reason.Draft, error) {
	defer l.leave()
	return l.Reasoner.Write(ctx, s)
}

// An investigation that is stopped when its answer is written has ended.
func TestAnInvestigationThatIsStoppedWhenAllIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "arxiv"))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		usual := s.minds
		s.minds.Writer = func(string) reason.Reasoner { return leaving{extractive.New(), cancel} }
		first, err := s.ask(ctx, marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
		if err != nil {
			t.Fatal(err)
		}
		if ctx.Err() == nil || len(first.Citations) == 0 {
			t.Fatal("nothing was written")
		}
		s.minds = usual
		s.whole(t, first)
		if done := s.Log(t).Complete(); done.Interrupted || first.CostMetadata.BudgetExhausted {
			t.Errorf("it counts as interrupted: %+v", done)
		}
		s.forget()
		before := s.Raw(t)
		res, err := s.resume(t.Context(), nil)
		if err != nil || !bytes.Equal(resumetest.Encode(t, res), resumetest.Encode(t, first)) || len(s.forget()) > 0 || !bytes.Equal(before, s.Raw(t)) {
			t.Errorf("it went on: %v", err)
		}
	})
}

// In which order reports come in does not show in a result; a record of the time when
// it did is rerun in its own order.
func TestTheOrderOfArrivalDoesNotShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"web", "arxiv", "files"}
		ask := func(order ...int) (*study, *marchwarden.Result) {
			t.Helper()
			s := newStudy(t, resumetest.Memory(t), newCrew(names...))
			for i, name := range names {
				s.lasts[name] = time.Duration(order[i]) * time.Second
			}
			res, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(40)})
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			return s, res
		}
		_, want := ask(1, 2, 3)
		var s *study
		for _, order := range [][]int{{2, 3, 1}, {3, 2, 1}} {
			var res *marchwarden.Result
			if s, res = ask(order...); !bytes.Equal(resumetest.Encode(t, want), resumetest.Encode(t, res)) {
				t.Errorf("order %v:\n%s", order, cmp.Diff(string(resumetest.Encode(t, want)), string(resumetest.Encode(t, res))))
			}
		}
		first := func(logic string) (string, error) {
			t.Helper()
			log := s.Log(t)
			start, err := log.Start()
			if err != nil {
				t.Fatal(err)
			}
			start.Investigation.Logic = logic
			_, got, err := pi.Again(t.Context(), log, s.Blobs, s.minds)
			if err != nil {
				return "", err
			}
			res, err := marchwarden.DecodeResult(got)
			if err != nil {
				t.Fatal(err)
			}
			return res.Citations[0].Locator, nil
		}
		for _, logic := range []string{"pi/4", pi.Logic} {
			if at, err := first(logic); err != nil || !strings.HasPrefix(at, "https://web.example/") {
				t.Errorf("logic %q: the first citation is %s: %v", logic, at, err)
			}
		}
		for _, logic := range []string{"", "pi/3", "pi/99"} {
			if _, err := first(logic); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported {
				t.Errorf("logic %q, which is not known: %v", logic, err)
			}
		}
		log := s.Log(t)
		start, err := log.Start()
		if err != nil {
			t.Fatal(err)
		}
		again := func() error {
			_, _, err := pi.Again(t.Context(), log, s.Blobs, s.minds)
			return err
		}
		hop := &trace.Decision{What: marchwarden.Decision{About: "next_hop", From: 1, Topic: log.Steps[slices.IndexFunc(log.Steps, func(s trace.Step) bool {
			r, ok := s.(*trace.Rihla)
			return ok && r.Number == 1
		})].(*trace.Rihla).Question}}
		log.Steps = append(log.Steps, hop)
		if err := again(); err != nil {
			t.Errorf("a second opinion: %v", err)
		}
		hop.What.Topic = "Where was Mara Quill born?"
		if err := again(); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported || !strings.Contains(err.Error(), "next hop") {
			t.Errorf("a next hop: %v", err)
		}
		log.Steps = log.Steps[:len(log.Steps)-1]
		start.Investigation.Clarify = true
		if err := again(); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported || !strings.Contains(err.Error(), "could ask back") {
			t.Errorf("a run whose model could ask back: %v", err)
		}
		start.Investigation.Clarify = false
		start.Model, start.MindVersion = "some/model", "model/1"
		if _, _, err := pi.Again(t.Context(), log, s.Blobs, s.minds); marchwarden.CodeOf(err) != marchwarden.CodeUnsupported || !strings.Contains(err.Error(), "made by model/1 of the mind") {
			t.Errorf("a version of the mind that is gone: %v", err)
		}
	})
}

// A journey that was to go on and could not, for lack of budget, makes no room for
// another: the cap on rihlas holds over all parts.
func TestWhatCouldNotGoOnMakesNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "arxiv"))
		s.leads["web"], s.leads["arxiv"], s.opts.MaxRihlas = "arxiv", "web", 2
		if _, err := s.ask(t.Context(), marchwarden.Constraints{TokenBudget: ptr(2400), MaxSources: ptr(40)}); err != nil {
			t.Fatal(err)
		}
		for _, more := range []marchwarden.Constraints{{MaxSources: ptr(1)}, {MaxSources: ptr(1)}, {TokenBudget: ptr(40000)}} {
			res, err := s.resume(t.Context(), &more)
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			asked := map[string]bool{}
			for _, r := range res.Rihlas {
				asked[r.Researcher+" "+r.Question] = true
			}
			if len(asked) > 2 {
				t.Errorf("%d were asked, and 2 may be: %+v", len(asked), res.Rihlas)
			}
		}
	})
}

// The documents of a rihla that never came back are given back once, however often it
// could not be sent again.
func TestALostRihlaGivesBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStudy(t, resumetest.Memory(t), newCrew("web", "deaf"))
		s.deaf["deaf"], s.lasts["deaf"] = true, time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.ask(ctx, marchwarden.Constraints{TokenBudget: ptr(2600), MaxSources: ptr(4)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for range 3 {
			res, err := s.resume(t.Context(), &marchwarden.Constraints{MaxSources: ptr(1)})
			if err != nil {
				t.Fatal(err)
			}
			s.whole(t, res)
			read := 0
			for _, r := range res.Rihlas {
				read += r.Citations
			}
			if res.CostMetadata.SourcesRead < read {
				t.Errorf("%d documents are counted, and %d cited", res.CostMetadata.SourcesRead, read)
			}
		}
	})
}

// lacking is a crew whose web says every time that something is for arxiv.
type lacking struct{ *crew }

func (l lacking) Dispatch(ctx context.Context, member string, req marchwarden.Request, sink marchwarden.Sink) (*marchwarden.Result, error) {
	res, err := l.crew.Dispatch(ctx, member, req, sink)
	if res != nil && member == "web" {
		res.Gaps = append(res.Gaps, marchwarden.Gap{Topic: "the matters of arxiv", Category: marchwarden.ScopeExceeded, Detail: "it is not on the web"})
	}
	return res, err
}

// A gap that another researcher has filled stays filled when the report that named it
// goes on and names it again.
func TestWhatWasFilledStaysFilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClocked(t, "web", "arxiv")
		gap := func(res *marchwarden.Result) bool {
			return slices.ContainsFunc(res.Gaps, func(g marchwarden.Gap) bool { return g.Topic == "the matters of arxiv" }) ||
				slices.ContainsFunc(res.OpenQuestions, func(q marchwarden.OpenQuestion) bool { return q.Question == "the matters of arxiv" })
		}
		first := c.over(t, lacking{c.crew}, marchwarden.Request{Question: crewQuestion, Constraints: &marchwarden.Constraints{TokenBudget: ptr(40000), MaxSources: ptr(7)}}, researcher.Lab{})
		if gap(first) || !first.CostMetadata.BudgetExhausted {
			t.Fatalf("it was not filled, or all was found: %+v", first)
		}
		if res := c.over(t, lacking{c.crew}, marchwarden.Request{Resume: resumetest.ID, Constraints: &marchwarden.Constraints{MaxSources: ptr(40)}}, researcher.Lab{}); gap(res) || res.CostMetadata.BudgetExhausted {
			t.Errorf("it is open again, or not all was found: %+v, %+v", res.Gaps, res.Decisions)
		}
	})
}
