package bundle_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nlnwa/gowarc/v2"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/bundle"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/replay"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	options = bundle.Options{Now: noon, Version: "v1.2.3"}
)

// document is a page of a run: what it is, and what is stored of it.
type document struct {
	page      fetch.Page
	raw, text string
}

// shelf is a fetcher of documents, by locator.
type shelf map[string]fetch.Page

func (s shelf) Fetch(_ context.Context, loc string) (fetch.Page, error) { return s[loc], nil }

// ran records a run that read the documents.
func ran(t *testing.T, docs ...document) (run.Store, *run.Run) {
	t.Helper()
	dir, err := trace.OpenDir(t.TempDir(), func() time.Time { return noon })
	if err != nil {
		t.Fatal(err)
	}
	id, err := marchwarden.ParseTraceID("0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10")
	if err != nil {
		t.Fatal(err)
	}
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.Close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	blobs := blob.NewMem()
	put := func(s string) blob.Ref {
		ref, err := blobs.Put(t.Context(), []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return ref
	}
	j := replay.Record(w, blobs, func() time.Duration { return 0 }, nil)
	known := shelf{}
	f := replay.Fetcher(j, known)
	for i, d := range docs {
		if d.raw != "" {
			d.page.Raw, d.page.RawBytes = put(d.raw), len(d.raw)
		}
		d.page.NonText = d.text == ""
		if d.text != "" {
			d.page.Text, d.page.TextBytes = put(d.text), len(d.text)
		}
		d.page.FetchedAt = noon.Add(-time.Duration(i) * time.Hour)
		known[d.page.Locator] = d.page
		if _, err := f.Fetch(t.Context(), d.page.Locator); err != nil {
			t.Fatal(err)
		}
	}
	log, err := dir.Load(id)
	if err != nil {
		t.Fatal(err)
	}
	return run.Store{Traces: dir, Blobs: blobs}, &run.Run{ID: id, Log: log}
}

func web(loc, url, media, raw, text string) document {
	return document{fetch.Page{Locator: loc, URL: url, Source: "web", Title: "On soils", MediaType: media, Extractor: "html/3"}, raw, text}
}

// some are documents of every kind.
func some() []document {
	hostile := web("https://example.org/evil", "https://example.org/evil?q=%0D%0AWARC-Type:%20x", "text/html\r\nX-Evil: 1", "\r\n\r\nWARC/1.1\r\nWARC-Type: warcinfo\r\n\r\n", "x")
	hostile.page.Title = "Soils\r\nWARC-Type: response\x1b[31m"
	odd := document{fetch.Page{Locator: "doi:10.1000/a<b>#c%d", URL: "https://doi.org/10.1000/a%3Cb%3E%23c%25d", Source: "arxiv", MediaType: "application/json"}, `{"indexes":{}}`, "A paper"}
	local := document{fetch.Page{Locator: "notes.txt", Source: "file", MediaType: "text/plain"}, "my secret notes", "my secret notes"}
	row := document{fetch.Page{Locator: "db:patients/7", Source: "database", MediaType: "application/json"}, `{"name":"secret"}`, "secret"}
	paper := document{fetch.Page{Locator: "arxiv:2101.00007", URL: "https://arxiv.org/abs/2101.00007v3", Source: "arxiv", Title: "The Lemming model", MediaType: "application/json", Extractor: "arxiv/2"}, `{"paper":{}}`, "The Lemming model"}
	return []document{
		web("https://example.org/soils", "https://example.org/soils", "text/html", "<p>Most soils are alkaline.</p>", "Most soils are alkaline."),
		web("https://example.org/old", "https://example.org/a%20b?x=1&y=ž", "text/plain; charset=utf-8", "Žluťoučký kůň", "Žluťoučký kůň"),
		web("https://example.org/photo", "https://example.org/photo", "image/png", "\x89PNG\r\n\x1a\n\x00", ""),
		web("https://example.org/large", "https://example.org/large", "text/html", strings.Repeat("<p>loam</p>", 200_000), strings.Repeat("loam\n", 200_000)),
		hostile, local, paper, row, odd,
		web("https://example.org/report", "", "", "", "only a text"),
		web("https://example.org/odd", "gopher://example.org/", "text/html", "odd", "odd"),
	}
}

func write(t *testing.T, s run.Store, run *run.Run) ([]byte, bundle.WARCStats) {
	t.Helper()
	var b bytes.Buffer
	n, err := bundle.WriteWARC(t.Context(), &b, s, run, options)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), n
}

// held is a record as the library reads it back.
type held struct {
	Type, ID, RefersTo, Target, Date, Media, Payload string
	block                                            []byte
}

// read reads a file with the strictest rules there are.
func read(t *testing.T, file []byte) []held {
	t.Helper()
	var all []held
	in := bufio.NewReader(bytes.NewReader(file))
	u := gowarc.NewUnmarshaler(gowarc.WithStrictValidation(), gowarc.WithBlockErrorPolicy(gowarc.ErrFail))
	for {
		rec, _, validation, err := u.Unmarshal(in)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil || !validation.Valid() {
			t.Fatalf("record %d: %v, %v", len(all), err, validation)
		}
		h := rec.WarcHeader()
		got := held{rec.Type().String(), h.GetId(gowarc.WarcRecordID), h.GetId(gowarc.WarcRefersTo), h.Get(gowarc.WarcTargetURI), h.Get(gowarc.WarcDate), h.Get(gowarc.ContentType), h.Get(gowarc.WarcPayloadDigest), nil}
		r, err := rec.Block().RawBytes()
		if err != nil {
			t.Fatal(err)
		}
		if got.block, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if want := blob.Of(got.block).String(); h.Get(gowarc.WarcBlockDigest) != want || got.Payload != "" && got.Payload != want {
			t.Errorf("record %d: digests %s and %s, want %s", len(all), h.Get(gowarc.WarcBlockDigest), got.Payload, want)
		}
		if rec.Version().String() != "WARC/1.1" || got.Type != "warcinfo" && h.GetId(gowarc.WarcWarcinfoID) != all[0].ID {
			t.Errorf("record %d: %s of %s", len(all), rec.Version(), h.GetId(gowarc.WarcWarcinfoID))
		}
		all = append(all, got)
		if err := rec.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrite(t *testing.T) {
	docs := some()
	s, run := ran(t, docs...)
	file, n := write(t, s, run)
	if diff := cmp.Diff(bundle.WARCStats{Pages: 7, Private: 2, NoBytes: 1, BadAddress: 1}, n); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	all := read(t, file)
	var types []string
	seen := map[string]bool{}
	for _, h := range all {
		types = append(types, h.Type)
		if seen[h.ID] || !strings.HasPrefix(h.ID, "urn:uuid:") {
			t.Errorf("the id %q", h.ID)
		}
		seen[h.ID] = true
		if bytes.Contains(h.block, []byte("secret")) {
			t.Errorf("what is private is in %+v", h)
		}
	}
	page := "resource conversion metadata "
	if got, want := strings.Join(types, " ")+" ", "warcinfo "+page+page+"resource metadata "+page+page+page+page; got != want {
		t.Fatalf("records %s, want %s", got, want)
	}
	soils := all[1:4]
	if soils[0].Target != "https://example.org/soils" || soils[0].Date != "2026-03-01T12:00:00Z" || soils[0].Media != "text/html" || string(soils[0].block) != docs[0].raw {
		t.Errorf("resource %+v %q", soils[0], soils[0].block)
	}
	if soils[1].RefersTo != soils[0].ID || soils[1].Media != "text/plain; charset=utf-8" || string(soils[1].block) != docs[0].text {
		t.Errorf("conversion %+v %q", soils[1], soils[1].block)
	}
	for _, part := range []string{"title: On soils\r\n", "content-hash: " + blob.Of([]byte(docs[0].text)).String() + "\r\n", "trace-id: " + run.ID.String() + "\r\n"} {
		if soils[2].RefersTo != soils[0].ID || !strings.Contains(strings.ToLower(string(soils[2].block)), strings.ToLower(part)) {
			t.Errorf("metadata %+v %q, want %q", soils[2], soils[2].block, part)
		}
	}
	if at := all[18].Target; at != "doi:10.1000/a%3Cb%3E%23c%25d" {
		t.Errorf("a DOI became %q", at)
	}
	if paper := all[15]; paper.Target != "arxiv:2101.00007" || paper.Media != "application/json" || !strings.Contains(string(all[17].block), "https://arxiv.org/abs/2101.00007v3") {
		t.Errorf("paper %+v %q", paper, all[17].block)
	}
	evil := all[12]
	if evil.Media != "application/octet-stream" || string(evil.block) != docs[4].raw || strings.Contains(string(all[14].block), "\nWARC-Type") || strings.Contains(string(all[14].block), "\x1b") {
		t.Errorf("%+v %q %q", evil, evil.block, all[14].block)
	}
}

func TestTheSameRunGivesTheSameBytes(t *testing.T) {
	s, run := ran(t, some()...)
	one, _ := write(t, s, run)
	s, run = ran(t, some()...)
	if two, _ := write(t, s, run); !bytes.Equal(one, two) {
		t.Error("two files of one run differ")
	}
}

// A member of its own for every record is what random access needs.
func TestEveryRecordIsAMember(t *testing.T) {
	s, run := ran(t, some()[:2]...)
	file, _ := write(t, s, run)
	if got := bytes.Count(file, []byte{0x1f, 0x8b, 0x08}); got != 7 {
		t.Errorf("%d gzip members, want 7", got)
	}
}

func TestDamageIsNamed(t *testing.T) {
	docs := some()[:1]
	s, run := ran(t, docs...)
	s.Blobs = without{s.Blobs, blob.Of([]byte(docs[0].raw))}
	_, err := bundle.WriteWARC(t.Context(), io.Discard, s, run, options)
	if !errors.Is(err, marchwarden.CodeNotFound) || !strings.Contains(err.Error(), "https://example.org/soils") {
		t.Errorf("%v", err)
	}
}

// without is a store that lost one blob.
type without struct {
	blob.Store
	lost blob.Ref
}

func (w without) Get(ctx context.Context, ref blob.Ref) ([]byte, error) {
	if ref == w.lost {
		return nil, marchwarden.Errorf(marchwarden.CodeNotFound, "%s is not here", ref)
	}
	return w.Store.Get(ctx, ref)
}

// full fails after so many bytes.
type full struct{ left int }

var errFull = errors.New("no space left")

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.left {
		return 0, errFull
	}
	f.left -= len(p)
	return len(p), nil
}

func TestAFullDiskIsAnError(t *testing.T) {
	s, run := ran(t, some()[:2]...)
	file, _ := write(t, s, run)
	for left := 0; left < len(file); left += 100 {
		if _, err := bundle.WriteWARC(t.Context(), &full{left}, s, run, options); !errors.Is(err, errFull) {
			t.Fatalf("room for %d of %d bytes: %v", left, len(file), err)
		}
	}
}

// warcio is what most tools of web archives in Python read with.
func TestWarcioAgrees(t *testing.T) {
	if err := exec.Command("python3", "-c", "import sys, importlib.util as u; sys.exit(u.find_spec('warcio') is None)").Run(); err != nil {
		t.Skip("python3 has no warcio")
	}
	s, run := ran(t, some()...)
	file, _ := write(t, s, run)
	path := filepath.Join(t.TempDir(), "pages.warc.gz")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cli := func(args ...string) string {
		out, err := exec.Command("python3", append([]string{"-c", "import sys; from warcio.cli import main; main(sys.argv[1:])"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("warcio %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	if out := cli("check", "-v", path); strings.Count(out, "digest pass") != 21 || strings.Contains(out, "fail") || strings.Contains(out, "unknown") {
		t.Errorf("warcio check:\n%s", out)
	}
	out := cli("index", "-f", "warc-type,warc-target-uri", path)
	if strings.Count(out, "\n") != 21 || !strings.Contains(out, `{"warc-type": "resource", "warc-target-uri": "https://example.org/soils"}`) {
		t.Errorf("warcio index:\n%s", out)
	}
}
