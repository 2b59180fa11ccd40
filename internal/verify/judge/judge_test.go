package judge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

func TestShippedWeightsCanBeRead(t *testing.T) {
	w, err := Parse(weightsJSON)
	if err != nil {
		t.Fatal(err)
	}
	if w.Made == "" || w.Command == "" || w.Data == "" {
		t.Errorf("made %q by %q from %q", w.Made, w.Command, w.Data)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"nothing":  "{}",
		"no JSON":  "weights",
		"renamed":  strings.ReplaceAll(string(weightsJSON), `"words_all"`, `"words_any"`),
		"no order": strings.ReplaceAll(string(weightsJSON), `"cuts":{"supported":`, `"cuts":{"supported":-`),
		"loops":    strings.ReplaceAll(string(weightsJSON), `"l":1,`, `"l":0,`),
	} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

const dam = "The Pineview Dam in Ogden Canyon was completed in 1937. It is 137 feet high and holds about 110,000 acre-feet of water. The reservoir behind it is popular for boating."

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		claim    string
		excerpts []string
		want     []Verdict
	}{
		"as it is":          {"It is 137 feet high and holds about 110,000 acre-feet of water.", []string{dam}, []Verdict{Supported}},
		"two sentences":     {"The Pineview Dam in Ogden Canyon was completed in 1937. It is 137 feet high and holds about 110,000 acre-feet of water.", []string{dam}, []Verdict{Supported}},
		"other case":        {"THE RESERVOIR BEHIND IT IS POPULAR FOR BOATING", []string{dam}, []Verdict{Supported}},
		"another thing":     {"Bananas ripen quickly when they are kept beside apples in a closed paper bag.", []string{dam}, []Verdict{Unsupported}},
		"no excerpt":        {"The dam was completed in 1937.", nil, []Verdict{Unchecked}},
		"blank excerpt":     {"The dam was completed in 1937.", []string{" \n"}, []Verdict{Unchecked}},
		"no claim":          {"", []string{dam}, []Verdict{Unchecked}},
		"too few words":     {"It is the dam.", []string{dam}, []Verdict{Unchecked}},
		"German excerpt":    {"The dam was completed in 1937.", []string{"Die Talsperre Pineview im Ogden Canyon wurde im Jahre 1937 fertiggestellt und ist 42 Meter hoch."}, []Verdict{Unchecked}},
		"Japanese excerpt":  {"The dam was completed in 1937.", []string{"パインビューダムは1937年に完成した。"}, []Verdict{Unchecked}},
		"too long a claim":  {strings.Repeat("The dam was completed in 1937 and so on. ", 60), []string{dam}, []Verdict{Unchecked}},
		"too long excerpts": {"The dam was completed in 1937.", []string{strings.Repeat(dam, 8000)}, []Verdict{Unchecked}},
		"another year":      {"The Pineview Dam in Ogden Canyon was completed in 1957.", []string{dam}, []Verdict{Contradicted, Unchecked, Partial}},
		"denied":            {"The reservoir behind it is not popular for boating.", []string{dam}, []Verdict{Contradicted, Unchecked, Partial}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := New(nil).Judge(t.Context(), c.claim, c.excerpts)
			if err != nil || !slices.Contains(c.want, o.Verdict) || len(o.Reasons) == 0 {
				t.Errorf("%+v, %v; want one of %v", o, err, c.want)
			}
		})
	}
}

func TestWire(t *testing.T) {
	for v, want := range map[Verdict]marchwarden.Support{
		Supported: marchwarden.Supported, Partial: marchwarden.Partial, Unsupported: marchwarden.Unsupported, Contradicted: marchwarden.Unsupported, Unchecked: marchwarden.Unchecked,
	} {
		if v.Wire() != want {
			t.Errorf("%s is %s on the wire", v, v.Wire())
		}
	}
}

func TestReasonsNameTheConflict(t *testing.T) {
	for claim, want := range map[string]string{
		"The Pineview Dam in Ogden Canyon was completed in 1957.":     "another year",
		"It is 150 feet high and holds about 110,000 acre-feet.":      "another value",
		"The reservoir behind it is not popular for boating.":         "denies",
		"The zoo behind it is popular for skating.":                   "zoo, skating",
		"The dam in Ogden Canyon was completed in 1937 by 900 people": "a number of the claim",
	} {
		o, err := New(nil).Judge(t.Context(), claim, []string{dam})
		if err != nil || !strings.Contains(strings.Join(o.Reasons, "; "), want) {
			t.Errorf("%q: %q, %v; want %q", claim, o.Reasons, err, want)
		}
	}
}

// fake makes vectors of the letters of a text.
type fake struct{ err error }

func (fake) ID() string { return "letters" }

func (f fake) Embed(_ context.Context, texts []string) ([]embed.Vector, error) {
	var out []embed.Vector
	for _, t := range texts {
		v := make(embed.Vector, 26)
		for _, r := range strings.ToLower(t) {
			if r >= 'a' && r <= 'z' {
				v[r-'a']++
			}
		}
		out = append(out, v)
	}
	return out, f.err
}

func TestVectors(t *testing.T) {
	const claim = "The dam of Ogden was finished before the war."
	plain, err := Read(t.Context(), nil, claim, []string{dam})
	if err != nil || plain.Vectors || len(plain.Values) != len(Names(false)) {
		t.Fatalf("%d values for %d names, %v", len(plain.Values), len(Names(false)), err)
	}
	with, err := Read(t.Context(), fake{}, claim, []string{dam})
	if err != nil || !with.Vectors || len(with.Values) != len(Names(true)) {
		t.Fatalf("%d values for %d names, %v", len(with.Values), len(Names(true)), err)
	}
	if d := cmp.Diff(plain.Values, with.Values[:len(plain.Values)]); d != "" {
		t.Errorf("vectors change what words say (-without +with):\n%s", d)
	}
	// Without the vectors after all, words do; a judge who is told to stop stops.
	broken, err := Read(t.Context(), fake{errors.New("no service")}, claim, []string{dam})
	if err != nil || broken.Vectors {
		t.Errorf("%+v, %v", broken, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(fake{context.Canceled}).Judge(over, claim, []string{dam}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestClauses(t *testing.T) {
	for claim, want := range map[string][]string{
		"The dam was built in 1937 and the lake is popular, which draws many visitors.": {"The dam was built in 1937", "and the lake is popular", "which draws many visitors"},
		"A small town.": {"A small town"},
		"Paris, France": {"Paris, France"},
		"":              nil,
	} {
		if d := cmp.Diff(want, Clauses(claim)); d != "" {
			t.Errorf("%q (-want +got):\n%s", claim, d)
		}
	}
}

// TestAnyText: no text makes the judge fail or change its mind, and nothing is
// supported by nothing.
func TestAnyText(t *testing.T) {
	words := rapid.SampledFrom([]string{"the", "dam", "not", "1937", "Ogden", "rose", "fell", "5%", "und", "。", "[1]", "\xff", "—", "never", "and", ".", "It", "feet", "<b>"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 30).Draw(t, "words"), " ") })
	rapid.Check(t, func(t *rapid.T) {
		claim, excerpts := rapid.OneOf(text, rapid.String()).Draw(t, "claim"), rapid.SliceOfN(rapid.OneOf(text, rapid.String()), 0, 3).Draw(t, "excerpts")
		a, errA := New(fake{}).Judge(context.Background(), claim, excerpts)
		b, errB := New(fake{}).Judge(context.Background(), claim, excerpts)
		if errA != nil || errB != nil || !cmp.Equal(a, b) {
			t.Fatalf("%+v, %v and then %+v, %v", a, errA, b, errB)
		}
		if !(a.Support >= 0 && a.Support <= 1 && a.Conflict >= 0 && a.Conflict <= 1) {
			t.Fatalf("probabilities %v, %v", a.Support, a.Conflict)
		}
		if strings.TrimSpace(strings.Join(excerpts, "")) == "" && a.Verdict != Unchecked {
			t.Fatalf("%s without evidence", a.Verdict)
		}
	})
}

// apart gives the first text, the claim, a vector of its own.
type apart struct{}

func (apart) ID() string { return "apart" }

func (apart) Embed(_ context.Context, texts []string) ([]embed.Vector, error) {
	out := []embed.Vector{{1, 0}}
	for range texts[1:] {
		out = append(out, embed.Vector{0, 1})
	}
	return out, nil
}

// TestSure: only a contradiction, or a claim that is far off in meaning, too, outweighs
// another judge.
func TestSure(t *testing.T) {
	far := Opinion{Verdict: Unsupported, Sure: true}
	if (Opinion{Verdict: Unsupported}).Wire() != marchwarden.Unchecked || far.Wire() != marchwarden.Unsupported || (Opinion{Verdict: Supported}).Wire() != marchwarden.Supported {
		t.Error("what is unsupported by words alone is unchecked, and nothing else is")
	}
	for claim, want := range map[string]bool{
		"It is 150 feet high and holds about 110,000 acre-feet of water.":               true,
		"It is 137 feet high and holds about 110,000 acre-feet of water.":               false,
		"Bananas ripen quickly when they are kept beside apples in a closed paper bag.": false, // by words alone
	} {
		o := ByWords(claim, []string{dam})
		if o.Sure != want || (o.Against() != "") != want {
			t.Errorf("%q: %+v", claim, o)
		}
	}
	o, err := New(apart{}).Judge(t.Context(), "Bananas ripen quickly when they are kept beside apples in a closed paper bag.", []string{dam})
	if err != nil || !o.Sure || o.Against() != "" {
		t.Errorf("far off by vectors, too: %+v, %v", o, err)
	}
}
