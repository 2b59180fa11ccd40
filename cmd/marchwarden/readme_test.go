package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// TestReadmeTranscript holds the README's transcript to what the command prints:
// every line of it, in order. Times and ids are their own in every run.
func TestReadmeTranscript(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "\n$ marchwarden ask \"")
	question, rest, ok2 := strings.Cut(rest, "\"\n")
	transcript, _, ok3 := strings.Cut(rest, "\n```")
	if !ok || !ok2 || !ok3 {
		t.Fatal("the README has no transcript that begins with: $ marchwarden ask \"")
	}
	var out, errs bytes.Buffer
	a := system()
	a.stdout, a.Stderr = &out, &errs
	home := t.TempDir()
	a.Dir, a.UserHome = home, func() (string, error) { return home, nil }
	a.Env = func(string) (string, bool) { return "", false }
	program := asMarchwarden(t)
	a.Self, a.Environ = func() (string, error) { return program, nil }, func() []string { return []string{"HOME=" + home, "MARCHWARDEN_EMBED=" + settings.EmbedBuiltin} }
	a.Now = func() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) }
	if code := command(t.Context(), a, []string{"ask", question}); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	printed := strings.Split(unchanging(out.String()), "\n")
	for _, line := range strings.Split(unchanging(transcript), "\n") {
		if trimmed := strings.TrimSpace(line); trimmed == "" || trimmed == "…" {
			continue
		}
		for len(printed) > 0 && printed[0] != line {
			printed = printed[1:]
		}
		if len(printed) == 0 {
			t.Fatalf("the command does not print %q, or not there; it prints\n%s", line, out.String())
		}
		printed = printed[1:]
	}
}

var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|[0-9.]+ m?s ·|trace [0-9a-f-]{18}|fetched [0-9-]{10}`)

func unchanging(s string) string { return changing.ReplaceAllString(s, "~") }
