package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// freshFor is how long a use of a blob stands for the uses that follow it: the
// time that Remove spares must reach further back than that.
const freshFor = 10 * time.Minute

// batch is how many files Remove removes before it lets writers pass.
const batch = 256

// Files implements record.Shelf. What is none of the store's is not met.
func (s *Store) Files(ctx context.Context, fn func(blob.File) error) error {
	below, err := s.files.list(digestDir)
	if err != nil {
		return err
	}
	for _, shard := range below {
		is, err := s.files.isShard(shard)
		var names []string
		if is {
			names, err = s.files.list(shard)
		}
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := s.file(name, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// file tells fn of a file in a shard.
func (s *Store) file(name string, fn func(blob.File) error) error {
	info, err := s.files.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its writer has finished, or it was removed
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", s.files.path, err)
	}
	ref, isBlob := refOf(name)
	if left := !isBlob && isLeftover(name) && info.Mode().IsRegular(); left || isBlob {
		return fn(blob.File{Ref: ref, Name: name, Leftover: left, Size: info.Size(), Used: info.ModTime()})
	}
	return nil
}

// isLeftover reports whether a file is one that was meant to become a blob.
func isLeftover(name string) bool {
	whole, temporary := strings.CutSuffix(name, tempSuffix)
	_, blob := refOf(strings.TrimSuffix(whole, path.Ext(whole)))
	return temporary && blob
}

// Inspect implements record.Shelf.
func (s *Store) Inspect(_ context.Context, ref blob.Ref) ([]byte, error) {
	content, err := s.files.decode(ref)
	if err == nil && blob.Of(content) != ref {
		err = blob.ErrCorrupt
	}
	if err != nil {
		return nil, fmt.Errorf("blob %s: %w", ref, err)
	}
	return content, nil
}

// Remove implements record.Shelf. before must reach further back than freshFor; see
// the package comment.
func (s *Store) Remove(ctx context.Context, refs []blob.Ref, before time.Time, needed func() (map[blob.Ref]bool, error)) ([]blob.File, error) {
	var gone []blob.File
	for part := range slices.Chunk(refs, batch) {
		removed, err := s.files.remove(ctx, part, before, needed)
		gone = append(gone, removed...)
		if err != nil {
			return gone, fmt.Errorf("remove from blob store %s: %w", s.files.path, err)
		}
	}
	return gone, nil
}

func (f *files) remove(ctx context.Context, refs []blob.Ref, before time.Time, needed func() (map[blob.Ref]bool, error)) (gone []blob.File, err error) {
	lock, err := take(ctx, f.root, false)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	keep, err := needed()
	if err != nil {
		return nil, err
	}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil {
			return gone, err
		}
		if keep[ref] {
			continue
		}
		name := nameOf(ref)
		info, err := f.root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && (info.IsDir() || !info.ModTime().Before(before)) {
			continue // gone, or in use; a directory in its place is damage, and for a check
		}
		if err == nil {
			err = f.root.Remove(name)
		}
		if err != nil {
			return gone, err
		}
		gone = append(gone, blob.File{Ref: ref, Name: name, Size: info.Size(), Used: info.ModTime()})
	}
	return gone, nil
}

// mark notes that a blob was used, unless that is noted already. In a store that
// cannot be written nothing is noted, and nothing is removed either.
func (f *files) mark(ctx context.Context, ref blob.Ref) error {
	info, err := f.root.Lstat(nameOf(ref))
	if errors.Is(err, fs.ErrNotExist) {
		return blob.ErrNotFound
	}
	if err != nil {
		return nil // a reader of the blob meets the same
	}
	now, err := f.tick()
	if err != nil || now.Sub(info.ModTime()) < freshFor {
		return nil
	}
	done, err := f.lock.share(ctx)
	if err != nil {
		return ctx.Err() // another process clears for long; what is read is no less sound for that
	}
	defer done()
	if err := f.touch(ref); errors.Is(err, fs.ErrNotExist) {
		return blob.ErrNotFound
	}
	return nil
}

// touched reports whether a blob is now marked as used, or needs no mark because
// nothing can be removed from a store that cannot be written.
func (f *files) touched(ref blob.Ref) bool {
	err := f.touch(ref)
	return err == nil || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

func (f *files) touch(ref blob.Ref) error {
	now, err := f.tick()
	if err != nil {
		return err
	}
	return f.root.Chtimes(nameOf(ref), now, now)
}

// tick is the time by the clock of the file system: that of a file written just now.
func (f *files) tick() (time.Time, error) {
	f.clockMu.Lock()
	defer f.clockMu.Unlock()
	if f.clock == nil {
		file, err := f.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
		if err != nil {
			return time.Time{}, err
		}
		f.clock = file
	}
	if _, err := f.clock.WriteAt([]byte{'\n'}, 0); err != nil {
		return time.Time{}, err
	}
	info, err := f.clock.Stat()
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

func (f *files) close() error {
	f.clockMu.Lock()
	defer f.clockMu.Unlock()
	err := f.root.Close()
	if f.clock != nil {
		err = errors.Join(err, f.clock.Close())
		f.clock = nil
	}
	return err
}

const (
	lockName  = "lock"
	lockLimit = 20 * time.Second // a batch of removals takes milliseconds; a stopped process may take for ever
	lockPause = 2 * time.Millisecond
)

// errLockless says that the file system knows no locks, or cannot be written.
var errLockless = marchwarden.Errorf(marchwarden.CodeUnavailable, "the evidence store cannot be locked, so nothing can be removed safely")

// sharedLock is this process's part in the lock that its writers hold together.
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
		_ = durable.Release(l.file) // nothing was written
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
