package watch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

func claims(texts ...string) (all []marchwarden.Claim) {
	for _, t := range texts {
		text, support, _ := strings.Cut(t, " (")
		c := marchwarden.Claim{Text: text, Support: marchwarden.Supported}
		if support != "" {
			c.Support = marchwarden.Support(strings.TrimSuffix(support, ")"))
		}
		all = append(all, c)
	}
	return all
}

func inWords(pairs []pair) []string {
	var out []string
	for _, p := range pairs {
		s := ""
		if p.changed {
			s = "changed: "
		}
		if p.a != nil {
			s += p.a.Text
		}
		if p.b != nil {
			s += " > " + p.b.Text
		}
		out = append(out, s)
	}
	return out
}

func TestPairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		a, b []marchwarden.Claim
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
		"hostile":                {claims("", "\xff\x00", "[1] [2]"), claims("\u202e", "", strings.Repeat("x ", 9000)), nil},
	} {
		got := inWords(pairsOf(c.a, c.b))
		if name != "hostile" && !cmp.Equal(got, c.want) {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
		// The other way round it is the same, the other way round.
		if back := pairsOf(c.b, c.a); len(back) != len(got) {
			t.Errorf("%s: %d pairs, and %d the other way round", name, len(got), len(back))
		}
	}
}

func TestPairsOfMany(t *testing.T) {
	t.Parallel()
	var a, b []string
	for i := range 3000 {
		a, b = append(a, fmt.Sprintf("The pump number %d of the well lifts water.", i)), append(b, fmt.Sprintf("The pump number %d of the well lifts water.", i+1))
	}
	same, other := 0, 0
	for _, p := range pairsOf(claims(a...), claims(b...)) {
		switch {
		case p.a == nil || p.b == nil:
			other++
		case p.changed:
			other += 2
		default:
			same++
		}
	}
	if same != 2999 || other != 2 {
		t.Errorf("%d are the same, %d are not", same, other)
	}
}
