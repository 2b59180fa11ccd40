package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/network"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/term"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/serve"
)

// tasks are what a new user does, one after the other in one home, with the mistakes that are
// made on the way. What each shows first is in testdata/screens-80.txtar and -120.txtar;
// UPDATE_SCREENS=1 writes them anew.
var tasks = [][]string{
	{}, {"--version"}, {"-v"}, {"version"}, {"help", "ask"},
	{"What grows in Utah?"}, {"aks", "why"}, {"ask"}, {"ask", "--libary", "notes", "why"}, {"doctor"}, {"doctor", "--verbos"},
	{"show", "last"}, {"traces"}, {"show", "nonsense"}, {"library", "list"},
	{"ask", "What are ideal crops for a garden in Utah?"}, {"show", "last"}, {"verify", "last"}, {"replay", "--rerun", "last"},
	{"ask", "Who won the 1987 Zorblax regatta?"}, {"ask", "--plan", "Who wrote the transformer paper?"},
	{"ask", "--format", "brief", "What are ideal crops for a garden in Utah?"}, {"ask", "--depth", "deepest", "why"}, {"ask", "--budget", "5", "why"},
	{"library", "add", "nowhere"}, {"library", "add", "empty"}, {"library", "add", "notes"}, {"library", "list"}, {"library", "search", "larch"},
	{"ask", "Who repaired the roof of the boathouse?"}, {"ask", "--follow", "last", "and of the mill?"}, {"ask", "In which year was the boathouse built?"},
	{"ask", "What does the evil note say about herons?"}, {"ask", "--library", "nowhere", "why"},
	{"ask", "--researcher", "database", "--db", "shop.sqlite", "How many orders are there?"}, {"ask", "--db", "nowhere.sqlite", "why"},
	{"ask", "--online", "--researchers", "web,arxiv", "Who won the Nobel Prize in Physics in 2024?"}, {"ask", "--model", "ollama/qwen3", "Who repaired the roof of the boathouse?"},
	{"ask", "--model", "gpt", "why"}, {"ask", "--search", "bing", "why"},
	{"traces"}, {"costs"}, {"researchers"}, {"export", "last", "-o", "answer.md"}, {"export", "last", "-o", "answer.md"}, {"resume", "last"}, {"mcp", "config", "emacs"},
	{"library", "remove", "notes"}, {"library", "remove", "notes"}, {"doctor"},
}

const screenLines = 24

var notes = map[string]string{
	"notes/roof.md":  "# Boathouse log\n\nMarta Lindqvist repaired the roof of the boathouse in May 2024. The new roof of the boathouse is made of larch shingles.\n\nThe boathouse was built in 1931.\n",
	"notes/mill.md":  "# The mill\n\nJonas Berg repaired the roof of the mill in June 2023.\n",
	"notes/guide.md": "# A guide to the lake\n\nThe boathouse was built in 1934.\n",
	"notes/evil.md":  "# \x1b]0;owned\a\x1b[31mHerons\u202e of the lake\n\nThe evil note says that herons nest above the weir\x1b[2J.\n",
}

// TestTasksOfANewUser holds the first screens of everyday tasks to golden files, at two widths.
// No line is wider than the terminal, but for commands to copy; the screen of an answer fits, and has no
// word that needs explaining.
func TestTasksOfANewUser(t *testing.T) {
	if _, err := os.Stat("/tmp"); err != nil {
		t.Skip("paths of another length: ", err)
	}
	root := fmt.Sprintf("/tmp/marchwarden-%08d", os.Getpid()) // of one length, since it is cut to fit
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for name, text := range notes {
		write(t, filepath.Join(root, name), text)
	}
	if err := os.Mkdir(filepath.Join(root, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	makeShop(t, filepath.Join(root, "shop.sqlite"))
	t.Chdir(root)
	jargon := regexp.MustCompile(`(?i)rihla|extractive/|authority|origin|iteration|recency|\bmatch\b`)
	for _, width := range []int{80, 120} {
		var got txtar.Archive
		for i, args := range tasks {
			code, stdout, stderr := doTask(t, root, width, args)
			screen := fmt.Sprintf("%s%s[%d]\n", stdout, stderr, code)
			ask := len(args) > 1 && args[0] == "ask" && !slices.Contains(args, "--plan")
			for line := range strings.Lines(stdout) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); ask && n > width && !strings.Contains(line, "marchwarden ") {
					t.Errorf("%q at %d: %d cells: %s", args, width, n, line)
				}
			}
			if n := strings.Count(stdout, "\n"); ask && n > screenLines || strings.Contains(screen, "\x1b") {
				t.Errorf("%q at %d: %d lines\n%s", args, width, n, screen)
			}
			if found := jargon.FindString(stdout); ask && found != "" {
				t.Errorf("%q at %d says %q", args, width, found)
			}
			lines := strings.SplitAfter(steady(screen, root), "\n")
			if len(lines) > screenLines+2 {
				lines = append(lines[:screenLines:screenLines], "…\n")
			}
			got.Files = append(got.Files, txtar.File{Name: strings.TrimSpace(fmt.Sprintf("%02d marchwarden %s", i+1, strings.Join(args, " "))), Data: []byte(strings.Join(lines, ""))})
		}
		golden := filepath.Join(taskDir, fmt.Sprintf("screens-%d.txtar", width))
		if os.Getenv("UPDATE_SCREENS") != "" {
			if err := os.WriteFile(golden, txtar.Format(&got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(txtar.Format(&got))); d != "" {
			t.Errorf("%s (-want +got):\n%s", golden, d)
		}
	}
}

// taskDir is where the golden files are, wherever a test works.
var taskDir, _ = filepath.Abs("testdata")

func doTask(t *testing.T, root string, width int, args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := map[string]string{settings.EnvOf(settings.Embed): settings.EmbedBuiltin, "OLLAMA_HOST": "http://127.0.0.1:1", "LANG": "C.UTF-8"}
	for _, service := range []string{"ARXIV_URL", "ARXIV_SITE", "CROSSREF_URL", "OPENALEX_URL", "SEMANTIC_SCHOLAR_URL", "WIKIPEDIA_URL"} {
		env[service] = "http://127.0.0.1:1"
	}
	a := (&app{stdin: strings.NewReader(""), stdout: &out, look: func(io.Writer) term.Style { return term.Style{Width: width} },
		Host: network.Host{Stderr: &errs, Env: lookup(env), Environ: os.Environ, Self: selfPath, Dir: root, UserHome: func() (string, error) { return root, nil }, Now: time.Now, NewID: serve.NewTraceID}}).ready()
	code = command(t.Context(), a, args)
	var said []string // without progress, which a terminal draws over
	for line := range strings.Lines(errs.String()) {
		if !regexp.MustCompile(`^marchwarden: (\[[0-9]+ [a-z]+\] )?(planning|searching|indexing|reading|writing|checking|done)`).MatchString(line) {
			said = append(said, line)
		}
	}
	return code, out.String(), strings.Join(said, "")
}

var unsteady = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{4,27}| *([0-9]+ min )?[0-9]+(\.[0-9]+)? ?m?s\b|[0-9,]+ bytes|[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9:]+Z?)?|[0-9.]+ [kM]?B\b|go1\.[0-9.]+|[a-z]+/(amd64|arm64)|[0-9]{2} November [0-9]{4}|sha256:[0-9a-f]+`)

// aboveTimes is the head of a table of times, which is as wide as they are.
var aboveTimes = regexp.MustCompile(`tokens +time +cost`)

// steady is a screen without what is its own in every run, in as many cells.
func steady(screen, root string) string {
	screen = strings.ReplaceAll(screen, root, strings.Repeat("~", len(root)))
	screen = aboveTimes.ReplaceAllString(screen, "tokens  time  cost")
	return unsteady.ReplaceAllStringFunc(screen, func(s string) string {
		if strings.HasSuffix(s, "s") { // of no certain length
			return " #"
		}
		return strings.Repeat("#", len(s))
	})
}

// makeShop makes a database with a few orders.
func makeShop(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"CREATE TABLE orders (id INTEGER PRIMARY KEY, product TEXT, price REAL)",
		"INSERT INTO orders (product, price) VALUES ('lamp', 20), ('oar', 35.5), ('rope', 7.25)"} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
