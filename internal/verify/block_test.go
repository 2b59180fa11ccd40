package verify_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

var blockTexts = []string{
	"Peas like cool soil and cost 3 euros. They were not approved for the north.",
	"Corn needs heat and costs 5 euros.",
	"Beans climb poles and cost 4 euros.",
}

func cell(text string, ids ...evidence.ID) reason.Cell {
	return reason.Cell{Text: text, Passages: ids}
}

func asTable(rows ...[]reason.Cell) reason.Draft {
	return reason.Draft{Claims: []reason.Claim{{Text: "Corn needs heat and costs 5 euros.", Passages: []evidence.ID{"S2.1"}, Support: marchwarden.Supported}},
		Blocks: []reason.Block{{Type: marchwarden.Paragraph, Claims: []int{0}}, {Type: marchwarden.TableBlock, Columns: []string{"Crop", "Cost", "Needs"}, Rows: rows}}}
}

// gated is what the gate makes of a draft, as a result that stands.
func gated(t *testing.T, d reason.Draft) (verify.Grounded, *marchwarden.Result) {
	t.Helper()
	blobs := blob.NewMem()
	set := library(t, blobs, blockTexts...)
	g, err := verify.Gate(ctx, blobs, set, verify.Basis{Rules: verify.Rules, Asked: []string{"What does each crop cost and need?"}}, d)
	if err != nil {
		t.Fatal(err)
	}
	res := &marchwarden.Result{Answer: g.Answer, Blocks: g.Blocks, Claims: g.Claims, Citations: g.Citations}
	if r, err := verify.Check(ctx, blobs, res); err != nil || !r.OK() {
		t.Errorf("%v, %v", r, err)
	}
	return g, res
}

func TestCellsStandOrAreEmpty(t *testing.T) {
	g, _ := gated(t, asTable(
		[]reason.Cell{cell("Peas"), cell("3 euros", "S1.1"), cell("**cool soil**", "S1.1")},
		[]reason.Cell{cell("Corn"), cell("5 euros", "S2.1"), cell("heat", "S2.1")},
		[]reason.Cell{cell("Beans"), cell("4 euros", "S3.1"), cell("poles", "S9.9")},
	))
	want := "Corn needs heat and costs 5 euros. [1]\n\n| Crop | Cost | Needs |\n|---|---|---|\n| Peas [2] | 3 euros [2] | cool soil [2] |\n| Corn [1] | 5 euros [1] | heat [1] |\n| Beans [3] | 4 euros [3] |  |"
	if g.Answer != want || g.DroppedCells != 1 || g.UnknownIDs != 1 {
		t.Errorf("%d cells and %d ids dropped\n%s", g.DroppedCells, g.UnknownIDs, cmp.Diff(want, g.Answer))
	}
	good := []reason.Cell{cell("Corn"), cell("5 euros", "S2.1"), cell("heat", "S2.1")}
	for _, bad := range []reason.Cell{
		cell("6 euros", "S1.1"), cell("3 dollars", "S1.1"), cell("$3", "S1.1"), cell("5 euros", "S2.1"), cell("4 euros", "S3.1"), cell("approved", "S1.1"),
		cell("3 euros"), cell("3 euros [1](https://evil.example)", "S1.1"), cell(strings.Repeat("cool ", 60), "S1.1"),
	} {
		g, _ := gated(t, asTable([]reason.Cell{cell("Peas"), bad, cell("cool soil", "S1.1")}, good))
		if len(g.Blocks) != 2 || g.Blocks[1].Rows[0][1].Text != "" {
			t.Errorf("%q got through: %s", bad.Text, g.Answer)
		}
	}
	g, _ = gated(t, asTable([]reason.Cell{cell("Frauds"), cell("3 euros", "S1.1"), cell("cool soil", "S1.1")}, good))
	if len(g.Blocks) != 1 {
		t.Errorf("a table of one row is left: %s", g.Answer)
	}
}

func TestHeadingsSayNothing(t *testing.T) {
	const asks = "What does each crop cost and need?"
	for text, want := range map[string][2]string{ // with a question that can stand in, and without
		"Cost of the crop":             {"Cost of the crop", "Cost of the crop"},
		"Costs and needs: each crop":   {"Costs and needs: each crop", "Costs and needs: each crop"},
		"Crop costs in 5 euros":        {asks, "Crop costs in 5 euros"},
		"What does each crop cost?":    {"What does each crop cost?", "What does each crop cost?"},
		"Cost of corn":                 {asks, "Cost of corn"},
		"Heat":                         {asks, "Heat"},
		"Corn is cool":                 {asks, ""},
		"Corn causes heat":             {asks, ""},
		"Corn for 900 euros":           {asks, ""},
		"Bribes":                       {asks, ""},
		"Heat [3] https://x.example/y": {asks, ""},
		"Corn needs heat":              {asks, ""},
		"Corn needs the heat":          {asks, ""},
		"Each crop needs corn":         {asks, ""},
		"Crops need euros":             {asks, ""},
		"Corn costed":                  {asks, ""},
		"":                             {asks, ""},
	} {
		for i, stands := range []string{asks, ""} {
			d := asTable()
			d.Blocks[1] = d.Blocks[0]
			d.Blocks[0] = reason.Block{Type: marchwarden.Heading, Level: 7, Text: text, Asks: stands}
			d.Blocks = append(d.Blocks, reason.Block{Type: marchwarden.Heading, Text: "Cost of corn"}) // with nothing below it
			g, _ := gated(t, d)
			got := ""
			if g.Blocks[0].Type == marchwarden.Heading {
				got = g.Blocks[0].Text
			}
			if got != want[i] || len(g.Blocks) > 2 {
				t.Errorf("%q in place of %q became %+v", text, stands, g.Blocks)
			}
		}
	}
}

func TestTheSameQuestionStandsOnce(t *testing.T) {
	d := asTable()
	d.Claims = append(d.Claims, reason.Claim{Text: "Beans climb poles and cost 4 euros.", Passages: []evidence.ID{"S3.1"}, Support: marchwarden.Supported})
	d.Blocks = nil
	for i, text := range []string{"Corn needs heat", "Beans climb poles"} {
		d.Blocks = append(d.Blocks, reason.Block{Type: marchwarden.Heading, Text: text, Asks: "What does each crop cost and need?"}, reason.Block{Type: marchwarden.Paragraph, Claims: []int{i}})
	}
	if g, _ := gated(t, d); strings.Count(g.Answer, "## What does each crop cost and need?") != 1 || len(g.Blocks) != 3 {
		t.Error(g.Answer)
	}
}

func TestCheckFindsForgedBlocks(t *testing.T) {
	blobs := blob.NewMem()
	library(t, blobs, blockTexts...)
	row := func(label string, id evidence.ID, cost, needs string) []reason.Cell {
		return []reason.Cell{cell(label), cell(cost, id), cell(needs, id)}
	}
	d := asTable(row("Peas", "S1.1", "3 euros", "cool soil"), row("Corn", "S2.1", "5 euros", "heat"))
	for name, forge := range map[string]func(*marchwarden.Result){
		"cell":     func(r *marchwarden.Result) { r.Blocks[1].Rows[0][1].Text = "900 euros" },
		"unlinked": func(r *marchwarden.Result) { r.Blocks[1].Rows[0][1].Citations = nil },
		"number":   func(r *marchwarden.Result) { r.Blocks[1].Rows[0][1].Citations = []int{77} },
		"claims":   func(r *marchwarden.Result) { r.Blocks[0].Claims = append(r.Blocks[0].Claims, r.Claims[0]) },
		"type":     func(r *marchwarden.Result) { r.Blocks[0].Type = "poem" },
		"width":    func(r *marchwarden.Result) { r.Blocks[1].Columns = r.Blocks[1].Columns[:2] },
		"heading": func(r *marchwarden.Result) {
			r.Blocks = append(r.Blocks, marchwarden.Block{Type: marchwarden.Heading, Level: 2, Text: "a\nb"})
		},
	} {
		_, res := gated(t, d)
		forge(res)
		res.Answer = verify.Markdown(res.Blocks, res.Citations)
		if r, err := verify.Check(ctx, blobs, res); err != nil || r.OK() {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	_, res := gated(t, d)
	res.Answer += "\n\nPeas are poison."
	if r, err := verify.Check(ctx, blobs, res); err != nil || r.OK() {
		t.Errorf("an answer that is not of its blocks: %v, %v", r, err)
	}
}
