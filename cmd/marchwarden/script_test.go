package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scripttest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

func TestMain(m *testing.M) {
	datatest.Abreast(6)
	testscript.Main(inMemory{m}, map[string]func(){"marchwarden": wordsAlone, "stubborn": stubborn, "thirdparty": thirdparty})
}

// inMemory are tests whose temporary files are in memory; the programs that they run are not,
// since some machines let none be run from there.
type inMemory struct{ *testing.M }

func (m inMemory) Run() int {
	datatest.InMemory()
	return m.M.Run()
}

// wordsAlone is the program, without sentence vectors unless a test asks for them:
// they take time, and few tests are about them.
func wordsAlone() {
	noteCommandLine()
	if _, said := os.LookupEnv(settings.EnvOf(settings.Embed)); !said {
		if err := os.Setenv(settings.EnvOf(settings.Embed), settings.EmbedOff); err != nil {
			panic(err)
		}
	}
	main()
}

// lookup is an environment for a program in this process, without sentence vectors
// unless it says otherwise.
func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := env[name]
		if !ok && name == settings.EnvOf(settings.Embed) {
			return settings.EmbedOff, true
		}
		return v, ok
	}
}

// TestScripts runs the commands as processes, each script in a folder and a home
// of its own. Beside testscript's own commands and those of scripttest a script has:
//
//	flipbit REF              change one bit of the stored blob REF
//	manyfiles DIR N          make a folder of N documents
//	repeat VAR TEXT N        set VAR to N times TEXT
//	sqlite FILE SQL…         run statements on an SQLite file, which is made if it is not there
//	nobody                   no process may be at work in the script's folder
//	peek FILE COMMAND…       run a command, and write its command line and those of the programs it starts
//	within TIME COMMAND…     run a command that must exit with 0 in that time
//	start NAME REGEXP COMMAND…
//	                         run a command in the background, and go on when its stderr matches
//	end NAME SIGNAL CODE     send it a signal; it must exit with exactly this code
//
// thirdparty is an external researcher: see there.
// The condition [mcp-sdk] says that python3 and the official MCP SDK are installed.
// $EXAMPLES is the folder of the examples, $SITE is a small web on loopback, $SITE/searx its search service, and $MODELS a
// provider of language models that speaks both protocols. $ARXIV is arXiv with one paper, and
// $PDFCACHE a folder with the compiled reader of PDFs.
func TestScripts(t *testing.T) {
	t.Parallel()
	site := webtest.New(t, webtest.Biotech())
	models := llmtest.NewServer(t, webtest.Obedient)
	papers := newArxiv(t)
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) {
			if cond != "mcp-sdk" {
				return false, fmt.Errorf("there is no condition %q", cond)
			}
			// Looked for and not loaded, which takes seconds.
			return exec.Command("python3", "-c", "import sys, importlib.util as u; sys.exit(u.find_spec('mcp') is None)").Run() == nil, nil
		},
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			e.Setenv("HOME", home)
			e.Setenv("KEPT", filepath.Join(home, ".marchwarden"))
			e.Setenv("SITE", site.URL)
			e.Setenv("MODELS", models.URL())
			e.Setenv("EXAMPLES", examples)
			e.Setenv("ARXIV", papers)
			e.Setenv("PDFCACHE", datatest.PDFCache(t))
			e.Setenv("GOGC", "400") // processes that live for a moment need no tidying
			for _, service := range []string{"ARXIV_URL", "ARXIV_SITE", "CROSSREF_URL", "OPENALEX_URL", "SEMANTIC_SCHOLAR_URL", "WIKIPEDIA_URL"} {
				e.Setenv(service, "http://127.0.0.1:1") // nothing leaves this machine in a test
			}
			guardSecrets(e)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: scripttest.With(map[string]scripttest.Command{
			"flipbit": flipBit, "manyfiles": manyFiles, "repeat": repeat, "sqlite": sqlite, "nobody": nobody, "peek": peek, "within": within, "start": start, "end": end, "exits": exitsHere,
		}),
		RequireExplicitExec: true,
	})
}

// exitsHere is the command exits. A command line that must be refused runs in this process, which
// takes a tenth of the time of one of its own. The others have one, as have all in the whole form,
// those that read stdin, and those that name a file, which is where they run.
func exitsHere(ts *testscript.TestScript, neg bool, args []string) {
	isFile := func(arg string) bool {
		_, err := os.Lstat(ts.MkAbs(arg[strings.IndexByte(arg, '=')+1:]))
		return arg == "-" || arg == "export" || strings.HasPrefix(arg, "-o") || strings.HasPrefix(arg, "--out") || err == nil
	}
	if neg || len(args) < 2 || args[0] != strconv.Itoa(exitUsage) || args[1] != "marchwarden" || datatest.Full() || slices.ContainsFunc(args[2:], isFile) {
		scripttest.With(nil)["exits"](ts, neg, args)
		return
	}
	a := system()
	a.stdin, a.stdout, a.Stderr, a.Dir = strings.NewReader(""), ts.Stdout(), ts.Stderr(), ts.MkAbs(".")
	a.Env = func(name string) (string, bool) {
		v := ts.Getenv(name)
		if v == "" && name == settings.EnvOf(settings.Embed) {
			v = settings.EmbedOff
		}
		return v, v != ""
	}
	a.Environ = func() []string { return nil }
	a.UserHome = func() (string, error) {
		if home, ok := a.Env("HOME"); ok {
			return home, nil
		}
		return "", errors.New("$HOME is not defined")
	}
	if code := command(context.Background(), a, args[2:]); code != exitUsage {
		ts.Fatalf("exit code %d, want %d", code, exitUsage)
	}
}

func flipBit(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: flipbit REF")
	}
	hex := strings.TrimPrefix(args[0], "sha256:")
	path := filepath.Join(ts.Getenv("KEPT"), "blobs", "sha256", hex[:2], hex[2:])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[len(data)/2] ^= 1
	ts.Check(os.WriteFile(path, data, 0o600))
}

func manyFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: manyfiles DIR N")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	for i := range n {
		body := fmt.Sprintf("# Garden note %d\n\nBed %d of the garden grows carrots. %s\n", i, i, strings.Repeat("The carrots need water and sun. ", 40))
		ts.Check(os.WriteFile(filepath.Join(dir, fmt.Sprintf("note%d.md", i)), []byte(body), 0o600))
	}
}

func repeat(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: repeat VAR TEXT N")
	}
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Setenv(args[0], strings.Repeat(args[1], n))
}
