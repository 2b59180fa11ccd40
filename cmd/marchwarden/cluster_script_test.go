package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// servers are the processes that a script has started, by its name for them.
var servers sync.Map

type server struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex // guards what follows
	err bytes.Buffer
}

// text is what the server has written to stderr.
func (s *server) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err.String()
}

// start runs a command in the background until end, and goes on when its stderr matches.
// What the groups of the expression match is in the variables NAME, NAME2 and so on. It
// sees the environment of the script as it is then.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: start NAME REGEXP COMMAND…")
	}
	program, err := exec.LookPath(args[2])
	ts.Check(err)
	s := &server{cmd: exec.Command(program, args[3:]...), ended: make(chan struct{})}
	s.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "MARCHWARDEN_HOME", "MARCHWARDEN_ENGINE_KEY", "USER"} {
		if v := ts.Getenv(name); v != "" {
			s.cmd.Env = append(s.cmd.Env, name+"="+v)
		}
	}
	pipe, err := s.cmd.StderrPipe()
	ts.Check(err)
	ts.Check(s.cmd.Start())
	servers.Store(ts.MkAbs(args[0]), s)
	ts.Defer(func() {
		_ = s.cmd.Process.Kill() // or it has ended
		<-s.ended
	})
	want := regexp.MustCompile(args[1])
	found := make(chan []string, 1)
	go func() {
		defer close(s.ended)
		lines := bufio.NewReader(pipe)
		for {
			line, err := lines.ReadString('\n')
			s.mu.Lock()
			s.err.WriteString(line)
			s.mu.Unlock()
			if m := want.FindStringSubmatch(s.text()); m != nil {
				select {
				case found <- m:
				default:
				}
			}
			if err != nil {
				_, _ = io.Copy(io.Discard, lines)
				_ = s.cmd.Wait() // end looks at the state
				return
			}
		}
	}()
	select {
	case m := <-found:
		for i, group := range m[1:] {
			name := args[0]
			if i > 0 {
				name += strconv.Itoa(i + 1)
			}
			ts.Setenv(name, group)
		}
	case <-s.ended:
		ts.Fatalf("%s ended: %s", args[0], s.text())
	case <-time.After(time.Minute):
		ts.Fatalf("%s does not say %s:\n%s", args[0], args[1], s.text())
	}
}

// end sends a signal to what start started, which must exit with exactly this code, and
// writes its stderr to NAME.err. Code -1 is to be killed.
func end(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: end NAME SIGNAL CODE")
	}
	v, ok := servers.Load(ts.MkAbs(args[0]))
	if !ok {
		ts.Fatalf("%s was not started", args[0])
	}
	s := v.(*server)
	want, err := strconv.Atoi(args[2])
	ts.Check(err)
	signal := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[strings.ToUpper(args[1])]
	ts.Check(s.cmd.Process.Signal(signal))
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		ts.Fatalf("%s does not end:\n%s", args[0], s.text())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".err"), []byte(s.text()), 0o600))
	ts.Logf("[stderr of %s]\n%s", args[0], s.text())
	if got := s.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("%s: exit code %d, want %d", args[0], got, want)
	}
}
