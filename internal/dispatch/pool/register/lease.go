package register

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Lease is the lock of a record. It ends with the process that has it, however that
// comes.
type Lease struct{ file *os.File }

// Take takes the lock in a file, which it makes when missing, or says durable.ErrLocked.
func Take(path string) (*Lease, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if errors.Is(err, fs.ErrNotExist) {
			if err := durable.MakeDir(filepath.Dir(path)); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := durable.Lock(f, false); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		here, err := f.Stat()
		there, gone := os.Stat(path)
		if err == nil && gone == nil && os.SameFile(here, there) {
			return &Lease{f}, nil
		}
		_ = f.Close() // its last holder removed it, or somebody else has made it anew
	}
}

// IsTaken reports whether somebody has the lock in a file.
func IsTaken(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(durable.Lock(f, true), durable.ErrLocked)
}

// Release gives the lock back. The file of one that nobody will want again goes with it.
func (l *Lease) Release(forever bool) {
	if forever {
		_ = os.Remove(l.file.Name()) // what stays does no harm
	}
	_ = l.file.Close() // nothing was written
}
