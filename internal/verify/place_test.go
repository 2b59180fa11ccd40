package verify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/reason"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/verify"
)

// shelf is documents that were fetched from a folder, and the trace of that.
type shelf struct {
	blobs blob.Store
	set   *evidence.Set
	log   *trace.Log
}

func newShelf() *shelf {
	return &shelf{blobs: blob.NewMem(), set: &evidence.Set{}, log: &trace.Log{}}
}

// fetch puts a document on the shelf as a run does.
func (s *shelf) fetch(t *testing.T, name, raw string) {
	t.Helper()
	x := extract.New(extract.Config{})
	defer x.Close()
	folder := fetch.EmbeddedFolder("library", "lib", fstest.MapFS{name: {Data: []byte(raw)}})
	page, err := fetch.NewFiles(s.blobs, x, func() time.Time { return time.Unix(1, 0) }, folder).Fetch(ctx, "lib:"+name)
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, page)
}

func (s *shelf) add(t *testing.T, page fetch.Page) {
	t.Helper()
	text, err := s.blobs.Get(ctx, page.Text)
	if err != nil {
		t.Fatal(err)
	}
	s.set.Add(page, string(text))
	recorded, err := json.Marshal(map[string]any{"ok": page}) // as package replay stores it
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.blobs.Put(ctx, recorded)
	if err != nil {
		t.Fatal(err)
	}
	s.log.Steps = append(s.log.Steps, &trace.FetchComplete{Effect: trace.Effect{OutputID: out}, URL: page.Locator, ContentHash: page.Text,
		RawHash: page.Raw, RawLength: page.RawBytes, MediaType: page.MediaType})
}

// cite cites these passages, each for a claim of its own.
func (s *shelf) cite(t *testing.T, ids ...evidence.ID) *marchwarden.Result {
	t.Helper()
	var d reason.Draft
	for i, id := range ids {
		d.Claims = append(d.Claims, reason.Claim{Text: fmt.Sprintf("Claim %c.", 'A'+i), Passages: []evidence.ID{id}})
	}
	g := ground(t, s.blobs, s.set, d)
	return &marchwarden.Result{Answer: g.Answer, Citations: g.Citations, Claims: g.Claims}
}

// problems are those of all three checks, with the numbers of the citations.
func (s *shelf) problems(t *testing.T, res *marchwarden.Result) []string {
	t.Helper()
	report, err := verify.Check(ctx, s.blobs, res)
	if err != nil || !report.OK() {
		t.Errorf("check: %v %s", err, report)
	}
	wrong, err := verify.CheckPlaces(ctx, s.blobs, s.log, res)
	if err != nil {
		t.Error(err)
	}
	var out []string
	for _, f := range slices.Concat(verify.CheckFetched(s.log, res), wrong) {
		out = append(out, fmt.Sprintf("%d: %s", f.Number, f.Problem))
	}
	return out
}

func locators(res *marchwarden.Result) []string {
	var out []string
	for _, c := range res.Citations {
		out = append(out, c.Locator)
	}
	return out
}

func TestCitationsOfFilesNameTheLine(t *testing.T) {
	s := newShelf()
	s.fetch(t, "peas.md", "---\ntitle: Peas\n---\n\nPeas like\ncool soil.\n\nCorn needs heat.\n\nPeas like cool soil.\n")
	s.fetch(t, "a#L3.md", "# Beans\r\n\r\nBeans fix nitrogen.\r\n")
	s.fetch(t, "crops#L3", "Kale.\n\nOats grow fast.\n")
	s.fetch(t, "page.html", "<html><body><p>Oats need water in a dry spring, all farmers say.</p></body></html>")
	res := s.cite(t, "S1.1", "S1.2", "S1.3", "S2.2", "S3.2", "S4.1")
	want := []string{"lib:peas.md#L5", "lib:peas.md#L8", "lib:peas.md#L10", "lib:a#L3.md#L3", "lib:crops#L3#L3", "lib:page.html"}
	if d := cmp.Diff(want, locators(res)); d != "" {
		t.Error(d)
	}
	if bad := s.problems(t, res); bad != nil {
		t.Errorf("problems %q", bad)
	}
	// Without its place a citation stands too: that is how it was written once.
	for i := range res.Citations {
		res.Citations[i].Locator = s.set.Sources()[[]int{0, 0, 0, 1, 2, 3}[i]].Page.Locator
	}
	if bad := s.problems(t, res); bad != nil {
		t.Errorf("problems of bare locators %q", bad)
	}
}

func TestCitationsOfPDFsNameThePage(t *testing.T) {
	s := newShelf()
	text := "Beans fix nitrogen.\n\nPeas like\n\ncool soil."
	ref, err := s.blobs.Put(ctx, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.add(t, fetch.Page{Locator: "a.pdf", Source: "file", MediaType: "application/pdf", Text: ref, Raw: blob.Of(nil), RawBytes: 900, Pages: []int{0, 21, 32}})
	res := s.cite(t, "S1.1", "S1.2", "S1.3")
	if d := cmp.Diff([]string{"a.pdf#page=1", "a.pdf#page=2", "a.pdf#page=3"}, locators(res)); d != "" {
		t.Error(d)
	}
	// An excerpt across a page break is on the page where it begins.
	g := ground(t, s.blobs, s.set, reason.Draft{Claims: []reason.Claim{{Text: "Peas.", Passages: []evidence.ID{"S1.2"},
		Spans: []marchwarden.Span{{Start: strings.Index(text, "Peas"), End: len(text)}}}}})
	if got := g.Citations[0].Locator; got != "a.pdf#page=2" {
		t.Errorf("across the break: %s", got)
	}
	if bad := s.problems(t, res); bad != nil {
		t.Errorf("problems %q", bad)
	}
	for _, wrong := range []string{"a.pdf#page=1", "a.pdf#page=4", "a.pdf#L1", "a.pdf#page=0", "a.pdf#page=02", "a.pdf#page="} {
		res.Citations[1].Locator = wrong
		if bad := s.problems(t, res); len(bad) == 0 || !strings.HasPrefix(bad[0], "2: ") {
			t.Errorf("%s stands: %q", wrong, bad)
		}
	}
}

func TestWrongPlacesAreFindings(t *testing.T) {
	s := newShelf()
	s.fetch(t, "peas.md", "Peas like cool soil.\n\nCorn needs heat.\n")
	s.fetch(t, "page.html", "<html><body><p>Oats need water in a dry spring, all farmers say.</p></body></html>")
	page := s.set.Sources()[1].Page
	page.Locator, page.Source = "https://oats.example/", "web"
	s.log.Steps = append(s.log.Steps, &trace.FetchComplete{URL: page.Locator, ContentHash: page.Text, RawHash: page.Raw, RawLength: page.RawBytes, MediaType: page.MediaType})
	honest := func() *marchwarden.Result { return s.cite(t, "S1.2", "S2.1") }
	for name, c := range map[string]struct {
		change func(c []marchwarden.Citation)
		says   string
	}{
		"another line":   {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#L1" }, "1: its excerpt begins at #L3 of the document, not at #L1"},
		"no such line":   {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#L999999" }, "1: its excerpt begins at #L3 of the document, not at #L999999"},
		"a page of text": {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#page=1" }, "1: its excerpt begins at #L3 of the document, not at #page=1"},
		"another form":   {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#l3" }, "1: the run fetched no such content"},
		"a heading":      {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#corn" }, "1: the run fetched no such content"},
		"twice":          {func(c []marchwarden.Citation) { c[0].Locator = "lib:peas.md#L3#L3" }, "1: the run fetched no such content"},
		"another file":   {func(c []marchwarden.Citation) { c[0].Locator = "lib:corn.md#L3" }, "1: the run fetched no such content"},
		"no name":        {func(c []marchwarden.Citation) { c[0].Locator = "#L3" }, "1: the run fetched no such content"},
		"a line of html": {func(c []marchwarden.Citation) { c[1].Locator = "lib:page.html#L1" }, "2: the place of its excerpt in the document is not known"},
		"a web address":  {func(c []marchwarden.Citation) { c[1].Locator = "https://oats.example/#L1" }, "2: its place in the document cannot be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			res := honest()
			c.change(res.Citations)
			if bad := strings.Join(s.problems(t, res), "\n"); !strings.HasPrefix(bad, c.says) {
				t.Errorf("problems %q, want %q", bad, c.says)
			}
		})
	}
}

func TestPlacesThatCannotBeCheckedAreFindings(t *testing.T) {
	s := newShelf()
	s.fetch(t, "peas.md", "Peas like cool soil.\n")
	res := s.cite(t, "S1.1")
	bad, err := verify.CheckPlaces(ctx, blob.NewMem(), s.log, res)
	if err != nil || len(bad) != 1 || !strings.Contains(bad[0].Problem, "cannot be checked") {
		t.Errorf("%v, %v", bad, err)
	}
	res.Citations[0].Span = nil
	bad, err = verify.CheckPlaces(ctx, s.blobs, s.log, res)
	if err != nil || len(bad) != 1 || !strings.Contains(bad[0].Problem, "no span") {
		t.Errorf("%v, %v", bad, err)
	}
}

func TestSidesOfContradictionsNameTheLine(t *testing.T) {
	s := newShelf()
	s.fetch(t, "a.md", "Greens.\n\nPeas like cool soil.\n\nCorn needs heat.\n\nKale needs frost.\n")
	s.fetch(t, "b.md", "Peas do not like cool soil.\n\nKale needs no frost.\n\nKale needs no frost.\n\nCorn needs no heat.\n\nCorn needs no heat.\n")
	side := func(locator, quote string) marchwarden.Side {
		return marchwarden.Side{Locator: locator, RawExcerpt: quote}
	}
	g := ground(t, s.blobs, s.set, reason.Draft{
		Claims: []reason.Claim{{Text: "Kale needs no frost.", Passages: []evidence.ID{"S2.3"}}},
		Contradictions: []marchwarden.Contradiction{
			{Subject: "peas", A: side("lib:a.md", "Peas like cool soil."), B: side("lib:b.md", "Peas do not like cool soil.")},
			{Subject: "corn", A: side("lib:a.md", "Corn needs heat."), B: side("lib:b.md", "Corn needs no heat.")},
			{Subject: "kale", A: side("lib:a.md", "Kale needs frost."), B: side("lib:b.md", "Kale needs no frost.")},
		},
	})
	var got []string
	for _, c := range g.Contradictions {
		got = append(got, c.A.Locator+" "+c.B.Locator)
	}
	// Which of two equal sentences is meant is unknown, unless one is cited.
	want := []string{"lib:a.md#L3 lib:b.md#L1", "lib:a.md#L5 lib:b.md", "lib:a.md#L7 " + g.Citations[0].Locator}
	if d := cmp.Diff(want, got); d != "" || g.Citations[0].Locator != "lib:b.md#L5" {
		t.Errorf("%s, and cited is %s", d, g.Citations[0].Locator)
	}
}

func TestInvestigationsCiteWhatWasReported(t *testing.T) {
	ref := blob.Of([]byte("Peas like cool soil."))
	log := &trace.Log{Steps: []trace.Step{
		&trace.Evidence{Locator: "a.md#L3", ContentHash: ref},
		&trace.Evidence{Locator: "lost.md", ContentHash: ref, Effect: trace.Effect{Error: marchwarden.CodeNotFound}},
	}}
	// Whether a place is right, the run of the researcher tells.
	for locator, want := range map[string]bool{"a.md#L3": true, "a.md": true, "a.md#L4": true, "b.md": false, "lost.md": false} {
		res := &marchwarden.Result{Citations: []marchwarden.Citation{{Locator: locator, ContentHash: ref.String()}}}
		if bad := verify.CheckFetched(log, res); (len(bad) == 0) != want {
			t.Errorf("%s: %v", locator, bad)
		}
		res.Citations[0].ContentHash = blob.Of(nil).String()
		if bad := verify.CheckFetched(log, res); len(bad) == 0 {
			t.Errorf("%s stands with another content", locator)
		}
	}
}
