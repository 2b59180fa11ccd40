package evidence

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// ids are the ids of passages, in order.
func ids(packed []Scored) []ID {
	var out []ID
	for _, p := range packed {
		out = append(out, p.ID)
	}
	return out
}

// setFrom makes a set of texts without titles.
func setFrom(texts ...string) *Set {
	s := &Set{}
	for i, text := range texts {
		s.Add(page(fmt.Sprint(i), "", text), text)
	}
	return s
}

func TestPackForProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(document(), 0, 4).Draw(t, "texts")
		var queries [][]string
		for _, q := range rapid.SliceOfN(document(), 0, 3).Draw(t, "queries") {
			queries = append(queries, lexicon.Terms(q))
		}
		allowance := rapid.IntRange(-10, 3000).Draw(t, "allowance")
		set := setFrom(texts...)
		packed := PackFor(set, queries, allowance, plainPrice)
		used := 0
		for i, p := range packed {
			used += plainPrice(p.Passage, false)
			if i > 0 && (p.Source < packed[i-1].Source || p.Source == packed[i-1].Source && p.Index <= packed[i-1].Index) {
				t.Fatalf("%s comes after %s", p.ID, packed[i-1].ID)
			}
			if _, stored, ok := set.Passage(p.ID); !ok || !cmp.Equal(stored, p.Passage) || p.Score <= 0 {
				t.Fatalf("%s is not the set's passage: %+v", p.ID, p)
			}
		}
		if used > max(allowance, 0) {
			t.Fatalf("%d tokens used of %d", used, allowance)
		}
		if again := PackFor(setFrom(texts...), queries, allowance, plainPrice); !cmp.Equal(packed, again) {
			t.Fatalf("a second time gives %v, not %v", ids(again), ids(packed))
		}
	})
}

func TestPackForTakesWhatGoesOn(t *testing.T) {
	long := func(s string) string { return s + strings.Repeat(" Nothing more is said about that here.", 11) }
	set := setFrom(long("Weather is fine.") + "\n\n" + long("The frost of May killed the apples.") + "\n\n" + long("It came at night.") + "\n\n" + "## Other matters\n\n" + long("Roads are bad."))
	got := ids(PackFor(set, [][]string{lexicon.Terms("What killed the apples?")}, 400, plainPrice))
	if d := cmp.Diff([]ID{"S1.1", "S1.2", "S1.3"}, got); d != "" {
		t.Errorf("passages (-want +got):\n%s", d)
	}
}

func TestPackForFollowsNames(t *testing.T) {
	set := setFrom(
		"The garden on the hill was planted by Erika Lindqvist.",
		"Erika Lindqvist was born in Uppsala.",
		"The harbour was dug by Otto Brandt.",
		"Otto Brandt was born in Kiel.",
	)
	got := ids(PackFor(set, [][]string{lexicon.Terms("Where was the planter of the garden on the hill born?")}, 45, plainPrice))
	if d := cmp.Diff([]ID{"S1.1", "S2.1"}, got); d != "" {
		t.Errorf("passages (-want +got):\n%s", d)
	}
}

func TestPackForHearsEverySource(t *testing.T) {
	var long strings.Builder
	for i := range 60 {
		fmt.Fprintf(&long, "Kale and more kale grows in kale field %d of the valley, and the kale is sold as kale at the kale market every single week.\n\n", i)
	}
	set := setFrom(long.String(), "Once there was kale on the island.", "Über das Wetter ist nichts bekannt.")
	heard := map[int]bool{}
	for _, p := range PackFor(set, [][]string{{"kale"}}, 400, plainPrice) {
		heard[p.Source] = true
	}
	if len(heard) != 3 {
		t.Errorf("heard are %v of 3 sources", heard)
	}
}

func TestPackForServesEveryQuery(t *testing.T) {
	set := setFrom("Kale likes cold. Kale is green. Kale is cheap.\n\nKale again, and kale, number kale.\n\n## Melons\n\nMelons like sand.")
	got := PackFor(set, [][]string{{"kale"}, {"melon"}}, 45, plainPrice)
	text := ""
	for _, p := range got {
		text += p.Text
	}
	if !strings.Contains(text, "Kale") || !strings.Contains(text, "Melons like sand.") {
		t.Errorf("packed %q", text)
	}
}

func TestPackForLeavesOut(t *testing.T) {
	story := "The dam broke in March. Nobody was hurt."
	for name, c := range map[string]struct {
		texts []string
		want  []ID
	}{
		"a copy":                       {[]string{story, story + " "}, []ID{"S1.1"}},
		"a copy in other marks":        {[]string{"“" + story + "”", "\"" + strings.ReplaceAll(story, " ", "\u00a0") + "\""}, []ID{"S1.1"}},
		"half of it, copied":           {[]string{story, "Nobody was hurt.\n\nThe dam was old."}, []ID{"S1.1", "S2.2"}},
		"not another number":           {[]string{"The dam broke in 1994.", "The dam broke in 1995."}, []ID{"S1.1", "S2.1"}},
		"not its denial":               {[]string{"The dam broke.", "The dam broke not."}, []ID{"S1.1", "S2.1"}},
		"a heading":                    {[]string{"# The dam\n\n" + story}, []ID{"S1.2"}},
		"not a heading all by itself":  {[]string{"# The dam broke"}, []ID{"S1.1"}},
		"nothing, but opens the other": {[]string{"Roads are bad.", story}, []ID{"S1.1", "S2.1"}},
	} {
		got := ids(PackFor(setFrom(c.texts...), [][]string{lexicon.Terms("When did the dam break?")}, 1000, plainPrice))
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if got := PackFor(&Set{}, [][]string{{"dam"}}, 1000, plainPrice); len(got) != 0 {
		t.Errorf("an empty set gives %v", ids(got))
	}
	if got := ids(PackFor(setFrom(garden, story), nil, 1000, plainPrice)); len(got) == 0 || got[0] != "S1.2" {
		t.Errorf("without a query the sources are not shown from their beginnings: %v", got)
	}
}

func BenchmarkPackFor(b *testing.B) {
	text := megabyte()
	s := &Set{}
	for i := 0; len(s.Passages()) < 2000; i++ {
		part := fmt.Sprintf("Part %d. %s", i, text[:100_000])
		s.Add(page(part[:10], "A garden", part), part)
	}
	query := lexicon.Terms("How many days did the tomatoes in the garden of Dr. Weber need to ripen, and who measured the soil?")
	for b.Loop() {
		PackFor(s, [][]string{query}, 20000, plainPrice)
	}
}

func TestSplitIsBounded(t *testing.T) {
	if n := len(Split(strings.Repeat("a\n\n", 2*maxPassages))); n != maxPassages {
		t.Errorf("%d passages", n)
	}
}

// labelTokens is what showing a passage costs on top of its text.
const labelTokens = 8

// plainPrice counts the text and a label.
func plainPrice(p Passage, _ bool) int { return lexicon.EstimateTokens(p.Text) + labelTokens }
