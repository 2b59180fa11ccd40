package pi_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// A stranger's report in any shape costs its own content and nothing else.
func TestOddReports(t *testing.T) {
	const paris = "Paris is the capital of France."
	for name, bend := range map[string]func(*marchwarden.Result){
		"markers twice":        func(r *marchwarden.Result) { r.Claims, r.Answer = nil, "Paris is big. [1][1] "+paris+" [1]" },
		"markers first":        func(r *marchwarden.Result) { r.Claims, r.Answer = nil, "[1] "+paris+" [1] [1]" },
		"markers alone":        func(r *marchwarden.Result) { r.Claims, r.Answer = nil, "[1][2][3]" },
		"claims on nothing":    func(r *marchwarden.Result) { r.Claims[0].Citations = []int{0, -1, 7} },
		"tokens beyond reason": func(r *marchwarden.Result) { r.CostMetadata.TokensUsed = 1 << 40 },
		"a long excerpt":       func(r *marchwarden.Result) { r.Citations[0].RawExcerpt = strings.Repeat("long ", 200) },
		"too many citations": func(r *marchwarden.Result) {
			for range 130 {
				r.Citations = append(r.Citations, r.Citations[0])
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.add(dispatch.Member{Name: "theirs", Scope: "things", Trust: dispatch.Known}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
				res := s.report(map[string]string{"https://example.org/paris": paris})
				bend(res)
				return res, nil
			})
			s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
				return s.report(map[string]string{"https://example.com/france": "The capital of France is Paris, on the Seine."}), nil
			})
			for _, m := range []pi.Minds{minds(), minds("theirs")} {
				res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: m}, marchwarden.Request{Question: "What is the capital of France?"})
				if len(res.Citations) == 0 && len(res.Gaps) == 0 {
					t.Errorf("nothing was said: %+v", res)
				}
				for i, r := range res.Rihlas {
					if r.TokensUsed > 20000 {
						t.Errorf("rihla %d has used %d tokens", i+1, r.TokensUsed)
					}
				}
			}
		})
	}
}

// What our own researcher read stands, whoever spoke of the address before it.
func TestOurOwnDocumentGoesFirst(t *testing.T) {
	const at = "https://en.wikipedia.example/Paris"
	for _, first := range []string{"theirs", "web"} {
		t.Run(first+" first", func(t *testing.T) {
			s := newStage()
			liar := func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
				return s.report(map[string]string{at: "The capital of France is Lyon, as everybody knows."}), nil
			}
			honest := func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
				return s.report(map[string]string{at: "The capital of France is Paris, as everybody knows."}), nil
			}
			hold := make(chan struct{})
			wait := func(f script) script {
				return func(ctx context.Context, n int, req marchwarden.Request) (*marchwarden.Result, error) {
					<-hold
					return f(ctx, n, req)
				}
			}
			free := func(f script) script {
				return func(ctx context.Context, n int, req marchwarden.Request) (*marchwarden.Result, error) {
					defer close(hold)
					return f(ctx, n, req)
				}
			}
			if first == "theirs" {
				liar, honest = free(liar), wait(honest)
			} else {
				liar, honest = wait(liar), free(honest)
			}
			s.add(dispatch.Member{Name: "theirs", Scope: "things", Trust: dispatch.Known}, liar)
			s.add(dispatch.Member{Name: "web", Scope: "the web"}, honest)
			res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Options: pi.Options{MaxDepth: -1}}, marchwarden.Request{Question: "What is the capital of France?"})
			if !strings.Contains(res.Answer, "Paris") || strings.Contains(res.Answer, "Lyon") {
				t.Errorf("the answer is %q", res.Answer)
			}
			if said := fmt.Sprint(res.Gaps); !strings.Contains(said, "theirs") {
				t.Errorf("the liar is not named: %s", said)
			}
		})
	}
}

// A part of the user's own question can tell which part was found.
func TestAPartOfTheQuestionIsPrivateToo(t *testing.T) {
	s := newStage()
	s.add(dispatch.Member{Name: "files", Scope: "documents", Private: true}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		res := s.report(map[string]string{"agents.md": "The agent is in Vienna."})
		res.DiscoveryEvents = []marchwarden.DiscoveryEvent{{Type: marchwarden.NewSource, SuggestedResearcher: "web", Query: "Vienna", Reason: "a hint"}}
		return res, nil
	})
	s.add(dispatch.Member{Name: "web", Scope: "the web"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		return s.report(nil), nil
	})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: minds("files")}, marchwarden.Request{Question: "Is the agent in Berlin, Paris, Vienna or Rome?"})
	if n := len(s.calls["web"]); n != 0 {
		t.Errorf("the web was asked %q", s.calls["web"][0].Question)
	}
	if len(res.Decisions) == 0 || res.Decisions[0].Action != marchwarden.Withheld {
		t.Errorf("%+v", res.Decisions)
	}
}
