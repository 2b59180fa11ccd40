//go:build !windows

package durable

import (
	"io/fs"
	"os"
	"syscall"
)

// allowed is the most that the mode of a file with a secret may be. What root hands to a
// process that is not root, as orchestrators mount their secrets, is read by its group,
// and the process cannot change that.
func allowed(info fs.FileInfo) fs.FileMode {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && mounted(s.Uid, os.Geteuid()) {
		return 0o740
	}
	return 0o700
}

// mounted reports whether a file of an owner was handed to a user by root.
func mounted(owner uint32, user int) bool { return owner == 0 && user != 0 }
