package register

import (
	"errors"
	"os"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// Lease is the lock of a record. It ends with the process that has it, however that
// comes.
type Lease struct{ file *os.File }

// Take takes the lock in a file, which it makes when missing, or says durable.ErrLocked.
func Take(path string) (*Lease, error) {
	f, err := durable.Own(path, func(f *os.File) error { return durable.Lock(f, false) })
	if err != nil {
		return nil, err
	}
	return &Lease{f}, nil
}

// IsTaken reports whether a process has the lock in a file.
func IsTaken(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(durable.Lock(f, true), durable.ErrLocked)
}

// Release gives the lock back. The file of one that is not wanted again goes with it.
func (l *Lease) Release(forever bool) {
	if forever {
		_ = os.Remove(l.file.Name()) // what stays does no harm
	}
	_ = l.file.Close() // nothing was written
}
