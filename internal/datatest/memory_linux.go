package datatest

import "syscall"

// memory is a folder in memory in which programs can be run, or "" for none.
func memory() string {
	const (
		shared  = "/dev/shm"
		tmpfs   = 0x01021994
		noexec  = 0x8
		atLeast = 2 << 30 // bytes
	)
	var fs syscall.Statfs_t
	if err := syscall.Statfs(shared, &fs); err != nil || fs.Type != tmpfs || fs.Flags&noexec != 0 || fs.Bavail*uint64(fs.Bsize) < atLeast {
		return ""
	}
	return shared
}
