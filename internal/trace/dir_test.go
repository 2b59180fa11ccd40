package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

var testTime = time.Date(2026, 3, 1, 10, 30, 0, 5000, time.FixedZone("", 3600))

func testID(t testing.TB, n int) marchwarden.TraceID {
	t.Helper()
	id, err := marchwarden.ParseTraceID(fmt.Sprintf("0198c0de-7a3b-7c11-9d55-%012x", n))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func newDir(t testing.TB) *Dir {
	t.Helper()
	d, err := OpenDir(filepath.Join(t.TempDir(), "deep", "traces"), func() time.Time { return testTime })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func readAll(t testing.TB, d *Dir, id marchwarden.TraceID) []byte {
	t.Helper()
	f, err := d.Raw(id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func message(n int) *Message {
	return &Message{Head: Head{Decision: fmt.Sprintf("decision %d “é”", n)}, Iteration: n, Queries: []string{"a", "b"}}
}

// threeLines is a whole trace of three steps.
func threeLines(t testing.TB) []byte {
	t.Helper()
	d := newDir(t)
	w, err := d.Create(testID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 3 {
		if err := w.Append(message(i + 1)); err != nil {
			t.Fatal(err)
		}
	}
	return readAll(t, d, testID(t, 1))
}

func put(t testing.TB, d *Dir, id marchwarden.TraceID, data []byte) string {
	t.Helper()
	path := filepath.Join(d.Path(), id.String()+".jsonl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Whatever part of a line a crash leaves, Load reports it, Append cuts it, and the trace continues
// with the next number.
func TestTornLastLineAtEveryByte(t *testing.T) {
	whole := threeLines(t)
	d := newDir(t)
	id := testID(t, 2)
	for cut := range len(whole) + 1 {
		path := put(t, d, id, whole[:cut])
		lines := bytes.Count(whole[:cut], []byte("\n"))
		good := int64(bytes.LastIndexByte(whole[:cut], '\n') + 1)
		log, err := d.Load(id)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(log.Steps) != lines || log.Good != good || log.Torn != int64(cut)-good {
			t.Fatalf("cut at %d: %d steps, Good %d, Torn %d, want %d, %d, %d", cut, len(log.Steps), log.Good, log.Torn, lines, good, int64(cut)-good)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, whole[:cut]) {
			t.Fatalf("cut at %d: Load changed the file", cut)
		}
		w, log, err := d.Append(id)
		if err != nil || log.Torn != int64(cut)-good {
			t.Fatalf("cut at %d: Append: %v", cut, err)
		}
		if after, _ := os.ReadFile(path); !bytes.Equal(after, whole[:good]) {
			t.Fatalf("cut at %d: Append left %q", cut, after)
		}
		if err := errors.Join(w.Append(message(9)), w.Close()); err != nil {
			t.Fatal(err)
		}
		log, err = d.Load(id)
		if err != nil || log.Torn != 0 || len(log.Steps) != lines+1 || log.Steps[lines].Header().Step != lines+1 {
			t.Fatalf("cut at %d: after appending: %+v, %v", cut, log, err)
		}
	}
}

func TestCreateAndAppendRefuse(t *testing.T) {
	t.Parallel()
	d := newDir(t)
	id := testID(t, 1)
	w, err := d.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := d.Create(id); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("a second trace of one id: %v", err)
	}
	var zero marchwarden.TraceID
	put(t, d, zero, threeLines(t)) // a file called .jsonl is no trace
	if _, err := d.Create(zero); err == nil {
		t.Error("a trace without an id")
	}
	if _, err := d.Load(zero); err == nil {
		t.Error("Load without an id")
	}
	for name, call := range map[string]func() error{
		"Load":   func() error { _, err := d.Load(testID(t, 2)); return err },
		"Append": func() error { _, _, err := d.Append(testID(t, 2)); return err },
		"Raw":    func() error { _, err := d.Raw(testID(t, 2)); return err },
	} {
		if err := call(); marchwarden.CodeOf(err) != marchwarden.CodeNotFound || !strings.Contains(err.Error(), testID(t, 2).String()) || marchwarden.HintOf(err) == "" {
			t.Errorf("%s of a trace that is not there: %v", name, err)
		}
	}
}

// A crash between the making of a file and its first whole line leaves nothing that is in the way.
func TestCreateAfterACrash(t *testing.T) {
	for n, left := range []string{"", `{"step":1,"act`} {
		d, id := newDir(t), testID(t, n)
		if err := os.WriteFile(filepath.Join(d.Path(), id.String()+suffix), []byte(left), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := d.Create(id)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(message(1)), w.Close()); err != nil {
			t.Fatal(err)
		}
		if log, err := d.Load(id); err != nil || len(log.Steps) != 1 || log.Torn > 0 {
			t.Errorf("after %q: %+v, %v", left, log, err)
		}
	}
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	d := newDir(t)
	w, err := d.Create(testID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for path, want := range map[string]os.FileMode{d.Path(): 0o700, filepath.Join(d.Path(), testID(t, 1).String()+".jsonl"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
}

func TestRawIsTheBytesOfTheFile(t *testing.T) {
	d := newDir(t)
	want := append(threeLines(t), `{"torn`...)
	put(t, d, testID(t, 1), want)
	if got := readAll(t, d, testID(t, 1)); !bytes.Equal(got, want) {
		t.Errorf("Raw gives %q", got)
	}
}

func TestListIsNewestFirst(t *testing.T) {
	d := newDir(t)
	old, mid, twin, young := testID(t, 4), testID(t, 2), testID(t, 3), testID(t, 1)
	for id, minutes := range map[marchwarden.TraceID]time.Duration{old: 0, mid: 1, twin: 1, young: 2} {
		at := testTime.Add(minutes * time.Minute)
		if err := os.Chtimes(put(t, d, id, nil), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, stray := range []string{"notes.txt", "x.jsonl", old.String(), old.String() + ".jsonl.bak", strings.ToUpper(old.String()) + ".txt"} {
		if err := os.WriteFile(filepath.Join(d.Path(), stray), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(d.Path(), testID(t, 5).String()+".jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(d.Path(), testID(t, 6).String()+".jsonl")); err != nil {
		t.Fatal(err)
	}
	got, err := d.List()
	if want := []marchwarden.TraceID{young, twin, mid, old}; err != nil || !slices.Equal(got, want) {
		t.Errorf("List = %v, %v, want %v", got, err, want)
	}
	if _, err := d.Load(testID(t, 5)); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("loading a folder: %v", err)
	}
}

// Files tells without opening them what Stat and Foreign tell of each.
func TestFilesAreAsTheyLie(t *testing.T) {
	d := newDir(t)
	for n, content := range []string{"", "a line\n", "torn"} {
		path := put(t, d, testID(t, n+1), []byte(content))
		if n == 1 {
			if err := os.WriteFile(strings.TrimSuffix(path, suffix)+ForeignSuffix, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	files, err := d.Files()
	if err != nil || len(files) != 3 {
		t.Fatalf("Files = %v, %v", files, err)
	}
	for _, f := range files {
		info, err := d.Stat(f.ID)
		if err != nil || f.Size != info.Size() || !f.Modified.Equal(info.ModTime()) {
			t.Errorf("%+v, Stat says %v, %v", f, info, err)
		}
		if foreign, err := d.Foreign(f.ID); err != nil || foreign != f.Foreign || foreign != (f.ID == testID(t, 2)) {
			t.Errorf("%+v, Foreign says %v, %v", f, foreign, err)
		}
	}
	if files, err := Nowhere("x", errors.New("no")).Files(); err == nil {
		t.Errorf("nowhere: %v", files)
	}
}

// No id leads out of the folder, and neither does a link in it.
func TestNothingOutsideTheFolderIsReached(t *testing.T) {
	d := newDir(t)
	outside := filepath.Join(filepath.Dir(d.Path()), "secret.jsonl")
	if err := os.WriteFile(outside, threeLines(t), 0o600); err != nil {
		t.Fatal(err)
	}
	good := testID(t, 1).String()
	for _, s := range []string{
		"..", "../secret", "../../etc/passwd", "/etc/passwd", "./" + good, good + "/../x", "../" + good, "..\\secret", "C:\\secret", good + "\x00", "\x00" + good,
		good[:33] + "../", "%2e%2e%2fsecret", "..%2fsecret", "....//secret", good + ".jsonl", good + "\n", "~/" + good[2:], "secret", "//server/share", "．．／secret", good[:35] + "/",
	} {
		if id, err := marchwarden.ParseTraceID(s); err == nil {
			t.Errorf("%q is an id: %s", s, id)
		}
	}
	for i, target := range []string{outside, "../secret.jsonl", "/etc/passwd"} {
		id := testID(t, i+10)
		if err := os.Symlink(target, filepath.Join(d.Path(), id.String()+".jsonl")); err != nil {
			t.Fatal(err)
		}
		if log, err := d.Load(id); err == nil {
			t.Errorf("Load followed a link to %s: %d steps", target, len(log.Steps))
		}
		if _, _, err := d.Append(id); err == nil {
			t.Errorf("Append followed a link to %s", target)
		}
		if _, err := d.Create(id); err == nil {
			t.Errorf("Create followed a link to %s", target)
		}
	}
	link := filepath.Join(d.Path(), testID(t, 20).String()+".jsonl")
	if err := os.Symlink("../made.jsonl", link); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Create(testID(t, 20)); err == nil {
		t.Error("Create made a file outside the folder")
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(d.Path()), "made.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a file outside the folder: %v", err)
	}
}

// faulty is a file that fails as told and keeps what reached it.
type faulty struct {
	got     []byte
	writes  int
	syncs   int
	failAt  int  // the write that fails
	accept  int  // how many of its bytes get through
	silent  bool // the short write reports no error
	syncBad bool
}

var errDisk = errors.New("disk full")

func (f *faulty) Write(p []byte) (int, error) {
	f.writes++
	if f.writes != f.failAt {
		f.got = append(f.got, p...)
		return len(p), nil
	}
	f.got = append(f.got, p[:f.accept]...)
	if f.silent {
		return f.accept, nil
	}
	return f.accept, errDisk
}

func (f *faulty) Sync() error {
	f.syncs++
	if f.syncBad {
		return errDisk
	}
	return nil
}

func (f *faulty) Close() error { return nil }

func TestABrokenWriterStaysBroken(t *testing.T) {
	for name, c := range map[string]struct {
		file  faulty
		cause error
	}{
		"short write":            {faulty{failAt: 2, accept: 10}, errDisk},
		"short write, no error":  {faulty{failAt: 2, accept: 10, silent: true}, io.ErrShortWrite},
		"write of nothing":       {faulty{failAt: 2}, errDisk},
		"all written, but error": {faulty{failAt: 2, accept: 60}, errDisk},
	} {
		t.Run(name, func(t *testing.T) {
			w := &Writer{f: &c.file, now: func() time.Time { return testTime }}
			if err := w.Append(message(1)); err != nil {
				t.Fatal(err)
			}
			whole := len(c.file.got)
			first := w.Append(message(2))
			if !errors.Is(first, c.cause) || marchwarden.CodeOf(first) != marchwarden.CodeUnavailable || !strings.Contains(first.Error(), "step 2") {
				t.Fatalf("the failing Append: %v", first)
			}
			for range 3 {
				if err := w.Append(message(3)); err != first {
					t.Errorf("a later Append: %v, want the first error", err)
				}
			}
			if len(c.file.got) != whole+c.file.accept || c.file.writes != 2 {
				t.Errorf("%d bytes in %d writes, want %d in 2: something follows the stump", len(c.file.got), c.file.writes, whole+c.file.accept)
			}
			if log, err := Read(bytes.NewReader(c.file.got)); err != nil || len(log.Steps) != 1 || log.Torn != int64(c.file.accept) {
				t.Errorf("what is left reads as %+v, %v", log, err)
			}
		})
	}
	t.Run("fsync", func(t *testing.T) {
		f := &faulty{syncBad: true}
		w := &Writer{f: f, now: func() time.Time { return testTime }}
		first := w.Append(message(1))
		f.syncBad = false // a second fsync after a failed one proves nothing
		if again := w.Append(message(2)); !errors.Is(first, errDisk) || again != first || f.writes != 1 || f.syncs != 1 {
			t.Errorf("Append = %v, then %v, after %d writes and %d syncs", first, again, f.writes, f.syncs)
		}
	})
}

func TestEveryLineIsOneWriteAndOneSync(t *testing.T) {
	f := &faulty{}
	w := &Writer{f: f, now: func() time.Time { return testTime }}
	for i := range 5 {
		if err := w.Append(message(i)); err != nil || f.writes != i+1 || f.syncs != i+1 {
			t.Fatalf("after step %d: %d writes, %d syncs, %v", i+1, f.writes, f.syncs, err)
		}
	}
}

// A step that could not be read again is not written.
func TestAppendRefusesWhatReadWould(t *testing.T) {
	for name, s := range map[string]Step{
		"too long": &Message{Head: Head{Decision: strings.Repeat("x", maxLine)}},
		"unknown":  &Unknown{Head: Head{Action: "from_the_future"}, Raw: []byte(`{}`)},
	} {
		f := &faulty{}
		w := &Writer{f: f, now: func() time.Time { return testTime }}
		if err := w.Append(s); err == nil || f.writes != 0 {
			t.Errorf("%s: %v after %d writes", name, err, f.writes)
		}
	}
	longest := &Message{}
	longest.Decision = strings.Repeat("x", maxLine-200)
	f := &faulty{}
	w := &Writer{f: f, now: func() time.Time { return testTime }}
	if err := w.Append(longest); err != nil {
		t.Fatal(err)
	}
	if log, err := Read(bytes.NewReader(f.got)); err != nil || len(log.Steps) != 1 {
		t.Errorf("a long line does not come back: %v", err)
	}
}

func TestConcurrentAppends(t *testing.T) {
	d := newDir(t)
	id := testID(t, 1)
	w, err := d.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 25 {
				if err := w.Append(message(g*100 + i)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	log, err := d.Load(id)
	if err != nil || len(log.Steps) != 200 || log.Torn != 0 {
		t.Fatalf("%+v, %v", log, err)
	}
	next := map[int]int{} // each goroutine's steps keep their order
	for _, s := range log.Steps {
		n := s.(*Message).Iteration
		if n%100 != next[n/100] {
			t.Fatalf("message %d came before message %d", n, n/100*100+next[n/100])
		}
		next[n/100]++
	}
}

func TestClosedWriterRefuses(t *testing.T) {
	d := newDir(t)
	w, err := d.Create(testID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.Append(message(1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append after Close: %v", err)
	}
	if err := w.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the second Close: %v", err)
	}
}

// What must not be written is taken out of every line, of a run that goes on too, and
// the line is whole without it.
func TestLinesAreCleaned(t *testing.T) {
	d := newDir(t)
	d.Clean = func(line []byte) []byte { return bytes.ReplaceAll(line, []byte("hunter2"), []byte("REDACTED")) }
	id := testID(t, 1)
	say := func(w *Writer, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Append(&Message{Head: Head{Decision: "my password is hunter2"}}), w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	say(d.Create(id))
	w, _, err := d.Append(id)
	say(w, err)
	log, err := d.Load(id)
	if err != nil || len(log.Steps) != 2 {
		t.Fatal(log, err)
	}
	for _, s := range log.Steps {
		if got := s.Header().Decision; got != "my password is REDACTED" {
			t.Errorf("step %d: %s", s.Header().Step, got)
		}
	}
}
