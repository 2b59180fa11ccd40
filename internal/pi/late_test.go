package pi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/researcher"
)

// apart is a planner that sends one member for the whole and for each part.
type apart struct {
	everybody
	parts []string
}

func (p apart) Plan(_ context.Context, b *pi.Brief) ([]pi.Sending, error) {
	out := []pi.Sending{{Researcher: b.Members[0].Name, Question: b.Request.Question, Reason: "the whole"}}
	for _, part := range p.parts {
		out = append(out, pi.Sending{Researcher: b.Members[0].Name, Question: part, Reason: "a part"})
	}
	return out, nil
}

func planning(p pi.Planner) pi.Minds {
	return pi.Minds{Planner: func(string) pi.Planner { return p }, Writer: func(string) reason.Reasoner { return researcher.Mind("") }}
}

// What a rihla was sent for is in the answer, whatever the writer preferred.
func TestEveryPartIsAnswered(t *testing.T) {
	const gallium, cherry = "Gallium melts at 29.8 degrees Celsius.", "The cherry is the fruit of the state since 1997."
	s := newStage()
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(_ context.Context, _ int, req marchwarden.Request) (*marchwarden.Result, error) {
		if strings.Contains(req.Question, "fruit?") {
			return s.report(map[string]string{"https://b.example/": cherry}), nil
		}
		return s.report(map[string]string{"https://a.example/": gallium}), nil
	})
	m := planning(apart{parts: []string{"Which fruit?"}})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: m}, marchwarden.Request{Question: "At what temperature does gallium melt?"})
	for _, want := range []string{gallium, cherry} {
		if !strings.Contains(res.Answer, want) {
			t.Errorf("%q lacks %q", res.Answer, want)
		}
	}
}

func TestMembersThatTheCapPassesOverAreNamed(t *testing.T) {
	s := newStage()
	for i := range 4 {
		s.add(dispatch.Member{Name: fmt.Sprintf("m%d", i), Scope: "things"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return s.report(nil), nil
		})
	}
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Options: pi.Options{MaxRihlas: 3}}, marchwarden.Request{Question: "What is gallium?"})
	if said := fmt.Sprint(res.Gaps); len(res.Rihlas) != 3 || !strings.Contains(said, "researcher m3") || strings.Contains(said, "researcher m2") {
		t.Errorf("%d rihlas, %s", len(res.Rihlas), said)
	}
}

func TestAGapThatASiblingFilledIsNone(t *testing.T) {
	s := newStage()
	for name, gap := range map[string]string{"web": "the melting point of gallium", "arxiv": "the price of gallium"} {
		s.add(dispatch.Member{Name: name, Scope: "things"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			res := s.report(map[string]string{"https://" + name + ".example/": "The melting point of gallium, says " + name + ", is 29.8 degrees."})
			res.Gaps = []marchwarden.Gap{{Topic: gap, Category: marchwarden.SourceNotFound, Detail: "nothing"}}
			return res, nil
		})
	}
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "What is the melting point of gallium?"})
	if said := fmt.Sprint(res.Gaps); strings.Contains(said, "melting point") || !strings.Contains(said, "the price of gallium") {
		t.Error(said)
	}
}

// What a researcher that failed used is not known, and is not counted as used. What was
// set aside for it is given to another only if it was not reached.
func TestAResearcherThatFailsIsNotCharged(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		free bool
	}{
		"not reached": {dispatch.NotAsked(marchwarden.Errorf(marchwarden.CodeUnavailable, "no such program")), true},
		"broken off":  {marchwarden.Errorf(marchwarden.CodeUnavailable, "its process ended"), false},
	} {
		s := newStage()
		s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) { return nil, tt.err })
		var granted int
		s.add(dispatch.Member{Name: "arxiv", Scope: "papers"}, func(_ context.Context, _ int, req marchwarden.Request) (*marchwarden.Result, error) {
			granted = *req.Constraints.TokenBudget
			return &marchwarden.Result{}, nil
		})
		res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: minds("web")}, marchwarden.Request{Question: "What is gallium?"})
		if c := res.CostMetadata; c.TokensUsed != 0 || c.SourcesRead != 0 || len(res.Gaps) == 0 {
			t.Errorf("%s: %+v, %+v, %+v", name, c, res.Rihlas, res.Gaps)
		}
		if (granted > 0) != tt.free {
			t.Errorf("%s: another got %d tokens", name, granted)
		}
	}
}

// A document that somebody else brought is known by its hash, unless it is secret.
func TestADocumentIsHeldOnceHeard(t *testing.T) {
	const fact = "Gallium melts at 29.8 degrees Celsius."
	const text = fact + " It boils at 2,400 degrees."
	for _, private := range []bool{false, true} {
		s := newStage()
		s.add(dispatch.Member{Name: "first", Scope: "things", Private: private}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return s.report(map[string]string{"https://a.example/": text}), nil
		})
		s.add(dispatch.Member{Name: "mute", Scope: "things", Trust: dispatch.Known}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			res := s.report(map[string]string{"https://a.example/": text})
			s.mu.Lock()
			clear(s.evidence) // it hands nothing over
			s.mu.Unlock()
			c := &res.Citations[0]
			c.Locator, c.RawExcerpt, c.Span = "https://b.example/", fact, nil
			res.Claims[0].Text = fact
			return res, nil
		})
		o := newOffice(t)
		if _, err := o.blobs.Put(t.Context(), []byte(text)); err != nil {
			t.Fatal(err)
		}
		res := o.ask(t, pi.Config{Dispatcher: s, Options: pi.Options{Parallel: 1}}, marchwarden.Request{Question: "At what temperature does gallium melt?"})
		unchecked := 0
		for _, c := range res.Citations {
			if c.Unchecked {
				unchecked++
			}
		}
		if (unchecked > 0) != private {
			t.Errorf("private %v: %d unchecked of %+v", private, unchecked, res.Citations)
		}
	}
}

// A question that just fits reaches the researcher whole.
func TestTheLongestQuestionIsNotCut(t *testing.T) {
	s := newStage()
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		return s.report(nil), nil
	})
	question := strings.Repeat("ä", marchwarden.MaxQuestionChars-1) + "?"
	newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: question})
	if got := s.calls["web"][0].Question; got != question {
		t.Errorf("%d of %d characters, ending in %q", len([]rune(got)), len([]rune(question)), got[len(got)-8:])
	}
}

// What a rihla leaves open is asked in the context that it came of: a part of the
// question names its subject, and what else came up is told what the user asked.
func TestAnOpenQuestionKeepsItsContext(t *testing.T) {
	s := newStage()
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(_ context.Context, n int, _ marchwarden.Request) (*marchwarden.Result, error) {
		res := &marchwarden.Result{}
		for _, q := range []string{"What are the alternatives?", "How are they stored?"}[:max(0, 4-2*n)] {
			res.OpenQuestions = append(res.OpenQuestions, marchwarden.OpenQuestion{Question: q, Priority: marchwarden.High})
		}
		return res, nil
	})
	const asked, known = "Which drug is used against malaria, and what are the alternatives?", "Quinine is known."
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: asked, Context: known})
	if calls := s.calls["web"]; len(calls) != 2 || calls[1].Question != "How are they stored?" || !strings.Contains(calls[1].Context, asked) || !strings.Contains(calls[1].Context, known) || calls[0].Context != known {
		t.Errorf("asked %+v", calls)
	}
	if d := res.Decisions; len(d) != 2 || d[0].Topic != "What are the alternatives?" || d[0].Reason != "web was asked this already (rihla 1)" {
		t.Errorf("decided %+v", d)
	}
}

// A researcher that was not waited for when the caller stopped is sent again by resume,
// with what was set aside for it.
func TestResumeSendsAgainWhomNobodyWaitedFor(t *testing.T) {
	s, o := newStage(), newOffice(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(_ context.Context, n int, _ marchwarden.Request) (*marchwarden.Result, error) {
		if n == 1 {
			stop()
			return nil, marchwarden.Wrap(context.Canceled, marchwarden.CodeCanceled, "web was not waited for any longer")
		}
		return s.report(map[string]string{"https://web.example/": "Gallium melts at 29.8 degrees."}), nil
	})
	cfg := pi.Config{Dispatcher: s}
	first, err := o.pi(cfg).Research(ctx, marchwarden.Request{Question: "When does gallium melt?"}, nil)
	if err != nil || len(first.Citations) > 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	res, err := o.pi(cfg).Research(t.Context(), marchwarden.Request{Resume: first.TraceID.String()}, nil)
	if err != nil || len(res.Citations) != 1 || len(s.calls["web"]) != 2 || res.CostMetadata.SourcesRead != 1 {
		t.Errorf("%+v, %v; asked %+v", res, err, s.calls["web"])
	}
}
