// Package child runs one program that is talked to over its standard streams: it
// starts it in a process group of its own, keeps the end of what it writes to
// standard error, and ends it with everything it started. A program whose parent is
// killed is killed by the kernel on Linux, and finds its input closed elsewhere.
//
// It owns the process and nothing of what is said: the streams carry whatever the
// two sides agree on. No shell is involved.
package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

const (
	// stopPolitely is how long a program may take to end after its input ended,
	// stopFirmly how long after it was told to.
	stopPolitely = 300 * time.Millisecond
	stopFirmly   = time.Second
	// lingering is how long the output of a program that has ended may stay open,
	// which a process outside its group can cause.
	lingering = time.Second
	// tailBytes is how much of standard error is kept.
	tailBytes = 8 << 10
)

// Spec is what to run.
type Spec struct {
	// Argv is the program and its arguments; the program is looked up as usual.
	Argv []string
	// Dir is the working directory; "" is that of this process.
	Dir string
	// Env is the whole environment of the program; nil is an empty one.
	Env []string
	// Stderr gets a copy of standard error as it is, unless it is nil. What it
	// returns is ignored.
	Stderr io.Writer
}

// Process is a running program. Its methods are safe for concurrent use; In and
// Out belong to one reader and one writer. The caller that started it stops it.
type Process struct {
	// In is the program's standard input; closing it is the polite way to end it.
	In io.WriteCloser
	// Out is the program's standard output. It ends when the program does, after
	// everything that was written.
	Out io.Reader

	cmd    *exec.Cmd
	out    *os.File
	tail   *tail
	exited chan struct{}
	stop   sync.Once
}

// Start runs the program. The error names what could not be run.
func Start(spec Spec) (*Process, error) {
	if len(spec.Argv) == 0 || spec.Argv[0] == "" {
		return nil, errors.New("start a program: no command is given")
	}
	cmd := exec.Command(spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir = spec.Dir
	cmd.Env = append([]string{}, spec.Env...) // a nil slice would hand on our own
	cmd.WaitDelay = stopPolitely
	ownGroup(cmd)
	p := &Process{cmd: cmd, tail: &tail{copy: spec.Stderr}, exited: make(chan struct{})}
	cmd.Stderr = p.tail
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	// A pipe of our own: the one that the package exec makes is closed when the
	// program ends, whether its last words were read or not.
	out, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	cmd.Stdout = far
	p.In, p.Out, p.out = in, out, out
	started := make(chan error)
	go p.run(started)
	err = <-started
	_ = far.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("start %s: %w", spec.Argv[0], err)
	}
	return p, nil
}

// run starts the program and waits for its end on one thread: the kernel kills the
// program when the thread that started it ends, and that must not be before this
// process does.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.wait()
	}
}

// wait notes the end of the program and ends what it left behind.
func (p *Process) wait() {
	_ = p.cmd.Wait() // how it ended is in its state
	signalGroup(p.cmd, kill)
	close(p.exited)
	time.AfterFunc(lingering, func() { _ = p.out.Close() })
}

// Exited is closed when the program has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// State says how the program ended, such as "exit status 1", or "" while it runs.
func (p *Process) State() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// LastWords is the last line that is not blank of what the program wrote to
// standard error, as it is, or "". It is whole once the program has ended.
func (p *Process) LastWords() string { return p.tail.lastLine() }

// Terminate asks the program to end, which it may do in its own time. Where there
// are no signals it is killed.
func (p *Process) Terminate() {
	select {
	case <-p.exited:
	default:
		_ = terminate(p.cmd.Process) // one that is gone needs no telling
	}
}

// Stop ends the program and everything in its group: it closes the input, then
// tells it to end, then kills it, within less than two seconds. It returns when
// the program has ended, and closes the output.
func (p *Process) Stop() {
	p.stop.Do(func() {
		_ = p.In.Close()
		if !p.endsWithin(stopPolitely) {
			signalGroup(p.cmd, term)
			if !p.endsWithin(stopFirmly) {
				signalGroup(p.cmd, kill)
			}
		}
		p.endsWithin(stopFirmly) // longer only if the system cannot even kill it
		_ = p.out.Close()
	})
}

func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// tail keeps the end of what is written to it. It never fails: a program whose
// standard error is not read would stand still.
type tail struct {
	mu   sync.Mutex // guards kept
	kept []byte
	copy io.Writer
}

func (t *tail) Write(b []byte) (int, error) {
	if t.copy != nil {
		_, _ = t.copy.Write(b)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - tailBytes; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(b), nil
}

func (t *tail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(string(t.kept))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
