//go:build unix

package main

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm/llmtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// httpWorld is a rack whose model can be held up at any of its turns.
type httpWorld struct {
	*rack
	mu   sync.Mutex // guards what follows
	n    int        // turns since the last hold
	at   int        // the turn that is held; 0 is none
	held chan struct{}
	free chan struct{}
}

func newHTTPWorld(t *testing.T) *httpWorld {
	w := &httpWorld{rack: newRack(t), free: make(chan struct{})}
	w.models = llmtest.NewServer(t, func(turn llmtest.Turn) llmtest.Said {
		w.mu.Lock()
		w.n++
		hold, held, free := w.n == w.at, w.held, w.free
		w.mu.Unlock()
		if hold {
			close(held)
			<-free
		}
		return thorough(turn)
	})
	w.env = append(w.env, "OPENAI_BASE_URL="+w.models.URL()+"/v1")
	t.Cleanup(func() { w.hold(0) })
	return w
}

// hold lets go of what is held, and holds the turn that is the n-th from now on; 0 holds
// none. The channel is closed when a turn is held.
func (w *httpWorld) hold(n int) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.free)
	w.n, w.at, w.held, w.free = 0, n, make(chan struct{}), make(chan struct{})
	return w.held
}

// served is a program that serves over HTTP.
type served struct {
	cmd   *exec.Cmd
	url   string // of MCP
	log   *noted
	ended chan struct{} // closed when it has ended
}

// noted is what a program says, while it says it.
type noted struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (n *noted) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.Write(p)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.b.String()
}

var servingAt = regexp.MustCompile(`serving \S+ at (http://\S+/mcp);`)

// serve starts the program in a home, and waits until it serves. The end of the test
// ends it.
func (r *rack) serve(t *testing.T, home string, args ...string) *served {
	t.Helper()
	spec := r.spec(home, append(append([]string{"serve"}, args...), "--http", "127.0.0.1:0")...)
	return startServed(t, spec, exec.Command(spec.program, spec.args...))
}

// launch starts a server, which the end of the test ends, and waits for nothing.
func launch(t *testing.T, spec runSpec, cmd *exec.Cmd) *served {
	t.Helper()
	s := &served{cmd: cmd, log: &noted{}, ended: make(chan struct{})}
	cmd.Env, cmd.Dir, cmd.Stderr = spec.env, spec.dir, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(s.ended)
	}()
	t.Cleanup(func() {
		select {
		case <-s.ended: // another program may have its number by now
		default:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own group
			<-s.ended
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", plaintext.Clip(s.log.String(), 4000))
		}
	})
	return s
}

func startServed(t *testing.T, spec runSpec, cmd *exec.Cmd) *served {
	t.Helper()
	s := launch(t, spec, cmd)
	eventually(t, "the server serves", func() bool {
		if m := servingAt.FindStringSubmatch(s.log.String()); m != nil {
			s.url = m[1]
		}
		select {
		case <-s.ended:
			t.Fatalf("it does not serve: %s", s.log)
		default:
		}
		return s.url != ""
	})
	return s
}

// endBy ends the server by a signal and waits. Told to end, it must not have failed. To
// be killed is to be killed with all that it has started.
func (s *served) endBy(t *testing.T, sig syscall.Signal) {
	t.Helper()
	var children []int
	if sig == syscall.SIGKILL {
		children = childrenOf(s.cmd.Process.Pid)
	}
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		_ = syscall.Kill(pid, sig) // it may be gone with its parent
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		t.Fatalf("it does not end after %v", sig)
	}
	if code := s.cmd.ProcessState.ExitCode(); sig != syscall.SIGKILL && code != exitOK {
		t.Errorf("it ended by %v after %v: %s", s.cmd.ProcessState, sig, s.log)
	}
}

// childrenOf are the processes that a process has started, and those that they have.
func childrenOf(pid int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // none where there is no such folder
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// The name, in parentheses, may hold anything.
		fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			all = append(append(all, child), childrenOf(child)...)
		}
	}
	return all
}

// get reads a path of the server besides MCP.
func (s *served) get(t *testing.T, path, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, strings.TrimSuffix(s.url, "/mcp")+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// eventually waits for something to become true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// arrives waits for something to happen.
func arrives(t *testing.T, what <-chan struct{}) {
	t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		t.Fatal("what is waited for does not come")
	}
}

// wholeForm leaves a test to the whole form, which .ci/run and make ask for.
func wholeForm(t *testing.T) {
	t.Helper()
	if !longTests() {
		t.Skip("set MARCHWARDEN_TEST_FULL=1")
	}
}

// longTests says whether the long forms of the tests are wanted.
func longTests() bool { return os.Getenv("MARCHWARDEN_TEST_FULL") != "" }

// percentile is a value of a sorted list.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

func sortedTimes(all []time.Duration) []time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}
