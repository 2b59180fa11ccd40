package verify_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

func TestCheckFindsEachKindOfFraud(t *testing.T) {
	blobs := blob.NewMem()
	text := "Peas like cool soil. Corn needs heat."
	ref, err := blobs.Put(ctx, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	accent, err := blobs.Put(ctx, []byte("Café"))
	if err != nil {
		t.Fatal(err)
	}
	honest := func() *marchwarden.Result {
		return &marchwarden.Result{
			Answer: "Peas like cool soil. [1]",
			Citations: []marchwarden.Citation{{Source: "file", Locator: "a.md", RawExcerpt: "Peas like cool soil.",
				ContentHash: ref.String(), Span: &marchwarden.Span{Start: 0, End: 20}}},
			Claims: []marchwarden.Claim{{Text: "Peas like cool soil.", Citations: []int{1}, Support: marchwarden.Supported}},
		}
	}
	if r, err := verify.Check(ctx, blobs, honest()); err != nil || !r.OK() {
		t.Fatalf("an honest result must pass: %v %s", err, r)
	}
	frauds := map[string]struct {
		tamper func(*marchwarden.Result)
		says   string
	}{
		"changed excerpt":  {func(r *marchwarden.Result) { r.Citations[0].RawExcerpt = "Peas like warm soil." }, "is not what stands"},
		"moved span":       {func(r *marchwarden.Result) { r.Citations[0].Span.Start = 1 }, "is not what stands"},
		"span too long":    {func(r *marchwarden.Result) { r.Citations[0].Span.End = 99 }, "outside"},
		"no span":          {func(r *marchwarden.Result) { r.Citations[0].Span = nil }, "nothing to check it against"},
		"no hash":          {func(r *marchwarden.Result) { r.Citations[0].ContentHash = "" }, "nothing to check it against"},
		"bad hash":         {func(r *marchwarden.Result) { r.Citations[0].ContentHash = "sha256:zz" }, "invalid"},
		"unknown document": {func(r *marchwarden.Result) { r.Citations[0].ContentHash = blob.Of([]byte("x")).String() }, "not stored"},
		"too long":         {func(r *marchwarden.Result) { r.Citations[0].RawExcerpt = strings.Repeat("é", 501) }, "501 characters"},
		"dangling marker":  {func(r *marchwarden.Result) { r.Answer += " And more. [2]" }, "[2]"},
		"a loose sentence": {func(r *marchwarden.Result) { r.Answer = "Pigs fly. " + r.Answer }, "no claim does"},
		"claim elsewhere":  {func(r *marchwarden.Result) { r.Claims[0].Text = "Corn flies." }, "not in the answer"},
		"claim uncited":    {func(r *marchwarden.Result) { r.Claims[0].Citations = nil }, "no citation"},
		"not sendable": {func(r *marchwarden.Result) {
			r.Citations[0] = marchwarden.Citation{RawExcerpt: "\xa9", ContentHash: accent.String(), Span: &marchwarden.Span{Start: 4, End: 5}}
		}, "valid UTF-8"},
		"claim on no text": {func(r *marchwarden.Result) {
			r.Citations[0] = marchwarden.Citation{Locator: "invented", RawExcerpt: marchwarden.ExcerptNonText}
		}, "no citation of text"},
		"no such picture": {func(r *marchwarden.Result) {
			r.Citations = append(r.Citations, marchwarden.Citation{RawExcerpt: marchwarden.ExcerptNonText, ContentHash: blob.Of([]byte("y")).String()})
		}, "not stored"},
		"claim overflows": {func(r *marchwarden.Result) { r.Claims[0].Citations = []int{7} }, "does not exist"},
	}
	for name, f := range frauds {
		t.Run(name, func(t *testing.T) {
			r := honest()
			f.tamper(r)
			report, err := verify.Check(ctx, blobs, r)
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() || !strings.Contains(report.String(), f.says) {
				t.Errorf("report %q, want it to say %q", report, f.says)
			}
		})
	}
}

func TestCheckAllowsTheTwoFixedForms(t *testing.T) {
	blobs := blob.NewMem()
	ref, err := blobs.Put(ctx, []byte("Peas like cool soil. Corn needs heat."))
	if err != nil {
		t.Fatal(err)
	}
	r := &marchwarden.Result{Citations: []marchwarden.Citation{
		{RawExcerpt: marchwarden.ExcerptNonText},
		{RawExcerpt: "Peas like" + marchwarden.ExcerptCut, ContentHash: ref.String(), Span: &marchwarden.Span{Start: 0, End: 9}},
	}}
	if report, err := verify.Check(ctx, blobs, r); err != nil || !report.OK() {
		t.Errorf("%v %s", err, report)
	}
}

func TestCheckFetchedWantsTheFetch(t *testing.T) {
	ref := blob.Of([]byte("Peas like cool soil."))
	log := &trace.Log{Steps: []trace.Step{
		&trace.FetchComplete{URL: "a.md", ContentHash: ref},
		&trace.FetchComplete{URL: "b.md", ContentHash: blob.Of(nil), Effect: trace.Effect{Error: marchwarden.CodeDenied}},
	}}
	res := &marchwarden.Result{Citations: []marchwarden.Citation{
		{Locator: "a.md", ContentHash: ref.String()},
		{Locator: "https://invented.example/", ContentHash: ref.String()},
		{Locator: "a.md", ContentHash: blob.Of([]byte("x")).String()},
		{Locator: "b.md", ContentHash: blob.Of(nil).String()},
	}}
	var bad []int
	for _, f := range verify.CheckFetched(log, res) {
		bad = append(bad, f.Number)
	}
	if !slices.Equal(bad, []int{2, 3, 4}) {
		t.Errorf("found %v, want citations 2, 3 and 4", bad)
	}
	res = &marchwarden.Result{Closest: []marchwarden.Closest{{Locator: "a.md", ContentHash: ref.String()}, {Locator: "c.md", ContentHash: ref.String()}}}
	if found := verify.CheckFetched(log, res); len(found) != 1 || found[0].Name() != "closest passage 2" {
		t.Errorf("found %+v, want the second of what is closest", found)
	}
}

// counted is a store that counts what is read.
type counted struct {
	blob.Store
	reads int
}

func (c *counted) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	c.reads++
	return c.Store.Get(ctx, ref)
}

// A document of tens of megabytes takes a while to read: several citations of it, the short
// answer and the cells of a table are held against one reading.
func TestADocumentIsReadOnce(t *testing.T) {
	blobs := &counted{Store: blob.NewMem()}
	set := library(t, blobs, "Peas cost 3 euros.\n\nCorn needs heat. It costs 5 euros.\n\nBeans climb poles.")
	claim := func(text string, id evidence.ID) reason.Claim {
		return reason.Claim{Text: text, Passages: []evidence.ID{id}, Support: marchwarden.Supported}
	}
	d := reason.Draft{Claims: []reason.Claim{claim("Peas cost 3 euros.", "S1.1"), claim("Corn needs heat.", "S1.2"), claim("Beans climb poles.", "S1.3")},
		Short: &reason.Short{Passage: "S1.1", Span: marchwarden.Span{Start: 10, End: 17}, Kind: "span"},
		Blocks: []reason.Block{{Type: marchwarden.Paragraph, Claims: []int{0, 1, 2}}, {Type: marchwarden.TableBlock, Columns: []string{"Crop", "Cost"},
			Rows: [][]reason.Cell{{cell("Peas"), cell("3 euros", "S1.1")}, {cell("Corn"), cell("5 euros", "S1.2")}}}}}
	g, err := verify.Gate(ctx, blobs, set, verify.Basis{Rules: verify.Rules, Asked: []string{"What does each crop cost?"}}, d)
	if err != nil {
		t.Fatal(err)
	}
	blobs.reads = 0
	res := &marchwarden.Result{Answer: g.Answer, Blocks: g.Blocks, Claims: g.Claims, Citations: g.Citations, ShortAnswer: g.ShortAnswer}
	if r, err := verify.Check(ctx, blobs, res); err != nil || !r.OK() || len(res.Citations) < 3 || res.ShortAnswer == nil || len(res.Blocks) < 2 {
		t.Fatalf("%v, %v: %+v", r, err, res)
	}
	if blobs.reads != 1 {
		t.Errorf("the document was read %d times", blobs.reads)
	}
}
