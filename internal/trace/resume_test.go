package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// TestNoBitOfATraceChangesUnnoticed flips every bit of a trace, one at a time.
func TestNoBitOfATraceChangesUnnoticed(t *testing.T) {
	dir := newDir(t)
	id := testID(t, 1)
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Step{&Start{Format: Format, TraceID: id}, &Iteration{Iteration: 1}, &Message{Head: Head{Decision: "a decision"}}, &Complete{Citations: 3}} {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	whole := readAll(t, dir, id)
	if _, err := Read(bytes.NewReader(whole)); err != nil {
		t.Fatal(err)
	}
	flipped := 0
	for i := range whole {
		for bit := range 8 {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << bit
			log, err := Read(bytes.NewReader(damaged))
			if err == nil && log.Torn == 0 { // a last line that is no JSON counts as torn, and is reported
				t.Errorf("bit %d of byte %d: nobody noticed: %q", bit, i, damaged[max(0, i-20):min(len(damaged), i+20)])
			}
			if err != nil && !strings.Contains(err.Error(), "line") && !strings.Contains(err.Error(), "format") {
				t.Errorf("bit %d of byte %d: %v names no line", bit, i, err)
			}
			flipped++
		}
	}
	t.Logf("%d bits flipped, one at a time", flipped)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for i, other := range map[string][][]byte{"a line gone": {lines[0], lines[2], lines[3]}, "lines changed about": {lines[0], lines[2], lines[1], lines[3]}} {
		if _, err := Read(bytes.NewReader(bytes.Join(other, nil))); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
			t.Errorf("%s: %v", i, err)
		}
	}
}

// TestTheChecksumOfALineStays holds what traces that are written already say.
func TestTheChecksumOfALineStays(t *testing.T) {
	line, sum := durable.SealLine([]byte(`{"step":2}`+"\n"), lineTag, "0123456789abcdef")
	if want := "87949ef2d872b330"; sum != want || string(line) != `{"step":2,"sum":"`+want+`"}`+"\n" {
		t.Errorf("%s in %s, want %s", sum, line, want)
	}
}

// TestOneWriterATrace has a second one turned away while the first lives.
func TestOneWriterATrace(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	id := testID(t, 1)
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(&Start{Format: Format, TraceID: id}); err != nil {
		t.Fatal(err)
	}
	if busy, err := dir.Busy(id); !busy || err != nil {
		t.Errorf("Busy = %v, %v while it is written", busy, err)
	}
	if _, _, err := dir.Append(id); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable || !strings.Contains(err.Error(), "going on in another process") {
		t.Errorf("a second writer: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if busy, err := dir.Busy(id); busy || err != nil {
		t.Errorf("Busy = %v, %v when nobody writes", busy, err)
	}
	again, _, err := dir.Append(id)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Append(&Iteration{Iteration: 1}), again.Close()); err != nil {
		t.Fatal(err)
	}
	if log, err := dir.Load(id); err != nil || len(log.Steps) != 2 {
		t.Errorf("%v, %v", log, err)
	}
}

// TestTheTimeInBetweenIsNotTheRuns adds up what a run worked over two breaks.
func TestTheTimeInBetweenIsNotTheRuns(t *testing.T) {
	at := testTime
	step := func(d time.Duration) Head { at = at.Add(d); return Head{Timestamp: at} }
	start := &Start{Head: Head{Timestamp: at}, StartedAt: at}
	log := &Log{Steps: []Step{start, &Iteration{Head: step(3 * time.Second)}}}
	if got := log.Worked(); got != 3*time.Second {
		t.Errorf("worked %s, want 3s", got)
	}
	log.Steps = append(log.Steps, &Resume{Head: step(time.Hour), Worked: log.Worked()}, &Iteration{Head: step(2 * time.Second)})
	if got := log.Worked(); got != 5*time.Second {
		t.Errorf("worked %s, want 5s", got)
	}
	log.Steps = append(log.Steps, &Resume{Head: step(-24 * time.Hour), Worked: log.Worked()}, &Iteration{Head: step(-time.Second)})
	if got := log.Worked(); got != 5*time.Second {
		t.Errorf("worked %s with a clock that was set back, want 5s", got)
	}
}

// TestACompleteRunThatWentOnIsNotComplete looks past a resume step.
func TestACompleteRunThatWentOnIsNotComplete(t *testing.T) {
	log := &Log{Steps: []Step{&Start{}, &Complete{Citations: 1}}}
	if log.Complete() == nil {
		t.Error("a complete run is not")
	}
	log.Steps = append(log.Steps, &Resume{})
	if log.Complete() != nil {
		t.Error("a run that went on is complete")
	}
	log.Steps = append(log.Steps, &Complete{Citations: 2})
	if done := log.Complete(); done == nil || done.Citations != 2 {
		t.Error(done)
	}
}

// TestAFolderThatCannotBeOpened says why, whatever is asked of it.
func TestAFolderThatCannotBeOpened(t *testing.T) {
	why := fmt.Errorf("read-only file system")
	d := Nowhere("somewhere", why)
	_, err1 := d.Create(testID(t, 1))
	_, err2 := d.Load(testID(t, 1))
	_, err3 := d.List()
	_, _, err4 := d.Append(testID(t, 1))
	for i, err := range []error{err1, err2, err3, err4} {
		if !errors.Is(err, why) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// A line is bound to the one before it: one that is sound in itself, of the right
// number and from another run, is not taken for a line of this one.
func TestALineOfAnotherTraceIsFound(t *testing.T) {
	d := newDir(t)
	var traces [2][][]byte
	for i := range traces {
		id := testID(t, i+1)
		w, err := d.Create(id)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Step{&Start{Format: Format, TraceID: id}, message(1), message(2)} {
			if err := w.Append(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		traces[i] = bytes.SplitAfter(readAll(t, d, id), []byte("\n"))
	}
	for n := 1; n < 3; n++ {
		mixed := slices.Clone(traces[0])
		mixed[n] = traces[1][n]
		if _, err := Read(bytes.NewReader(bytes.Join(mixed, nil))); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
			t.Errorf("line %d: %v", n+1, err)
		}
	}
}

// With an imported trace its mark goes too: a run of the same id would count as imported.
func TestRemoveTakesTheMarkAlong(t *testing.T) {
	d := newDir(t)
	id := testID(t, 1)
	path := put(t, d, id, threeLines(t))
	mark := strings.TrimSuffix(path, suffix) + ForeignSuffix
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if foreign, err := d.Foreign(id); !foreign || err != nil {
		t.Fatal(foreign, err)
	}
	if err := d.Remove(id); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, mark} {
		if _, err := os.Lstat(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", p, err)
		}
	}
}
