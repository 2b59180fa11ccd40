package drift_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/drift"
)

func TestKeepAndLast(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "drift", runID.String()+".jsonl")
	if _, ok, err := drift.Last(home, runID); ok || err != nil {
		t.Fatalf("before the first check: %v, %v", ok, err)
	}
	report := func(minute int) drift.Report {
		return drift.Report{Format: drift.Format, TraceID: runID, CheckedAt: noon.Add(time.Duration(minute) * time.Minute),
			Sources: []drift.Source{{Locator: "https://example.org/<&>", State: drift.Unchanged, Citations: []int{1}}}, Passages: []drift.Passage{{Citation: 1, State: drift.Present}}, Claims: []drift.Claim{}}
	}
	last := func(want drift.Report) {
		t.Helper()
		got, ok, err := drift.Last(home, runID)
		if diff := cmp.Diff(want, got, cmpopts.EquateComparable(runID)); !ok || err != nil || diff != "" {
			t.Errorf("%v, %v\n%s", ok, err, diff)
		}
	}
	for i := range 3 {
		if err := drift.Keep(home, report(i)); err != nil {
			t.Fatal(err)
		}
		last(report(i))
	}
	damage := func(text string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	damage(fmt.Sprintf(`{"format":77,"trace_id":%q}`+"\n", runID)) // of a later version
	last(report(2))
	damage(fmt.Sprintf(`{"format":1,"trace_id":%q,"claims":[]}`+"\n", runID)) // of the version without checksums
	last(drift.Report{Format: drift.Format, TraceID: runID, Claims: []drift.Claim{}})
	damage(`{"format":1,"trace`) // torn
	last(drift.Report{Format: drift.Format, TraceID: runID, Claims: []drift.Claim{}})
	if err := drift.Keep(home, report(4)); err != nil {
		t.Fatal(err)
	}
	last(report(4))
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
	bad, err := drift.Damage(path)
	if err != nil || len(bad) != 2 || bad[0].N != 4 || !bad[0].Later || bad[1].N != 6 || bad[1].Later {
		t.Errorf("damage: %v, %v", bad, err)
	}
}

// Every bit of a kept check is protected.
func TestEveryFlippedBitOfACheckIsFound(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "drift", runID.String()+".jsonl")
	if bad, err := drift.Damage(path); len(bad) > 0 || err != nil {
		t.Fatalf("no file: %v, %v", bad, err)
	}
	if err := drift.Keep(home, drift.Report{TraceID: runID, CheckedAt: noon, Passages: []drift.Passage{{Citation: 1, State: drift.Present}}}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bad, err := drift.Damage(path); len(bad) > 0 || err != nil {
		t.Fatalf("whole: %v, %v", bad, err)
	}
	every := 7 // bits
	if os.Getenv("MARCHWARDEN_TEST_FULL") != "" {
		every = 1
	}
	for bit := 0; bit < 8*(len(whole)-1); bit += every { // the last newline ends the file
		damaged := append([]byte(nil), whole...)
		damaged[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if bad, err := drift.Damage(path); len(bad) == 0 || err != nil {
			t.Fatalf("bit %d of byte %d is not noticed: %v", bit%8, bit/8, err)
		}
		if _, ok, err := drift.Last(home, runID); ok || err != nil {
			t.Fatalf("bit %d of byte %d: it is read, %v", bit%8, bit/8, err)
		}
	}
}

// TestKeepTogether: many at a time lose nothing and tear nothing.
func TestKeepTogether(t *testing.T) {
	home := t.TempDir()
	const writers, each = 8, 10
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := drift.Keep(home, drift.Report{Format: drift.Format, TraceID: runID, CheckedAt: noon}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(filepath.Join(home, "drift", runID.String()+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	for _, l := range lines {
		if l != lines[0] {
			t.Errorf("a line is torn: %q", l)
		}
	}
	if len(lines) != writers*each {
		t.Errorf("there are %d lines, want %d", len(lines), writers*each)
	}
}

func TestKeepSaysWhatFailed(t *testing.T) {
	home := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(home, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := drift.Keep(home, drift.Report{TraceID: runID}); marchwarden.CodeOf(err) != marchwarden.CodeUnavailable {
		t.Errorf("a home that is a file: %v", err)
	}
}
