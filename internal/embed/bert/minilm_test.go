package bert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

// TestReference compares vectors with those of the model at full precision.
// NOTICE says where they come from.
func TestMiniLMReference(t *testing.T) {
	b, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text   string       `json:"text"`
		Vector embed.Vector `json:"vector"`
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, c := range cases {
		texts = append(texts, c.Text)
	}
	vs, err := MiniLM().Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		want := 0.999
		if len(strings.TrimSpace(c.Text)) < 2 {
			want = 0.996 // nothing but the marks of beginning and end
		}
		if got := vs[i].Dot(c.Vector); got < want {
			t.Errorf("%.50q: cosine with the reference is %.5f, below %g", c.Text, got, want)
		}
		if n := vs[i].Dot(vs[i]); n < 0.999999 || n > 1.000001 {
			t.Errorf("%.50q: length² %.7f", c.Text, n)
		}
	}
}

// TestMeaning asks for what the vectors are used for.
func TestMeaning(t *testing.T) {
	vs, err := MiniLM().Embed(t.Context(), []string{
		"How much does a lithium battery cost per kilowatt hour?",
		"The price of Li-ion cells fell to $139/kWh in 2023.",
		"Cats sleep sixteen hours a day.",
	})
	if err != nil {
		t.Fatal(err)
	}
	if near, far := vs[0].Dot(vs[1]), vs[0].Dot(vs[2]); near < 0.5 || far > 0.25 {
		t.Errorf("cosine %.3f with the answer, %.3f with something else", near, far)
	}
}

func TestEmbedder(t *testing.T) {
	e := MiniLM()
	if e.ID() != MiniLMID {
		t.Errorf("ID is %q", e.ID())
	}
	if again := MiniLM(); again != e {
		t.Error("loaded twice")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if vs, err := e.Embed(ctx, []string{"a", "b"}); !errors.Is(err, context.Canceled) || vs != nil {
		t.Errorf("after the end: %v, %v", vs, err)
	}
	if vs, err := e.Embed(t.Context(), nil); err != nil || len(vs) != 0 {
		t.Errorf("no texts: %v, %v", vs, err)
	}
}

// TestNotice holds NOTICE to the files beside it.
func TestNotice(t *testing.T) {
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"minilm.q8": packed, "vocab.txt": []byte(vocabulary)} {
		sum := sha256.Sum256(b)
		if line := hex.EncodeToString(sum[:]) + "  " + name + "\n"; !strings.Contains(string(notice), line) {
			t.Errorf("NOTICE does not say: %s", line)
		}
	}
}
