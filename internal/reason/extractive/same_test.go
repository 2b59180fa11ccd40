package extractive

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/question"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
)

// Pairs of sentences that look alike and do not say the same. Both are said, and
// neither is cited for the other.
func TestAlikeIsNotTheSame(t *testing.T) {
	for _, c := range []struct{ question, a, b string }{
		{"Which treatment increased survival of the patients?", "Treatment A increased survival of the patients in the trial.", "Treatment B increased survival of the patients in the trial."},
		{"Was the vaccine effective against the fever in the trial?", "The vaccine was effective against the river fever in the trial.", "The vaccine was ineffective against the river fever in the trial."},
		{"What did the council decide about the harbour plan?", "The council approved the harbour plan of the Lowick company.", "The council rejected the harbour plan of the Lowick company."},
		{"When was the bridge at Harn closed?", "The bridge at Harn was closed before the great flood.", "The bridge at Harn was closed after the great flood."},
		{"Who won the final between Harn and Lowick?", "Harn beat Lowick in the cup final.", "Lowick beat Harn in the cup final."},
		{"Who was defeated, Harn or Lowick?", "Harn has defeated Lowick in the cup final.", "Harn was defeated by Lowick in the cup final."},
		{"When does the ferry leave Harn?", "The ferry to Lowick leaves Harn on Monday morning.", "The ferry to Lowick leaves Harn on Friday morning."},
		{"What is the capital of Freedonia?", "The capital of Freedonia is Alba.", "The capital of Freedonia is Borva."},
		{"Who is the chairman of the harbour company?", "The chairman of the harbour company is Anna Bright.", "The chairman of the harbour company is Carl Dunn."},
		{"How cold is the cellar of the museum?", "The cellar of the Harn museum is kept at -5 degrees.", "The cellar of the Harn museum is kept at 5 degrees."},
		{"What does a ticket of the Harn museum cost?", "A ticket of the Harn museum costs $5 for adults.", "A ticket of the Harn museum costs €5 for adults."},
		{"What did the policy of Harn change?", "The policy of Harn changed the rules of the market.", "The police of Harn changed the rules of the market."},
		{"Does the tower of Harn stand?", "The old tower of Harn stands on the market square.", "The old tower of Harn no longer stands on the market square."},
		{"Which patients did the drug help?", "The drug helped all patients of the Harn clinic.", "The drug helped some patients of the Harn clinic."},
		{"Did the drug help the patients of the clinic?", "The drug helped the patients of the Harn clinic.", "The drug may have helped the patients of the Harn clinic."},
		{"Was the Harn tower destroyed by the great storm?", "The Harn tower was destroyed by the great storm.", "The Harn tower was nearly destroyed by the great storm."},
		{"Who presented the plan of the harbour at Harn?", "The plan of the university was presented at Harn harbour.", "The plan of the universe was presented at Harn harbour."},
		{"Which tumours did the Harn clinic find?", "The tumours that the Harn clinic found were benign.", "The tumours that the Harn clinic found were malignant."},
	} {
		docs := set(map[string]string{"a.md": c.a, "b.md": c.b})
		d := writeOf(t, stateOf(c.question, docs, balanced))
		ownWords(t, docs, d.Claims)
		for _, want := range []string{c.a, c.b} {
			if !slices.Contains(texts(d), want) {
				t.Errorf("%q is answered without %q: %q", c.question, want, texts(d))
			}
		}
	}
}

// ownWords fails unless each document that is cited for a claim holds its words.
func ownWords(t interface{ Errorf(string, ...any) }, docs *evidence.Set, claims []reason.Claim) {
	plain := func(s string) string {
		words := slices.DeleteFunc(strings.Fields(strings.ToLower(flat(s))), func(w string) bool { return strings.Trim(w, `"“”`) == "the" })
		return strings.Trim(strings.Join(words, " "), `"“”.!`)
	}
	for _, c := range claims {
		for i, id := range c.Passages {
			src, _, _ := docs.Passage(id)
			if cut := src.Text[c.Spans[i].Start:c.Spans[i].End]; !strings.Contains(plain(cut), plain(c.Text)) {
				t.Errorf("%q is cited for %q", cut, c.Text)
			}
		}
	}
}

// What only adds plain words is not said twice, and is not cited for what it does
// not say, nor for what it says with more around it.
func TestRepetitionIsNotCited(t *testing.T) {
	const a = "The harbour of Harn was built by Dutch engineers."
	for _, c := range []struct {
		b    string
		said int
	}{
		{"The large harbour of Harn was built by skilled Dutch engineers.", 1},
		{"Officials claim that the harbour of Harn was built by Dutch engineers.", 2},
		{"The harbour of Harn was built by Dutch engineers, it is wrongly believed.", 2},
	} {
		docs := set(map[string]string{"a.md": a, "b.md": c.b})
		d := writeOf(t, stateOf("Who built the harbour of Harn?", docs, balanced))
		for _, claim := range d.Claims {
			if len(claim.Passages) != 1 {
				t.Errorf("%q rests on %v", claim.Text, claim.Passages)
			}
		}
		if len(d.Claims) != c.said {
			t.Errorf("said %q, want %d", texts(d), c.said)
		}
	}
}

// "It" is another thing in another document.
func TestSameWordsOfAnotherThing(t *testing.T) {
	docs := map[string]string{
		"a.md": "The Harn dam stands in the upper valley. It was completed in 1937.",
		"b.md": "The Lowick dam stands in the lower valley. It was completed in 1937.",
	}
	d := writeOf(t, stateOf("When was the dam in the valley completed?", set(docs), balanced))
	n := 0
	for i, c := range d.Claims {
		if len(c.Passages) != 1 {
			t.Errorf("%q rests on %v", c.Text, c.Passages)
		}
		if strings.HasPrefix(c.Text, "It ") {
			n++
			if i == 0 || d.Claims[i-1].Passages[0] != c.Passages[0] {
				t.Errorf("%q does not follow its own dam: %q", c.Text, texts(d))
			}
		}
	}
	if n != 2 {
		t.Errorf("said of %d dams, want 2: %q", n, texts(d))
	}
	docs["b.md"] = docs["a.md"] + " It is high."
	d = writeOf(t, stateOf("When was the dam in the valley completed?", set(docs), balanced))
	if !slices.Contains(texts(d), "It was completed in 1937.") {
		t.Errorf("said %q", texts(d))
	}
	for _, c := range d.Claims {
		if c.Text == "It was completed in 1937." && len(c.Passages) != 2 {
			t.Errorf("a copy does not corroborate %q", c.Text)
		}
	}
}

// Whatever two documents say, a claim cites none that lacks its words.
func TestCitationsHoldTheirClaims(t *testing.T) {
	word := rapid.SampledFrom([]string{"Harn", "Lowick", "beat", "was beaten by", "approved", "rejected", "before", "after", "not", "the", "A", "a", "B", "5", "-5", "harbour", "plan", "It", "only"})
	rapid.Check(t, func(t *rapid.T) {
		docs := map[string]string{}
		for i := range 3 {
			var text strings.Builder
			for range rapid.IntRange(1, 3).Draw(t, "sentences") {
				text.WriteString("Council " + strings.Join(rapid.SliceOfN(word, 2, 6).Draw(t, "words"), " ") + " harbour plan. ")
			}
			docs[fmt.Sprintf("d%d.md", i)] = text.String()
		}
		s := set(docs)
		ownWords(t, s, func() []reason.Claim {
			d, err := New().Write(t.Context(), stateOf("Which harbour plan has the council of Harn approved?", s, balanced))
			if err != nil {
				t.Fatal(err)
			}
			return d.Claims
		}())
	})
}

// Who "it" is stands before all the sentences that begin with it; what "this" is stands
// in the sentence before.
func TestLeansOn(t *testing.T) {
	for _, c := range []struct {
		text string
		want []int
	}{
		{"The Harn mill stands at the river. It was built in stone. Its wheel turns slowly. They left the mill in spring.", []int{-1, 0, 0, 2}},
		{"The Harn mill stands at the river. This was a danger in floods. This ended with the dam.", []int{-1, 0, 1}},
		{"It was built in stone. The Harn mill stands at the river.", []int{-1, -1}},
	} {
		q := question.Read("What is the Harn mill?", "", 2026)
		docs := set(map[string]string{"a.md": c.text})
		r := read(&q, docs, rank(&q, docs, 10))
		var got []int
		for i := range r.sents {
			got = append(got, r.leansOn(i))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}
