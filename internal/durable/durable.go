// Package durable makes new names in a folder survive a power loss. Writing and
// syncing a file makes its bytes durable; the name it was given, or renamed to,
// is an entry of the folder and has to be synced on its own. It also keeps
// processes apart that would write the same file, by advisory locks.
package durable

import (
	"errors"
	"os"
	"runtime"
)

// SyncDir syncs an opened folder and closes it. It takes the two results of
// Open, so that callers can pass them on: SyncDir(root.Open(".")).
func SyncDir(d *os.File, err error) error {
	if err != nil {
		return err
	}
	// Windows has no way to flush a directory; NTFS journals renames itself.
	if runtime.GOOS != "windows" {
		err = d.Sync()
	}
	return errors.Join(err, d.Close())
}
