package main

import (
	"bytes"
	"os"
	"os/exec"
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
	t.Parallel()
	_, rest, ok := strings.Cut(packagingFile(t, "README.md"), "\n$ marchwarden ask \"")
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

// TestReadmeCommands runs every command of the README as it is written, one after the other in one
// home, unless its comment says what it needs; then there must be such a command with such flags.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	readme := packagingFile(t, "README.md")
	if n := strings.Count(readme, "\n"); n > 120 {
		t.Errorf("the README has %d lines, over 120", n)
	}
	home, work := t.TempDir(), t.TempDir()
	for name, text := range notes {
		write(t, filepath.Join(home, name), text)
	}
	makeShop(t, filepath.Join(work, "shop.sqlite"))
	path := filepath.Dir(asMarchwarden(t)) + string(os.PathListSeparator) + os.Getenv("PATH")
	ran, needing := 0, 0
	for _, block := range regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindAllStringSubmatch(readme, -1) {
		for line := range strings.Lines(block[1]) {
			written, comment, _ := strings.Cut(strings.TrimSpace(line), " #")
			// The program is this one, and not built anew.
			written = strings.Replace(written, "go run ./cmd/marchwarden ", "marchwarden ", 1)
			switch {
			case strings.Contains(comment, "needs "):
				needing++
				parses(t, written)
			case written == "go test ./...", strings.TrimSpace(written) == "go install ./cmd/marchwarden": // this is it, and so is the program
			default:
				ran++
				cmd := exec.Command("sh", "-c", written)
				cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "PATH=" + path, "GOCOVERDIR=" + t.TempDir()}
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", written, err, out)
				}
			}
		}
	}
	for _, must := range []string{"go run ./cmd/marchwarden ask \"What are ideal crops for a garden in Utah?\"\n", "go test ./...\n"} {
		if !strings.Contains(readme, "\n"+must) {
			t.Errorf("the README has no %q", must)
		}
	}
	if ran < 10 || needing < 5 {
		t.Errorf("%d commands were run and %d need something: the patterns do not fit", ran, needing)
	}
}

// parses fails for a command that is not there, or has no such flags.
func parses(t *testing.T, written string) {
	t.Helper()
	words := regexp.MustCompile(`"[^"]*"|\S+`).FindAllString(written, -1)
	if words[0] != "marchwarden" {
		return // it sets a variable
	}
	cmd, rest, err := newRoot(world(t, nil)).Find(words[1:])
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err != nil {
		t.Errorf("%s: %v", written, err)
	}
}
