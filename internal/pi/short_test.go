package pi_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/dispatch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/pi"
)

// An investigation has the short answer of the report that it follows, if its words
// stand in the evidence and the report was about the whole question.
func TestTheShortAnswerOfTheLeadingReport(t *testing.T) {
	const asked, text = "What is the capital of France?", "The capital of France is \x1b[1m<b>Paris</b>."
	paris := &marchwarden.Span{Start: 29, End: 41}
	short := func(words string, n int, at *marchwarden.Span, kind marchwarden.ShortKind) *marchwarden.ShortAnswer {
		return &marchwarden.ShortAnswer{Text: words, Citation: n, Span: at, Kind: kind}
	}
	whole := &marchwarden.Span{Start: 0, End: len(text)}
	for name, c := range map[string]struct {
		short *marchwarden.ShortAnswer
		trust dispatch.Trust
		asked string // by the planner; "" is the question
		want  *marchwarden.ShortAnswer
	}{
		"as reported":            {short: short("<b>Paris</b>", 1, paris, "span"), want: short("<b>Paris</b>", 1, paris, "span")},
		"unseen":                 {short: short("<b>Paris</b>", 1, paris, "span"), trust: dispatch.Unknown},
		"of a stranger":          {short: short("<b>Paris</b>", 1, paris, "span"), trust: dispatch.Known, want: short("<b>Paris</b>", 1, paris, "span")},
		"at another place":       {short: short("<b>Paris</b>", 1, &marchwarden.Span{Start: 2, End: 9}, "value"), want: short("<b>Paris</b>", 1, paris, "value")},
		"yes":                    {short: short("yes", 1, whole, "yes"), want: short("yes", 1, whole, "yes")},
		"yes, says a stranger":   {short: short("yes", 1, whole, "yes"), trust: dispatch.Known},
		"yes, outside":           {short: short("yes", 1, &marchwarden.Span{Start: 0, End: 900}, "yes")},
		"words that are not in":  {short: short("Lyon", 1, paris, "span")},
		"a citation that is not": {short: short("<b>Paris</b>", 2, paris, "span")},
		"no span":                {short: short("<b>Paris</b>", 1, nil, "span")},
		"a kind that is none":    {short: short("<b>Paris</b>", 1, paris, "certain")},
		"unknown":                {short: &marchwarden.ShortAnswer{Kind: "unknown"}},
		"of a part":              {short: short("<b>Paris</b>", 1, paris, "span"), asked: "Where is France?"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage()
			s.add(dispatch.Member{Name: "web", Scope: "the web", Trust: c.trust}, func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
				res := s.report(map[string]string{"https://example.org/paris": text})
				res.ShortAnswer = c.short
				return res, nil
			})
			cfg := pi.Config{Dispatcher: s, Minds: minds()}
			if c.asked != "" {
				cfg.Minds.Planner = func(string) pi.Planner { return instead{c.asked} }
			}
			res := newOffice(t).ask(t, cfg, marchwarden.Request{Question: asked})
			if d := cmp.Diff(c.want, res.ShortAnswer); d != "" {
				t.Errorf("%s\n%+v", d, res)
			}
		})
	}
}

// instead is a planner that asks everybody something else.
type instead struct{ question string }

func (instead) ID() string { return "instead/1" }

func (p instead) Plan(ctx context.Context, b *pi.Brief) ([]pi.Sending, error) {
	out, err := everybody{}.Plan(ctx, b)
	for i := range out {
		out[i].Question = p.question
	}
	return out, err
}

// An investigation that refuses shows what its own researchers call closest, once it
// has seen it.
func TestARefusalShowsWhatIsClosest(t *testing.T) {
	const text = "Bees keep the brood nest warm. Honey is sweet."
	s, o := newStage(), newOffice(t)
	ref, err := o.blobs.Put(t.Context(), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	near := func(at, excerpt string, span marchwarden.Span, ref blob.Ref) marchwarden.Closest {
		return marchwarden.Closest{Source: "file", Locator: at, Title: "Bees", RawExcerpt: excerpt, ContentHash: ref.String(), Span: &span, Reason: "it speaks of nests"}
	}
	good := near("bees.md#L1", text[:30], marchwarden.Span{End: 30}, ref)
	refusing := func(closest ...marchwarden.Closest) script {
		return func(context.Context, int, marchwarden.Request) (*marchwarden.Result, error) {
			res := s.report(nil)
			res.Answer, res.ShortAnswer, res.Closest = "Nothing says so.", &marchwarden.ShortAnswer{Kind: "unknown"}, closest
			return res, nil
		}
	}
	s.add(dispatch.Member{Name: "stranger", Trust: dispatch.Unknown}, refusing(near("https://evil.example/", "Wasps, too.", marchwarden.Span{End: 11}, ref)))
	s.add(dispatch.Member{Name: "files"}, refusing(
		near("bees.md", "Wasps keep it warm.", marchwarden.Span{End: 19}, ref), good, near("lost.md", "Gone.", marchwarden.Span{End: 5}, blob.Of([]byte("Gone.")))))
	s.add(dispatch.Member{Name: "silent"}, refusing())
	res := o.ask(t, pi.Config{Dispatcher: s}, marchwarden.Request{Question: "How warm is a wasp nest?"})
	if d := cmp.Diff([]marchwarden.Closest{good}, res.Closest); d != "" || !res.Refused() || len(res.Citations) > 0 {
		t.Errorf("%s\n%+v", d, res)
	}
	res = o.ask(t, pi.Config{Dispatcher: s, Options: pi.Options{PlanOnly: true}}, marchwarden.Request{Question: "How warm is a wasp nest?"})
	if res.ShortAnswer != nil || res.Closest != nil {
		t.Errorf("a plan says that it does not know: %+v", res)
	}
}
