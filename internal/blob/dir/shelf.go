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
	shards, err := fs.ReadDir(s.files.root.FS(), digestDir)
	if err != nil {
		return fmt.Errorf("in %s: %w", s.files.path, err)
	}
	for _, shard := range shards {
		below := shard.Name()
		// A link in the place of a shard is read, so that it is an error and not passed over.
		if len(below) != 2 || strings.Trim(below, "0123456789abcdef") != "" || !shard.IsDir() && shard.Type() != fs.ModeSymlink {
			continue
		}
		entries, err := fs.ReadDir(s.files.root.FS(), path.Join(digestDir, below))
		if err != nil {
			return fmt.Errorf("in %s: %w", s.files.path, err)
		}
		for _, e := range entries {
			if err := s.file(ctx, path.Join(digestDir, below, e.Name()), e, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// file tells fn of a file in a shard: of a blob, and of one that was meant to become one.
func (s *Store) file(ctx context.Context, name string, e fs.DirEntry, fn func(blob.File) error) error {
	ref, isBlob := refOf(name)
	whole, temporary := strings.CutSuffix(name, tempSuffix)
	_, ofBlob := refOf(strings.TrimSuffix(whole, path.Ext(whole)))
	if !isBlob && !(temporary && ofBlob && e.Type().IsRegular()) || ctx.Err() != nil {
		return ctx.Err()
	}
	info, err := e.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil // its writer has finished, or it was removed
	}
	if err != nil {
		return fmt.Errorf("in %s: %w", s.files.path, err)
	}
	return fn(blob.File{Ref: ref, Name: name, Leftover: !isBlob, Size: info.Size(), Used: info.ModTime()})
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
	done, err := f.share(ctx)
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
func (f *files) tick() (now time.Time, err error) {
	file, err := f.root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return now, err
	}
	defer file.Close()
	if _, err := file.WriteAt([]byte{'\n'}, 0); err != nil {
		return now, err
	}
	info, err := file.Stat()
	if err != nil {
		return now, err
	}
	return info.ModTime(), nil
}

const (
	lockName  = "lock"
	lockLimit = 20 * time.Second // a batch of removals takes milliseconds; a stopped process may take for ever
)

// errLockless says that the file system knows no locks, or cannot be written.
var errLockless = marchwarden.Errorf(marchwarden.CodeUnavailable, "the evidence store cannot be locked, so nothing can be removed safely")

// share takes the lock with others. The caller ends with done. It waits for one
// that removes; ErrLocked if that takes too long. Where there is no lock it continues without one;
// Remove does not.
func (f *files) share(ctx context.Context) (done func(), err error) {
	file, err := take(ctx, f.root, true)
	switch {
	case errors.Is(err, errLockless):
		return func() {}, nil
	case err != nil:
		return nil, err
	}
	return func() { _ = durable.Release(file) }, nil // nothing was written
}

// take opens the lock's file, makes it if need be, and locks it.
func take(ctx context.Context, root *os.Root, shared bool) (*os.File, error) {
	file, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, errors.Join(errLockless, err)
	}
	err = durable.Wait(ctx, file, shared, lockLimit)
	if err == nil {
		return file, nil
	}
	_ = file.Close()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, durable.ErrLocked):
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for the evidence store")
	}
	return nil, errLockless
}
