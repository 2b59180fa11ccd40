package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// repair does what is safe and says in the findings what it did. Doing it again
// finds nothing more to do.
func (c *checker) repair(ctx context.Context) error {
	wanted := map[blob.Ref]*Finding{}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		switch f.Kind {
		case TornTail:
			if err := c.cut(f); err != nil {
				return err
			}
		case DamagedBlob:
			if err := c.setAside(ctx, f); err != nil {
				return err
			}
			wanted[f.ref] = f
		case MissingBlob:
			wanted[f.ref] = f
		case LaterFormat:
			f.Done = "left alone: use the version of the program that wrote it"
		case DamagedTrace:
			f.Done = "left alone: what can still be read in it is not thrown away"
		}
	}
	if err := c.restore(ctx, wanted); err != nil {
		return err
	}
	n, err := c.Shelf.Sweep(ctx, c.o.Now.Add(-leftoverAge))
	if n > 0 {
		c.report.Done = append(c.report.Done, fmt.Sprintf("files of broken-off writes removed: %d", n))
	}
	return err
}

// cut removes the torn tail of a trace that nobody writes, and keeps a copy.
func (c *checker) cut(f *Finding) error {
	tail, torn, err := c.tailOf(f.id)
	if err != nil {
		return err
	}
	if !torn {
		f.Done = "left alone: its end is a whole line that was damaged, not one that a crash tore"
		return nil
	}
	path, err := c.aside(f.id.String() + ".tail")
	if err != nil {
		return err
	}
	if err := writeFile(path, tail); err != nil {
		return err
	}
	w, _, err := c.Traces.Append(f.id)
	if err != nil {
		f.Done = "left alone: " + err.Error()
		return os.Remove(path)
	}
	f.Done, f.Fixed = fmt.Sprintf("cut: %d bytes, kept as %s", len(tail), path), true
	return w.Close()
}

// setAside moves a damaged blob out of the store.
func (c *checker) setAside(ctx context.Context, f *Finding) error {
	path, err := c.aside(f.ref.Hex() + ".blob")
	if err != nil {
		return err
	}
	moved, err := c.Shelf.SetAside(ctx, f.ref, path)
	switch {
	case err != nil:
		return err
	case moved:
		f.Done, f.Fixed = "moved to "+path, len(f.NeededBy) == 0
	default:
		f.Done, f.Fixed = "sound again: somebody stored it anew", true
	}
	return nil
}

// aside is a path in the folder of damaged files that is not taken.
func (c *checker) aside(name string) (string, error) {
	if err := os.MkdirAll(c.Damaged, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(c.Damaged, name)
	for i := 2; ; i++ {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		} else if err != nil {
			return "", err
		}
		path = filepath.Join(c.Damaged, fmt.Sprintf("%s.%d", name, i))
	}
}

func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return durable.SyncDir(os.Open(filepath.Dir(path)))
}

// restore looks for the content of blobs elsewhere in the store: in files whose
// writer was broken off at the very end, and in what investigations and their
// rihlas both recorded. Only what has the right hash is taken.
func (c *checker) restore(ctx context.Context, wanted map[blob.Ref]*Finding) error {
	if len(wanted) == 0 {
		return nil
	}
	offer := func(content []byte, from string) error {
		f := wanted[blob.Of(content)]
		if f == nil {
			return nil
		}
		if _, err := c.Blobs.Put(ctx, content); err != nil {
			return err
		}
		if f.Done != "" {
			f.Done += "; "
		}
		f.Done, f.Fixed = f.Done+"restored from "+from, true
		delete(wanted, f.ref)
		return nil
	}
	for _, file := range c.leftovers {
		if wanted[file.Ref] == nil {
			continue
		}
		if content, err := c.Shelf.Inspect(ctx, file); err == nil {
			if err := offer(content, "a write that was broken off"); err != nil {
				return err
			}
		}
	}
	return c.Shelf.Files(ctx, func(file blob.File) error {
		if len(wanted) == 0 || file.Leftover || file.Size > maxOutcome {
			return nil
		}
		content, err := c.Shelf.Inspect(ctx, file)
		if err != nil {
			return nil // damaged itself, which was said
		}
		for _, other := range relatives(content) {
			if err := offer(other, "blob "+file.Ref.String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxOutcome bounds the files in which other content is looked for.
const maxOutcome = 16 << 20

// relatives are other blobs that may be made of the same record: the result in an
// outcome, and the outcome around a result.
func relatives(content []byte) [][]byte {
	if !bytes.HasPrefix(content, []byte("{")) {
		return nil
	}
	var o struct {
		OK json.RawMessage `json:"ok"`
	}
	if json.Unmarshal(content, &o) != nil {
		return nil
	}
	if o.OK == nil {
		o.OK = content
		around, err := json.Marshal(o)
		if err != nil {
			return nil
		}
		return [][]byte{around}
	}
	all := [][]byte{o.OK}
	if res, err := marchwarden.DecodeResult(o.OK); err == nil && res.TraceID.Valid() {
		if line, err := marchwarden.EncodeResult(res); err == nil {
			all = append(all, line)
		}
	}
	return all
}
