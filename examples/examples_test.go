// Package examples holds the tests of what lies below it: that the researcher in
// Python keeps the contract, and that the documentation shows the examples as they
// are.
package examples

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/conform"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/mcpkit/client"
)

// TestPythonResearcher runs what 'marchwarden researchers check' runs.
func TestPythonResearcher(t *testing.T) {
	// Looked for and not loaded, which takes seconds.
	if err := exec.Command("python3", "-c", "import sys, importlib.util as u; sys.exit(u.find_spec('mcp') is None)").Run(); err != nil {
		t.Skipf("python3 with the official MCP SDK is not installed (pip install mcp): %v", err)
	}
	d := &client.Dialer{Now: time.Now}
	target := client.Target{Command: []string{"python3", "researcher.py"}, Dir: "python-researcher", Env: os.Environ(), Stderr: os.Stderr, Patience: time.Minute}
	dial := func(ctx context.Context) (*client.Session, error) { return d.Dial(ctx, target) }
	report := conform.Check(t.Context(), dial, conform.Options{Question: "How tall is the Bell Rock Lighthouse?"})
	for _, f := range report.Findings {
		if f.Outcome != conform.Pass {
			t.Errorf("%s: %s: %s", f.ID, f.Outcome, f.Detail)
		}
	}
	if !report.OK() {
		t.Error("it does not keep the contract")
	}
}

// TestPythonResearcherIsSmall keeps the example one that can be read in a sitting.
func TestPythonResearcherIsSmall(t *testing.T) {
	if n := strings.Count(read(t, "python-researcher/researcher.py"), "\n"); n > 150 {
		t.Errorf("it has %d lines, over 150", n)
	}
}

var block = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```")

// TestDocumentsShowTheExamples holds every block of code in the documentation to the
// files that are compiled, run or checked by tests. Blocks of commands are held to
// them line by line.
func TestDocumentsShowTheExamples(t *testing.T) {
	var sources []string
	for _, pattern := range []string{"*/*.go", "*/*.py", "*/*.csv", "*/*.txt", "../serve/*.go", "../investigate/*.go", "../cmd/marchwarden/testdata/script/examples.txtar", "../cmd/marchwarden/researchers.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			sources = append(sources, flat(read(t, path)))
		}
	}
	all := strings.Join(sources, "\n")
	for _, doc := range []string{"../docs/embedding.md", "python-researcher/README.md"} {
		found := block.FindAllStringSubmatch(read(t, doc), -1)
		if len(found) < 3 {
			t.Errorf("%s has %d blocks", doc, len(found))
		}
		for _, b := range found {
			parts := []string{flat(b[2])}
			if b[1] == "sh" {
				parts = strings.Split(strings.TrimSpace(b[2]), "\n")
			}
			for _, part := range parts {
				if !strings.Contains(all, part) && !strings.Contains(all, strings.ReplaceAll(part, `"`, "'")) {
					t.Errorf("%s shows what no example has:\n%s", doc, part)
				}
			}
		}
	}
}

// flat is a text without the indentation of its lines.
func flat(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimLeft(lines[i], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
