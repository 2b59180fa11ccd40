package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/history"
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

// told is a comparison of claims in words.
func told(c history.Comparison) []string {
	var out []string
	for _, p := range c.Claims {
		s := string(p.Kind)
		for name, on := range map[string]bool{" support": p.Support, " numbers": p.Numbers, " denied": p.Denied} {
			if on {
				s += name
			}
		}
		if p.A != nil {
			s += ": " + p.A.Text
		}
		if p.B != nil {
			s += " > " + p.B.Text
		}
		if (p.Kind == history.Changed) != (len(p.Edits) > 0) {
			s += " EDITS?"
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
		"quoted now":     {claims("Peat is soil."), claims("Peat is soil. (quoted)"), []string{"both: Peat is soil. > Peat is soil."}},
		"quoted no more": {claims("Peat is soil. (quoted)"), claims("Peat is soil. (partial)"), []string{"both support: Peat is soil. > Peat is soil."}},
		"none at all":    {nil, nil, nil},
		"the same":       {claims("Peat is soil.", "Moss is green."), claims("Peat is soil.", "Moss is green."), []string{"both: Peat is soil. > Peat is soil.", "both: Moss is green. > Moss is green."}},
		"another order":  {claims("Peat is soil.", "Moss is green."), claims("Moss is green.", "Peat is soil."), []string{"both: Peat is soil. > Peat is soil.", "both: Moss is green. > Moss is green."}},
		"small marks":    {claims("It’s “peat” – soil."), claims("it's \"peat\" - soil"), []string{`both: It’s “peat” – soil. > it's "peat" - soil`}},
		"verdict":        {claims("Peat is soil."), claims("Peat is soil. (unsupported)"), []string{"both support: Peat is soil. > Peat is soil."}},
		"numbers": {claims("The roof was tiled with 412 shingles.", "Olof charged 3,200 crowns for the roof."), claims("The roof was tiled with 398 shingles.", "Olof charged 3200 crowns for that roof."),
			[]string{"changed numbers: The roof was tiled with 412 shingles. > The roof was tiled with 398 shingles.", "changed: Olof charged 3,200 crowns for the roof. > Olof charged 3200 crowns for that roof."}},
		"many numbers": {claims("Sales rose by 5 % in 2019, 7 % in 2020 and 9 % in 2021."), claims("Sales rose by 4 % in 2022, 6 % in 2023 and 8 % in 2024."),
			[]string{"changed numbers: Sales rose by 5 % in 2019, 7 % in 2020 and 9 % in 2021. > Sales rose by 4 % in 2022, 6 % in 2023 and 8 % in 2024."}},
		"denied":       {claims("The pump lifts water from the well."), claims("The pump does not lift water from the well."), []string{"changed denied: The pump lifts water from the well. > The pump does not lift water from the well."}},
		"only one":     {claims("Peat is soil."), claims("The pump was made in Gothenburg."), []string{"only_a: Peat is soil.", "only_b > The pump was made in Gothenburg."}},
		"one is empty": {claims("Peat is soil."), claims(), []string{"only_a: Peat is soil."}},
		"said twice":   {claims("Peat is soil.", "Peat is soil."), claims("Peat is soil."), []string{"both: Peat is soil. > Peat is soil.", "only_a: Peat is soil."}},
		"the most alike": {claims("The old pump of the well lifts 40 litres."), claims("The pump of the mill lifts 40 litres.", "The old pump of the well lifts 50 litres."),
			[]string{"changed numbers: The old pump of the well lifts 40 litres. > The old pump of the well lifts 50 litres.", "only_b > The pump of the mill lifts 40 litres."}},
		"one word is not enough": {claims("Peat burns."), claims("Peat floats."), []string{"only_a: Peat burns.", "only_b > Peat floats."}},
		"without lists": {&marchwarden.Result{Answer: "Peat is soil [1]. Moss is green [1].", Citations: make([]marchwarden.Citation, 1)}, &marchwarden.Result{Answer: "Moss is green [1].", Citations: make([]marchwarden.Citation, 1)},
			[]string{"only_a: Peat is soil.", "both: Moss is green. > Moss is green."}},
		"hostile": {claims("", "\xff\x00", "[1] [2]"), claims("\u202e", "", strings.Repeat("x ", 9000)), nil},
	} {
		got := told(history.Compare(c.a, c.b))
		if name != "hostile" && !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
		// The other way round it is the same, the other way round.
		if back := history.Compare(c.b, c.a); len(back.Claims) != len(got) {
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
	kinds := map[history.Kind]int{}
	for _, p := range history.Compare(claims(a...), claims(b...)).Claims {
		kinds[p.Kind]++
	}
	if kinds[history.Both] != 2999 || kinds[history.OnlyA]+kinds[history.OnlyB]+2*kinds[history.Changed] != 2 {
		t.Errorf("%v", kinds)
	}
}

func TestCompareSources(t *testing.T) {
	t.Parallel()
	cite := func(cs ...string) *marchwarden.Result { // locator hash excerpt
		res := &marchwarden.Result{}
		for _, c := range cs {
			f := strings.Fields(c)
			res.Citations = append(res.Citations, marchwarden.Citation{Locator: f[0], ContentHash: strings.Trim(f[1], "-"), RawExcerpt: f[2]})
		}
		return res
	}
	for name, c := range map[string]struct {
		a, b *marchwarden.Result
		want []string
	}{
		"nothing":           {cite(), cite(), nil},
		"the same":          {cite("https://a.example/x h1 e1"), cite("https://a.example/x h1 e1"), []string{"both 1 [1] [1]"}},
		"another excerpt":   {cite("https://a.example/x h1 e1"), cite("https://a.example/x h1 e2"), []string{"both 0 [1] [1]"}},
		"another spelling":  {cite("https://A.example:443/x?utm_source=1#top h1 e1"), cite("https://a.example/x h1 e1"), []string{"both 1 [1] [1]"}},
		"places in a file":  {cite("lib://a.md#L3 h1 e1", "lib://a.md#L9 h1 e2"), cite("lib://a.md#L9 h1 e2"), []string{"both 1 [1 2] [1]"}},
		"another text":      {cite("https://a.example/x h1 e1"), cite("https://a.example/x h2 e1"), []string{"changed 1 [1] [1]"}},
		"no text":           {cite("https://a.example/x -- e1"), cite("https://a.example/x h2 e1"), []string{"both 1 [1] [1]"}},
		"moved":             {cite("https://a.example/x h1 e1"), cite("https://b.example/y h1 e1"), []string{"moved 1 [1] [1]"}},
		"moved, not stayed": {cite("lib://a.md h1 e1", "lib://b.md h2 e2"), cite("lib://b.md h1 e1"), []string{"only_a 0 [1] []", "changed 0 [2] [1]"}},
		"copied":            {cite("lib://a.md h1 e1"), cite("lib://b.md h1 e1", "lib://c.md h1 e1"), []string{"moved 1 [1] [1]", "only_b 0 [] [2]"}},
		"two without text":  {cite("lib://a.md -- e1"), cite("lib://b.md -- e1"), []string{"only_a 0 [1] []", "only_b 0 [] [1]"}},
		"only in one":       {cite("lib://a.md h1 e1"), cite("lib://b.md h2 e1"), []string{"only_a 0 [1] []", "only_b 0 [] [1]"}},
	} {
		var got []string
		for _, p := range history.Compare(c.a, c.b).Sources {
			var inA, inB []int
			if p.A != nil {
				inA = p.A.Citations
			}
			if p.B != nil {
				inB = p.B.Citations
			}
			got = append(got, fmt.Sprintf("%s %d %v %v", p.Kind, p.Shared, inA, inB))
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
	var got []history.Kind
	c := history.Compare(a, b)
	for _, p := range c.Gaps {
		got = append(got, p.Kind)
	}
	if want := []history.Kind{history.Both, history.OnlyA, history.Changed, history.OnlyB}; !cmp.Equal(got, want) {
		t.Errorf("gaps: %v", got)
	}
	if c.Same() {
		t.Error("they are the same")
	}
	b.Gaps = a.Gaps
	b.Confidence, b.ConfidenceFactors.ContradictionDetected, b.ConfidenceFactors.NumCorroboratingSources = 0.25, true, 3
	b.CostMetadata = marchwarden.CostMetadata{TokensUsed: 7, WallTimeSec: 2, ModelID: "m"}
	c = history.Compare(a, b)
	var other []string
	for _, f := range c.Factors {
		if !f.Same {
			other = append(other, f.Name+" "+f.A+" "+f.B)
		}
	}
	if want := []string{"confidence 0.00 0.25", "num_corroborating_sources 0 3", "contradiction_detected false true"}; !cmp.Equal(other, want) || c.Same() {
		t.Errorf("factors: %q", other)
	}
	if c.B.Cost.TokensUsed != 7 || c.A.Cost.TokensUsed != 0 || c.A.Claims != 1 || c.B.Gaps != 3 {
		t.Errorf("sides: %+v, %+v", c.A, c.B)
	}
	if !history.Compare(a, a).Same() || !history.Compare(nil, &marchwarden.Result{}).Same() {
		t.Error("a result is not the same as itself")
	}
}
