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
	"slices"
	"strings"
	"sync"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// files is the blob.Keeper over a directory.
type files struct {
	path  string // absolute, for messages and to sync its parent
	root  *os.Root
	codec *blob.Codec
	lock  sharedLock // see the package comment

	clockMu sync.Mutex
	clock   *os.File // the lock's file, to read the time from; nil before it was needed

	mu      sync.Mutex
	rooted  bool            // the entries of the store and of sha256 are durable
	settled map[string]bool // shards whose entry in sha256 is durable
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
	done, err := f.lock.share(ctx)
	if err != nil {
		return fmt.Errorf("in %s: %w", f.path, err)
	}
	defer done()
	// Whatever hinders reading (nothing there, damage, a bad sector) or setting the
	// time, a fresh file is the remedy, so the error is not needed.
	old, err := f.decode(ref, nameOf(ref))
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
	if !f.rooted {
		// A parent that may not be read was not made by us or our like.
		err := durable.SyncDir(os.Open(filepath.Dir(f.path)))
		if err != nil && !errors.Is(err, fs.ErrPermission) {
			return fmt.Errorf("sync parent directory: %w", err)
		}
		if err := durable.SyncDir(f.root.Open(".")); err != nil {
			return fmt.Errorf("sync store directory: %w", err)
		}
		f.rooted = true
	}
	if err := f.root.Mkdir(shard, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := durable.SyncDir(f.root.Open(digestDir)); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	if f.settled == nil {
		f.settled = make(map[string]bool)
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
	content, err := f.decode(ref, nameOf(ref))
	if err == nil {
		err = f.mark(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	return content, nil
}

// decode reads a blob from a file, and leaves no mark.
func (f *files) decode(ref blob.Ref, name string) ([]byte, error) {
	data, err := f.read(name, blob.MaxForm)
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

// each calls fn with the name of every file in the shards, in order.
func (f *files) each(fn func(name string) error) error {
	shards, err := f.list(digestDir)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		if ok, err := f.isShard(shard); err != nil {
			return err
		} else if !ok {
			continue
		}
		names, err := f.list(shard)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := fn(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// isShard reports whether a path is one of the directories that blobs are in. A link
// in the place of one counts, so that it is an error and not passed over.
func (f *files) isShard(name string) (bool, error) {
	if base := path.Base(name); len(base) != 2 || strings.Trim(base, "0123456789abcdef") != "" {
		return false, nil
	}
	info, err := f.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("in %s: %w", f.path, err)
	}
	return info.IsDir() || info.Mode()&fs.ModeSymlink != 0, nil
}

// list returns the paths of a directory's entries, in order.
func (f *files) list(dir string) ([]string, error) {
	d, err := f.root.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", f.path, err)
	}
	names, err := d.Readdirnames(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return nil, fmt.Errorf("in %s: %w", f.path, err)
	}
	slices.Sort(names)
	for i, name := range names {
		names[i] = path.Join(dir, name)
	}
	return names, nil
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
