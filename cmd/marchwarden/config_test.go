package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
)

// world is an app whose environment and folders a test decides.
func world(t testing.TB, env map[string]string) *app {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"user", "work"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return (&app{Host: network.Host{Env: func(k string) (string, bool) { v, ok := env[k]; return v, ok }, Dir: filepath.Join(root, "work"), UserHome: func() (string, error) { return filepath.Join(root, "user"), nil }, Stderr: io.Discard}}).ready()
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPrecedence sets the same setting in every layer and takes the layers away
// from the top.
func TestPrecedence(t *testing.T) {
	env := map[string]string{"MARCHWARDEN_LOG_FORMAT": "json"}
	a := world(t, env)
	a.flags = map[string]settings.Flag{settings.LogFormat: {Name: "--log-format", Text: "text"}}
	dotenv := filepath.Join(a.Dir, ".env")
	home, _ := a.UserHome()
	file := filepath.Join(home, ".marchwarden", "config.yaml")
	write(t, dotenv, "MARCHWARDEN_LOG_FORMAT=text\n")
	write(t, file, "log_format: json\n")

	steps := []struct {
		want   settings.Value
		remove func()
	}{
		{settings.Value{Texts: []string{"text"}, Origin: "--log-format"}, func() { a.flags = nil }},
		{settings.Value{Texts: []string{"json"}, Origin: settings.FromEnv}, func() { env["MARCHWARDEN_LOG_FORMAT"] = "" }}, // empty is not set
		{settings.Value{Texts: []string{"text"}, Origin: settings.FromDotEnv}, func() { write(t, dotenv, "") }},
		{settings.Value{Texts: []string{"json"}, Origin: settings.FromFile}, func() { write(t, file, "log_format:\n") }}, // null is not set
		{settings.Value{Texts: []string{"text"}, Origin: settings.FromDefault}, func() {}},
	}
	for _, step := range steps {
		c, err := a.loadConfig()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, c.Values[settings.LogFormat], cmp.AllowUnexported(settings.Value{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		step.remove()
	}
}

// TestHome finds the home folder, and config.yaml in it.
func TestHome(t *testing.T) {
	env := map[string]string{}
	a := world(t, env)
	user, _ := a.UserHome()
	write(t, filepath.Join(a.Dir, "fromenv", "config.yaml"), "depth: deep\n")
	write(t, filepath.Join(user, "fromdotenv", "config.yaml"), "depth: shallow\n")
	steps := []struct {
		set          func()
		home, origin string
		depth        string
	}{
		{func() {}, filepath.Join(user, ".marchwarden"), settings.FromDefault, "balanced"},
		{func() { write(t, filepath.Join(a.Dir, ".env"), "MARCHWARDEN_HOME=~/fromdotenv\n") }, filepath.Join(user, ".marchwarden"), settings.FromDefault, "balanced"}, // a stranger's folder must not choose
		{func() { env["MARCHWARDEN_HOME"] = "fromenv" }, filepath.Join(a.Dir, "fromenv"), settings.FromEnv, "deep"},
	}
	for _, step := range steps {
		step.set()
		c, err := a.loadConfig()
		if err != nil {
			t.Fatal(err)
		}
		if c.Home() != step.home || c.Origin(settings.Home) != step.origin || c.Text(settings.Depth) != step.depth {
			t.Errorf("home %s from %s, depth %s; want %+v", c.Home(), c.Origin(settings.Home), c.Text(settings.Depth), step)
		}
		if got, want := c.Text(settings.TraceDir), filepath.Join(step.home, "traces"); got != want {
			t.Errorf("trace_dir %s, want %s", got, want)
		}
	}
}

func TestNoHome(t *testing.T) {
	a := world(t, nil)
	a.UserHome = func() (string, error) { return "", errors.New("none") }
	if _, err := a.loadConfig(); !errors.Is(err, marchwarden.CodeInvalid) || !strings.Contains(err.Error(), "MARCHWARDEN_HOME") {
		t.Errorf("got %v", err)
	}
}

// TestPaths makes relative paths absolute: those of the environment and .env
// from the working directory, those of config.yaml from the home folder.
func TestPaths(t *testing.T) {
	env := map[string]string{"MARCHWARDEN_TRACE_DIR": "t", "MARCHWARDEN_LIBRARY": "a" + string(os.PathListSeparator) + string(os.PathListSeparator) + "/b/../c"}
	a := world(t, env)
	home, _ := a.UserHome()
	kept := filepath.Join(home, ".marchwarden")
	write(t, filepath.Join(kept, "config.yaml"), "cost_ledger: l.jsonl\nlibrary: [x]\n")
	c, err := a.loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	got := [][]string{c.List(settings.TraceDir), c.List(settings.Library), c.List(settings.Ledger)}
	want := [][]string{{filepath.Join(a.Dir, "t")}, {filepath.Join(a.Dir, "a"), "/c"}, {filepath.Join(kept, "l.jsonl")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(env, "MARCHWARDEN_LIBRARY")
	if c, err = a.loadConfig(); err != nil {
		t.Fatal(err)
	}
	if got, want := c.List(settings.Library), []string{filepath.Join(kept, "x")}; !slices.Equal(got, want) {
		t.Errorf("library %v, want %v", got, want)
	}
}

// TestKeys: white space around a key does not count, a key of nothing else is
// none, and one with a control character is an error that does not tell it.
func TestKeys(t *testing.T) {
	env := map[string]string{}
	a := world(t, env)
	write(t, filepath.Join(a.Dir, ".env"), "TAVILY_API_KEY=\" of-the-folder\\n\"\nBRAVE_API_KEY=\"  \"\n")
	for given, want := range map[string]settings.Value{
		" of-the-user\t\n": {Texts: []string{"of-the-user"}, Origin: settings.FromEnv},
		" \u00a0\r\n":      {Texts: []string{"of-the-folder"}, Origin: settings.FromDotEnv},
		"":                 {Texts: []string{"of-the-folder"}, Origin: settings.FromDotEnv},
	} {
		env["TAVILY_API_KEY"] = given
		c, err := a.loadConfig()
		if err != nil {
			t.Fatalf("%q: %v", given, err)
		}
		if diff := cmp.Diff(want, c.Values[settings.TavilyKey], cmp.AllowUnexported(settings.Value{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", given, diff)
		}
		if v := c.Values[settings.BraveKey]; len(v.Texts) > 0 || v.Origin != settings.FromDefault {
			t.Errorf("a blank key is %+v", v)
		}
	}
	for _, given := range []string{"of\nthe-user", "of\x00the-user", "of\x1b[31mthe-user", "of\u200bthe-user"} {
		env["TAVILY_API_KEY"] = given
		_, err := a.loadConfig()
		if exitCode(t.Context(), err) != exitUsage || !strings.HasPrefix(err.Error(), "TAVILY_API_KEY: ") || strings.Contains(err.Error(), "the-user") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// TestSecrets are keys, and passwords in addresses as they stand and as they travel.
func TestSecrets(t *testing.T) {
	a := world(t, map[string]string{"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "https://user:p%40ss@host.example/v1", "SEARXNG_URL": "http://token@host.example"})
	c, err := a.loadConfig()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"p@ss", "dXNlcjpwQHNz", "sk-1"}, c.Secrets()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEverySettingHasItsPlace keeps the table honest.
func TestEverySettingHasItsPlace(t *testing.T) {
	if settings.All[0].Name != settings.Home {
		t.Error("home is looked up first and must stand first")
	}
	names, envs := map[string]bool{}, map[string]bool{}
	for _, s := range settings.All {
		if s.Name == "" || s.Env == "" || names[s.Name] || envs[s.Env] {
			t.Errorf("%+v is incomplete or there twice", s)
		}
		names[s.Name], envs[s.Env] = true, true
		if s.Secret && !s.EnvOnly {
			t.Errorf("secret %s must not be in config.yaml", s.Name)
		}
		if s.Def != "" && s.Kind == settings.Text {
			if _, problem := s.Read([]string{s.Def}, nil); problem != "" {
				t.Errorf("default of %s %s", s.Name, problem)
			}
		}
	}
}
