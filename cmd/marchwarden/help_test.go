package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelpFiles holds the help texts to the commands: each belongs to one, a topic is a page that
// fits a screen, and text stays within 80 columns.
func TestHelpFiles(t *testing.T) {
	known := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		known["help/"+strings.TrimPrefix(strings.ReplaceAll(cmd.CommandPath(), " ", "-"), "marchwarden-")+".txt"] = true
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	root := newRoot(world(t, nil))
	walk(root)
	err := fs.WalkDir(helpFiles, "help", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := helpFiles.ReadFile(path)
		if strings.HasPrefix(path, "help/topics/") {
			if lines := strings.Count(string(text), "\n"); lines > 40 || !strings.Contains(root.Long, strings.TrimSuffix(filepath.Base(path), ".txt")) {
				t.Errorf("%s has %d lines, or the help does not list it", path, lines)
			}
		} else if !known[path] {
			t.Errorf("%s belongs to no command", path)
		}
		said, _, _ := strings.Cut(string(text), "EXAMPLES\n")
		for line := range strings.Lines(said) {
			if utf8.RuneCountInString(line) > 82 {
				t.Errorf("%s: too wide: %s", path, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMan has the pages read by a formatter, where there is one.
func TestMan(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	if code := command(t.Context(), world(t, nil), []string{"man", dir}); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	page, err := os.ReadFile(filepath.Join(dir, "marchwarden-ask.1"))
	if err != nil || !strings.Contains(string(page), ".SH OPTIONS\n") || !strings.Contains(string(page), `\fB\-\-library\fR`) {
		t.Errorf("%v: %s", err, page)
	}
	for name, args := range map[string][]string{"mandoc": {"-T", "lint", "-W", "error"}, "groff": {"-K", "utf8", "-man", "-ww", "-z"}} {
		tool, err := exec.LookPath(name)
		if err != nil {
			t.Logf("there is no %s", name)
			continue
		}
		files, _ := filepath.Glob(filepath.Join(dir, "*"))
		if out, err := exec.Command(tool, append(args, files...)...).CombinedOutput(); err != nil || len(out) > 0 && name == "groff" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
