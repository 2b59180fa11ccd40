package verify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// drawn is the result of a claim on rows of a source.
func drawn(t *testing.T, blobs blob.Store, source, rows string, basis verify.Basis) *marchwarden.Result {
	t.Helper()
	text := "# SELECT … — trials.db\n\n" + rows + "\n# Statement: SELECT …\n# Asked of: trials.db\n"
	ref, err := blobs.Put(ctx, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set := &evidence.Set{}
	set.Add(fetch.Page{Locator: "db:trials.db?query=1", Source: source, Text: ref, FetchedAt: time.Unix(1, 0).UTC()}, text)
	passage := set.Passages()[len(set.Passages())-1].ID
	g, err := verify.Gate(ctx, blobs, set, basis, reason.Draft{Claims: []reason.Claim{{Text: "There are trials.", Passages: []evidence.ID{passage, set.Passages()[0].ID}, Support: marchwarden.Supported}}})
	if err != nil {
		t.Fatal(err)
	}
	res := &marchwarden.Result{Answer: g.Answer, Blocks: g.Blocks, Claims: g.Claims, Citations: g.Citations}
	if r, err := verify.Check(ctx, blobs, res); err != nil || !r.OK() {
		t.Errorf("%v, %v", r, err)
	}
	return res
}

var charting = verify.Basis{Rules: verify.Rules, Charts: true}

func TestChartsAreTheStoredRows(t *testing.T) {
	for rows, want := range map[string]string{
		"city: Graz; n: 1.\ncity: Lyon; n: -2.5.\ncity: Oslo; n: 0.\n":                                  "bar n Graz=1 Lyon=-2.5 Oslo=0",
		"n: 1; city: Graz.\nn: 2; city: a: b.\nn: 3; city: Oslo [7].\n":                                 "bar n Graz=1 a: b=2 Oslo=3",
		"year: 2019; n: 5.\nyear: 2020; n: 4.\nyear: 2021; n: 9.\n":                                     "line n 2019=5 2020=4 2021=9",
		"day: 2019-01-02; n: 5.\nday: 2019-01-03; n: 4.\nday: 2019-02-01; n: 9.\n":                      "line n 2019-01-02=5 2019-01-03=4 2019-02-01=9",
		"year: 2021; n: 5.\nyear: 2020; n: 4.\nyear: 2019; n: 9.\n":                                     "bar n 2021=5 2020=4 2019=9",
		"cities by n: Graz | Lyon | Oslo.\n\ncity: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Oslo; n: 3.\n": "bar n Graz=1 Lyon=2 Oslo=3",
		"city: Graz; n: 1.\ncity: Lyon; n: 2.\n":                                                        "", // too few
		strings.Repeat("city: Graz; n: 1.\n", 3):                                                        "", // one label
		"id: 11; n: 1.\nid: 12; n: 2.\nid: 13; n: 3.\n":                                                 "", // a number is no label
		"city: Graz; n: 1.\ncity: Lyon; n: null.\ncity: Oslo; n: 3.\n":                                  "",
		"city: Graz; n: 1.\ncity: Lyon; m: 2.\ncity: Oslo; n: 3.\n":                                     "", // two statements in one
		"city: Graz; n: 1.\ncity: Lyon; n: 9; n: 2.\ncity: Oslo; n: 3.\n":                               "", // a cell that plays two
		"city: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Oslo; n: NaN.\n":                                   "",
		"city: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Oslo; n: 12345678901234567890.\n":                  "", // a float would change it
		"city: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Oslo; n: 3.\nThere are 9 more rows.\n":             "",
	} {
		got := ""
		for _, b := range drawn(t, blob.NewMem(), "database", rows, charting).Blocks[1:] {
			got = b.Kind + " " + b.Series[0].Name
			for i, label := range b.Series[0].Labels {
				got += fmt.Sprintf(" %s=%v", label, b.Series[0].Values[i])
			}
		}
		if got != want {
			t.Errorf("%q is drawn as %q, not as %q", rows, got, want)
		}
	}
	const rows = "city: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Os|lo; n: 3.\n"
	res := drawn(t, blob.NewMem(), "database", rows, charting)
	if want := "There are trials. [1][2]\n\n|  | n |\n|---|---|\n| Graz [1] | 1 |\n| Lyon [1] | 2 |\n| Os\\|lo [1] | 3 |"; res.Answer != want {
		t.Error(cmp.Diff(want, res.Answer))
	}
	for name, res := range map[string]*marchwarden.Result{
		"a page":    drawn(t, blob.NewMem(), "web", rows, charting),
		"brief":     drawn(t, blob.NewMem(), "database", rows, verify.Basis{Rules: verify.Rules}),
		"old rules": drawn(t, blob.NewMem(), "database", rows, verify.Basis{Rules: "gate/3", Charts: true}),
	} {
		if len(res.Blocks) > 1 || strings.Contains(res.Answer, "|") {
			t.Errorf("%s: %s", name, res.Answer)
		}
	}
}

func TestCheckFindsForgedCharts(t *testing.T) {
	for name, forge := range map[string]func(*marchwarden.Result){
		"number": func(r *marchwarden.Result) { r.Blocks[1].Series[0].Values[0] = 900 },
		"label":  func(r *marchwarden.Result) { r.Blocks[1].Series[0].Labels[0] = "Nova" },
		"name":   func(r *marchwarden.Result) { r.Blocks[1].Series[0].Name = "deaths" },
		"kind":   func(r *marchwarden.Result) { r.Blocks[1].Kind = "line" },
		"row": func(r *marchwarden.Result) {
			s := &r.Blocks[1].Series[0]
			s.Labels, s.Values = s.Labels[1:], s.Values[1:]
		},
		"short":    func(r *marchwarden.Result) { s := &r.Blocks[1].Series[0]; s.Values = s.Values[1:] },
		"unlinked": func(r *marchwarden.Result) { r.Blocks[1].Citation = 0 },
		"missing":  func(r *marchwarden.Result) { r.Blocks[1].Citation = 77 },
		"source":   func(r *marchwarden.Result) { r.Citations[r.Blocks[1].Citation-1].Source = "web" },
	} {
		blobs := blob.NewMem()
		res := drawn(t, blobs, "database", "city: Graz; n: 1.\ncity: Lyon; n: 2.\ncity: Oslo; n: 3.\n", charting)
		forge(res)
		res.Answer = verify.Markdown(res.Blocks, res.Citations)
		if r, err := verify.Check(ctx, blobs, res); err != nil || r.OK() {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}
