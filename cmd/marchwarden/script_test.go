package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/settings"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/webtest"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"marchwarden": wordsAlone, "stubborn": stubborn, "thirdparty": thirdparty})
}

// wordsAlone is the program, without sentence vectors unless a test asks for them:
// they take time, and few tests are about them.
func wordsAlone() {
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
// of its own. Beside testscript's own commands a script has:
//
//	exits CODE COMMAND…      run a command that must exit with exactly this code
//	field VAR FILE PATH      set VAR to a value of a JSON file, such as citations.0.content_hash
//	flipbit REF              change one bit of the stored blob REF
//	manyfiles DIR N          make a folder of N documents
//	interrupt [-at REGEXP] OUT ERR CMD…
//	                         run a command, send it SIGINT once it shows progress (that matches), and
//	                         keep its streams in two files; it must exit with 130 within two seconds
//	repeat VAR TEXT N        set VAR to N times TEXT
//	absent PATH…             the paths must not exist
//	sqlite FILE SQL…         run statements on an SQLite file, which is made if it is not there
//	jsonlines FILE           the file must be JSON objects, one a line
//	equal A B                the texts must be the same; with ! they must not
//	nobody                   no process may be at work in the script's folder
//	peek FILE COMMAND…       run a command, and write the command lines that others could see meanwhile
//	within TIME COMMAND…     run a command that must exit with 0 in that time
//	start NAME REGEXP COMMAND…
//	                         run a command in the background, and go on when its stderr matches
//	end NAME SIGNAL CODE     send it a signal; it must exit with exactly this code
//
// thirdparty is somebody else's researcher: see there.
// The condition [mcp-sdk] says that python3 and the official MCP SDK are installed.
// $EXAMPLES is the folder of the examples, $SITE is a small web on loopback, $SITE/searx its search service, and $MODELS a
// provider of language models that speaks both protocols. $ARXIV is arXiv with one paper.
func TestScripts(t *testing.T) {
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
			for _, service := range []string{"ARXIV_URL", "ARXIV_SITE", "CROSSREF_URL", "DOI_URL", "OPENALEX_URL", "SEMANTIC_SCHOLAR_URL", "WIKIPEDIA_URL"} {
				e.Setenv(service, "http://127.0.0.1:1") // nothing leaves this machine in a test
			}
			guardSecrets(e)
			return os.MkdirAll(home, 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "field": field, "flipbit": flipBit, "manyfiles": manyFiles,
			"interrupt": interrupt, "repeat": repeat, "absent": absent,
			"sqlite": sqlite, "jsonlines": jsonLines, "equal": equal, "nobody": nobody, "peek": peek, "within": within, "start": start, "end": end,
		},
		RequireExplicitExec: true,
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func field(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: field VAR FILE PATH")
	}
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &v))
	for part := range strings.SplitSeq(args[2], ".") {
		switch node := v.(type) {
		case map[string]any:
			v = node[part]
		case []any:
			i, err := strconv.Atoi(part)
			ts.Check(err)
			if i >= len(node) {
				ts.Fatalf("%s has %d elements", args[1], len(node))
			}
			v = node[i]
		default:
			ts.Fatalf("no %s in %s", args[2], args[1])
		}
	}
	if v == nil {
		ts.Fatalf("no %s in %s", args[2], args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(v))
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

func interrupt(ts *testscript.TestScript, neg bool, args []string) {
	at := regexp.MustCompile("")
	if len(args) > 2 && args[0] == "-at" {
		at, args = regexp.MustCompile(args[1]), args[2:]
	}
	if neg || len(args) < 3 {
		ts.Fatalf("usage: interrupt [-at REGEXP] OUT ERR COMMAND…")
	}
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	cmd := exec.Command(program, args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"HOME=" + ts.Getenv("HOME"), "PATH=" + ts.Getenv("PATH"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadString('\n')
		ts.Check(err)
		stderr.WriteString(line)
		if at.MatchString(line) {
			break
		}
	}
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	sent := time.Now()
	_, err = io.Copy(&stderr, lines)
	ts.Check(err)
	err = cmd.Wait()
	took := time.Since(sent)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), stderr.Bytes(), 0o600))
	ts.Logf("ended %v after the signal, stderr:\n%s", took, stderr.String())
	if cmd.ProcessState.ExitCode() != exitInterrupted {
		ts.Fatalf("%v, want exit code %d", err, exitInterrupted)
	}
	if took > 8*time.Second { // 2 s are promised, on a machine that is not busy
		ts.Fatalf("it took %v to end after the signal", took)
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

func absent(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		if _, err := os.Lstat(ts.MkAbs(path)); err == nil || neg {
			ts.Fatalf("%s exists", path)
		}
	}
}
