package client

import (
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
	// How long a program may take to end after its input ended, and after it was told to.
	stopPolitely = 300 * time.Millisecond
	stopFirmly   = time.Second
	// lingering is how long a process outside its group may keep the output of an ended program open.
	lingering = time.Second
	// tailBytes is how much of standard error is kept.
	tailBytes = 8 << 10
)

// process is a running program that is talked to over its standard streams, in a process group of its
// own. If this process is killed, Linux kills it; elsewhere it finds its input closed.
type process struct {
	// In is the program's standard input; closing it is the polite way to end it.
	In io.WriteCloser
	// Out is the program's standard output. It ends after everything that was written.
	Out io.Reader

	cmd    *exec.Cmd
	out    *os.File
	tail   *tail
	exited chan struct{} // closed when the program has ended
	stop   sync.Once
}

// startProcess runs the program of a target, without a shell.
func startProcess(t Target) (*process, error) {
	cmd := exec.Command(t.Command[0], t.Command[1:]...)
	cmd.Dir = t.Dir
	cmd.Env = append([]string{}, t.Env...) // a nil slice would hand on our own
	cmd.WaitDelay = stopPolitely
	ownGroup(cmd)
	p := &process{cmd: cmd, tail: &tail{copy: t.Stderr}, exited: make(chan struct{})}
	cmd.Stderr = p.tail
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	// A pipe of our own: that of exec is closed when the program ends, whether it was read or not.
	out, far, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	cmd.Stdout = far
	p.In, p.Out, p.out = in, out, out
	started := make(chan error)
	go func() {
		// The kernel kills the program when the thread that started it ends, and that must not be before this process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if started <- err; err != nil {
			return
		}
		_ = cmd.Wait()         // how it ended is in its state
		signalGroup(cmd, kill) // what it left behind
		close(p.exited)
		time.AfterFunc(lingering, func() { _ = out.Close() })
	}()
	err = <-started
	_ = far.Close() // the child has its own
	if err != nil {
		_ = out.Close()
		return nil, fmt.Errorf("start %s: %w", t.Command[0], err)
	}
	return p, nil
}

// State says how the program ended, such as "exit status 1", or "" while it runs.
func (p *process) State() string {
	select {
	case <-p.exited:
		return p.cmd.ProcessState.String()
	default:
		return ""
	}
}

// LastWords is the last line that is not blank on standard error, whole once the program has ended, or "".
func (p *process) LastWords() string {
	p.tail.mu.Lock()
	defer p.tail.mu.Unlock()
	text := strings.TrimSpace(string(p.tail.kept))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Terminate asks the program to end in its own time. Where there are no signals it is killed.
func (p *process) Terminate() {
	_ = terminate(p.cmd.Process) // one that is gone needs no telling
}

// Stop ends the program and its group: it closes the input, tells it to end, kills it, within two
// seconds. It returns when the program has ended.
func (p *process) Stop() {
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

func (p *process) endsWithin(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(d):
		return false
	}
}

// tail keeps the end of what is written to it. It never fails, so that the program never waits.
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
