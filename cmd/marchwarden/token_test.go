package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
)

// tokenWorld runs 'marchwarden token' in a home of its own.
type tokenWorld struct {
	*app
	out, err bytes.Buffer
	at       time.Time
}

func newTokenWorld(t *testing.T) *tokenWorld {
	w := &tokenWorld{app: world(t, nil), at: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
	w.stdout, w.Stderr, w.Now = &w.out, &w.err, func() time.Time { return w.at }
	return w
}

func (w *tokenWorld) run(args ...string) error {
	w.out.Reset()
	w.err.Reset()
	root := &cobra.Command{Use: "marchwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newToken(w.app))
	root.SetFlagErrorFunc(flagError)
	root.SetOut(w.stdout)
	root.SetErr(w.Stderr)
	root.SetArgs(append([]string{"token"}, args...))
	return root.Execute()
}

// A token is on stdout alone, once, and nowhere else ever.
func TestToken(t *testing.T) {
	w := newTokenWorld(t)
	if err := w.run("add", "ci", "--scope", "read, research", "--expires", "90d"); err != nil {
		t.Fatal(err)
	}
	token := strings.TrimSuffix(w.out.String(), "\n")
	if !regexp.MustCompile(`^mw_[a-z2-7]{52}$`).MatchString(token) || !strings.Contains(w.err.String(), "shown this once") || strings.Contains(w.err.String(), token) {
		t.Errorf("stdout %q, stderr %q", w.out.String(), w.err.String())
	}
	if err := w.run("add", "laptop"); err != nil {
		t.Fatal(err)
	}
	w.at = w.at.AddDate(0, 0, 90)
	if err := w.run("list", "--json"); err != nil {
		t.Fatal(err)
	}
	var rows []tokenRow
	if err := json.Unmarshal(w.out.Bytes(), &rows); err != nil {
		t.Fatal(err)
	}
	made := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	want := []tokenRow{
		{"ci", []string{"research", "read"}, made, &w.at, 0, "expired"},
		{"laptop", []string{"research", "read"}, made, nil, 0, "active"},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if err := w.run("list"); err != nil || !regexp.MustCompile(`(?m)^laptop +research, read +2026-11-01 12:00 +never +active$`).Match(w.out.Bytes()) {
		t.Errorf("%v: %s", err, w.out.String())
	}
	home := filepath.Join(filepath.Dir(w.Dir), "user", ".marchwarden")
	for _, l := range leaves(t, home) {
		if bytes.Contains(l.data, []byte(token)) || bytes.Contains(l.data, []byte(token[3:])) {
			t.Errorf("the token is in %s", l.name)
		}
	}
	if info, err := os.Stat(filepath.Join(home, "tokens.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := w.run("remove", "ci"); err != nil || w.out.Len() > 0 {
		t.Errorf("%v: %s", err, w.out.String())
	}
	if err := w.run("remove", "ci"); marchwarden.CodeOf(err) != marchwarden.CodeNotFound {
		t.Errorf("a second time: %v", err)
	}
}

func TestTokenRefuses(t *testing.T) {
	w := newTokenWorld(t)
	for want, args := range map[string][]string{
		"NAME":      {"add", "a b"},
		"--scope":   {"add", "a", "--scope", "admin"},
		"--expires": {"add", "a", "--expires", "soon"},
		"takes":     {"add"},
		"unknown":   {"revoke", "a"},
	} {
		err := w.run(args...)
		if marchwarden.CodeOf(err) != marchwarden.CodeInvalid || !strings.Contains(err.Error(), want) || w.out.Len() > 0 {
			t.Errorf("%q: %v, stdout %q", args, err, w.out.String())
		}
	}
	for _, scope := range []string{"", ",", "research,,read", "Research"} {
		if err := w.run("add", "a", "--scope", scope); marchwarden.CodeOf(err) != marchwarden.CodeInvalid {
			t.Errorf("--scope %q: %v", scope, err)
		}
	}
	if err := w.run("list"); err != nil || w.out.Len() > 0 || !strings.Contains(w.err.String(), "no tokens yet") {
		t.Errorf("%v: %s%s", err, w.out.String(), w.err.String())
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.Dir), "user", ".marchwarden")); !os.IsNotExist(err) {
		t.Errorf("a refusal made the home folder: %v", err)
	}
}
