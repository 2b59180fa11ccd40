package pi_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// An answer from the user's folders where the user's own researcher gave none says so,
// and is less sure: what the folders hold may be beside the point.
func TestAnAnswerWithoutAnExternalResearcherWarns(t *testing.T) {
	unreached, broken := dispatch.NotAsked(marchwarden.Errorf(marchwarden.CodeUnavailable, "no such program")), errors.New("it broke")
	ask := func(trust dispatch.Trust, failure error) *marchwarden.Result {
		s := newStage()
		s.add(dispatch.Member{Name: "files", Scope: "documents"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return s.report(map[string]string{"https://a.example/": "Gallium melts at 29.8 degrees Celsius."}), nil
		})
		s.add(dispatch.Member{Name: "metals", Scope: "metals", Trust: trust}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			return nil, failure
		})
		return newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "At what temperature does gallium melt?"})
	}
	for how, failure := range map[string]error{"was not reached": unreached, "did not answer": broken} {
		ours, theirs := ask(dispatch.Own, failure), ask(dispatch.Known, failure)
		warned := func(res *marchwarden.Result) bool {
			return slices.ContainsFunc(res.Warnings, func(w string) bool { return strings.HasPrefix(w, "metals "+how+": ") })
		}
		if warned(ours) || !warned(theirs) || len(theirs.Citations) == 0 || len(theirs.Gaps) == 0 {
			t.Errorf("%s: warnings %q and %q, %d citations, %+v", how, ours.Warnings, theirs.Warnings, len(theirs.Citations), theirs.Gaps)
		}
		if theirs.Confidence >= ours.Confidence {
			t.Errorf("%s: confidence %v, and %v where nobody is missed", how, theirs.Confidence, ours.Confidence)
		}
	}
}

// A refusal names who was not reached.
func TestARefusalNamesTheExternalResearcher(t *testing.T) {
	s := newStage()
	s.add(dispatch.Member{Name: "metals", Scope: "metals", Trust: dispatch.Known}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
		return nil, dispatch.NotAsked(marchwarden.Errorf(marchwarden.CodeUnavailable, "no such program"))
	})
	res := newOffice(t).ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "At what temperature does gallium melt?"})
	if !res.Refused() || !strings.HasPrefix(res.Answer, "metals was not reached") {
		t.Errorf("%q", res.Answer)
	}
}

// What an external researcher answers is in the answer, whichever of its sentences the
// writer picks beside what the folders hold; and it is asked where the folders are unsure.
func TestWhatAnExternalResearcherSaysIsKept(t *testing.T) {
	const fell, weight = "The Varn stone fell by the harbour in 1903.", "It came to 14.2 kilograms on the scales of the museum."
	for name, tt := range map[string]struct {
		asked []string
		sure  marchwarden.Unit
		kept  bool
	}{
		"both are asked":        {nil, 0.8, true},
		"the folders are sure":  {[]string{"files"}, 0.8, false},
		"the folders are not":   {[]string{"files"}, 0.1, true},
		"nobody else is unsure": {[]string{"stones"}, 0.8, true},
	} {
		s := newStage()
		s.add(dispatch.Member{Name: "files", Scope: "documents"}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			res := s.report(map[string]string{"https://a.example/": "Did the stone weigh as much as the bell? The bell did weigh 900 kilograms."})
			res.Confidence = tt.sure
			return res, nil
		})
		s.add(dispatch.Member{Name: "stones", Scope: "stones", Trust: dispatch.Known}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			res := s.report(map[string]string{"https://b.example/": fell + " " + weight})
			res.Claims = []marchwarden.Claim{{Text: fell, Citations: []int{1}, Support: marchwarden.Supported}, {Text: weight, Citations: []int{1}, Support: marchwarden.Supported}}
			return res, nil
		})
		res := newOffice(t).ask(t, pi.Config{Dispatcher: s, Minds: minds(tt.asked...)}, marchwarden.Request{Question: "How much did the stone weigh?"})
		if got := strings.Count(res.Answer, weight); got != map[bool]int{true: 1}[tt.kept] {
			t.Errorf("%s: the weight is there %d times: %q, %+v", name, got, res.Answer, res.Rihlas)
		}
	}
}
