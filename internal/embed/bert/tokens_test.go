package bert

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// checkTokens holds tokens to their text: in order, inside of it, where characters
// begin and end.
func checkTokens(t interface {
	Helper()
	Fatalf(string, ...any)
}, tk *Tokenizer, text string, limit int) {
	t.Helper()
	tokens := tk.Tokens(text, limit)
	for i, x := range tokens {
		if x.Start < 0 || x.Start >= x.End || x.End > len(text) {
			t.Fatalf("%q: token %d is at %d to %d of %d", text, i, x.Start, x.End, len(text))
		}
		first, _ := utf8.DecodeRuneInString(text[x.Start:])
		last, _ := utf8.DecodeLastRuneInString(text[:x.End])
		if first == utf8.RuneError || last == utf8.RuneError {
			t.Fatalf("%q: token %d cuts a character: %q", text, i, text[x.Start:x.End])
		}
		if i > 0 && (x.Start < tokens[i-1].Start || x.End < tokens[i-1].End) {
			t.Fatalf("%q: token %d at %d to %d is before the one before", text, i, x.Start, x.End)
		}
		if slices.Contains([]int32{tk.cls, tk.sep}, x.ID) {
			t.Fatalf("%q: token %d is a mark of beginning or end", text, i)
		}
	}
}

// TestTokensOfAnyText tries any bytes, and letters with many marks.
func TestTokensOfAnyText(t *testing.T) {
	tk := real(t)
	odd := rapid.SampledFrom([]rune("aBé İßñ中각ᄀ\u1161\u0301\u0323\u0345\u05B0\u0E31\u302E\u200B\u00AD\uFFFD\uE000\n\t .,[]'-\u1E9B\u0344\u2126𝅘𝅥𝅮😀"))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(odd).Draw(t, "odd") + string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		checkTokens(t, tk, text, rapid.SampledFrom([]int{0, 1, 7, 1000}).Draw(t, "limit"))
	})
}

// TestTokensOfReference tries the texts that the reference tokenizer was asked
// about, one by one and as one text that is folded in parts.
func TestTokensOfReference(t *testing.T) {
	b, err := os.ReadFile("testdata/odd.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct{ Text string }
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	tk := real(t)
	var all strings.Builder
	for _, c := range cases {
		checkTokens(t, tk, c.Text, 1<<20)
		all.WriteString(strings.ReplaceAll(c.Text, "]", "") + "\n")
	}
	checkTokens(t, tk, strings.Repeat(all.String(), 4), 1<<20)
}

func TestTokens(t *testing.T) {
	tk := real(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"Café, naïveté!", []string{"Café", ",", "naïve", "té", "!"}},
		{"Cafe\u0301 ole\u0301\u0323", []string{"Cafe\u0301", "ole\u0301\u0323"}},
		{"so\u00ADft\u200B ware", []string{"so\u00ADft", "ware"}},
		{"a \xff\xfeb\xc3 c", []string{"a", "b", "c"}},
		{"日本", []string{"日", "本"}},
		{"x [SEP] y", []string{"x", "[", "SEP", "]", "y"}},
		{"[unk]", []string{"[", "un", "k", "]"}},
		{strings.Repeat("q", 101) + " end", []string{strings.Repeat("q", 101), "end"}},
		{" \n", nil},
	} {
		var got []string
		for _, x := range tk.Tokens(c.text, 100) {
			got = append(got, c.text[x.Start:x.End])
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}

func BenchmarkTokens(b *testing.B) {
	tk := real(b)
	text := strings.Repeat("The price of lithium-ion cells fell to $139 per kilowatt hour in 2023. ", 12)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tk.Tokens(text, 256)
	}
}
