package researcher_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason/extractive"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// A model that never answers is not credited: the result is the one that the
// extractive reasoner gives alone, names it, and warns.
func TestADeadModelIsNotCredited(t *testing.T) {
	atOnce := llm.SteadyConfig{Sleep: func(context.Context, time.Duration) error { return nil }}
	pages := biotech()
	for name, page := range pages { // more than the smaller budget can read, which is where the two differed
		for i := range 40 {
			page.Text += fmt.Sprintf("\n\nOf the %d startups in biotech that were asked, some said that their work on CRISPR gene therapy was delayed by %d months.", 100+i, i)
		}
		pages[name] = page
	}
	for _, tokens := range []int{20000, 3000} {
		req := marchwarden.Request{Question: startups, Constraints: &marchwarden.Constraints{TokenBudget: &tokens}}
		alone := newLab(t, pages, nil, options{noModel: true}).ask(t, req)
		check := func(t *testing.T, l *lab, why string) {
			res := l.ask(t, req)
			if by := extractive.New().ID(); res.CostMetadata.ModelID != by || res.CostMetadata.ReasonerID != by {
				t.Errorf("credited to %q, written by %q, not by %q", res.CostMetadata.ModelID, res.CostMetadata.ReasonerID, by)
			}
			if res.Confidence != alone.Confidence || res.Answer != alone.Answer {
				t.Errorf("confidence %v, without a model %v\n%s\n%s", res.Confidence, alone.Confidence, res.Answer, alone.Answer)
			}
			if len(res.Warnings) != 1 || !strings.HasPrefix(res.Warnings[0], "openai/gpt-test did not write this answer") || !strings.Contains(res.Warnings[0], why) {
				t.Errorf("warnings: %q", res.Warnings)
			}
		}
		for fault, why := range map[llmtest.Fault]string{llmtest.FaultDenied: "refuses the key", llmtest.FaultServer: "500", llmtest.FaultRefused: "cannot be reached"} {
			t.Run(string(fault), func(t *testing.T) {
				dead := func(llmtest.Turn) llmtest.Said { return llmtest.Said{Fault: fault} }
				check(t, newLab(t, pages, dead, options{steady: atOnce}), why)
			})
		}
		t.Run("tls", func(t *testing.T) {
			stranger := httptest.NewUnstartedServer(http.NotFoundHandler())
			stranger.Config.ErrorLog = log.New(io.Discard, "", 0)
			stranger.StartTLS()
			t.Cleanup(stranger.Close)
			site := webtest.New(t, pages)
			check(t, newLab(t, nil, nil, options{steady: atOnce, far: &farEnds{search: site.SearchURL(), model: stranger.URL}}), "certificate")
		})
	}
}

// A model that planned and could not write keeps its name beside the writer's.
func TestWhoWroteIsNamed(t *testing.T) {
	mute := func(turn llmtest.Turn) llmtest.Said {
		said := obedient(turn)
		if siteOf(turn) == siteWrite {
			said.Fault = llmtest.FaultDenied
		}
		return said
	}
	res := newLab(t, biotech(), mute, options{}).ask(t, marchwarden.Request{Question: startups})
	if c := res.CostMetadata; c.ModelID != "openai/gpt-test" || c.ReasonerID != extractive.New().ID() || len(res.Warnings) != 1 {
		t.Errorf("%+v, warnings %q", c, res.Warnings)
	}
	res = newLab(t, biotech(), obedient, options{}).ask(t, marchwarden.Request{Question: startups})
	if c := res.CostMetadata; c.ModelID != "openai/gpt-test" || c.ReasonerID != "" || len(res.Warnings) != 0 {
		t.Errorf("a model that wrote: %+v, warnings %q", c, res.Warnings)
	}
}

// A provider that refuses a request as such has failed: the question is within the
// scope of who was asked.
func TestARefusedRequestIsNoMatterOfScope(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"message":"unknown parameter","type":"invalid_request_error"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(refuses.Close)
	site := webtest.New(t, biotech())
	res := newLab(t, nil, nil, options{far: &farEnds{search: site.SearchURL(), model: refuses.URL}}).ask(t, marchwarden.Request{Question: startups})
	lost := modelGaps(res)
	if len(lost) == 0 {
		t.Fatalf("no gap names the provider: %+v", res.Gaps)
	}
	for _, g := range lost {
		if g.Category != marchwarden.AccessDenied || !strings.Contains(g.Detail, "400") {
			t.Errorf("%+v", g)
		}
	}
}
