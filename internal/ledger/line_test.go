package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Every bit of a line is protected: a flip is found, and the lines beside it stay.
func TestEveryFlippedBitOfALineIsFound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.jsonl")
	for i := range 3 {
		if err := Append(path, Entry{Time: at, Researcher: "files", Question: "what?", TokensUsed: i}); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if good, bad, err := Read(path); len(good) != 3 || len(bad) != 0 || err != nil {
		t.Fatalf("Read = %v, %v, %v", good, bad, err)
	}
	first := bytes.IndexByte(whole, '\n') + 1
	second := first + bytes.IndexByte(whole[first:], '\n')
	for bit := 8 * first; bit < 8*second; bit++ {
		damaged := bytes.Clone(whole)
		damaged[bit/8] ^= 1 << (bit % 8)
		good, bad, err := lines.Scan(bytes.NewReader(damaged))
		if err != nil || len(good) != 2 || len(bad) == 0 {
			t.Fatalf("bit %d of byte %d: %d good, %d bad, %v", bit%8, bit/8, len(good), len(bad), err)
		}
	}
}

func TestFormatsOfLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "costs.jsonl")
	if err := Append(path, Entry{Time: at, Question: "two"}); err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	three := strings.Replace(string(two[:bytes.LastIndex(two, []byte(`,"sum"`))]), `"format":2`, `"format":3`, 1)
	later, _ := durable.SealLine([]byte(three+"}"), lines.Tag)
	lines := []string{
		`{"time":"2026-11-01T12:00:00Z","question":"one","unheard_of":[1]}`,
		strings.TrimSpace(string(two)),
		strings.TrimSpace(string(later)),
		`{"time":"2026-11-01T12:00:00Z","question":"no sum","format":2}`,
		`{"time":"20`,
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	entries, bad, err := Read(path)
	if err != nil || len(entries) != 2 || len(bad) != 3 || entries[0].Question != "one" || entries[1].Question != "two" {
		t.Fatalf("Read = %+v, %v, %v", entries, bad, err)
	}
	for i, want := range []string{"format 3", "missing", "torn"} {
		if bad[i].N != i+3 || !strings.Contains(bad[i].Problem, want) || bad[i].Later != (i == 0) {
			t.Errorf("line %d: %s, want %q", bad[i].N, bad[i].Problem, want)
		}
	}
}
