package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
)

func claims(texts ...string) *marchwarden.Result {
	res := &marchwarden.Result{}
	for _, t := range texts {
		text, support, _ := strings.Cut(t, " (")
		c := marchwarden.Claim{Text: text, Support: marchwarden.Supported}
		if support != "" {
			c.Support = marchwarden.Support(strings.TrimSuffix(support, ")"))
		}
		res.Claims = append(res.Claims, c)
	}
	return res
}

// claimPairs is a comparison of claims in words.
func claimPairs(c run.Comparison) []string {
	var out []string
	for _, p := range c.Claims {
		s := ""
		if p.Changed {
			s = "changed: "
		}
		if p.A != nil {
			s += p.A.Text
		}
		if p.B != nil {
			s += " > " + p.B.Text
		}
		out = append(out, s)
	}
	return out
}

func TestCompareClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b *marchwarden.Result
		want []string
	}{
		"nothing":        {claims(), claims(), nil},
		"quoted now":     {claims("Peat is soil."), claims("Peat is soil. (quoted)"), []string{"Peat is soil. > Peat is soil."}},
		"quoted no more": {claims("Peat is soil. (quoted)"), claims("Peat is soil. (partial)"), []string{"changed: Peat is soil. > Peat is soil."}},
		"none at all":    {nil, nil, nil},
		"the same":       {claims("Peat is soil.", "Moss is green."), claims("Peat is soil.", "Moss is green."), []string{"Peat is soil. > Peat is soil.", "Moss is green. > Moss is green."}},
		"another order":  {claims("Peat is soil.", "Moss is green."), claims("Moss is green.", "Peat is soil."), []string{"Peat is soil. > Peat is soil.", "Moss is green. > Moss is green."}},
		"small marks":    {claims("It’s “peat” – soil."), claims("it's \"peat\" - soil"), []string{`It’s “peat” – soil. > it's "peat" - soil`}},
		"verdict":        {claims("Peat is soil."), claims("Peat is soil. (unsupported)"), []string{"changed: Peat is soil. > Peat is soil."}},
		"numbers": {claims("The roof was tiled with 412 shingles.", "Olof charged 3,200 crowns for the roof."), claims("The roof was tiled with 398 shingles.", "Olof charged 3200 crowns for that roof."),
			[]string{"changed: The roof was tiled with 412 shingles. > The roof was tiled with 398 shingles.", "changed: Olof charged 3,200 crowns for the roof. > Olof charged 3200 crowns for that roof."}},
		"many numbers": {claims("Sales rose by 5 % in 2019, 7 % in 2020 and 9 % in 2021."), claims("Sales rose by 4 % in 2022, 6 % in 2023 and 8 % in 2024."),
			[]string{"changed: Sales rose by 5 % in 2019, 7 % in 2020 and 9 % in 2021. > Sales rose by 4 % in 2022, 6 % in 2023 and 8 % in 2024."}},
		"denied":       {claims("The pump lifts water from the well."), claims("The pump does not lift water from the well."), []string{"changed: The pump lifts water from the well. > The pump does not lift water from the well."}},
		"only one":     {claims("Peat is soil."), claims("The pump was made in Gothenburg."), []string{"Peat is soil.", " > The pump was made in Gothenburg."}},
		"one is empty": {claims("Peat is soil."), claims(), []string{"Peat is soil."}},
		"said twice":   {claims("Peat is soil.", "Peat is soil."), claims("Peat is soil."), []string{"Peat is soil. > Peat is soil.", "Peat is soil."}},
		"the most alike": {claims("The old pump of the well lifts 40 litres."), claims("The pump of the mill lifts 40 litres.", "The old pump of the well lifts 50 litres."),
			[]string{"changed: The old pump of the well lifts 40 litres. > The old pump of the well lifts 50 litres.", " > The pump of the mill lifts 40 litres."}},
		"one word is not enough": {claims("Peat burns."), claims("Peat floats."), []string{"Peat burns.", " > Peat floats."}},
		"without lists": {&marchwarden.Result{Answer: "Peat is soil [1]. Moss is green [1].", Citations: make([]marchwarden.Citation, 1)}, &marchwarden.Result{Answer: "Moss is green [1].", Citations: make([]marchwarden.Citation, 1)},
			[]string{"Peat is soil.", "Moss is green. > Moss is green."}},
		"hostile": {claims("", "\xff\x00", "[1] [2]"), claims("\u202e", "", strings.Repeat("x ", 9000)), nil},
	} {
		got := claimPairs(run.Compare(c.a, c.b))
		if name != "hostile" && !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
		// The other way round it is the same, the other way round.
		if back := run.Compare(c.b, c.a); len(back.Claims) != len(got) {
			t.Errorf("%s: %d pairs, and %d the other way round", name, len(got), len(back.Claims))
		}
	}
}

func TestCompareManyClaims(t *testing.T) {
	t.Parallel()
	var a, b []string
	for i := range 3000 {
		a, b = append(a, fmt.Sprintf("The pump number %d of the well lifts water.", i)), append(b, fmt.Sprintf("The pump number %d of the well lifts water.", i+1))
	}
	same, other := 0, 0
	for _, p := range run.Compare(claims(a...), claims(b...)).Claims {
		switch {
		case p.A == nil || p.B == nil:
			other++
		case p.Changed:
			other += 2
		default:
			same++
		}
	}
	if same != 2999 || other != 2 {
		t.Errorf("%d are the same, %d are not", same, other)
	}
}

func TestCompareSources(t *testing.T) {
	t.Parallel()
	cite := func(cs ...string) *marchwarden.Result { // locator and hash
		res := &marchwarden.Result{}
		for _, c := range cs {
			f := strings.Fields(c)
			res.Citations = append(res.Citations, marchwarden.Citation{Locator: f[0], ContentHash: strings.Trim(f[1], "-")})
		}
		return res
	}
	for name, c := range map[string]struct {
		a, b *marchwarden.Result
		want []string
	}{
		"nothing":           {cite(), cite(), nil},
		"the same":          {cite("https://a.example/x h1"), cite("https://a.example/x h1"), []string{"https://a.example/x https://a.example/x"}},
		"another spelling":  {cite("https://A.example:443/x?utm_source=1#top h1"), cite("https://a.example/x h1"), []string{"https://A.example:443/x?utm_source=1#top https://a.example/x"}},
		"places in a file":  {cite("lib://a.md#L3 h1", "lib://a.md#L9 h1"), cite("lib://a.md#L9 h1"), []string{"lib://a.md#L3 lib://a.md#L9"}},
		"another text":      {cite("lib://a.md h1"), cite("lib://a.md h2"), []string{"lib://a.md lib://a.md"}},
		"no text":           {cite("lib://a.md --"), cite("lib://a.md h2"), []string{"lib://a.md lib://a.md"}},
		"moved":             {cite("lib://a.md h1"), cite("lib://b.md h1"), []string{"lib://a.md lib://b.md"}},
		"moved, not stayed": {cite("lib://a.md h1", "lib://b.md h2"), cite("lib://b.md h1"), []string{"lib://a.md -", "lib://b.md lib://b.md"}},
		"copied":            {cite("lib://a.md h1"), cite("lib://b.md h1", "lib://c.md h1"), []string{"lib://a.md lib://b.md", "- lib://c.md"}},
		"two without text":  {cite("lib://a.md --"), cite("lib://b.md --"), []string{"lib://a.md -", "- lib://b.md"}},
		"only in one":       {cite("lib://a.md h1"), cite("lib://b.md h2"), []string{"lib://a.md -", "- lib://b.md"}},
	} {
		var got []string
		for _, p := range run.Compare(c.a, c.b).Sources {
			inA, inB := "-", "-"
			if p.A != nil {
				inA = p.A.Locator
			}
			if p.B != nil {
				inB = p.B.Locator
			}
			got = append(got, inA+" "+inB)
		}
		if !cmp.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestCompareGapsAndFactors(t *testing.T) {
	t.Parallel()
	a, b := claims("Peat is soil."), claims("Peat is soil.")
	a.Gaps = []marchwarden.Gap{{Topic: "Peat", Category: marchwarden.SourceNotFound, Detail: "no file"}, {Topic: "moss", Category: marchwarden.AccessDenied}, {Topic: "age", Category: marchwarden.AccessDenied, Detail: "403"}}
	b.Gaps = []marchwarden.Gap{{Topic: "moss", Category: marchwarden.SourceNotFound}, {Topic: "peat ", Category: marchwarden.SourceNotFound, Detail: "no file"}, {Topic: "age", Category: marchwarden.AccessDenied, Detail: "robots.txt"}}
	var got [][2]bool
	c := run.Compare(a, b)
	for _, p := range c.Gaps {
		got = append(got, [2]bool{p.A != nil, p.B != nil})
	}
	if want := [][2]bool{{true, true}, {true, false}, {true, true}, {false, true}}; !cmp.Equal(got, want) {
		t.Errorf("gaps: %v", got)
	}
	b.Gaps = a.Gaps
	b.Confidence, b.ConfidenceFactors.ContradictionDetected, b.ConfidenceFactors.NumCorroboratingSources = 0.25, true, 3
	b.CostMetadata = marchwarden.CostMetadata{TokensUsed: 7, WallTimeSec: 2, ModelID: "m"}
	c = run.Compare(a, b)
	var other []string
	for _, f := range c.Factors {
		if !f.Same {
			other = append(other, f.Name+" "+f.A+" "+f.B)
		}
	}
	if want := []string{"confidence 0.00 0.25", "num_corroborating_sources 0 3", "contradiction_detected false true"}; !cmp.Equal(other, want) {
		t.Errorf("factors: %q", other)
	}
	if c.B.CostMetadata.TokensUsed != 7 || len(c.A.Claims) != 1 || len(c.B.Gaps) != 3 {
		t.Errorf("sides: %+v, %+v", c.A, c.B)
	}
}
