package dir

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	lockName  = "lock"
	lockLimit = 20 * time.Second // a batch of removals takes milliseconds; a stopped process may take for ever
	lockPause = 2 * time.Millisecond
)

// errLockless says that there is no lock to be had: the file system knows none, or
// the store cannot be written.
var errLockless = marchwarden.Errorf(marchwarden.CodeUnavailable, "the evidence store cannot be locked, so nothing can be removed safely")

// sharedLock is this process's part in the lock that writers hold together: one
// file, open while at least one of them is at work.
type sharedLock struct {
	root *os.Root

	mu      sync.Mutex // guards what follows
	file    *os.File   // nil when the lock is free, or where there are no locks
	holders int
}

// share takes the lock with others. The caller ends with done. It waits for one
// that removes; ErrLocked if that takes too long. Where there is no lock it continues without one;
// Remove does not.
func (l *sharedLock) share(ctx context.Context) (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders == 0 {
		if l.file, err = take(ctx, l.root, true); err != nil && !errors.Is(err, errLockless) {
			return nil, err
		}
	}
	l.holders++
	return l.release, nil
}

func (l *sharedLock) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holders--; l.holders == 0 && l.file != nil {
		_ = l.file.Close() // nothing was written
		l.file = nil
	}
}

// take opens the lock's file, makes it if need be, and locks it.
func take(ctx context.Context, root *os.Root, shared bool) (*os.File, error) {
	file, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, errors.Join(errLockless, err)
	}
	for waited := time.Duration(0); ; waited += lockPause {
		err := durable.Lock(file, shared)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, durable.ErrLocked):
			_ = file.Close()
			return nil, errLockless
		case waited >= lockLimit:
			_ = file.Close()
			return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for the evidence store")
		case ctx.Err() != nil:
			_ = file.Close()
			return nil, ctx.Err()
		}
		time.Sleep(lockPause)
	}
}
