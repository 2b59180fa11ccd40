//go:build unix

package dbtest

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// other is the user that a server runs as where the test runs as root.
func other() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	for _, name := range []string{"postgres", "mysql", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, errU := strconv.Atoi(u.Uid)
			gid, errG := strconv.Atoi(u.Gid)
			if errors.Join(errU, errG) == nil {
				return uid, gid, true
			}
		}
	}
	return 0, 0, false
}

func giveAway(dir string) error {
	if uid, gid, ok := other(); ok {
		return os.Chown(dir, uid, gid)
	}
	return nil
}

func lower(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid, gid, ok := other(); ok {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
}

// stop ends a server and what it started: an immediate shutdown of PostgreSQL, an
// abort of any other.
func stop(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGQUIT) }
