package drift_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

const (
	lamp   = "The harbour lamp of Port Ellery was first lit in 1887 by its keeper Quillon Varga."
	depth  = "The basin behind the mole is 14 metres deep at low tide."
	ferry  = "Ferries to the outer islands leave twice a day in summer."
	filler = "The town council meets on Mondays and hears whoever has something to say about the streets."
)

// bomb is a small body of 8 MiB.
func bomb() http.HandlerFunc {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(make([]byte, 8<<20)) // a buffer takes all
	_ = z.Close()
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write(packed.Bytes())
	}
}

func TestStates(t *testing.T) {
	main, other, closing, forbidding := newSite(t), newSite(t), newSite(t), newSite(t)
	cases := []struct {
		name    string
		host    *site
		path    string
		before  http.HandlerFunc
		excerpt string
		after   http.HandlerFunc // nil leaves the page as it is
		state   drift.State
		why     drift.Why
		passage drift.Standing
		now     string // of an altered passage
		moved   string
		detail  string // is contained
	}{
		{name: "as it was", path: "/same", before: page(lamp, filler), excerpt: lamp, state: drift.Unchanged, passage: drift.Present},
		{name: "replaced", path: "/replaced", before: page(lamp), excerpt: lamp, after: page(depth), state: drift.Changed, passage: drift.Missing},
		{name: "same text in other markup", path: "/markup", before: page(lamp, filler), excerpt: lamp,
			after: body("text/html", "<html><head><title>Harbours</title><style>p{}</style></head><body><article class=x><h1>Harbours</h1><p><b>The harbour lamp</b> of Port\n Ellery was first lit in <i>1887</i> by its keeper Quillon Varga.</p><p>"+filler+"</p></article><!-- new --></body></html>"),
			state: drift.Unchanged, passage: drift.Present},
		{name: "edited elsewhere", path: "/elsewhere", before: page(lamp, filler), excerpt: lamp, after: page(lamp, ferry), state: drift.Changed, passage: drift.Present},
		{name: "moved on its page", path: "/order", before: page(lamp, filler, depth), excerpt: lamp, after: page(depth, ferry, filler, lamp), state: drift.Changed, passage: drift.Present},
		{name: "typography", path: "/type", before: page(`The keeper said "nothing burns for ever" - and left.`, filler), excerpt: `The keeper said "nothing burns for ever" - and left.`,
			after: page("The keeper said “nothing burns for ever” – and left.", ferry), state: drift.Changed, passage: drift.Present},
		{name: "reworded", path: "/reworded", before: page(filler, lamp, ferry), excerpt: lamp, after: page(filler, "In 1888 the harbour lamp of Port Ellery was lit for the first time, by its keeper Quillon Varga.", ferry),
			state: drift.Changed, passage: drift.Altered, now: "In 1888 the harbour lamp of Port Ellery was lit for the first time, by its keeper Quillon Varga."},
		{name: "one digit", path: "/digit", before: page(filler, lamp, ferry), excerpt: lamp, after: page(filler, strings.Replace(lamp, "1887", "1878", 1), ferry),
			state: drift.Changed, passage: drift.Altered, now: strings.Replace(lamp, "1887", "1878", 1)},
		{name: "a number that goes on", path: "/longer", before: page(filler, depth), excerpt: "The basin behind the mole is 14", after: page(filler, strings.Replace(depth, "14", "14.5", 1)),
			state: drift.Changed, passage: drift.Altered, now: strings.Replace(depth, "14", "14.5", 1)},
		{name: "cut out", path: "/cut", before: page(filler, lamp, ferry), excerpt: lamp, after: page(filler, ferry), state: drift.Changed, passage: drift.Missing},
		{name: "moved", path: "/old", before: page(lamp, filler), excerpt: lamp, after: redirect(other.URL + "/new"), state: drift.Unchanged, passage: drift.Present, moved: other.URL + "/new"},
		{name: "moved to the front page", path: "/front", before: page(lamp, filler), excerpt: lamp, after: redirect("/welcome"), state: drift.Changed, passage: drift.Missing, moved: main.URL + "/welcome"},
		{name: "not found", path: "/404", before: page(lamp), excerpt: lamp, after: status(404), state: drift.Unreachable, why: drift.Gone, passage: drift.Missing, detail: "404"},
		{name: "gone", path: "/410", before: page(lamp), excerpt: lamp, after: status(410), state: drift.Unreachable, why: drift.Gone, passage: drift.Missing, detail: "410"},
		{name: "login", path: "/403", before: page(lamp), excerpt: lamp, after: status(403), state: drift.Unreachable, why: drift.Refused, passage: drift.Unknown, detail: "403"},
		{name: "broken server", path: "/500", before: page(lamp), excerpt: lamp, after: status(500), state: drift.Unreachable, why: drift.Unanswered, passage: drift.Unknown, detail: "500"},
		{name: "size bomb", path: "/bomb", before: page(lamp), excerpt: lamp, after: bomb(), state: drift.Unreachable, why: drift.Unanswered, passage: drift.Unknown, detail: "larger than the limit"},
		{name: "picture", path: "/picture", before: page(lamp, filler), excerpt: lamp, after: body("image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"), state: drift.Changed, passage: drift.Missing, detail: "no text any more"},
		{name: "forbidden by robots.txt", host: forbidding, path: "/closed", before: page(lamp), excerpt: lamp, state: drift.Unreachable, why: drift.Refused, passage: drift.Unknown, detail: "robots.txt"},
		{name: "host down", host: closing, path: "/down", before: page(lamp), excerpt: lamp, state: drift.Unreachable, why: drift.Unanswered, passage: drift.Unknown, detail: "refused"},
	}
	w := newWorld(t)
	var cites []cite
	for i, tc := range cases {
		if tc.host == nil {
			cases[i].host = main
		}
		cases[i].host.set(tc.path, tc.before)
		cites = append(cites, cite{cases[i].host.URL + tc.path, tc.excerpt})
	}
	run := w.run("", cites)

	main.set("/welcome", page("Welcome to the town.", filler))
	other.set("/new", page(lamp, filler))
	forbidding.set("/robots.txt", body("text/plain", "User-agent: *\nDisallow: /\n"))
	closing.Close()
	for _, tc := range cases {
		if tc.after != nil {
			tc.host.set(tc.path, tc.after)
		}
	}
	rep := w.check(run)
	for i, tc := range cases {
		src, p := rep.Sources[i], rep.Passages[i]
		if src.Locator != tc.host.URL+tc.path || src.State != tc.state || src.Why != tc.why || src.MovedTo != tc.moved || !strings.Contains(src.Detail, tc.detail) || !slices.Equal(src.Citations, []int{i + 1}) {
			t.Errorf("%s: the document is %+v", tc.name, src)
		}
		if p.Citation != i+1 || p.State != tc.passage || p.Now != tc.now {
			t.Errorf("%s: the passage is %+v", tc.name, p)
		}
		want := map[drift.Standing]drift.Hold{drift.Present: drift.Kept, drift.Altered: drift.Lost, drift.Missing: drift.Lost, drift.Unknown: drift.Unsure}[tc.passage]
		if rep.Claims[i].State != want {
			t.Errorf("%s: the claim is %s, want %s", tc.name, rep.Claims[i].State, want)
		}
	}
	if !rep.Drifted() || !rep.Incomplete() || !rep.CheckedAt.Equal(noon.Add(time.Hour)) || rep.TraceID != runID || rep.Format != drift.Format {
		t.Errorf("the report as a whole: drifted %v, incomplete %v, %v, %v", rep.Drifted(), rep.Incomplete(), rep.CheckedAt, rep.TraceID)
	}
	if forbidding.requests("/closed") != 1 {
		t.Error("a page was fetched that robots.txt forbids")
	}
	again := w.check(run)
	if diff := cmp.Diff(rep, again, cmpopts.EquateComparable(runID)); diff != "" {
		t.Errorf("a second check differs:\n%s", diff)
	}
}

// TestSlowPages: a site that does not answer costs its time and not the others'.
func TestSlowPages(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	var cites []cite
	for _, path := range []string{"/a", "/b", "/c", "/d", "/fast"} {
		s.set(path, page(lamp))
		cites = append(cites, cite{s.URL + path, lamp})
	}
	run := w.run("", cites)
	for _, path := range []string{"/a", "/b", "/c", "/d"} {
		s.set(path, silent)
	}
	w.limit = 500 * time.Millisecond
	began := time.Now()
	rep := w.check(run)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, src := range rep.Sources[:4] {
		if src.State != drift.Unreachable || src.Why != drift.Unanswered || !strings.Contains(src.Detail, "no complete page within 500ms") {
			t.Errorf("a slow document is %+v", src)
		}
	}
	if rep.Drifted() || !rep.Incomplete() || rep.Passages[0].State != drift.Unknown || rep.Claims[0].State != drift.Unsure {
		t.Errorf("what is slow counts as lost: %+v", rep)
	}
}

// TestOnePageIsFetchedOnce, however often it is cited, and nothing else is.
func TestOnePageIsFetchedOnce(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	s.set("/p", page(lamp, depth, ferry))
	s.set("/q", page(filler, lamp))
	loc := s.URL + "/p"
	run := w.run("", []cite{{loc, lamp}, {loc, depth}, {s.URL + "/q", filler}, {loc, ferry}},
		marchwarden.Claim{Text: "both", Citations: []int{1, 2}}, marchwarden.Claim{Text: "lost", Citations: []int{2}}, marchwarden.Claim{Text: "kept", Citations: []int{1, 3, 4}})
	before := s.requests("/p")
	s.set("/p", page(lamp, ferry))
	rep := w.check(run)
	if n := s.requests("/p") - before; n != 1 {
		t.Errorf("it was asked for %d times", n)
	}
	if len(rep.Sources) != 2 || !slices.Equal(rep.Sources[0].Citations, []int{1, 2, 4}) {
		t.Errorf("the documents are %+v", rep.Sources)
	}
	var holds []drift.Hold
	for _, c := range rep.Claims {
		holds = append(holds, c.State)
	}
	if want := []drift.Hold{drift.Weakened, drift.Lost, drift.Kept}; !slices.Equal(holds, want) {
		t.Errorf("the claims are %v, want %v", holds, want)
	}
}

// TestCheckLeavesNothing: neither in the record nor in its blobs.
func TestCheckLeavesNothing(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	s.set("/p", page(lamp))
	noted := &blobtest.Noted{Store: w.store.Blobs}
	w.store.Blobs = noted
	run := w.run("", []cite{{s.URL + "/p", lamp}})
	count := func() int { return len(noted.Refs()) }
	before := count()
	s.set("/p", page(depth))
	w.check(run)
	if after := count(); after != before {
		t.Errorf("there are %d blobs, and were %d", after, before)
	}
}

// TestSourceFilterHolds: what a run was kept from, a check is kept from.
func TestSourceFilterHolds(t *testing.T) {
	s, elsewhere, w := newSite(t), newSite(t), newWorld(t)
	s.set("/p", page(lamp))
	elsewhere.set("/x", page(lamp))
	run := w.run("127.0.0.1", []cite{{s.URL + "/p", lamp}})
	s.set("/p", redirect(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)+"/x"))
	rep := w.check(run)
	if src := rep.Sources[0]; src.State != drift.Unreachable || src.Why != drift.Refused || !strings.Contains(src.Detail, "source filter") {
		t.Errorf("the document is %+v", src)
	}
	if elsewhere.requests("/x") != 0 {
		t.Error("a host outside the filter was asked")
	}
}

func TestFiles(t *testing.T) {
	dir, w := t.TempDir(), newWorld(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same, edited, gone := write("same.md", "# A\n\n"+lamp+"\n"), write("edited.md", "# B\n\n"+depth+"\n"), write("gone.md", "# C\n\n"+ferry+"\n")
	own, err := fetch.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	embedded := fetch.EmbeddedFolder("embedded library", "embedded", fstest.MapFS{"soil.md": {Data: []byte("# Soil\n\n" + filler + "\n")}})
	w.files = []*fetch.Folder{own, embedded}
	run := w.run("", []cite{{same, lamp}, {edited, depth}, {gone, ferry}, {"embedded:soil.md", filler}})
	write("edited.md", "# B\n\n"+strings.Replace(depth, "14", "11", 1)+"\n")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	rep := w.check(run)
	type row struct {
		State drift.State
		Why   drift.Why
		Pass  drift.Standing
	}
	var got []row
	for i, s := range rep.Sources {
		got = append(got, row{s.State, s.Why, rep.Passages[i].State})
	}
	want := []row{{drift.Unchanged, "", drift.Present}, {drift.Changed, "", drift.Altered}, {drift.Unreachable, drift.Gone, drift.Missing}, {drift.Unchanged, "", drift.Present}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	w.files = []*fetch.Folder{embedded}
	if src := w.check(run).Sources[0]; src.State != drift.Unreachable || src.Why != drift.Refused {
		t.Errorf("a file outside the folders is %+v", src)
	}
}

func TestCheckIsStopped(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	s.set("/p", page(lamp))
	s.set("/q", page(ferry))
	w.files = []*fetch.Folder{fetch.EmbeddedFolder("embedded library", "embedded", fstest.MapFS{"soil.md": {Data: []byte("# Soil\n\n" + filler + "\n")}})}
	run := w.run("", []cite{{"embedded:soil.md", filler}, {s.URL + "/p", lamp}, {s.URL + "/q", ferry}})
	ctx, cancel := context.WithCancel(t.Context())
	stuck := endless{make(chan struct{}, 2)}
	cfg := w.config()
	cfg.Fetchers["web"] = stuck
	done := make(chan struct{})
	cfg.Told = func(drift.Source) { close(done) } // the file alone
	go func() { <-done; <-stuck.begun; cancel() }()
	rep, err := drift.Check(ctx, cfg, run)
	if marchwarden.CodeOf(err) != marchwarden.CodeCanceled {
		t.Errorf("the check ended with %v", err)
	}
	// What was done by then is known, and of the rest nothing.
	var states []string
	for i, src := range rep.Sources {
		states = append(states, string(src.State)+" "+src.Detail+" "+string(rep.Passages[i].State))
	}
	const never = "unchecked the check was stopped before unknown"
	if diff := cmp.Diff([]string{"unchanged  present", never, never}, states); diff != "" {
		t.Error(diff)
	}
}

// TestWhatIsNotAsked: kinds that are not fetched are unchecked, and so is what the record does not
// hold.
func TestWhatIsNotAsked(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	s.set("/p", page(lamp))
	run := w.run("", []cite{{s.URL + "/p", lamp}})
	cfg := w.config()
	cfg.Fetchers = nil
	rep, err := drift.Check(t.Context(), cfg, run)
	if err != nil {
		t.Fatal(err)
	}
	if src := rep.Sources[0]; src.State != drift.Unchecked || rep.Passages[0].State != drift.Unknown || rep.Drifted() || !rep.Incomplete() {
		t.Errorf("the document is %+v", src)
	}
}

// TestTurnedIntoPDF is the one that takes seconds: reading the first PDF does.
func TestTurnedIntoPDF(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	s, w := newSite(t), newWorld(t)
	s.set("/says", page(lamp, filler))
	s.set("/silent", page(lamp, filler))
	run := w.run("", []cite{{s.URL + "/says", lamp}, {s.URL + "/silent", lamp}})
	begins, goesOn, _ := strings.Cut(lamp, " lit ")
	s.set("/says", body("application/pdf", pdf("A report of the harbour master.", begins, "lit "+goesOn)))
	s.set("/silent", body("application/pdf", pdf(ferry)))
	w.limit = time.Minute
	rep := w.check(run)
	for i, want := range []drift.Standing{drift.Present, drift.Missing} {
		if src, p := rep.Sources[i], rep.Passages[i]; src.State != drift.Changed || !strings.Contains(src.Detail, "it is application/pdf now") || p.State != want {
			t.Errorf("the document is %+v and its passage %+v", src, p)
		}
	}
}

// TestExtractorOfToday: what another version of the extractor makes of the same page
// is no change of it, and no loss of a passage.
func TestExtractorOfToday(t *testing.T) {
	s, w := newSite(t), newWorld(t)
	s.set("/p", page(lamp, filler))
	run := w.run("", []cite{{s.URL + "/p", lamp}})
	before := w.config()

	// The record as an older extractor had made it: it kept a mark that is dropped now.
	older := strings.Replace(lamp, "1887 by", "1887[3] by", 1)
	w2 := newWorld(t)
	w2.old = older + "\n\n" + filler
	run2 := w2.run("", []cite{{s.URL + "/p", older}})
	for name, tc := range map[string]struct {
		after  http.HandlerFunc
		state  drift.State
		stands drift.Standing
	}{
		"the same":         {body("text/html; charset=utf-8", "<html><head><title>Harbours</title></head><body><!-- x --><article><h1>Harbours</h1><p>"+lamp+"</p><p>"+filler+"</p></article></body></html>"), drift.Unchanged, drift.Present},
		"edited elsewhere": {page(lamp, ferry), drift.Changed, drift.Present},
		"altered":          {page(strings.Replace(lamp, "keeper", "first keeper", 1), filler), drift.Changed, drift.Altered},
	} {
		s.set("/p", tc.after)
		w2.old = ""
		rep := w2.check(run2)
		src, p := rep.Sources[0], rep.Passages[0]
		if src.State != tc.state || p.State != tc.stands || !strings.Contains(src.Detail, "both were read by") {
			t.Errorf("%s: the document is %+v, its passage %+v", name, src, p)
		}
		if tc.stands == drift.Altered && strings.Contains(p.Now, "[3]") {
			t.Errorf("%s: the extractor's own change is in it: %v", name, p.Now)
		}
	}
	s.set("/p", page(lamp, ferry))
	if rep, err := drift.Check(t.Context(), before, run); err != nil || strings.Contains(rep.Sources[0].Detail, "both were read by") {
		t.Errorf("with the same extractor: %+v, %v", rep.Sources, err)
	}
}

// TestWhatOthersRead: a document that another researcher handed over is not fetched; one that the
// investigator fetched itself is.
func TestWhatOthersRead(t *testing.T) {
	s := newSite(t)
	s.set("/p", page(lamp, filler))
	loc := s.URL + "/p"
	for how, want := range map[string]drift.State{"stored": drift.Unchecked, "reported": drift.Unchecked, "refetched": drift.Changed} {
		w := newWorld(t)
		run := w.heard(how, cite{loc, lamp})
		before := s.requests("/p")
		rep := w.check(run)
		if src := rep.Sources[0]; src.State != want || src.Locator != loc {
			t.Errorf("%s: the document is %+v", how, src)
		}
		if asked := s.requests("/p") > before; asked != (want != drift.Unchecked) {
			t.Errorf("%s: asked for: %v", how, asked)
		}
		if want == drift.Changed && rep.Passages[0].State != drift.Present {
			t.Errorf("%s: the passage is %+v", how, rep.Passages[0])
		}
	}
}
