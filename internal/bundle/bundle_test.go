package bundle

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

const (
	mainID  = "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a10"
	rihlaID = "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a11"
	awayID  = "0198c0de-7a3b-7c11-9d55-3f2f6f1c9a12"
)

var when = time.Date(2026, 3, 1, 12, 30, 7, 0, time.UTC)

func id(t testing.TB, s string) marchwarden.TraceID {
	t.Helper()
	parsed, err := marchwarden.ParseTraceID(s)
	check(t, err)
	return parsed
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// home is an empty place for records.
func home(t testing.TB) run.Store {
	t.Helper()
	traces, err := trace.OpenDir(filepath.Join(t.TempDir(), "traces"), func() time.Time { return when })
	check(t, err)
	t.Cleanup(func() { check(t, traces.Close()) })
	return run.Store{Traces: traces, Blobs: blob.NewMem()}
}

func put(t testing.TB, s run.Store, v any) blob.Ref {
	t.Helper()
	content, ok := v.(string)
	if !ok {
		data, err := json.Marshal(v)
		check(t, err)
		content = string(data)
	}
	ref, err := s.Blobs.Put(context.Background(), []byte(content))
	check(t, err)
	return ref
}

func write(t testing.TB, s run.Store, name string, steps ...trace.Step) {
	t.Helper()
	w, err := s.Traces.Create(id(t, name))
	check(t, err)
	for _, step := range steps {
		check(t, w.Append(step))
	}
	check(t, w.Close())
}

func start(t testing.TB, name string) *trace.Start {
	return &trace.Start{Format: trace.Format, TraceID: id(t, name), Researcher: "files", Mind: "extractive/1", Engine: "local", Version: "1.0",
		Request: marchwarden.Request{Question: "What is\nmarked?"}, StartedAt: when}
}

// recorded is a home with an investigation of two rihlas, one of them kept
// elsewhere. Its bundle is small.
func recorded(t testing.TB) (run.Store, *run.Run) {
	t.Helper()
	s := home(t)
	text := put(t, s, strings.Repeat("The harbour lamp was first lit in 1887. ", 12))
	raw := put(t, s, "\x00\x01\xffraw")
	page := put(t, s, struct{ Output fetch.Page }{fetch.Page{Locator: "lamp.txt", Text: text, Raw: raw}})
	result := func(name string) blob.Ref {
		data, err := marchwarden.EncodeResult(&marchwarden.Result{Answer: "Lit in 1887. [1]", TraceID: id(t, name)})
		check(t, err)
		return put(t, s, string(data))
	}
	part := start(t, rihlaID)
	part.PartOf = true
	write(t, s, rihlaID, part,
		&trace.FetchComplete{Effect: trace.Effect{OutputID: page}, URL: "lamp.txt", ContentHash: text, RawHash: raw},
		&trace.ModelComplete{Effect: trace.Effect{OutputID: put(t, s, "reply")}, Model: "m/1", Prompt: "synthesis", TemplateHash: "sha256:00"},
		&trace.Complete{Result: result(rihlaID)})
	whole := start(t, mainID)
	whole.Investigation = &trace.Investigation{Planner: "derive/1"}
	write(t, s, mainID, whole,
		&trace.RihlaComplete{Effect: trace.Effect{OutputID: put(t, s, "report")}, Number: 1, Researcher: "files", TraceID: id(t, rihlaID)},
		&trace.RihlaComplete{Effect: trace.Effect{OutputID: put(t, s, "other report")}, Number: 2, Researcher: "lamps", TraceID: id(t, awayID)},
		&trace.Complete{Result: result(mainID)})
	run, err := s.Load(id(t, mainID))
	check(t, err)
	return s, run
}

// pack is the bundle of recorded.
func pack(t testing.TB) []byte {
	t.Helper()
	s, run := recorded(t)
	var b bytes.Buffer
	check(t, Write(context.Background(), &b, s, run, Options{Now: when, Version: "1.0"}))
	return b.Bytes()
}

func open(data []byte) (*Bundle, error) { return Open(bytes.NewReader(data), int64(len(data))) }

// problems are what is wrong with a bundle, in words.
func problems(t testing.TB, data []byte) []string {
	t.Helper()
	b, err := open(data)
	if err != nil {
		if code := marchwarden.CodeOf(err); code != marchwarden.CodeCorrupt && code != marchwarden.CodeUnsupported {
			t.Fatalf("Open: %v has code %s", err, code)
		}
		return []string{err.Error()}
	}
	r, err := b.Verify(context.Background())
	check(t, err)
	return r.Problems
}

func TestBundle(t *testing.T) {
	data := pack(t)
	if again := pack(t); !bytes.Equal(data, again) {
		t.Error("the same record gave other bytes")
	}
	b, err := open(data)
	check(t, err)
	r, err := b.Verify(context.Background())
	check(t, err)
	if !r.OK() || r.Signed {
		t.Fatalf("Verify = %+v", r)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	var names []string
	for _, f := range z.File {
		if !strings.Contains(f.Name, blobsDir) {
			names = append(names, f.Name)
		}
		if !f.Modified.Equal(when.Add(-time.Second)) { // a zip counts every other second
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
	}
	top := "marchwarden-" + mainID + "/"
	want := []string{top + aboutName, top + resultName, top + traceName(id(t, mainID)), top + traceName(id(t, rihlaID)),
		top + bagInfoName, top + bagitName, top + manifestName, top + packedName, top + tagsName}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	about := b.About
	if len(about.Runs) != 2 || about.Runs[0].Planner != "derive/1" || about.Runs[1].TraceID != id(t, rihlaID) ||
		!cmp.Equal(about.Models, []string{"m/1"}) || !cmp.Equal(about.Prompts, []Prompt{{"synthesis", "sha256:00"}}) ||
		len(about.Elsewhere) != 1 || about.Elsewhere[0] != (Elsewhere{id(t, awayID), "lamps"}) || !about.ExportedAt.Equal(when) {
		t.Errorf("about = %+v", about)
	}
	info, err := b.read(bagInfoName)
	check(t, err)
	if !strings.Contains(string(info), "\nExternal-Description: What is marked?\n") || !strings.Contains(string(info), "\nBagging-Date: 2026-03-01\n") {
		t.Errorf("%s", info)
	}
}

// What the bundle hands out is what was recorded.
func TestParts(t *testing.T) {
	ctx := context.Background()
	s, run := recorded(t)
	b, err := open(pack(t))
	check(t, err)
	inside, err := b.Run()
	check(t, err)
	if !cmp.Equal(inside.Refs(), run.Refs(), cmp.Comparer(func(a, b blob.Ref) bool { return a == b })) {
		t.Error("other blobs are needed")
	}
	for _, ref := range run.Refs() {
		want, err := s.Blobs.Get(ctx, ref)
		check(t, err)
		got, err := b.Blobs().Get(ctx, ref)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("Get(%s) = %q, %v", ref, got, err)
		}
		if info, err := b.Blobs().Stat(ctx, ref); err != nil || info.Size != int64(len(want)) {
			t.Errorf("Stat(%s) = %+v, %v", ref, info, err)
		}
	}
	if _, err := b.Blobs().Get(ctx, blob.Of([]byte("none"))); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("Get of what is not there: %v", err)
	}
	if _, err := b.Blobs().Put(ctx, []byte("x")); !errors.Is(err, marchwarden.CodeUnsupported) {
		t.Errorf("Put: %v", err)
	}
	if _, err := b.Load(id(t, awayID)); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("Load of what is kept elsewhere: %v", err)
	}
	want, _, err := s.Result(ctx, run)
	check(t, err)
	if got, err := b.payload(resultName); err != nil || !bytes.Equal(got, want) {
		t.Errorf("Result = %q, %v", got, err)
	}
}

// A trace is taken up to its last whole line, and a run without an end is refused.
func TestTornAndUnfinished(t *testing.T) {
	s, _ := recorded(t)
	f, err := os.OpenFile(filepath.Join(s.Traces.Path(), mainID+traceSuffix), os.O_APPEND|os.O_WRONLY, 0)
	check(t, err)
	_, err = f.WriteString(`{"step":`)
	check(t, errors.Join(err, f.Close()))
	run, err := s.Load(id(t, mainID))
	check(t, err)
	var b bytes.Buffer
	check(t, Write(context.Background(), &b, s, run, Options{Now: when, Version: "1.0"}))
	if !bytes.Equal(b.Bytes(), pack(t)) {
		t.Error("a torn line changed the bundle")
	}
	write(t, s, awayID, start(t, awayID))
	run, err = s.Load(id(t, awayID))
	check(t, err)
	if err := Write(context.Background(), io.Discard, s, run, Options{}); !errors.Is(err, marchwarden.CodeUnsupported) {
		t.Errorf("a run without a result: %v", err)
	}
}

func TestDamagedRecord(t *testing.T) {
	s, run := recorded(t)
	s.Blobs = blob.NewMem()
	if _, err := s.Blobs.Put(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	err := Write(context.Background(), io.Discard, s, run, Options{})
	if !errors.Is(err, marchwarden.CodeCorrupt) || !strings.Contains(err.Error(), "sha256:") {
		t.Errorf("a record without blobs: %v", err)
	}
}

// What packs better than a reader believes is not packed.
func TestHugeRatio(t *testing.T) {
	s := home(t)
	zeros := put(t, s, strings.Repeat("0", 1<<20))
	data, err := marchwarden.EncodeResult(&marchwarden.Result{Answer: "No.", TraceID: id(t, mainID)})
	check(t, err)
	write(t, s, mainID, start(t, mainID), &trace.FetchComplete{ContentHash: zeros}, &trace.Complete{Result: put(t, s, string(data))})
	run, err := s.Load(id(t, mainID))
	check(t, err)
	var b bytes.Buffer
	check(t, Write(context.Background(), &b, s, run, Options{Now: when}))
	if found := problems(t, b.Bytes()); found != nil {
		t.Error(found)
	}
}

// The first bundle of format 1, which was signed, can be read for ever, whatever becomes of the
// libraries that unpack it and of the code that writes them.
func TestFirstFormat(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "format1.mwz"))
	check(t, err)
	if found := problems(t, data); found != nil {
		t.Error(found)
	}
	b, err := open(data)
	check(t, err)
	if r, err := b.Verify(context.Background()); err != nil || !r.Signed {
		t.Errorf("it is not said to be signed: %v", err)
	}
}

// The bag is valid to others.
func TestBagit(t *testing.T) {
	python := os.Getenv("MARCHWARDEN_BAGIT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import bagit").Run(); err != nil {
		t.Skip("python3 with the module bagit is not installed")
	}
	data := pack(t)
	dir := t.TempDir()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	check(t, err)
	check(t, os.CopyFS(dir, z))
	bag := filepath.Join(dir, topPrefix+mainID)
	if out, err := exec.Command(python, "-m", "bagit", "--validate", bag).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	check(t, os.WriteFile(filepath.Join(bag, resultName), []byte("{}"), 0o600))
	if out, err := exec.Command(python, "-m", "bagit", "--validate", bag).CombinedOutput(); err == nil {
		t.Errorf("a changed bag is valid: %s", out)
	}
}
