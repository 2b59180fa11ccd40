package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

func TestSentences(t *testing.T) {
	cited := make([]marchwarden.Citation, 3)
	for _, c := range []struct {
		name   string
		answer string
		claims []string
		want   [][]Sentence
	}{
		{"markers", "One. [1][2] Two. [3]\n\nThree. [1]", []string{"One.", "Two.", "Three."},
			[][]Sentence{{{"One.", []int{1, 2}, 1}, {"Two.", []int{3}, 2}}, {{"Three.", []int{1}, 3}}}},
		{"escapes", `It costs \*5\* \[1\] in \<b\>. [1]`, []string{"It costs *5* [1] in <b>."}, [][]Sentence{{{"It costs *5* [1] in <b>.", []int{1}, 1}}}},
		{"markers of nothing", "See [0] and [4] and [99999999999]. [2]", nil, [][]Sentence{{{"See [0] and [4] and [99999999999].", []int{2}, 0}}}},
		{"no markers", "No stored document answers this.", nil, [][]Sentence{{{"No stored document answers this.", nil, 0}}}},
		{"text behind", "One. [1] And so on", []string{"One."}, [][]Sentence{{{"One.", []int{1}, 1}, {"And so on", nil, 0}}}},
		{"said twice", "One. [1]\n \nOne. [1]", []string{"One.", "One."}, [][]Sentence{{{"One.", []int{1}, 1}}, {{"One.", []int{1}, 2}}}},
		{"nothing", " \n\n ", nil, nil},
	} {
		res := &marchwarden.Result{Answer: c.answer, Citations: cited}
		for _, text := range c.claims {
			res.Claims = append(res.Claims, marchwarden.Claim{Text: text})
		}
		if diff := cmp.Diff(c.want, Sentences(res)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestMarker(t *testing.T) {
	for text, want := range map[string][2]int{
		"[1]": {1, 3}, "[12] and": {12, 4}, "[012]": {12, 5}, "[0]": {}, "[13]": {}, "[1": {}, "1]": {}, " [1]": {}, "[-1]": {}, "[ 1]": {}, "[1234567890]": {}, "[١]": {}, "": {},
	} {
		if n, size := Marker(text, 12); [2]int{n, size} != want {
			t.Errorf("Marker(%q) = %d, %d; want %v", text, n, size, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "One. [1]": "One.", `\[1\] \*a\* \b`: `[1] *a* \b`, "a\n b\u202e [9]": "a b [9]",
	} {
		if got := Plain(text, 3); got != want {
			t.Errorf("Plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestEnds(t *testing.T) {
	text, space, mark := Piece{Text: "a"}, Piece{Text: " "}, Piece{Marker: 1}
	for _, c := range []struct {
		pieces []Piece
		want   []int
	}{
		{nil, nil}, {[]Piece{text}, []int{1}}, {[]Piece{text, mark, space, mark, space, text, mark}, []int{5, 7}}, {[]Piece{mark, text}, []int{1, 2}}, {[]Piece{text, text, space}, []int{3}},
	} {
		if diff := cmp.Diff(c.want, Ends(c.pieces)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.pieces, diff)
		}
	}
}

func TestVerdict(t *testing.T) {
	for s, want := range map[marchwarden.Support]string{"supported": "supported", "partial": "partial", "unsupported": "unsupported", "unchecked": "unchecked", "": "unchecked", "<b>": "unchecked"} {
		if got := Verdict(s); got != want {
			t.Errorf("Verdict(%q) = %q, want %q", s, got, want)
		}
	}
}

// TestFind holds the finder against a search through all claims.
func TestFind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "b", " b\n", "c", "d e", "d  e", ""})
		var claims []marchwarden.Claim
		for _, w := range rapid.SliceOf(word).Draw(t, "claims") {
			claims = append(claims, marchwarden.Claim{Text: w})
		}
		f, next := Claims(claims), 0
		for _, w := range rapid.SliceOf(word).Draw(t, "sentences") {
			text, want := plaintext.Fold(w), 0
			for k := range claims {
				if i := (next + k) % len(claims); plaintext.Fold(claims[i].Text) == text {
					next, want = i+1, i+1
					break
				}
			}
			if got := f.Find(text); got != want {
				t.Fatalf("found claim %d for %q, want %d", got, text, want)
			}
		}
	})
}

// TestLongAnswer reads a long answer with as many claims as sentences.
func TestLongAnswer(t *testing.T) {
	var b strings.Builder
	res := &marchwarden.Result{Citations: make([]marchwarden.Citation, 9)}
	for i := range 50_000 {
		text := fmt.Sprintf("Sentence %d.", i)
		res.Claims = append(res.Claims, marchwarden.Claim{Text: text})
		fmt.Fprintf(&b, "%s [%d] ", text, i%9+1)
	}
	res.Answer = b.String()
	ss := Sentences(res)
	if len(ss) != 1 || len(ss[0]) != len(res.Claims) {
		t.Fatalf("%d paragraphs", len(ss))
	}
	for i, s := range ss[0] {
		if s.Claim != i+1 {
			t.Fatalf("sentence %d is claim %d", i+1, s.Claim)
		}
	}
}
