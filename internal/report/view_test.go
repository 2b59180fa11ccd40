package report

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// TestViewSaysWhatReportsSay finds every text of a view in the page of the report,
// but for what the page leaves to other pages.
func TestViewSaysWhatReportsSay(t *testing.T) {
	for _, plant := range append([]string{""}, payloads...) {
		r := sample(t, func(s string) string { return s + plant })
		_, doc := rendered(t, r)
		page := textOf(doc)
		var walk func(v reflect.Value)
		walk = func(v reflect.Value) {
			switch v.Kind() {
			case reflect.Pointer:
				walk(v.Elem())
			case reflect.Struct:
				for i := range v.NumField() {
					if name := v.Type().Field(i).Name; name != "Category" && name != "Address" && name != "Got" {
						walk(v.Field(i))
					}
				}
			case reflect.Slice, reflect.Array:
				for i := range v.Len() {
					walk(v.Index(i))
				}
			case reflect.String:
				if s := strings.ReplaceAll(strings.ToValidUTF8(v.String(), "\uFFFD"), "\x00", "\uFFFD"); !strings.Contains(page, strings.TrimSuffix(s, marchwarden.ExcerptCut)) {
					t.Errorf("with %q: the page does not say %q", plant, s)
				}
			}
		}
		walk(reflect.ValueOf(r.View()))
	}
}

func TestView(t *testing.T) {
	r := sample(t, plain)
	r.Sources[0].Page = fetch.Page{Locator: "https://example.org/frost", URL: "https://www.example.org/frost", MediaType: "text/html", Extractor: "readability/2", TextBytes: 2048, RawBytes: 10 << 10}
	v := r.View()
	wanted := []GapGroup{
		{marchwarden.SourceNotFound, "Not found in what was searched", []Gap{{"frost in 1890", "3 documents were read", []string{"followed by question 2: somebody else may know"}}}},
		{marchwarden.ScopeExceeded, "Needs another kind of researcher", []Gap{{Topic: "frost in 1890", Detail: "3 documents were read"}}},
		{"new_category", "new_category", []Gap{{Topic: "frost in 1890", Detail: "3 documents were read"}}},
	}
	if diff := cmp.Diff(wanted, v.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	claims := []ClaimView{{1, "The last frost is on 26 April.", "supported", []int{1, 2}}, {2, "It was later in 1990.", "partial", []int{3}}, {3, "Nobody knows about 2030.", "unchecked", []int{4}}}
	if diff := cmp.Diff(claims, v.Claims); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	sides := v.Contradictions[0].Sides
	if sides[0].Source != 1 || sides[0].Address != "https://example.org/frost?a=1&b=_c_" || sides[1].Source != 0 || sides[1].Address != "" || sides[1].Excerpt != "The last frost\nfalls on 15 May." {
		t.Errorf("the sides are %+v", sides)
	}
	got := []Fact{{"Found at", "https://www.example.org/frost"}, {"Media type", "text/html"}, {"Read by", "readability/2"}, {"Size", "2.0 kB of text from 10.2 kB"}}
	if diff := cmp.Diff(got, v.Sources[0].Got); diff != "" {
		t.Errorf("how a source was got (-want +got):\n%s", diff)
	}
	if last := v.Sources[5]; len(last.Problems) != 2 || v.Sources[4].Address != "" || v.Sources[3].Address != "https://arxiv.org/abs/2401.01234v2" {
		t.Errorf("the sources are %+v", v.Sources)
	}
}

// TestSideNumber leads from a side of a contradiction to the citation that it is, or
// stands in, and never to another document.
func TestSideNumber(t *testing.T) {
	res := &marchwarden.Result{Citations: []marchwarden.Citation{
		{Locator: "notes/a.md#L3", RawExcerpt: "Built in 1872. The roof is 420 square metres large."},
		{Locator: "notes/b.md", RawExcerpt: "The roof is 515 square metres large."},
		{Locator: "notes/a.md#L9", RawExcerpt: "The roof is 420 square metres large."},
	}}
	for _, c := range []struct {
		side marchwarden.Side
		want int
	}{
		{marchwarden.Side{Locator: "notes/b.md", RawExcerpt: "The roof is 515 square metres large."}, 2},
		{marchwarden.Side{Locator: "notes/a.md", RawExcerpt: "The roof is 420 square metres large."}, 1},
		{marchwarden.Side{Locator: "notes/a.md#L9", RawExcerpt: "The roof is 420 square metres large."}, 3},
		{marchwarden.Side{Locator: "notes/a.md", RawExcerpt: "The roof is 515 square metres large."}, 0},
		{marchwarden.Side{Locator: "notes/c.md", RawExcerpt: "Built in 1872."}, 0},
		{marchwarden.Side{Locator: "notes/b.md"}, 0},
	} {
		if got := sideNumber(res, c.side); got != c.want {
			t.Errorf("%+v is citation %d, want %d", c.side, got, c.want)
		}
	}
}

// TestExcerpt cuts windows out of stored texts: they are what stands there, and the
// parts make the whole.
func TestExcerpt(t *testing.T) {
	for _, plant := range append([]string{""}, payloads...) {
		r := sample(t, func(s string) string { return s + plant })
		for i, c := range r.Result.Citations {
			for _, chars := range []int{0, 1, 40, 400, 1 << 30} {
				w, ok := r.Excerpt(i, chars)
				if text := r.Sources[i].Text; ok != (text != "") {
					t.Fatalf("citation %d stands: %v", i+1, ok)
				} else if !ok {
					if w != (Window{Excerpt: c.RawExcerpt}) {
						t.Errorf("citation %d alone is %+v", i+1, w)
					}
				} else if got := w.Before + w.Excerpt + w.After; w.Excerpt != strings.TrimSuffix(c.RawExcerpt, marchwarden.ExcerptCut) || got != text[w.Earlier:len(text)-w.Later] || len(w.Before) > 4*chars {
					t.Errorf("citation %d with %d characters around is %+v", i+1, chars, w)
				}
			}
		}
	}
}

// A short answer leads to the citation that it is from, if there is one, and a refusal
// says so above all.
func TestViewLeads(t *testing.T) {
	r := sample(t, plain)
	for n, want := range map[int]int{-1: 0, 0: 0, 1: 1, 6: 6, 7: 0} {
		r.Result.ShortAnswer.Citation = n
		if v := r.View(); v.Lead != "On 26 April" || v.LeadsTo != want || len(v.Closest) != marchwarden.MaxClosest {
			t.Errorf("citation %d: %q leads to %d, want %d", n, v.Lead, v.LeadsTo, want)
		}
		_, doc := rendered(t, r)
		inert(t, doc)
	}
	r = &Report{Result: &marchwarden.Result{Answer: "Nothing says so.", ShortAnswer: &marchwarden.ShortAnswer{Kind: marchwarden.ShortUnknown}}}
	page, _ := rendered(t, r)
	if v := r.View(); v.Lead != "I don't know." || v.LeadsTo != 0 || strings.Contains(page, notAnAnswer) || !strings.Contains(markdownOf(t, r), "**I don't know.**\n\nNothing says so.") {
		t.Errorf("a refusal is %+v\n%s", v, page)
	}
}
