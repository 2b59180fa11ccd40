package texts

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval/evaltest"
)

func TestCountCited(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Citing
	}{
		{"nothing", "", Citing{}},
		{"a mark before the stop", "The valley lies high above the old sea [3].", Citing{1, 1, 0, 0}},
		{"a mark after the stop", "The valley lies high above the old sea.[1][2] Nobody knows when the people first came here.", Citing{2, 1, 0, 0}},
		{"several in one", "The valley lies high above the old sea [1, 4-6].", Citing{1, 1, 0, 0}},
		{"a link", "The valley [lies high](https://example.org/a) above the old dry sea.", Citing{1, 1, 0, 0}},
		{"a footnote", "The valley lies high above the old sea.[^geo]", Citing{1, 1, 0, 0}},
		{"a number", "The valley lies 1,280 metres above the old sea. The valley lies 90 miles from the old sea [2].", Citing{2, 1, 2, 1}},
		{"a mark is no number", "The valley lies high above the old sea [12].", Citing{1, 1, 0, 0}},
		{"too short", "It is so [1]. Key points:", Citing{}},
		{"headings", "# The valley lies high above the old sea\n\nThe valley lies high above the sea\n===\n\nWhat is under it is counted as one [1].", Citing{1, 1, 0, 0}},
		{"a table", "| a | b |\n|---|---|\n| The valley lies high above the old sea | 2 |\n", Citing{}},
		{"code", "```\nThe valley lies high above the old sea.\n```\n", Citing{}},
		{"lists", "- The valley lies high above the old sea [1].\n- The river was dammed by the early settlers\n  1. The third one is below the second [2]\n", Citing{3, 2, 0, 0}},
		{"sources", "The valley lies high above the old sea [1].\n\n## Sources\n\n[1] A long history of the valley and its sea: https://example.org/a\n- The valley and its people through the ages\n\n## After them\n\nThis is counted again since it is text.", Citing{2, 1, 0, 0}},
		{"sources in bold", "**References:**\n\n1. The valley and its people through the ages, 2nd edition\n", Citing{}},
		{"an entry without a heading", "[7] A long history of the valley and its sea https://example.org/a\n", Citing{}},
		{"a wrapped line", "The valley lies high above\nthe old sea [1].", Citing{1, 1, 0, 0}},
	} {
		if diff := cmp.Diff(c.want, CountCited(c.text)); diff != "" {
			t.Errorf("%s:\n%s", c.name, diff)
		}
	}
}

func TestDensity(t *testing.T) {
	type state struct {
		Sentence string   `json:"sentence"`
		Refs     []string `json:"refs"`
	}
	wiki := map[string]any{"title": "Deseret Valley", "url": "u", "summary": "Deseret Valley is a high desert valley in the west of Utah.", "content": []any{map[string]any{
		"section_title":   "Farming",
		"section_content": []state{{"Farmers of Deseret Valley grow alfalfa and barley on irrigated fields", []string{"x"}}, {"The valley has three small towns and a railway", nil}},
		"subsections":     []any{map[string]any{"section_title": "Water", "section_content": []state{{"The Sevier River gives Deseret Valley its water since 1860", nil}}}},
	}}}
	data := evaltest.Data{
		"multidoc/freshwiki.jsonl.gz": evaltest.Lines(t, wiki),
		"reports/odr-gpt-4.1.jsonl.gz": evaltest.Lines(t,
			map[string]string{"prompt": "p", "article": "The valley lies high above the old sea [1]. Nobody knows when the people first came here."},
			map[string]string{"prompt": "p", "article": "The valley lies high above the old sea [1]."},
			map[string]string{"prompt": "p", "article": "这个山谷位于古海之上。没有人知道人们什么时候来到这里。"}),
	}
	r := evaltest.Run(t, densitySuite(), evaltest.Env(t, data.Folder(), nil), 0)
	if len(r.Rows) != 4 {
		t.Errorf("%d cases", len(r.Rows))
	}
	for name, want := range map[string]float64{oursPlain: 1, peerCited: 2. / 3, peerMedian: 0.75, articlesCited: 1. / 3} {
		if got := evaltest.Value(t, r, name); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if m, ok := r.Metric(oursPlain); !ok || m.N < 2 {
		t.Errorf("our answer has %d sentences", m.N)
	}
}

// valley is a text whose characters and bytes are not the same, with white space that
// reading changes.
const valley = "The Café stands in Provo since 1903.   \n\n\n\nIts owner, Ana Müller, sells peach pie.\n\nThe Jordan River runs north through the city.\n"

func excerptsData(t *testing.T, content string) evaltest.Data {
	t.Helper()
	start := strings.Index(valley, content)
	if start < 0 {
		start = 0
	}
	at := len([]rune(valley[:start]))
	row := map[string]any{"corpus_id": "valley", "question": "Who owns the Café in Provo and what does Ana Müller sell?", "references": []any{
		map[string]any{"content": content, "start_index": at, "end_index": at + len([]rune(content))},
	}}
	return evaltest.Data{
		"excerpts/chunking-eval-corpora.tar.gz":     evaltest.Tar(t, "./valley.md", valley),
		"excerpts/chunking-eval-questions.jsonl.gz": evaltest.Lines(t, row),
	}
}

func TestExcerpts(t *testing.T) {
	data := excerptsData(t, "Its owner, Ana Müller, sells peach pie.")
	r := evaltest.Run(t, excerptsSuite(), evaltest.Env(t, data.Folder(), nil), 0)
	for _, name := range []string{"cited recall", "ranked recall"} {
		if got := evaltest.Value(t, r, name); got != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, whose := range []string{"cited", "ranked"} {
		iou, precision := evaltest.Value(t, r, whose+" iou"), evaltest.Value(t, r, whose+" precision")
		if iou <= 0.2 || iou > 1 || math.Abs(iou-precision) > 1e-9 { // with everything found they are the same
			t.Errorf("%s: precision %v, iou %v", whose, precision, iou)
		}
	}
	if r.Rows[0].Values["right"] != 1 || r.Rows[0].Group != "valley" {
		t.Errorf("row %+v", r.Rows[0])
	}
	wrong := excerptsData(t, "Its owner, Ana Muller, sells peach pie.")
	if _, err := excerptsSuite().Open(t.Context(), evaltest.Env(t, wrong.Folder(), nil)); marchwarden.CodeOf(err) != marchwarden.CodeMalformed {
		t.Errorf("offsets that are wrong: %v", err)
	}
}

func TestOverlap(t *testing.T) {
	for _, c := range []struct {
		got, gold              []stretch
		recall, precision, iou float64
	}{
		{nil, []stretch{{0, 10}}, 0, 0, 0},
		{[]stretch{{0, 10}}, []stretch{{0, 10}}, 1, 1, 1},
		{[]stretch{{5, 15}}, []stretch{{0, 10}}, .5, .5, 5. / 15},
		{[]stretch{{0, 10}, {5, 20}}, []stretch{{0, 5}, {30, 35}}, .5, .25, 5. / 25},
	} {
		row := eval.Row{Values: map[string]float64{}}
		overlap(&row, "x", c.got, c.gold)
		want := map[string]float64{"x recall": c.recall, "x precision": c.precision, "x iou": c.iou}
		if diff := cmp.Diff(want, row.Values); diff != "" {
			t.Errorf("%v against %v:\n%s", c.got, c.gold, diff)
		}
	}
	if diff := cmp.Diff([]int{0, 1, 1, 2, 2, 2}, inkBefore("a é ")); diff != "" {
		t.Errorf("ink:\n%s", diff)
	}
}

func TestExtraction(t *testing.T) {
	body := strings.Repeat("<p>The farmers of the valley grow alfalfa, barley and corn on fields that the river waters in a dry summer.</p>", 5)
	page := "<html><head><title>Valley</title></head><body><nav>Home About Login</nav><article><h1>Valley</h1>" + body + "</article><footer>All rights reserved 2020</footer></body></html>"
	data := evaltest.Data{
		"pages/readability.tar.gz": evaltest.Tar(t, "./001/source.html", page, "./001/expected.html", "<div>"+body+"</div>", "./001/expected-metadata.json", "{}"),
		"pages/trafilatura-sample.tar.gz": evaltest.Tar(t, "./html/a.html", page, "./evaldata.json",
			`{"https://example.org/a": {"file": "a.html", "with": ["alfalfa, barley  and corn", "no such words"], "without": ["All rights reserved", "Home About"]}}`),
	}
	r := evaltest.Run(t, extractionSuite(), evaltest.Env(t, data.Folder(), nil), 0)
	if got := evaltest.Value(t, r, "readability word f1"); got < 0.95 || got > 1 {
		t.Errorf("word F1 %v", got)
	}
	for name, want := range map[string]float64{"trafilatura must be there": 0.5, "trafilatura must not be there": 1, "trafilatura f1": 2. / 3, "trafilatura page f1": 2. / 3} {
		if got := evaltest.Value(t, r, name); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	data["pages/trafilatura-sample.tar.gz"] = evaltest.Tar(t, "evaldata.json", `{"u": {"file": "gone.html"}}`)
	if _, err := extractionSuite().Open(t.Context(), evaltest.Env(t, data.Folder(), nil)); marchwarden.CodeOf(err) != marchwarden.CodeMalformed {
		t.Errorf("a page that is not there: %v", err)
	}
}

func TestWordF1(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"", "", 1}, {"a", "", 0}, {"A b, c", "a B c!", 1}, {"a a b", "a b b", 2. / 3}} {
		if got := wordF1(c.a, c.b); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
	if text := plainText("<p class='a'>one<b>two</b></p><script>no</script><p>thr&eacute;e<!-- no --><br/>four</p>"); fmt.Sprint(words(text)) != "[onetwo thrée four]" {
		t.Errorf("%q", text)
	}
}
