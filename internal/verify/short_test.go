package verify_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// spanOf is where words stand in a text.
func spanOf(text, words string) marchwarden.Span {
	i := strings.Index(text, words)
	return marchwarden.Span{Start: i, End: i + len(words)}
}

// checked is a draft as a result, which must stand.
func checked(t testing.TB, blobs blob.Store, g verify.Grounded) *marchwarden.Result {
	t.Helper()
	res := &marchwarden.Result{Answer: g.Answer, Citations: g.Citations, Claims: g.Claims, ShortAnswer: g.ShortAnswer, Closest: g.Closest}
	if report, err := verify.Check(ctx, blobs, res); err != nil || !report.OK() {
		t.Fatalf("what the gate let through does not stand: %v %s", err, report)
	}
	return res
}

func TestGateCutsTheShortAnswer(t *testing.T) {
	blobs := blob.NewMem()
	first, second := "Peas like cool soil.\n\nThey are sown on 3\u00a0  April.", "Others sow peas on 3 April. \x1b[31m<b>Red</b>\x1b[0m peas are rare."
	set := library(t, blobs, first, second, "Corn needs heat.")
	claims := []reason.Claim{{Text: "They are sown on 3 April.", Passages: []evidence.ID{"S1.2"}, Support: marchwarden.Supported}}
	short := func(n int, at marchwarden.Span, kind marchwarden.ShortKind, text string) *marchwarden.ShortAnswer {
		return &marchwarden.ShortAnswer{Text: text, Citation: n, Span: &at, Kind: kind}
	}
	day := spanOf(first, "3\u00a0  April")
	for name, c := range map[string]struct {
		draft reason.Short
		want  *marchwarden.ShortAnswer
	}{
		"in the excerpt":         {reason.Short{Passage: "S1.2", Span: day, Kind: "span"}, short(1, day, "span", "3 April")},
		"elsewhere in its text":  {reason.Short{Passage: "S1.1", Span: spanOf(first, "cool soil"), Kind: "value"}, short(1, spanOf(first, "cool soil"), "value", "cool soil")},
		"yes":                    {reason.Short{Passage: "S1.2", Span: spanOf(first, "They are sown on 3\u00a0  April."), Kind: "yes"}, short(1, spanOf(first, "They are sown on 3\u00a0  April."), "yes", "yes")},
		"no":                     {reason.Short{Passage: "S1.1", Span: spanOf(first, "Peas like cool soil."), Kind: "no"}, short(1, spanOf(first, "Peas like cool soil."), "no", "no")},
		"the same words":         {reason.Short{Passage: "S2.1", Span: spanOf(second, "3 April"), Kind: "span"}, short(1, day, "span", "3 April")},
		"words that none cites":  {reason.Short{Passage: "S2.1", Span: spanOf(second, "Red"), Kind: "span"}, nil},
		"another source":         {reason.Short{Passage: "S3.1", Span: marchwarden.Span{Start: 0, End: 4}, Kind: "span"}, nil},
		"a passage that is none": {reason.Short{Passage: "S9.1", Span: day, Kind: "span"}, nil},
		"outside the text":       {reason.Short{Passage: "S1.1", Span: marchwarden.Span{Start: 3, End: 900}, Kind: "span"}, nil},
		"before the text":        {reason.Short{Passage: "S1.1", Span: marchwarden.Span{Start: -1, End: 3}, Kind: "span"}, nil},
		"half a character":       {reason.Short{Passage: "S1.1", Span: marchwarden.Span{Start: day.Start, End: day.Start + 2}, Kind: "span"}, nil},
		"a blank":                {reason.Short{Passage: "S1.1", Span: marchwarden.Span{Start: 4, End: 5}, Kind: "span"}, nil},
		"a kind that is none":    {reason.Short{Passage: "S1.1", Span: day, Kind: "certain"}, nil},
		"unknown, and answered":  {reason.Short{Kind: "unknown"}, nil},
	} {
		g := ground(t, blobs, set, reason.Draft{Claims: claims, Short: &c.draft})
		if d := cmp.Diff(c.want, g.ShortAnswer); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if dropped := map[bool]int{true: 1}[c.want == nil]; g.DroppedShort != dropped || g.Step().DroppedShort != dropped {
			t.Errorf("%s: %d dropped, want %d", name, g.DroppedShort, dropped)
		}
		checked(t, blobs, g)
	}
	claims[0] = reason.Claim{Text: "Red peas are rare.", Passages: []evidence.ID{"S2.1"}, Support: marchwarden.Partial}
	hostile := spanOf(second, "\x1b[31m<b>Red</b>\x1b[0m")
	g := ground(t, blobs, set, reason.Draft{Claims: claims, Short: &reason.Short{Passage: "S2.1", Span: hostile, Kind: "span"}})
	if d := cmp.Diff(short(1, hostile, "span", "\x1b[31m<b>Red</b>\x1b[0m"), g.ShortAnswer); d != "" {
		t.Errorf("the words are not the source's: %s", d)
	}
	checked(t, blobs, g)
	long := strings.Repeat("word ", 200)
	g = ground(t, blobs, library(t, blobs, long), reason.Draft{Claims: []reason.Claim{{Text: "Words.", Passages: []evidence.ID{"S1.1"}}}, Short: &reason.Short{Passage: "S1.1", Span: marchwarden.Span{End: 600}, Kind: "span"}})
	if g.ShortAnswer != nil || g.DroppedShort != 1 {
		t.Errorf("a short answer of 600 characters: %+v", g.ShortAnswer)
	}
}

func TestGateRefusesWithWhatIsClosest(t *testing.T) {
	blobs := blob.NewMem()
	text := "Peas like cool soil. " + strings.Repeat("Beans climb. ", 60)
	set := library(t, blobs, text, "Corn needs heat.")
	d := reason.Draft{Refusal: "Nothing says so.", Short: &reason.Short{Kind: marchwarden.ShortUnknown}, Closest: []reason.Near{
		{Passage: "S1.1", Span: marchwarden.Span{End: 20}, Reason: "it speaks of \x1b[31mpeas\nat https://evil.example/x " + strings.Repeat("on ", 200)},
		{Passage: "S7.1", Reason: "there is no such passage"},
		{Passage: "S1.1", Span: marchwarden.Span{Start: 20, End: 5000}, Reason: "outside"},
		{Passage: "S2.1", Reason: "the whole passage"},
		{Passage: "S1.1", Reason: "one too many"},
	}}
	g := ground(t, blobs, set, d)
	if d := cmp.Diff(&marchwarden.ShortAnswer{Kind: marchwarden.ShortUnknown}, g.ShortAnswer); d != "" || g.DroppedShort != 0 {
		t.Error(d, g.DroppedShort)
	}
	if len(g.Closest) != 2 || g.UnknownIDs != 2 || len(g.Citations) != 0 || len(g.Claims) != 0 {
		t.Fatalf("%d closest, %d unknown ids, %d citations", len(g.Closest), g.UnknownIDs, len(g.Citations))
	}
	if c := g.Closest[0]; c.RawExcerpt != "Peas like cool soil." || c.Locator != "a.md" || len([]rune(c.Reason)) > 201 || strings.ContainsAny(c.Reason, "\x1b\n") || strings.Contains(c.Reason, "evil") {
		t.Errorf("%+v", c)
	}
	if c := g.Closest[1]; c.RawExcerpt != "Corn needs heat." || c.Locator != "b.md" || *c.Span != (marchwarden.Span{End: 16}) {
		t.Errorf("%+v", c)
	}
	res := checked(t, blobs, g)
	long := ground(t, blobs, set, reason.Draft{Closest: []reason.Near{{Passage: "S1.1", Span: marchwarden.Span{End: 700}}}})
	if checked(t, blobs, long); !strings.HasSuffix(long.Closest[0].RawExcerpt, marchwarden.ExcerptCut) {
		t.Errorf("%+v", long.Closest)
	}
	for name, spoil := range map[string]func(*marchwarden.Closest){
		"other words": func(c *marchwarden.Closest) { c.RawExcerpt = "Peas like warm soil." },
		"outside":     func(c *marchwarden.Closest) { c.Span = &marchwarden.Span{End: 5000} },
		"no hash":     func(c *marchwarden.Closest) { c.ContentHash = "" },
	} {
		bad := *res
		bad.Closest = []marchwarden.Closest{res.Closest[0]}
		spoil(&bad.Closest[0])
		if report, err := verify.Check(ctx, blobs, &bad); err != nil || report.OK() || !strings.Contains(report.String(), "closest passage 1") {
			t.Errorf("%s: %v %s", name, err, report)
		}
	}
	d.Claims = []reason.Claim{{Text: "Corn needs heat.", Passages: []evidence.ID{"S2.1"}}}
	if g := ground(t, blobs, set, d); len(g.Closest) > 0 || g.ShortAnswer != nil {
		t.Errorf("an answer has %d closest passages and %+v", len(g.Closest), g.ShortAnswer)
	}
}

func TestGateCallsQuotedWhatIsCopied(t *testing.T) {
	blobs := blob.NewMem()
	long := "Peas " + strings.Repeat("and beans ", 80) + "grow."
	set := library(t, blobs, "Peas like [4]  cool\u00a0 soil. Artichokes do not.", long)
	for name, c := range map[string]struct {
		claim reason.Claim
		want  marchwarden.Support
	}{
		"copied":                 {reason.Claim{Text: "Peas like cool soil.", Passages: []evidence.ID{"S1.1"}, Support: "supported"}, "quoted"},
		"of the second":          {reason.Claim{Text: "Artichokes do not.", Passages: []evidence.ID{"S2.1", "S1.1"}, Support: "supported"}, "quoted"},
		"longer than an excerpt": {reason.Claim{Text: long, Passages: []evidence.ID{"S2.1"}, Spans: []marchwarden.Span{{End: len(long)}}, Support: "supported"}, "quoted"},
		"said in other words":    {reason.Claim{Text: "Cool soil suits peas.", Passages: []evidence.ID{"S1.1"}, Support: "supported"}, "supported"},
		"a part of a word":       {reason.Claim{Text: "chokes do not.", Passages: []evidence.ID{"S1.1"}, Support: "supported"}, "supported"},
		"half supported":         {reason.Claim{Text: "Artichokes do not.", Passages: []evidence.ID{"S1.1"}, Support: "partial"}, "partial"},
		"unchecked":              {reason.Claim{Text: "Artichokes do not.", Passages: []evidence.ID{"S1.1"}}, "unchecked"},
		"called so":              {reason.Claim{Text: "Artichokes do not.", Passages: []evidence.ID{"S1.1"}, Support: "quoted"}, "quoted"},
		"called so, and is not":  {reason.Claim{Text: "Artichokes do.", Passages: []evidence.ID{"S1.1"}, Support: "quoted"}, "unchecked"},
	} {
		g, err := verify.Gate(ctx, blobs, set, verify.Basis{Rules: verify.Rules}, reason.Draft{Claims: []reason.Claim{c.claim}})
		if err != nil || len(g.Claims) != 1 || g.Claims[0].Support != c.want {
			t.Errorf("%s: %v %+v, want %s", name, err, g.Claims, c.want)
		}
		checked(t, blobs, g)
	}
	g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: "Artichokes do not.", Passages: []evidence.ID{"S1.1"}, Support: "supported"}}})
	g.Answer, g.Claims[0].Text = "Artichokes do. [1]", "Artichokes do."
	if report, err := verify.Check(ctx, blobs, &marchwarden.Result{Answer: g.Answer, Citations: g.Citations, Claims: g.Claims}); err != nil || report.OK() {
		t.Errorf("what is called quoted and is not stands: %v %s", err, report)
	}
}

func TestGateNamesTheJudge(t *testing.T) {
	blobs := blob.NewMem()
	set := library(t, blobs, "Peas like cool soil.")
	claim := func(support marchwarden.Support, judge string) reason.Claim {
		return reason.Claim{Text: "Cool soil suits peas.", Passages: []evidence.ID{"S1.1"}, Support: support, Judge: judge}
	}
	for _, c := range []struct {
		claim reason.Claim
		want  string
	}{
		{claim("supported", "local"), "local"}, {claim("partial", "model+local"), "model+local"},
		{claim("supported", "the page itself"), ""}, {claim("unchecked", "local"), ""},
	} {
		g, err := verify.Gate(ctx, blobs, set, verify.Basis{Rules: verify.Rules}, reason.Draft{Claims: []reason.Claim{c.claim}})
		if err != nil || g.Claims[0].Judge != c.want {
			t.Errorf("%+v: judge %q, %v, want %q", c.claim, g.Claims[0].Judge, err, c.want)
		}
	}
}

func TestCheckFindsFalseShortAnswers(t *testing.T) {
	blobs := blob.NewMem()
	text := "Peas like cool soil.\nCafé."
	set := library(t, blobs, text)
	g := ground(t, blobs, set, reason.Draft{Claims: []reason.Claim{{Text: "Cool soil suits peas.", Passages: []evidence.ID{"S1.1"}}}, Short: &reason.Short{Passage: "S1.1", Span: spanOf(text, "cool soil"), Kind: "span"}})
	honest := *checked(t, blobs, g)
	for name, c := range map[string]struct {
		spoil func(*marchwarden.ShortAnswer)
		says  string
	}{
		"other words":      {func(s *marchwarden.ShortAnswer) { s.Text = "warm soil" }, "not what stands"},
		"other case":       {func(s *marchwarden.ShortAnswer) { s.Text = "Cool soil" }, "not what stands"},
		"no words":         {func(s *marchwarden.ShortAnswer) { s.Text = "" }, "not what stands"},
		"outside":          {func(s *marchwarden.ShortAnswer) { s.Span.End = 900 }, "outside"},
		"before":           {func(s *marchwarden.ShortAnswer) { s.Span.Start = -1 }, "outside"},
		"half a character": {func(s *marchwarden.ShortAnswer) { s.Span, s.Text = &marchwarden.Span{Start: 21, End: 25}, "Caf\xc3" }, "nothing to be read"},
		"no such citation": {func(s *marchwarden.ShortAnswer) { s.Citation = 2 }, "citation 2 does not exist"},
		"negative":         {func(s *marchwarden.ShortAnswer) { s.Citation = -1 }, "citation -1 does not exist"},
		"yes, it says":     {func(s *marchwarden.ShortAnswer) { s.Kind = "yes" }, "not what stands"},
		"what kind":        {func(s *marchwarden.ShortAnswer) { s.Kind = "certain" }, "kind"},
		"unknown":          {func(s *marchwarden.ShortAnswer) { *s = marchwarden.ShortAnswer{Kind: "unknown"} }, "has no claims"},
	} {
		bad, s, at := honest, *honest.ShortAnswer, *honest.ShortAnswer.Span
		s.Span = &at
		bad.ShortAnswer = &s
		c.spoil(&s)
		if report, err := verify.Check(ctx, blobs, &bad); err != nil || report.OK() || !strings.Contains(report.String(), c.says) {
			t.Errorf("%s: %v %s, want %q", name, err, report, c.says)
		}
	}
}

// Whatever a reasoner asks for, what leaves the gate stands.
func TestEveryShortAnswerIsStoredBytes(t *testing.T) {
	word := rapid.SampledFrom([]string{"peas", "corn.", "Überall", "[1]", "[[1]2]", "3.5", "\n\n", "日本。", "“quoted”", "\t", "a\u00adb", "🌱!", "\x1b[1m"})
	kind := rapid.SampledFrom([]marchwarden.ShortKind{"span", "yes", "no", "value", "unknown", "?"})
	rapid.Check(t, func(rt *rapid.T) {
		blobs := blob.NewMem()
		var texts []string
		for range rapid.IntRange(1, 3).Draw(rt, "documents") {
			texts = append(texts, strings.Join(rapid.SliceOfN(word, 1, 150).Draw(rt, "words"), " "))
		}
		set := library(t, blobs, texts...)
		var d reason.Draft
		anywhere := func() marchwarden.Span {
			return marchwarden.Span{Start: rapid.IntRange(-1, 200).Draw(rt, "start"), End: rapid.IntRange(-1, 900).Draw(rt, "end")}
		}
		for _, p := range set.Passages() {
			if rapid.Bool().Draw(rt, "claimed") {
				c := reason.Claim{Text: p.Text, Passages: []evidence.ID{p.ID}, Support: marchwarden.Supported}
				if at := anywhere(); at.In(len(set.Sources()[p.Source-1].Text)) {
					c.Text, c.Spans = set.Sources()[p.Source-1].Text[at.Start:at.End], []marchwarden.Span{at}
				}
				d.Claims = append(d.Claims, c)
			}
			d.Short = &reason.Short{Passage: p.ID, Span: anywhere(), Kind: kind.Draw(rt, "kind")}
			d.Closest = append(d.Closest, reason.Near{Passage: p.ID, Span: anywhere()})
		}
		checked(t, blobs, ground(t, blobs, set, d))
	})
}
