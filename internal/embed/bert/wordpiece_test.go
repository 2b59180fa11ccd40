package bert

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// real is the tokenizer of the model that comes with the program.
func real(testing.TB) *Tokenizer { return NewTokenizer(vocabulary) }

// TestReference compares token by token with what the reference tokenizer makes of
// odd texts. testdata/odd.json was written by tokenizers 0.23.3 with the
// tokenizer.json of all-MiniLM-L6-v2, truncation and padding off: texts chosen by
// hand, then characters drawn from twenty blocks of Unicode.
func TestReference(t *testing.T) {
	b, err := os.ReadFile("testdata/odd.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string  `json:"text"`
		IDs  []int32 `json:"ids"`
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 250 {
		t.Fatalf("only %d cases", len(cases))
	}
	tk := real(t)
	for _, c := range cases {
		if diff := cmp.Diff(c.IDs, tk.Encode(c.Text, 1<<20)); diff != "" {
			t.Errorf("%+q (-reference +ours):\n%s", c.Text, diff)
		}
	}
}

// TestLimit cuts after the same tokens wherever the text is taken apart.
func TestLimit(t *testing.T) {
	tk := real(t)
	text := strings.Repeat("antidisestablishmentarianism, [SEP] and other words\n", 400)
	all := tk.Encode(text, 1<<20)
	for _, limit := range []int{-1, 0, 2, 3, 7, 256, 5000, len(all)} {
		got := tk.Encode(text, limit)
		n := max(limit, 2)
		if len(got) != n {
			t.Fatalf("limit %d: %d tokens", limit, len(got))
		}
		if diff := cmp.Diff(all[:n-1], got[:n-1]); diff != "" || got[n-1] != tk.sep {
			t.Fatalf("limit %d: ends with %d (-want +got):\n%s", limit, got[n-1], diff)
		}
	}
}

// TestAnyText holds for any bytes: numbers are in the vocabulary, the ends are
// there, and bytes that are not UTF-8 count for nothing.
func TestAnyText(t *testing.T) {
	tk := real(t)
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		ids := tk.Encode(text, 64)
		if len(ids) < 2 || len(ids) > 64 || ids[0] != tk.cls || ids[len(ids)-1] != tk.sep {
			t.Fatalf("%q: %v", text, ids)
		}
		for _, id := range ids {
			if id < 0 || id >= 30522 {
				t.Fatalf("%q: %d is not in the vocabulary", text, id)
			}
		}
		if diff := cmp.Diff(ids, tk.Encode(strings.ToValidUTF8(text, ""), 64)); diff != "" {
			t.Fatalf("%q differs from itself without what is not UTF-8:\n%s", text, diff)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	tk := real(b)
	text := strings.Repeat("The price of lithium-ion cells fell to $139 per kilowatt hour in 2023. ", 12)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tk.Encode(text, 256)
	}
}
