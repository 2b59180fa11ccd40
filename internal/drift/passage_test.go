package drift

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
)

func TestStands(t *testing.T) {
	for _, tc := range []struct {
		text, excerpt string
		want          bool
	}{
		{"The price is 10 in all.", "The price is 10", true},
		{"The price is 10, and falling.", "The price is 10", true},
		{"The price is 10.", "The price is 10", true},
		{"The price is 100 in all.", "The price is 10", false},
		{"The price is 10.5 in all.", "The price is 10", false},
		{"The price is 10,000 in all.", "The price is 10", false},
		{"It was 2.5 metres.", "5 metres.", false},
		{"It was 12.5 and then The price is 10.5. The price is 10.", "The price is 10", true},
		{"The cats sleep.", "The cat", false},
		{"1010 10", "10", true},
		{"10.5 105 10", "10", true},
		{"Undone is done.", "done.", true},
		{"“Done” – he said", `"Done" - he said`, true},
		{"Nothing of it.", "The price is 10", false},
		{"", "x", false},
	} {
		if got := stands(tc.text, tc.excerpt, false); got != tc.want {
			t.Errorf("%q stands in %q: %v", tc.excerpt, tc.text, got)
		}
	}
	if !stands("a verylongwordindeed", "a verylong", true) {
		t.Error("an excerpt that ended within a word before is not found again")
	}
	// Many places that will not do take bounded time.
	if stands(strings.Repeat("100 ", 1<<14), "10", false) || stands(strings.Repeat("10.5 ", 1<<14), "10", false) {
		t.Error("10 stands in 100 or 10.5")
	}
}

func TestNearest(t *testing.T) {
	const excerpt = "The harbour lamp of Port Ellery was first lit in 1887 by its keeper Quillon Varga."
	around := strings.Repeat("The town council hears whoever has something to say about the streets of the town. ", 40)
	for name, tc := range map[string]struct {
		passage string
		want    string // "" if it is too far away
	}{
		"a year":          {"The harbour lamp of Port Ellery was first lit in 1888 by its keeper Quillon Varga.", "The harbour lamp of Port Ellery was first lit in 1888 by its keeper Quillon Varga."},
		"not":             {"The harbour lamp of Port Ellery was not lit in 1887 by its keeper Quillon Varga.", "The harbour lamp of Port Ellery was not lit in 1887 by its keeper Quillon Varga."},
		"longer":          {"As the books have it, the harbour lamp of Port Ellery was first lit, to great applause, in 1887 by its keeper Quillon Varga.", "As the books have it, the harbour lamp of Port Ellery was first lit, to great applause, in 1887 by its keeper Quillon Varga."},
		"shorter":         {"The harbour lamp was first lit in 1887 by Quillon Varga.", "The harbour lamp was first lit in 1887 by Quillon Varga."},
		"another order":   {"It was its keeper Quillon Varga who first lit the harbour lamp of Port Ellery, in 1890.", "It was its keeper Quillon Varga who first lit the harbour lamp of Port Ellery, in 1890."},
		"another matter":  {"The harbour has a new crane.", ""},
		"words in common": {"The first of its kind was in the town by the sea.", ""},
		"nothing":         {"", ""},
	} {
		got, ok := nearest(around+"\n\n"+tc.passage+"\n\n"+around, excerpt)
		if ok != (tc.want != "") || got != tc.want {
			t.Errorf("%s: nearest is %q, %v; want %q", name, got, ok, tc.want)
		}
	}
	// Sentences that differ only in their numbers are told apart by them, and few words are enough where there are no more.
	for _, tc := range []struct{ text, excerpt, want string }{
		{"In 1990 the mill ground 40 tons of rye.\n\nIn 1991 the mill ground 42 tons of rye.\n\nIn 1992 the mill ground 44 tons of rye.", "In 1991 the mill ground 43 tons of rye.", "In 1991 the mill ground 42 tons of rye."},
		{"Closed: 1931\n\nFounded: 1888", "Founded: 1887", "Founded: 1888"},
		{"Nothing else.\n\n10 20 31", "10 20 30", "10 20 31"},
	} {
		if got, ok := nearest(tc.text, tc.excerpt); !ok || got != tc.want {
			t.Errorf("nearest to %q is %q, %v; want %q", tc.excerpt, got, ok, tc.want)
		}
	}
	if got, ok := nearest("Some text.", "… – …"); ok {
		t.Errorf("an excerpt without words is near to %q", got)
	}
}

// TestNearestIsOfTheText: whatever is found stands in the text byte for byte, and
// nothing panics.
func TestNearestIsOfTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SampledFrom([]string{"lamp", "harbour", "1887", "the", "of", "é\u0301", "lit.", "\xff", "—", "keeper", "\n\n", "灯", "“mole”"})
		text := strings.Join(rapid.SliceOfN(words, 0, 60).Draw(t, "text"), " ")
		excerpt := strings.Join(rapid.SliceOfN(words, 0, 12).Draw(t, "excerpt"), " ")
		if got, ok := nearest(text, excerpt); ok && (got == "" || !strings.Contains(text, got)) {
			t.Fatalf("%q is not in %q", got, text)
		}
		if stands(text, excerpt, false) {
			if _, ok := evidence.Locate(text, excerpt); !ok {
				t.Fatalf("%q stands in %q and is not found", excerpt, text)
			}
		}
	})
}

func BenchmarkNearest(b *testing.B) {
	text := strings.Repeat("The town council hears whoever has something to say about the streets of the town. ", 12_000) // 1 MB
	const excerpt = "The harbour lamp of Port Ellery was first lit in 1887 by its keeper Quillon Varga."
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		nearest(text, excerpt)
	}
}
