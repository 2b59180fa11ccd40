// Package logbook keeps files of entries to which several processes append, one entry
// at a time, each of them knowing all that was appended before. An entry is kept, over
// a power loss too, when the appending returns. What entries mean is their writers'.
//
// An entry is a line: a JSON object with a checksum at its end. Appending holds the lock
// of the file; reading needs none. A stump that a crash left at the end is cut off by
// the next who appends, and readers stop in front of it. Damage anywhere else is
// CodeCorrupt.
package logbook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// lockLimit is how long an append waits for those of others, which take milliseconds.
const lockLimit = 20 * time.Second

// Seen is told an entry, as the JSON object it was, and where in the file it ends: a
// number by which entries can be ordered and gone on from.
type Seen func(entry []byte, end int64)

// Book is one file and how far this process has read it. It is safe for concurrent use;
// its functions are called one at a time.
type Book struct {
	path, kind string
	seen       Seen
	anew       func()

	mu   sync.Mutex // guards what follows, and the calls of seen
	at   int64
	info os.FileInfo // of the file that was read
}

// Open names a book. kind says what its entries are: one of another kind is not sound in
// it. Every entry is told to seen once, in order, whichever process appends it, before the call
// that finds it returns. When the file was replaced, anew is called and all entries are told again;
// it may be nil for a book that never is.
func Open(path, kind string, seen Seen, anew func()) *Book {
	return &Book{path: path, kind: kind, seen: seen, anew: anew}
}

// Refresh tells of what is new. A book that does not exist is empty.
func (b *Book) Refresh() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if info, err := os.Stat(b.path); err == nil && b.info != nil && info.Size() == b.at && os.SameFile(info, b.info) {
		return nil
	}
	f, err := os.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a log")
	}
	defer f.Close()
	return b.catchUp(f)
}

// catchUp reads what is new in the file.
func (b *Book) catchUp(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a log")
	}
	if b.info != nil && !os.SameFile(info, b.info) {
		b.at = 0
		if b.anew != nil {
			b.anew()
		}
	}
	b.info = info
	return b.scan(f, b.at, func(entry []byte, end int64) bool {
		b.at = end
		b.seen(entry, end)
		return true
	})
}

// Scan tells of the entries after a place, until fn has enough. It does not change what
// Refresh is to tell.
func (b *Book) Scan(from int64, fn func(entry []byte, end int64) (more bool)) error {
	f, err := os.Open(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a log")
	}
	defer f.Close()
	return b.scan(f, from, fn)
}

func (b *Book) scan(f *os.File, from int64, fn func([]byte, int64) bool) error {
	data, err := io.ReadAll(io.NewSectionReader(f, from, 1<<62))
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read a log")
	}
	for at := from; ; {
		n := bytes.IndexByte(data, '\n')
		if n < 0 {
			return nil
		}
		entry, err := b.check(data[:n])
		if err != nil && b.stump(data[n+1:]) {
			return nil
		}
		if err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeCorrupt, "the log %s is damaged at byte %d", filepath.Base(b.path), at)
		}
		at, data = at+int64(n)+1, data[n+1:]
		if !fn(entry, at) {
			return nil
		}
	}
}

// check is the object of a sound line.
func (b *Book) check(line []byte) ([]byte, error) {
	body, sum, err := durable.CheckLine(line, b.kind)
	if err == nil && sum == "" {
		err = durable.ErrSum
	}
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(body), '}'), nil
}

// stump reports whether nothing sound follows, so that what is before it is the rest of
// a write that a crash cut short.
func (b *Book) stump(rest []byte) bool {
	for line := range bytes.Lines(rest) {
		if _, err := b.check(bytes.TrimSuffix(line, []byte("\n"))); err == nil {
			return false
		}
	}
	return true
}

// Append appends what next gives when all that went before was told of, and tells of it.
// No process appends meanwhile. An error of next is returned as it is, and nothing written.
// What need not be kept over a power loss, because it can be found out again, is loose.
func (b *Book) Append(loose bool, next func() (entry any, err error)) error {
	return b.alone(func(f *os.File) error {
		entry, err := next()
		if err != nil {
			return err
		}
		object, line, err := b.seal(entry)
		if err != nil {
			return err
		}
		if err := b.write(f, line, loose); err != nil {
			return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write a log")
		}
		b.at += int64(len(line))
		b.seen(object, b.at)
		return nil
	})
}

// alone calls do when the file is the caller's alone and all that is in it was told of.
func (b *Book) alone(do func(*os.File) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	f, err := durable.Own(b.path, func(f *os.File) error { return durable.Hold(f, lockLimit) })
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "write a log")
	}
	defer f.Close()
	if err := b.catchUp(f); err != nil {
		return err
	}
	return do(f)
}

// seal is an entry as an object, and as the line that it is kept as.
func (b *Book) seal(entry any) (object, line []byte, err error) {
	if object, err = json.Marshal(entry); err != nil {
		return nil, nil, fmt.Errorf("write an entry: %w", err)
	}
	line, _ = durable.SealLine(object, b.kind)
	return object, line, nil
}

// write puts a line at the end, over what a crash left there.
func (b *Book) write(f *os.File, line []byte, loose bool) error {
	if b.at == 0 { // its name first: an entry must not be lost with the file
		if err := durable.SyncDir(os.Open(filepath.Dir(b.path))); err != nil {
			return err
		}
	}
	err := f.Truncate(b.at)
	if err == nil {
		_, err = f.WriteAt(line, b.at)
	}
	if err == nil && !loose {
		err = f.Sync()
	}
	if err != nil { // it was not told of, so it must not be found later
		return errors.Join(err, f.Truncate(b.at))
	}
	b.info, err = f.Stat()
	return err
}

// Replace makes the book consist of what keep gives when all was told of, or leaves it
// as it is for nil. Then anew is called, here and elsewhere, and all is told again.
func (b *Book) Replace(keep func() []any) error {
	return b.alone(func(*os.File) error {
		entries := keep()
		if entries == nil {
			return nil
		}
		var data []byte
		for _, e := range entries {
			_, line, err := b.seal(e)
			if err != nil {
				return err
			}
			data = append(data, line...)
		}
		return marchwarden.Wrap(durable.ReplaceFile(b.path, data), marchwarden.CodeUnavailable, "replace a log")
	})
}
