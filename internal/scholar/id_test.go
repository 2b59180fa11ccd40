package scholar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestParseID(t *testing.T) {
	for in, want := range map[string]string{
		"arxiv:2401.01234":                                    "arxiv:2401.01234",
		"arXiv:2401.01234v2":                                  "arxiv:2401.01234v2",
		"arXiv: 2401.01234":                                   "arxiv:2401.01234",
		"0704.0001":                                           "arxiv:0704.0001",
		"hep-th/9901001v3":                                    "arxiv:hep-th/9901001v3",
		"math.GT/0309136":                                     "arxiv:math.GT/0309136",
		"http://arxiv.org/abs/1707.08567v1":                   "arxiv:1707.08567v1",
		"https://www.arxiv.org/pdf/1707.08567.pdf":            "arxiv:1707.08567",
		"https://arxiv.org/html/1707.08567v2#S1":              "arxiv:1707.08567v2",
		"10.48550/arXiv.1706.03762":                           "arxiv:1706.03762",
		"https://doi.org/10.48550/ARXIV.1706.03762":           "arxiv:1706.03762",
		"doi:10.1038/S41586-020-2649-2":                       "doi:10.1038/s41586-020-2649-2",
		"https://dx.doi.org/10.1002%2Fjor.1100":               "doi:10.1002/jor.1100",
		"10.1002/(SICI)1097-4636(1998)41:3<1::AID>3.0.CO;2-2": "doi:10.1002/(sici)1097-4636(1998)41:3<1::aid>3.0.co;2-2",
		"2413.01234":                                          "", "1234.567": "", "arxiv:": "", "arxiv:2401.01234v0": "", "arxiv:../../etc": "", "10.1/x": "", "10.1038/": "", "doi:10.1038/a b": "",
		"https://evil.example/10.1038/x": "", "https://arxiv.org.evil.example/abs/1707.08567": "", "": "", "10.1038/x\x00": "", "10.1038/" + strings.Repeat("x", 300): "",
		"10.1038/x?key=1": "", "10.1038/ünicode": "", "HEP-TH/9901001": "",
	} {
		id, ok := ParseID(in)
		if id.Locator() != want || ok != (want != "") || ok == (id == ID{}) {
			t.Errorf("ParseID(%q) = %q, %v, want %q", in, id.Locator(), ok, want)
		}
	}
}

func TestIDForms(t *testing.T) {
	a, _ := ParseID("arxiv:2401.01234v2")
	d, _ := ParseID("doi:10.1000/a#b c"[:15])
	got := []string{a.Work().Locator(), a.URL(), a.DOI(), a.Host(), a.ArXiv(), a.Versioned(), d.URL(), d.Host(), d.DOI(), d.ArXiv()}
	want := []string{"arxiv:2401.01234", "https://arxiv.org/abs/2401.01234v2", "10.48550/arxiv.2401.01234", "arxiv.org", "2401.01234", "2401.01234v2", "https://doi.org/10.1000/a%23b", "doi.org", "10.1000/a#b", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestInText(t *testing.T) {
	text := `Compare arXiv:1706.03762v5 (and arXiv:1706.03762v5), https://arxiv.org/abs/2005.14165. See doi:10.1038/nature14539; (10.1002/jor.1100150407) or "https://doi.org/10.1016/0031-9163(64)92001-3". Not 2301.00001 and not 3.14.`
	var got []string
	for _, id := range InText(text) {
		got = append(got, id.Locator())
	}
	want := []string{"arxiv:1706.03762v5", "arxiv:2005.14165", "doi:10.1038/nature14539", "doi:10.1002/jor.1100150407", "doi:10.1016/0031-9163(64)92001-3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if bare := bareIDs(text); len(bare) != 1 || bare[0].Locator() != "arxiv:2301.00001" {
		t.Errorf("bare %v", bare)
	}
}

func TestTerms(t *testing.T) {
	for question, want := range map[string]Terms{
		"What is attention in neural networks?":            {Words: []string{"attention", "neural", "networks"}},
		`papers by Yoshua Bengio on "curriculum learning"`: {Authors: []string{"Yoshua Bengio"}, Phrases: []string{"curriculum learning"}, Words: []string{}},
		"Is it caused by Helicobacter pylori?":             {Words: []string{"caused", "Helicobacter", "pylori"}},
		"what is it":                                       {Words: []string{"what", "is", "it"}},
		"AND OR NOT":                                       {Words: []string{"and", "or", "not"}},
		`all:electron AND (cat:cs.CL)`:                     {Words: []string{"electron", "cat", "cs.CL"}},
		"COVID-19 R0 of 2.5":                               {Words: []string{"COVID-19", "R0", "2.5"}},
	} {
		got := TermsOf(question)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b ID) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", question, diff)
		}
	}
	got := TermsOf("Which method does arXiv:1706.03762 use?")
	if len(got.IDs) != 1 || !cmp.Equal(got.Words, []string{"method"}) {
		t.Errorf("%+v", got)
	}
}

// Whatever is asked, the terms hold no operator and are bounded, and IDs are
// written in the form that is read again.
func TestAnyTerms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := TermsOf(rapid.OneOf(rapid.String(), rapid.StringMatching(`(["“”:()a-zA-Z0-9./ ]|arXiv:|doi:|10\.|au:|by [A-Z]){0,60}`)).Draw(t, "question"))
		all := append(append(append([]string{}, terms.Words...), terms.Phrases...), terms.Authors...)
		if len(all) > mostWords+3*mostPhrases || len(terms.IDs) > mostIDs {
			t.Fatalf("%+v", terms)
		}
		for _, w := range all {
			if w == "" || strings.ContainsAny(w, "\"()[]{}:*?~!|\\/<>\n\x00") || strings.HasPrefix(w, "-") || len(w) > 4*longestTerm {
				t.Fatalf("%q", w)
			}
		}
		for _, id := range append(terms.IDs, terms.Bare...) {
			if again, ok := ParseID(id.Locator()); !ok || again != id {
				t.Fatalf("%q", id.Locator())
			}
		}
		if fewer, ok := terms.Fewer(); ok && len(fewer.Words) >= len(terms.Words) {
			t.Fatalf("no fewer words than %q", terms.Words)
		}
	})
}
