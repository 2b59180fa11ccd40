//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// patience is how long one run of the program may take under torture.
const patience = 60 * time.Second

// runSpec is one run of the program.
type runSpec struct {
	program string
	args    []string
	env     []string
	dir     string
}

type runOutcome struct {
	stdout, stderr []byte
	code           int // -1 when it was killed
}

// sysCall is a system call about a file or a connection. It is shown twice, when
// it begins and when it ends.
type sysCall struct {
	name    string
	path    string // of the file; "socket:[…]" for a connection
	writes  bool   // it could change a file
	process int    // the thread that calls
	ends    bool
	ret     int64 // when it ends
}

// deed is what to do about a system call. The zero deed lets it be.
type deed struct {
	killAll  bool
	killThis bool          // only the process that calls
	fail     syscall.Errno // at the beginning of a call: it does not happen and ends with this
}

var goOn deed

// below says whether the call is about something in a folder.
func (c *sysCall) below(dir string) bool {
	return c.path == dir || strings.HasPrefix(c.path, dir+"/")
}

// streams are files for the three standard streams; finish reads what was written
// to two of them and closes all.
func (spec runSpec) streams() (files []*os.File, finish func() runOutcome, err error) {
	closeAll := func() {
		for _, f := range files {
			_ = f.Close() // nothing is written here
		}
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, err
	}
	files = append(files, null)
	for range 2 {
		f, err := os.CreateTemp("", "torture-")
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		files = append(files, f)
		if err := os.Remove(f.Name()); err != nil {
			closeAll()
			return nil, nil, err
		}
	}
	return files, func() runOutcome {
		defer closeAll()
		return runOutcome{stdout: wholeFile(files[1]), stderr: wholeFile(files[2])}
	}, nil
}

func wholeFile(f *os.File) []byte {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<20))
	if err != nil {
		return []byte("cannot be read: " + err.Error())
	}
	return data
}

// run runs the program to its end. killAfter ends it, and what it started, before
// that; 0 does not.
func (spec runSpec) run(killAfter time.Duration) (runOutcome, error) {
	// The child belongs to this thread, and a tracer waits for all that belong to its.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.Command(spec.program, spec.args...)
	cmd.Env, cmd.Dir = spec.env, spec.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return runOutcome{}, err
	}
	limit := patience
	if killAfter > 0 {
		limit = killAfter
	}
	timer := time.AfterFunc(limit, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }) // nothing to do if it is gone
	err := cmd.Wait()
	late := !timer.Stop() && killAfter == 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	if late {
		err = errors.New("it took too long")
	}
	return runOutcome{stdout.Bytes(), stderr.Bytes(), cmd.ProcessState.ExitCode()}, err
}
