package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	blobdir "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/dir"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/run"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/secret"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

// household is a home with a canary for every secret there is, before an internet
// that repeats whatever it is told.
type household struct {
	echo    *echo
	program string
	home    string
	work    string
	env     []string
	full    bool   // with all the patience there is
	shown   []leaf // what commands printed
}

// leaf is a text that a person might read, and where it stands.
type leaf struct {
	name string
	data []byte
}

// newHousehold makes a home. The services answer in a mode of the internet.
func newHousehold(t *testing.T, e *echo, mode string) *household {
	t.Helper()
	root := t.TempDir()
	h := &household{echo: e, program: asMarchwarden(t), home: filepath.Join(root, "home"), work: filepath.Join(root, "work")}
	at := func(service, password string) string {
		u, err := url.Parse(e.url + "/" + mode + "/" + service)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			u.User = url.UserPassword("me", canaryOf("password of "+password))
		}
		return u.String()
	}
	write(t, filepath.Join(h.work, ".env"), "TAVILY_API_KEY="+canaryOf("TAVILY_API_KEY")+"\n")
	write(t, filepath.Join(h.work, "notes", "lamps.md"), "# Lamps\n\nThe harbour lamp of Port Ellery was first lit in 1887 by a CRISPR gene therapy startup.\n")
	write(t, filepath.Join(h.home, "config.yaml"), "searxng_url: "+at("searxng", "SEARXNG_URL")+"\nresearchers:\n  - name: lamps\n    scope: lamps of the harbour, and startups\n    url: "+at("lamps", "")+"\n    token_env: LAMPS_TOKEN\n"+
		"  - name: beacons\n    scope: beacons of the harbour, and startups\n    url: "+at("lamps", "")+"/beacons\n")
	write(t, filepath.Join(h.home, "logins.json"), `{"version":1,"logins":[{"url":"`+at("lamps", "")+`/beacons","resource":"","token_url":"","auth_style":0,"client_id":"","access_token":"`+canaryOf("token of a login")+`"}]}`)
	db := url.URL{Scheme: "postgres", User: url.UserPassword("me", canaryOf("password of MARCHWARDEN_DB")), Host: e.db, Path: "/trials", RawQuery: "sslmode=disable"}
	h.env = []string{
		"HOME=" + h.home, "MARCHWARDEN_HOME=" + h.home, "PATH=" + filepath.Dir(h.program), "TMPDIR=" + t.TempDir(), "GOCOVERDIR=" + t.TempDir(),
		"MARCHWARDEN_DB=" + db.String(), "MARCHWARDEN_DEBUG=1", "MARCHWARDEN_FETCH_ALLOW=127.0.0.0/8", "MARCHWARDEN_TIMEOUT=4s",
		"ANTHROPIC_BASE_URL=" + at("anthropic", ""), "OPENAI_BASE_URL=" + at("openai", "") + "/v1", "OLLAMA_HOST=" + at("ollama", "OLLAMA_HOST"),
		"TAVILY_BASE_URL=" + at("tavily", ""), "BRAVE_BASE_URL=" + at("brave", ""), "WIKIPEDIA_URL=" + at("wikipedia", "WIKIPEDIA_URL"),
		"ARXIV_URL=" + at("arxiv", "ARXIV_URL"), "ARXIV_SITE=" + at("site", ""), "CROSSREF_URL=" + at("crossref", "CROSSREF_URL"),
		"OPENALEX_URL=" + at("openalex", ""), "SEMANTIC_SCHOLAR_URL=" + at("scholar", ""),
	}
	for _, c := range canaries {
		if strings.ToUpper(c.name) == c.name && c.name != "TAVILY_API_KEY" {
			h.env = append(h.env, c.name+"="+c.value)
		}
	}
	return h
}

// run executes a command with what it reads on stdin, and keeps what it prints. How
// it ends is for those to say who know.
func (h *household) run(t *testing.T, stdin string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Dir, cmd.Env, cmd.Stdin = h.work, h.env, strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Errorf("%v does not end", args)
	}
	name := strings.Join(args, " ")
	h.shown = append(h.shown, leaf{"stdout of " + name, stdout.Bytes()}, leaf{"stderr of " + name, stderr.Bytes()})
	return stdout.String(), err
}

// watch collects the command lines that others can see until the test ends.
func (h *household) watch() (stop func()) {
	quit := make(chan struct{})
	var done sync.WaitGroup
	var seen []string
	done.Go(func() {
		for {
			now, _ := lines(h.work)
			for _, line := range now {
				if !slices.Contains(seen, line) {
					seen = append(seen, line)
				}
			}
			select {
			case <-quit:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	return func() {
		close(quit)
		done.Wait()
		h.shown = append(h.shown, leaf{"command lines", []byte(strings.Join(seen, "\n"))})
	}
}

// everything is all that the program left: what it printed, and every file, those in
// the evidence store as they are read. The files of settings are the user's, and logins are where they belong.
func (h *household) everything(t *testing.T) []leaf {
	t.Helper()
	all := slices.Clone(h.shown)
	for _, root := range []string{h.home, h.work} {
		all = append(all, leaves(t, root)...)
	}
	return slices.DeleteFunc(all, func(l leaf) bool {
		return l.name == filepath.Join(h.home, "config.yaml") || l.name == filepath.Join(h.home, "logins.json") || l.name == filepath.Join(h.work, ".env")
	})
}

// leaves are all files of a folder, their names, and what is in an evidence store. A
// folder that is not there has none.
func leaves(t testing.TB, root string) []leaf {
	t.Helper()
	var all []leaf
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "blobs":
			stored, err := contents(path)
			all = append(all, stored...)
			return err
		case !d.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		all = append(all, leaf{path, data}, leaf{"the name of " + path, []byte(path)})
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return all
}

// contents is what an evidence store holds, as it is read. What is damaged is no
// secret.
func contents(dir string) ([]leaf, error) {
	store, err := blobdir.Open(dir)
	if err != nil {
		return nil, err
	}
	var all []leaf
	err = store.Files(context.Background(), func(i blob.File) error {
		data, err := store.Get(context.Background(), i.Ref)
		all = append(all, leaf{"blob " + i.Ref.String(), data})
		if errors.Is(err, blob.ErrCorrupt) || errors.Is(err, blob.ErrNotFound) {
			return nil
		}
		return err
	})
	return all, errors.Join(err, store.Close())
}

// found are the canaries in a text, with a little of what is around them.
func (l leaf) found() []string {
	var out []string
	for _, c := range canaries {
		for _, mark := range c.marks() {
			if i := bytes.Index(l.data, mark); i >= 0 {
				out = append(out, fmt.Sprintf("%s is in %s: …%q…", c.name, l.name, l.data[max(0, i-60):min(len(l.data), i+60)]))
				break
			}
		}
	}
	return out
}

const lampQuestion = "Which CRISPR gene therapy startup lit the harbour lamp of Port Ellery?"

// hello opens a session of MCP, and asks what a host asks.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"research","arguments":{"question":"` + webtest.Startups + `"}}}
`

// TestSecretsStayIn runs the program with a canary for each of its secrets before
// services that repeat them in every way to answer and to fail, and looks for them in
// all that it leaves behind.
func TestSecretsStayIn(t *testing.T) {
	t.Parallel()
	few, full := modes[:2], os.Getenv("MARCHWARDEN_TEST_FULL") != ""
	if full {
		few = modes
	}
	e := newEcho(t)
	homes := map[string]*household{}
	var running errgroup.Group
	running.SetLimit(12) // they wait most of the time
	for _, mode := range few {
		h := newHousehold(t, e, mode)
		h.full, homes[mode] = full, h
		running.Go(func() error {
			defer h.watch()()
			h.live(t)
			if mode == "good" {
				h.after(t)
			}
			return nil
		})
	}
	_ = running.Wait() // none of them fails
	for _, mode := range few {
		for _, l := range homes[mode].everything(t) {
			for _, leak := range l.found() {
				t.Errorf("%s: %s", mode, leak)
			}
		}
	}
	for _, c := range canaries {
		if !e.seen(c.value) && c.name != "OPENROUTER_API_KEY" && c.name != "GEMINI_API_KEY" { // whose addresses are fixed
			t.Errorf("%s was sent to nobody: the test proves nothing of it", c.name)
		}
	}
	// What was repeated came in, and its place is seen.
	if !slices.ContainsFunc(homes["good"].everything(t), func(l leaf) bool {
		return strings.HasPrefix(l.name, "blob ") && bytes.Count(l.data, []byte(secret.Mark)) > len(canaries)
	}) {
		t.Error("no page with the loot of all services is stored")
	}
}

// live runs the commands that speak to services.
func (h *household) live(t *testing.T) {
	patience := "2s"
	if h.full {
		patience = "3s"
	}
	h.run(t, "", "doctor", "--online")
	h.run(t, "", "doctor", "--json")
	h.run(t, "", "researchers")
	h.run(t, "", "ask", "--json-events", "--researcher", "web", "--budget", "90000", "--timeout", patience, webtest.Startups)
	h.run(t, "", "ask", "--json", "--researcher", "arxiv", "--budget", "90000", "--timeout", patience, "--model", "openai/gpt-papers", "What does the paper on CRISPR say?")
	h.run(t, "", "ask", "--researcher", "database", "How many trials of CRISPR are there?")
	h.run(t, "", "ask", "--library", "notes", "--researchers", "files,lamps,beacons,web", "--budget", "200000", "--timeout", patience, "--model", "ollama/qwen", "--out", "report.md", lampQuestion)
}

// after runs the commands that show what was kept, and a server.
func (h *household) after(t *testing.T) {
	h.run(t, hello, "serve", "web")
	h.run(t, hello, "--log-format", "json", "serve", "pi", "--library", "notes", "--researchers", "files,lamps,beacons")
	h.run(t, "", "ask", "--json", "--library", "notes", "--researchers", "files,lamps,beacons", lampQuestion)
	h.run(t, "", "traces")
	var runs []run.Entry
	listed, _ := h.run(t, "", "traces", "--json", "--limit", "0")
	if err := json.Unmarshal([]byte(listed), &runs); err != nil || len(runs) < 4 {
		t.Errorf("%d runs, %v", len(runs), err)
	}
	for i, r := range runs {
		if i > 1 && !h.full {
			break
		}
		id := r.ID.String()
		h.run(t, "", "replay", id)
		h.run(t, "", "replay", "--raw", id)
		// What was stored without secrets is evidence like any other.
		for _, proof := range [][]string{{"verify", id}, {"replay", "--rerun", id}} {
			if out, err := h.run(t, "", proof...); err != nil {
				t.Errorf("%v: %v\n%s\n%s", proof, err, out, h.shown[len(h.shown)-1].data)
			}
		}
	}
	for _, format := range []string{"mwz", "md", "html", "json", "bibtex"} {
		h.run(t, "", "export", "last", "--format", format, "-o", "out."+format) // what there is not, is not printed
	}
	h.run(t, "", "costs")
	h.run(t, "", "costs", "--json")
	h.run(t, "", "drift", "last")
	h.run(t, "", "check")
}

// TestPlantedSecretsAreFound: the search of TestSecretsStayIn finds what is there.
func TestPlantedSecretsAreFound(t *testing.T) {
	t.Parallel()
	h := newHousehold(t, newEcho(t), "good")
	store, err := blobdir.Open(filepath.Join(h.home, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for i, c := range canaries {
		for j, s := range spelt(c.value) {
			text := strings.Repeat("around ", 40) + s + strings.Repeat(" it", 40)
			switch (i + j) % 4 {
			case 0:
				write(t, filepath.Join(h.home, "traces", fmt.Sprint(i, j)), text)
			case 1:
				write(t, filepath.Join(h.work, fmt.Sprint(i, j)), text)
			case 2:
				h.shown = append(h.shown, leaf{"stdout", []byte(text)})
			default:
				if _, err := store.Put(t.Context(), []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			want++
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	got := 0
	for _, l := range h.everything(t) {
		if len(l.found()) > 0 {
			got++
		}
	}
	if got < want*9/10 { // spellings that are the same are one blob
		t.Errorf("%d of %d were found", got, want)
	}
}

// TestHidden finds what is secret in every layer of settings, and in arguments, and
// leaves alone what is none.
func TestHidden(t *testing.T) {
	env := map[string]string{
		"OPENAI_API_KEY": " sk-canary-1 ", "OPENAI_BASE_URL": "https://user:p%40ss-canary-2@host.example/v1", "SEARXNG_URL": "http://token-canary-3@host.example",
		"MARCHWARDEN_DB": "postgres:///trials?host=/tmp&password=db-canary-4", "https_proxy": "http://me:proxy-canary-5@proxy.example", "PGPASSWORD": "pg-canary-6",
		"LAMPS_TOKEN": "lamps-canary-7", "LAMPS_KEY": "lamps-canary-8", "LAMPS_DIR": "/data/of-lamps-1",
	}
	a := world(t, env)
	write(t, filepath.Join(a.Dir, ".env"), "TAVILY_API_KEY=tvly-canary-9\n")
	write(t, filepath.Join(filepath.Dir(a.Dir), "user", ".marchwarden", "config.yaml"), "brave_base_url: https://me:brave-canary-10@host.example\nresearchers:\n"+
		"  - {name: lamps, scope: lamps, url: 'https://lamps.example', token_env: LAMPS_TOKEN}\n  - {name: keys, scope: keys, command: [keys], env: [LAMPS_KEY, LAMPS_DIR]}\n")
	args := []string{"ask", "--db=postgres://me:arg-canary-11@h/x", "--db", "mysql://me:arg-canary-12@h/x", "why"}
	var stdout bytes.Buffer
	a.stdout = &stdout
	command(t.Context(), a, []string{"version"})
	a.Hide.Learn(settings.EarlySecrets(a.Env, args)...)
	if _, err := a.loadConfig(); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"sk-canary-1", "p@ss-canary-2", "p%40ss-canary-2", "token-canary-3", "db-canary-4", "proxy-canary-5", "pg-canary-6", "lamps-canary-7", "lamps-canary-8", "tvly-canary-9", "brave-canary-10", "arg-canary-11", "arg-canary-12"} {
		if got := a.Hide.Text("a " + v + " b"); got != "a "+secret.Mark+" b" {
			t.Errorf("%q", got)
		}
	}
	for _, v := range []string{"/data/of-lamps-1", "host.example", "https://api.anthropic.com", "lamps.example", "trials", stdout.String()} {
		if got := a.Hide.Text(v); got != v {
			t.Errorf("%q became %q", v, got)
		}
	}
}

// scriptKeys are the secrets of scripts: none may be found after one. The first is a
// password that every script has, where it changes nothing.
var scriptKeys = []string{"script-canary-5551", "s2-0123456789wxyz", "sk-ant-canary-0123456789", "sk-ant-0123456789wxyz"}

// guardSecrets gives a script a secret, and looks for those of all scripts in what its
// commands have left when it ends.
func guardSecrets(e *testscript.Env) {
	for _, service := range []string{"WIKIPEDIA_URL", "CROSSREF_URL"} {
		e.Setenv(service, "http://me:"+scriptKeys[0]+"@127.0.0.1:1")
	}
	t := e.T().(testing.TB) // a script is run by a test
	e.Defer(func() {
		// The scripts' own files have keys, too: what counts is the home folder.
		for _, name := range []string{"traces", "blobs", "cache", "library", "drift", "damaged", "costs.jsonl", "pins.json"} {
			for _, l := range leaves(t, filepath.Join(e.Getenv("KEPT"), name)) {
				for _, key := range scriptKeys {
					if bytes.Contains(l.data, []byte(key)) {
						t.Errorf("%s is in %s", key, l.name)
					}
				}
			}
		}
	})
}
