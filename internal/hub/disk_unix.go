//go:build !windows

package hub

import "syscall"

// diskFree is how many bytes may still be written to a folder's file system.
func diskFree(dir string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
