// Package scripttest holds the commands that the scripts of both programs have beside
// those of testscript. It owns what a script may ask; what a script needs of one program
// alone is with that program's tests.
package scripttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Command is a command of a script.
type Command = func(ts *testscript.TestScript, neg bool, args []string)

// With adds to a program's own commands:
//
//	exits CODE COMMAND…      run a command that must exit with exactly this code
//	field VAR FILE PATH      set VAR to a value of a JSON file, such as citations.0.content_hash
//	interrupt [-at REGEXP] OUT ERR CMD…
//	                         run a command, send it SIGINT once it shows progress (that matches), and
//	                         keep its streams in two files; it must exit with 130 within two seconds
//	absent PATH…             the paths must not exist
//	jsonlines FILE           the file must be JSON objects, one a line
//	equal A B                the texts must be the same; with ! they must not
func With(own map[string]Command) map[string]Command {
	all := map[string]Command{"exits": exits, "field": field, "interrupt": interrupt, "absent": absent, "jsonlines": jsonLines, "equal": equal}
	maps.Copy(all, own)
	return all
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
	if cmd.ProcessState.ExitCode() != 130 {
		ts.Fatalf("%v, want exit code %d", err, 130)
	}
	if took > 8*time.Second { // 2 s are promised, on a machine that is not busy
		ts.Fatalf("it took %v to end after the signal", took)
	}
}

func absent(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		if _, err := os.Lstat(ts.MkAbs(path)); err == nil || neg {
			ts.Fatalf("%s exists", path)
		}
	}
}

// jsonLines checks that a file is one JSON object a line, and no less than one.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: jsonlines FILE")
	}
	lines := strings.Split(strings.TrimRight(ts.ReadFile(args[0]), "\n"), "\n")
	for _, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			ts.Fatalf("%q: %v", line, err)
		}
	}
}

// equal checks that variables and texts are the same.
func equal(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: equal A B")
	}
	if (args[0] == args[1]) == neg {
		ts.Fatalf("%q and %q", args[0], args[1])
	}
}
