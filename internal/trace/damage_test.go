package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A last line that is whole was acknowledged: the next writer of a trace cuts off what a crash
// leaves, and nothing else.
func TestAppendCutsOnlyWhatACrashLeaves(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	id := testID(t, 1)
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Step{&Start{Format: Format, TraceID: id}, &Message{Head: Head{Decision: "a decision"}}, &Complete{Citations: 3}} {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := readAll(t, dir, id)
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	path := filepath.Join(dir.root.Name(), id.String()+suffix)
	open := func(content []byte) (*Log, []byte, error) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		w, log, err := dir.Append(id)
		if err == nil {
			err = w.Close()
		}
		return log, readAll(t, dir, id), err
	}
	for i := last; i < len(whole)-1; i++ {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 1 << (i % 8)
		if _, after, err := open(damaged); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt || !bytes.Equal(after, damaged) {
			t.Errorf("byte %d of the last line: %v, %d of %d bytes are left", i-last, err, len(after), len(damaged))
		}
	}
	for name, tt := range map[string]struct {
		content []byte
		steps   int
	}{
		"a line without its newline":  {whole[:len(whole)-1], 2},
		"half a line":                 {whole[:last+(len(whole)-last)/2], 2},
		"zeros":                       {append(bytes.Clone(whole), make([]byte, 512)...), 3},
		"zeros and what follows them": {append(append(bytes.Clone(whole), make([]byte, 512)...), '\n'), 3},
		"nothing":                     {whole, 3},
	} {
		want := whole
		if tt.steps == 2 {
			want = whole[:last]
		}
		if log, after, err := open(tt.content); err != nil || len(log.Steps) != tt.steps || !bytes.Equal(after, want) {
			t.Errorf("%s: %v, %d bytes, want %d", name, err, len(after), len(want))
		}
	}
}
