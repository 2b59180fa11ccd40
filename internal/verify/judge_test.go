package verify

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reader"
)

func TestShippedWeightsCanBeRead(t *testing.T) {
	w, err := ParseWeights(weightsJSON)
	if err != nil {
		t.Fatal(err)
	}
	if w.Made == "" || w.Command == "" || w.Data == "" {
		t.Errorf("made %q by %q from %q", w.Made, w.Command, w.Data)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, s := range map[string]string{
		"nothing": "{}",
		"no JSON": "weights",
		"renamed": strings.ReplaceAll(string(weightsJSON), `"window"`, `"windows"`),
	} {
		if _, err := ParseWeights([]byte(s)); err == nil {
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
		"as it is":          {"It is 137 feet high and holds about 110,000 acre-feet of water.", []string{dam}, []Verdict{VerdictSupported}},
		"two sentences":     {"The Pineview Dam in Ogden Canyon was completed in 1937. It is 137 feet high and holds about 110,000 acre-feet of water.", []string{dam}, []Verdict{VerdictSupported}},
		"other case":        {"THE RESERVOIR BEHIND IT IS POPULAR FOR BOATING", []string{dam}, []Verdict{VerdictSupported}},
		"another thing":     {"Bananas ripen quickly when they are kept beside apples in a closed paper bag.", []string{dam}, []Verdict{VerdictUnsupported}},
		"no excerpt":        {"The dam was completed in 1937.", nil, []Verdict{VerdictUnchecked}},
		"blank excerpt":     {"The dam was completed in 1937.", []string{" \n"}, []Verdict{VerdictUnchecked}},
		"no claim":          {"", []string{dam}, []Verdict{VerdictUnchecked}},
		"too few words":     {"It is the dam.", []string{dam}, []Verdict{VerdictUnchecked}},
		"German excerpt":    {"The dam was completed in 1937.", []string{"Die Talsperre Pineview im Ogden Canyon wurde im Jahre 1937 fertiggestellt und ist 42 Meter hoch."}, []Verdict{VerdictUnchecked}},
		"Japanese excerpt":  {"The dam was completed in 1937.", []string{"パインビューダムは1937年に完成した。"}, []Verdict{VerdictUnchecked}},
		"too long a claim":  {strings.Repeat("The dam was completed in 1937 and so on. ", 60), []string{dam}, []Verdict{VerdictUnchecked}},
		"too long excerpts": {"The dam was completed in 1937.", []string{strings.Repeat(dam, 8000)}, []Verdict{VerdictUnchecked}},
		"another year":      {"The Pineview Dam in Ogden Canyon was completed in 1957.", []string{dam}, []Verdict{VerdictContradicted}},
		"denied":            {"The reservoir behind it is not popular for boating.", []string{dam}, []Verdict{VerdictContradicted}},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := NewJudge(nil).Judge(t.Context(), c.claim, plain(c.excerpts...))
			if err != nil || !slices.Contains(c.want, o.Verdict) || len(o.Reasons) == 0 {
				t.Errorf("%+v, %v; want one of %v", o, err, c.want)
			}
		})
	}
}

func TestWire(t *testing.T) {
	for v, want := range map[Verdict]marchwarden.Support{
		VerdictSupported: marchwarden.Supported, VerdictPartial: marchwarden.Partial, VerdictUnsupported: marchwarden.Unsupported, VerdictContradicted: marchwarden.Unsupported, VerdictUnchecked: marchwarden.Unchecked,
	} {
		if v.Wire() != want {
			t.Errorf("%s is %s on the wire", v, v.Wire())
		}
	}
}

func TestReasonsNameTheConflict(t *testing.T) {
	for claim, want := range map[string]string{
		"The Pineview Dam in Ogden Canyon was completed in 1957.":     "numbers that are not in the excerpts: 1957",
		"It is 150 feet high and holds about 110,000 acre-feet.":      "numbers that are not in the excerpts: 150 feet",
		"The reservoir behind it is not popular for boating.":         "the claim denies",
		"The zoo behind it is popular for skating.":                   "zoo, skating",
		"The dam in Ogden Canyon was completed in 1937 by 900 people": "900",
		"The dam in Ogden Canyon was completed in 1937 by Mary Hale.": "names that are not in the excerpts: Mary, Hale",
	} {
		o, err := NewJudge(nil).Judge(t.Context(), claim, plain(dam))
		if err != nil || !strings.Contains(strings.Join(o.Reasons, "; "), want) {
			t.Errorf("%q: %q, %v; want %q", claim, o.Reasons, err, want)
		}
	}
}

func plain(texts ...string) []Excerpt {
	var out []Excerpt
	for _, s := range texts {
		out = append(out, Excerpt{Text: s})
	}
	return out
}

// fake says the same of everything.
type fake struct {
	reader.Relation
	err error
}

func (fake) ID() string { return "fake" }

func (fake) Read(context.Context, string, []reader.Passage) ([]reader.Reading, error) {
	return nil, errors.New("not asked for")
}

func (f fake) Relate(_ context.Context, pairs []reader.Pair) ([]reader.Relation, error) {
	out := make([]reader.Relation, len(pairs))
	for i := range out {
		out[i] = f.Relation
	}
	return out, f.err
}

var (
	sure    = fake{Relation: reader.Relation{Entailed: 0.98, Contradicted: 0.01}}
	unsure  = fake{Relation: reader.Relation{Entailed: 0.3, Contradicted: 0.3}}
	against = fake{Relation: reader.Relation{Entailed: 0.01, Contradicted: 0.98}}
)

// TestRules: what words rule out no reader makes supported, and what the reader denies is
// contradicted only where words are against it, too.
func TestRules(t *testing.T) {
	for _, c := range []struct {
		name, claim string
		read        reader.Reader
		want        []Verdict
	}{
		{"other words", "The Pineview Dam in Ogden Canyon was finished in 1937.", sure, []Verdict{VerdictSupported}},
		{"other words, unsure", "The Pineview Dam in Ogden Canyon was finished in 1937.", unsure, []Verdict{VerdictPartial}},
		{"other words, no reader", "The Pineview Dam in Ogden Canyon was finished in 1937.", nil, []Verdict{VerdictPartial}},
		{"number as a word", "It is one hundred and thirty-seven feet high.", sure, []Verdict{VerdictPartial, VerdictUnchecked, VerdictSupported}},
		{"another number", "It is 150 feet high and holds about 110,000 acre-feet of water.", sure, []Verdict{VerdictPartial}},
		{"another number, denied", "It is 150 feet high and holds about 110,000 acre-feet of water.", against, []Verdict{VerdictContradicted}},
		{"another unit", "It is 137 metres high and holds about 110,000 acre-feet of water.", sure, []Verdict{VerdictPartial}},
		{"another name", "The Pineview Dam in Provo Canyon was completed in 1937.", sure, []Verdict{VerdictPartial}},
		{"denied, by the reader alone", "The lake behind it is liked for boating.", against, []Verdict{VerdictPartial, VerdictUnsupported}},
		{"a sweeping word", "Every reservoir behind it is popular for boating.", sure, []Verdict{VerdictPartial}},
		{"a cause", "The reservoir behind it is popular because it is 137 feet high.", sure, []Verdict{VerdictPartial}},
		{"about something else", "Bananas ripen quickly when they are kept beside apples in a closed paper bag.", against, []Verdict{VerdictUnsupported}},
	} {
		o, err := NewJudge(c.read).Judge(t.Context(), c.claim, plain(dam))
		if err != nil || !slices.Contains(c.want, o.Verdict) {
			t.Errorf("%s: %+v, %v; want one of %v", c.name, o, err, c.want)
		}
	}
}

// TestHeading: what stands above an excerpt belongs to it.
func TestHeading(t *testing.T) {
	const text, claim = "It is 137 feet high and holds water.", "The Pineview Dam is 137 feet high."
	for heading, want := range map[string]Verdict{"": VerdictPartial, "Dams › The Pineview Dam": VerdictSupported} {
		if o, err := NewJudge(sure).Judge(t.Context(), claim, []Excerpt{{heading, text}}); err != nil || o.Verdict != want {
			t.Errorf("under %q: %+v, %v", heading, o, err)
		}
	}
}

// TestReaderFails: without the reader after all, words do; a judge who is told to stop
// stops.
func TestReaderFails(t *testing.T) {
	const claim = "The dam of Ogden was finished before the war."
	broken, err := ReadClaim(t.Context(), fake{err: errors.New("broken")}, claim, plain(dam))
	if err != nil || broken.Read || len(broken.Values) != len(FeatureNames(false)) {
		t.Errorf("%+v, %v", broken, err)
	}
	whole, err := ReadClaim(t.Context(), sure, claim, plain(dam))
	if err != nil || len(whole.Values) != len(FeatureNames(true)) {
		t.Errorf("%+v, %v", whole, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewJudge(fake{err: context.Canceled}).Judge(over, claim, plain(dam)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestAnyText: no text makes the judge fail or change its mind, and nothing is
// supported by nothing.
func TestAnyText(t *testing.T) {
	words := rapid.SampledFrom([]string{"the", "dam", "not", "1937", "Ogden", "rose", "fell", "5%", "und", "。", "[1]", "\xff", "—", "never", "and", ".", "It", "feet", "<b>"})
	text := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(words, 0, 30).Draw(t, "words"), " ") })
	rapid.Check(t, func(t *rapid.T) {
		claim, excerpts := rapid.OneOf(text, rapid.String()).Draw(t, "claim"), rapid.SliceOfN(rapid.OneOf(text, rapid.String()), 0, 3).Draw(t, "excerpts")
		a, errA := NewJudge(unsure).Judge(context.Background(), claim, plain(excerpts...))
		b, errB := NewJudge(unsure).Judge(context.Background(), claim, plain(excerpts...))
		if errA != nil || errB != nil || !cmp.Equal(a, b) {
			t.Fatalf("%+v, %v and then %+v, %v", a, errA, b, errB)
		}
		if !(a.Support >= 0 && a.Support <= 1 && a.Conflict >= 0 && a.Conflict <= 1) {
			t.Fatalf("probabilities %v, %v", a.Support, a.Conflict)
		}
		if strings.TrimSpace(strings.Join(excerpts, "")) == "" && a.Verdict != VerdictUnchecked {
			t.Fatalf("%s without evidence", a.Verdict)
		}
	})
}
