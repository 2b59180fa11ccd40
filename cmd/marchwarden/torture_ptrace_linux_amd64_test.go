package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// canTrace says why processes cannot be traced here; "" where they can.
func canTrace(program string) string {
	seen := 0
	out, err := runTraced(runSpec{program: program, args: []string{"version"}}, func(*sysCall) deed { seen++; return goOn })
	switch {
	case err != nil:
		return err.Error()
	case out.code != 0 || seen < 10:
		return fmt.Sprintf("exit code %d after %d system calls: %s", out.code, seen, out.stderr)
	}
	return ""
}

// What package syscall has no names for.
const (
	ptraceSyscallInfo = 0x420e
	exitKill          = 0x100000
	noThread          = 0x20000000 // wait for what this thread started or traces, and leave the rest alone
	wall              = 0x40000000
	sysRenameat2      = 316
	sysProcessVMReadv = 310
)

// sysInfo is the beginning of the kernel's struct ptrace_syscall_info.
type sysInfo struct {
	op   uint8
	_    [3]uint8
	_    uint32
	_    [2]uint64
	nr   uint64 // the result, where op says that the call ends
	args [6]uint64
	_    uint64
}

// tracer runs a process and all that it starts, and stops each thread at each
// system call. It belongs to one locked thread.
type tracer struct {
	meddle func(*sysCall) deed
	tasks  map[int]*task
}

type task struct {
	call    *sysCall      // the one under way, if it is of interest
	fail    syscall.Errno // what the call under way shall end with
	skipped bool          // it does not happen
}

// runTraced runs a program to its end and asks meddle at the beginning and at the
// end of each system call what to do. Calls come one at a time.
func runTraced(spec runSpec, meddle func(*sysCall) deed) (runOutcome, error) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	streams, finish, err := spec.streams()
	if err != nil {
		return runOutcome{}, err
	}
	p, err := os.StartProcess(spec.program, append([]string{spec.program}, spec.args...),
		&os.ProcAttr{Dir: spec.dir, Env: spec.env, Files: streams, Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true}})
	if err != nil {
		return runOutcome{}, err
	}
	watchdog := time.AfterFunc(patience, func() { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }) // nothing to do if it is gone
	tr := &tracer{meddle: meddle, tasks: map[int]*task{}}
	status, err := tr.run(p.Pid)
	if !watchdog.Stop() && err == nil {
		err = fmt.Errorf("it took more than %v", patience)
	}
	out := finish()
	out.code = status.ExitStatus() // -1 when it was killed
	return out, errors.Join(err, p.Release())
}

func (tr *tracer) run(root int) (last syscall.WaitStatus, err error) {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(root, &ws, wall|noThread, nil); err != nil {
		return ws, fmt.Errorf("wait for the first stop: %w", err)
	}
	options := syscall.PTRACE_O_TRACESYSGOOD | syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK | syscall.PTRACE_O_TRACEEXEC | exitKill
	if err := syscall.PtraceSetOptions(root, options); err != nil {
		return ws, fmt.Errorf("trace: %w", err)
	}
	tr.tasks[root] = &task{}
	if err := syscall.PtraceSyscall(root, 0); err != nil {
		return ws, fmt.Errorf("trace: %w", err)
	}
	for {
		tid, err := syscall.Wait4(-1, &ws, wall|noThread, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return last, nil
		case err != nil:
			return last, fmt.Errorf("wait: %w", err)
		}
		if !ws.Stopped() {
			delete(tr.tasks, tid)
			if tid == root {
				last = ws
			}
			continue
		}
		if err := tr.stopped(tid, ws); err != nil && !errors.Is(err, syscall.ESRCH) { // ESRCH: it was killed meanwhile
			return last, err
		}
	}
}

// stopped deals with one stop and lets the thread go on.
func (tr *tracer) stopped(tid int, ws syscall.WaitStatus) error {
	t, known := tr.tasks[tid]
	if !known {
		t = &task{}
		tr.tasks[tid] = t
	}
	pass := 0
	switch sig := ws.StopSignal(); {
	case sig == syscall.SIGTRAP|0x80:
		if err := tr.atCall(tid, t); err != nil {
			return err
		}
	case sig == syscall.SIGTRAP && ws.TrapCause() > 0: // it started something
	case sig == syscall.SIGSTOP && !known: // a new thread or process begins so
	default:
		pass = int(sig)
	}
	return syscall.PtraceSyscall(tid, pass)
}

func (tr *tracer) atCall(tid int, t *task) error {
	var info sysInfo
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceSyscallInfo, uintptr(tid), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0); errno != 0 {
		return errno
	}
	switch info.op {
	case 1:
		t.call = describe(tid, &info)
	case 2:
		if t.call == nil {
			return nil
		}
		t.call.ends, t.call.ret = true, int64(info.nr)
		if t.skipped {
			t.skipped = false
			t.call.ret = -int64(t.fail)
			return setReturn(tid, t.fail)
		}
	}
	if t.call == nil {
		return nil
	}
	d := tr.meddle(t.call)
	if t.call.ends {
		t.call = nil
	}
	return tr.do(tid, t, d)
}

func (tr *tracer) do(tid int, t *task, d deed) error {
	switch {
	case d.killAll:
		for other := range tr.tasks {
			_ = syscall.Kill(other, syscall.SIGKILL) // some are threads of one process, and it is dead by then
		}
	case d.killThis:
		return syscall.Kill(processOf(tid), syscall.SIGKILL)
	case d.fail != 0 && t.call != nil:
		var regs syscall.PtraceRegs
		if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
			return err
		}
		regs.Orig_rax = ^uint64(0) // no such call: nothing happens
		t.fail, t.skipped = d.fail, true
		return syscall.PtraceSetRegs(tid, &regs)
	}
	return nil
}

func setReturn(tid int, errno syscall.Errno) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	regs.Rax = -uint64(errno)
	return syscall.PtraceSetRegs(tid, &regs)
}

// How a call names the file that it is about.
const (
	byNumber = iota // args[0] is an open file
	byPath          // args[0] is an open folder and args[1] a path in it
)

// watched are the calls that are about files and connections.
var watched = map[uint64]struct {
	name   string
	how    int
	writes bool
}{
	syscall.SYS_READ: {"read", byNumber, false}, syscall.SYS_WRITE: {"write", byNumber, true}, syscall.SYS_PWRITE64: {"pwrite64", byNumber, true},
	syscall.SYS_PREAD64: {"pread64", byNumber, false}, syscall.SYS_WRITEV: {"writev", byNumber, true}, syscall.SYS_CLOSE: {"close", byNumber, false},
	syscall.SYS_FSYNC: {"fsync", byNumber, true}, syscall.SYS_FDATASYNC: {"fdatasync", byNumber, true}, syscall.SYS_FTRUNCATE: {"ftruncate", byNumber, true},
	syscall.SYS_FALLOCATE: {"fallocate", byNumber, true}, syscall.SYS_FLOCK: {"flock", byNumber, false}, syscall.SYS_FCHMOD: {"fchmod", byNumber, true},
	syscall.SYS_GETDENTS64: {"getdents64", byNumber, false}, syscall.SYS_CONNECT: {"connect", byNumber, false},
	syscall.SYS_OPENAT: {"openat", byPath, false}, syscall.SYS_MKDIRAT: {"mkdirat", byPath, true}, syscall.SYS_RENAMEAT: {"renameat", byPath, true},
	sysRenameat2: {"renameat2", byPath, true}, syscall.SYS_UNLINKAT: {"unlinkat", byPath, true}, syscall.SYS_LINKAT: {"linkat", byPath, true},
	syscall.SYS_NEWFSTATAT: {"newfstatat", byPath, false}, syscall.SYS_FCHMODAT: {"fchmodat", byPath, true},
}

// describe is a call that begins; nil for one that is of no interest.
func describe(tid int, info *sysInfo) *sysCall {
	w, ok := watched[info.nr]
	if !ok {
		return nil
	}
	c := &sysCall{name: w.name, writes: w.writes, process: tid}
	of := int32(info.args[0])
	if w.how == byPath {
		c.path = textAt(tid, info.args[1])
		if !filepath.IsAbs(c.path) {
			from := "/proc/" + strconv.Itoa(tid) + "/cwd"
			if of >= 0 {
				from = descriptor(tid, of)
			}
			dir, _ := os.Readlink(from) // one that is not there fails by itself
			c.path = filepath.Join(dir, c.path)
		}
	} else {
		c.path, _ = os.Readlink(descriptor(tid, of)) // likewise
	}
	if w.name == "openat" {
		c.writes = info.args[2]&(syscall.O_WRONLY|syscall.O_RDWR|syscall.O_CREAT|syscall.O_TRUNC) != 0
	}
	return c
}

func descriptor(tid int, of int32) string { return fmt.Sprintf("/proc/%d/fd/%d", tid, of) }

// textAt is a text in the memory of a thread that is stopped.
func textAt(tid int, at uint64) string {
	buf := make([]byte, 1024)
	n, err := syscall.PtracePeekData(tid, uintptr(at), buf[:8])
	if err == nil && bytes.IndexByte(buf[:n], 0) < 0 {
		local := syscall.Iovec{Base: &buf[0], Len: uint64(len(buf))}
		remote := struct{ base, len uint64 }{at, uint64(len(buf))}
		got, _, errno := syscall.RawSyscall6(sysProcessVMReadv, uintptr(tid), uintptr(unsafe.Pointer(&local)), 1, uintptr(unsafe.Pointer(&remote)), 1, 0)
		if errno == 0 {
			n = int(got)
		}
	}
	text, _, _ := bytes.Cut(buf[:n], []byte{0})
	return string(text)
}

// processOf is the process that a thread belongs to.
func processOf(tid int) int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid)) // gone is gone
	for line := range strings.Lines(string(data)) {
		if id, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(id)); err == nil {
				return n
			}
		}
	}
	return tid
}
