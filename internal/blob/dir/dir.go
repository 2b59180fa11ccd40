// Package dir is the evidence store in a directory. It owns the layout of that
// directory and the order of writes that makes them durable. The form of a file, what a
// store promises, and the check of the digest are package blob's.
//
// Layout, below the directory given to Open:
//
//	sha256/ab/cdef…             a blob; "ab" and the 62 digits after it are its digest
//	sha256/ab/cdef….RANDOM.tmp  a write under way, or one that a crash cut short
//	lock                        kept by writers together, or by one that removes alone
//
// A file appears under its final name complete or not at all, so a reader never
// needs a lock and writers need none against each other: the last rename replaces a file by an
// equal one. Temporary files are never read; Sweep removes the
// old ones. What has a name of any other shape is left alone. Directories are 0700, files 0600.
//
// # Removing
//
// Remove may run while others write, in this process and in others, and must not
// take away what they rely on. A writer relies on a blob from the moment when Put
// or Get answered for it until a trace names it, and this cannot be seen.
// So use leaves a mark: the time of a file is when its blob was last used. Put
// sets it always, Get when it is older than ten minutes. Remove spares what was
// used since a time that its caller gives, which lies further back than those ten
// minutes and than the start of every run that is going on.
//
// Between looking at the time and removing the file no process may use it: it would be told that
// the blob is there a moment before it is not. Hence the lock: Put, and a Get that sets the time,
// hold it together with others; Remove holds it alone, looks at each time again when it has it, and
// gives it back after every few files. Then either the use came first, and Remove sees its mark, or
// the removal did: Put then finds nothing and writes the file, and Get says that nothing is stored.
// A Get of a blob used less than ten minutes ago needs no lock, because Remove spares that. Where
// there are no locks, writers go on without and Remove refuses to work.
//
// The times are those of the file system, which may be another machine's.
//
// All access goes through os.Root: a symbolic link planted in the store cannot
// lead out of it, and one in place of a blob counts as damage.
package dir

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const (
	dirMode    = 0o700
	fileMode   = 0o600
	digestDir  = "sha256"
	tempSuffix = ".tmp"
)

// A Store is a blob.Store, and a record.Shelf, in a directory.
type Store struct {
	blob.Store // the guarded keeper below
	files      *files
}

// Open opens the store in the directory path and creates it, with its parents,
// if it is missing. Any number of processes may have the same store open. The
// caller closes it. Opening an existing store writes nothing, so a read-only
// one can be read.
func Open(path string) (*Store, error) {
	f, err := openFiles(path)
	if err != nil {
		return nil, fmt.Errorf("open blob store %s: %w", path, err)
	}
	return &Store{Store: blob.Guard(f), files: f}, nil
}

// Close releases the directory. Calls after it fail; calls under way may.
func (s *Store) Close() error {
	return s.files.root.Close()
}

// Sweep removes temporary files last written before the given time and returns
// how many. They are what crashes leave behind; choose a time long enough ago,
// an hour say, that no living writer can still own one: it would fail, with
// an error and without harm to the store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (int, error) {
	removed := 0
	err := s.Files(ctx, func(file blob.File) error {
		if !file.Leftover || !file.Used.Before(before) {
			return nil
		}
		err := s.files.root.Remove(file.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // its writer has finished
		}
		if err == nil {
			removed++
		}
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("sweep blob store %s: %w", s.files.path, err)
	}
	return removed, nil
}

func openFiles(path string) (*files, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := durable.MakeDir(path); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	f := &files{path: path, root: root, settled: map[string]bool{}}
	if f.codec, err = blob.NewCodec(); err == nil {
		err = f.makeDigestDir()
	}
	if err != nil {
		_ = root.Close() // the first error is the one to report
		return nil, err
	}
	return f, nil
}

// files is the blob.Keeper over a directory.
type files struct {
	path  string // absolute, for messages and to sync its parent
	root  *os.Root
	codec *blob.Codec

	mu      sync.Mutex
	settled map[string]bool // shards whose entry in sha256 is durable; with the first, those of the store and of sha256 are
}

// shardOf and nameOf give the directory and the file of a blob, as the package
// comment draws them; refOf is the inverse of nameOf.
func shardOf(ref blob.Ref) string { return path.Join(digestDir, ref.Hex()[:2]) }
func nameOf(ref blob.Ref) string  { return path.Join(shardOf(ref), ref.Hex()[2:]) }

func refOf(name string) (blob.Ref, bool) {
	digits, ok := strings.CutPrefix(name, digestDir+"/")
	if !ok || len(digits) < 3 || digits[2] != '/' {
		return blob.Ref{}, false
	}
	ref, err := blob.Parse("sha256:" + digits[:2] + digits[3:])
	return ref, err == nil
}

// Keep writes the file unless an intact one is there. Reading that one first
// costs little, since blobs are small, and makes a Put repair damage.
func (f *files) Keep(ctx context.Context, ref blob.Ref, content []byte) error {
	if err := f.settle(shardOf(ref)); err != nil {
		return fmt.Errorf("in %s: %w", f.path, err)
	}
	done, err := f.share(ctx)
	if err != nil {
		return fmt.Errorf("in %s: %w", f.path, err)
	}
	defer done()
	// Whatever hinders reading (nothing there, damage, a bad sector) or setting the
	// time, a fresh file is the remedy, so the error is not needed.
	old, err := f.decode(ref)
	if err != nil || !bytes.Equal(old, content) || !f.touched(ref) {
		if err := f.write(nameOf(ref), f.codec.Encode(ref, content)); err != nil {
			return fmt.Errorf("in %s: %w", f.path, err)
		}
	}
	// Also for a file that was there: the process that renamed it may not have
	// come to this point yet.
	if err := durable.SyncDir(f.root.Open(shardOf(ref))); err != nil {
		return fmt.Errorf("in %s: sync directory: %w", f.path, err)
	}
	return nil
}

// settle makes sure that the shard exists and that, once the shard itself is
// synced, no directory above it can vanish in a power loss. Another process may
// have made any of them a moment ago, hence the sync of what is there already:
// once per process.
func (f *files) settle(shard string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.settled[shard] {
		return nil
	}
	if len(f.settled) == 0 {
		// A parent that may not be read was not made by us or our like.
		err := durable.SyncDir(os.Open(filepath.Dir(f.path)))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("sync parent directory: %w", err)
		}
		if err := durable.SyncDir(f.root.Open(".")); err != nil {
			return fmt.Errorf("sync store directory: %w", err)
		}
	}
	if err := f.root.Mkdir(shard, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := durable.SyncDir(f.root.Open(digestDir)); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	f.settled[shard] = true
	return nil
}

// write puts data under name as a whole.
func (f *files) write(name string, data []byte) error {
	return durable.Replace(f.root, name, name+"."+rand.Text()+tempSuffix, data) // what a crash leaves, Sweep removes one day
}

// Read reads a blob and marks that it was used.
func (f *files) Read(ctx context.Context, ref blob.Ref) ([]byte, error) {
	content, err := f.decode(ref)
	if err == nil {
		err = f.mark(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// decode reads a blob, and leaves no mark.
func (f *files) decode(ref blob.Ref) ([]byte, error) {
	data, err := f.read(nameOf(ref), blob.MaxForm)
	if err != nil {
		return nil, err
	}
	return f.codec.Decode(ref, data)
}

func (f *files) Size(_ context.Context, ref blob.Ref) (int64, error) {
	data, err := f.read(nameOf(ref), blob.FormHeader)
	if err != nil {
		return 0, err
	}
	size, err := blob.FormSize(ref, data)
	return int64(size), err
}

// read returns up to limit bytes from the start of a file.
func (f *files) read(name string, limit int64) ([]byte, error) {
	info, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", f.path, err)
	}
	// Before opening: a link must not be followed, a pipe would block.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", blob.ErrCorrupt, filepath.Join(f.path, name))
	}
	if info.Size() > blob.MaxForm {
		return nil, fmt.Errorf("%w: the file has %d bytes, the limit is %d", blob.ErrCorrupt, info.Size(), blob.MaxForm)
	}
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, blob.ErrNotFound // removed since
	}
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", f.path, err)
	}
	// The file may have been replaced by a repaired one since Lstat, so its
	// length is a hint for the allocation only.
	buf := bytes.NewBuffer(make([]byte, 0, min(info.Size(), limit)+bytes.MinRead))
	_, err = buf.ReadFrom(io.LimitReader(file, limit))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("in %s: %w", f.path, err)
	}
	return buf.Bytes(), nil
}

func (f *files) makeDigestDir() error {
	info, err := f.root.Lstat(digestDir)
	if errors.Is(err, fs.ErrNotExist) {
		if err = f.root.Mkdir(digestDir, dirMode); errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", digestDir)
	}
	return err
}
