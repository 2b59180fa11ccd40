package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// A trace that is skimmed has the steps that were asked for as Load gives them, and of the
// others their heads; what is damaged is so for both.
func TestSkim(t *testing.T) {
	d := newDir(t)
	w, err := d.Create(testID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Step{&Start{Format: Format, TraceID: testID(t, 1)}, &Message{Head: Head{Decision: "x"}}, &Complete{TokensUsed: 7}} {
		if err := w.Append(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.Path(), testID(t, 1).String()+suffix)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := d.Load(testID(t, 1))
	if err != nil {
		t.Fatal(err)
	}
	some, err := d.Skim(testID(t, 1), ActionComplete)
	if err != nil || len(some.Steps) != len(all.Steps) || some.Good != all.Good {
		t.Fatalf("%+v, %v", some, err)
	}
	if _, err := some.Start(); err != nil {
		t.Error("the first step is not decoded:", err)
	}
	if c, ok := some.Steps[2].(*Complete); !ok || *c != *all.Steps[2].(*Complete) {
		t.Errorf("%+v, want %+v", some.Steps[2], all.Steps[2])
	}
	passed, want := some.Steps[1].Header(), *all.Steps[1].Header()
	want.Decision = ""
	if _, ok := some.Steps[1].(*Unknown); !ok || *passed != want {
		t.Errorf("%T %+v, want the head %+v", some.Steps[1], passed, want)
	}
	for i := range whole {
		changed := bytes.Clone(whole)
		changed[i] ^= 0x04
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		all, wantErr := d.Load(testID(t, 1))
		some, err := d.Skim(testID(t, 1), ActionComplete)
		if marchwarden.CodeOf(err) != marchwarden.CodeOf(wantErr) || err == nil && (some.Good != all.Good || some.Torn != all.Torn || some.Damaged != all.Damaged) {
			t.Fatalf("byte %d: %v, Load says %v", i, err, wantErr)
		}
	}
}

// What stands first in a line is what the line is: nothing after it says otherwise.
func TestALineThatSaysTwoThings(t *testing.T) {
	for _, line := range []string{
		`{"step":1,"action":"web_search","timestamp":"2026-11-15T00:00:00Z","decision":"","action":"complete"}`,
		`{"step":1,"action":"web_search","timestamp":"2026-11-15T00:00:00Z","decision":"","Step":2}`,
		`{"step":1,"action":"web_search","timestamp":"2026-11-15T00:00:00Z","decision":"","timestamp":"2026-11-16T00:00:00Z"}`,
	} {
		if log, err := Read(strings.NewReader(line + "\n" + line + "\n")); marchwarden.CodeOf(err) != marchwarden.CodeCorrupt {
			t.Errorf("%s: %+v, %v", line, log, err)
		}
	}
}

// The head of a line is read at a glance as it is read in full, or not at all.
func FuzzGlance(f *testing.F) {
	f.Add(`{"step":1,"action":"start","timestamp":"2026-11-15T09:00:00.5Z","decision":"x"}`)
	f.Add(`{"step":1,"action":"st\u0061rt","timestamp":"2026-11-15T09:00:00+01:00","decision":"x"}`)
	f.Add(`{"step": 1,"action":"start"}`)
	f.Add(`{"step":1,"action":"a","timestamp":"2026-11-15T09:00:00Z","x":"\","}`)
	f.Fuzz(func(t *testing.T, line string) {
		head, ok := glance([]byte(line))
		if !ok {
			return
		}
		full, err := (&Log{}).decode([]byte(line), head.Step)
		if err != nil {
			return // it is no line, or says two things
		}
		if h := full.Header(); h.Step != head.Step || h.Action != head.Action || !h.Timestamp.Equal(head.Timestamp) {
			t.Errorf("%s: %+v, in full %+v", line, head, h)
		}
	})
}
