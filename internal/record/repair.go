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
	"slices"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// remedies finds out what a repair can do, and what else the user can.
func (c *checker) remedies(ctx context.Context) error {
	c.report.Findings = slices.DeleteFunc(c.report.Findings, func(f Finding) bool { return f.Kind == EmptyTrace && c.begunSince(f.id) })
	wanted := map[blob.Ref]*Finding{}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		switch f.Kind {
		case DamagedBlob, MissingBlob:
			for _, id := range f.MayNeed {
				if id = c.family(id); !slices.Contains(f.runs, id) {
					f.runs = append(f.runs, id)
				}
			}
			if len(f.runs) > 0 {
				f.Remedy = lost(f.runs)
			}
			if f.Kind == MissingBlob {
				wanted[f.ref] = f
			}
		case MissingTrace:
			f.Remedy = lost(f.runs)
		case LaterFormat:
			f.Remedy = "use the version of the program that wrote it"
		case DamagedTrace:
			if f.inPlace == "" {
				f.Remedy = "what can still be read in it is left alone; to remove the run: marchwarden gc --run " + c.family(f.id).String()
			}
		}
	}
	return c.search(ctx, wanted, func(f *Finding, _ []byte, _ string) {
		f.Repairable = true
	})
}

// family is the run that gc takes for one: itself, or the investigation that it is
// part of.
func (c *checker) family(id marchwarden.TraceID) marchwarden.TraceID {
	if whole, ok := c.rihlaOf[id]; ok {
		return whole
	}
	return id
}

// lost says which runs have lost something, and how to remove them.
func lost(runs []marchwarden.TraceID) string {
	const most = 3
	said := fmt.Sprintf("run %s has lost it; to remove the run: marchwarden gc", runs[0])
	if len(runs) > 1 {
		said = fmt.Sprintf("%d runs have lost it; to remove them: marchwarden gc", len(runs))
	}
	for _, id := range runs[:min(most, len(runs))] {
		said += " --run " + id.String()
	}
	if n := len(runs) - most; n > 0 {
		said += fmt.Sprintf(", and %d more", n)
	}
	return said
}

// repair does what is safe and says in the findings what it did, or why it could
// not. Doing it again finds nothing more to do.
func (c *checker) repair(ctx context.Context) error {
	wanted := map[blob.Ref]*Finding{}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		var err error
		switch {
		case f.inPlace != "":
			err = c.moveAside(f)
		case f.Kind == TornTail:
			err = c.cut(f)
		case f.Kind == EmptyTrace && f.Repairable:
			err = c.clear(f)
		case f.Kind == DamagedBlob:
			if err = c.setAside(ctx, f); err == nil {
				wanted[f.ref] = f
			}
		case f.Kind == MissingBlob && f.Repairable:
			wanted[f.ref] = f
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			f.Done, f.Fixed = "could not be repaired: "+err.Error(), false
			c.report.Fail(err)
		}
	}
	if err := c.restore(ctx, wanted); err != nil {
		return err
	}
	return c.sweep(ctx)
}

// sweep removes what broken-off writes left.
func (c *checker) sweep(ctx context.Context) error {
	n, err := c.Shelf.Sweep(ctx, c.o.Now.Add(-leftoverAge))
	for _, path := range c.unfinished {
		gone := os.Remove(path)
		if gone == nil {
			n++
		} else if !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if n > 0 {
		c.report.Leftovers = max(0, c.report.Leftovers-n)
		c.report.Done = append(c.report.Done, fmt.Sprintf("files of broken-off writes removed: %d", n))
	}
	if err != nil {
		c.report.Fail(err)
	}
	return ctx.Err()
}

// moveAside moves what stands in the place of a trace.
func (c *checker) moveAside(f *Finding) error {
	path, err := c.aside(filepath.Base(f.inPlace))
	if err != nil {
		return err
	}
	if err := os.Rename(f.inPlace, path); err != nil {
		return err
	}
	f.Done, f.Fixed = "moved to "+path, true
	return nil
}

// cut removes the torn tail of a trace that no process writes, and keeps a copy.
func (c *checker) cut(f *Finding) error {
	tail, torn, err := c.tailOf(f.id)
	if err != nil {
		return err
	}
	if !torn {
		f.Done = "left alone: it has been written since"
		return nil
	}
	path, err := c.aside(f.id.String() + ".tail")
	if err != nil {
		return err
	}
	if err := durable.ReplaceFile(path, tail); err != nil {
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
		f.Done, f.Fixed = "moved to "+path, len(f.runs) == 0
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

// restore puts the content of blobs back that is found elsewhere in the store.
func (c *checker) restore(ctx context.Context, wanted map[blob.Ref]*Finding) error {
	return c.search(ctx, wanted, func(f *Finding, content []byte, from string) {
		if f.Done != "" {
			f.Done += "; "
		}
		if _, err := c.Blobs.Put(ctx, content); err != nil {
			f.Done += "could not be restored: " + err.Error()
			c.report.Fail(err)
			return
		}
		f.Done, f.Fixed = f.Done+"restored from "+from, true
	})
}

// search looks for the content of blobs elsewhere in the store: in files whose
// writer was broken off at the very end, and in what investigations and their
// rihlas both recorded. Only what has the right hash is offered, and each once.
func (c *checker) search(ctx context.Context, wanted map[blob.Ref]*Finding, found func(f *Finding, content []byte, from string)) error {
	offer := func(content []byte, from string) {
		if f := wanted[blob.Of(content)]; f != nil {
			found(f, content, from)
			delete(wanted, f.ref)
		}
	}
	for _, file := range c.leftovers {
		if wanted[file.Ref] == nil {
			continue
		}
		if content, err := c.Shelf.Inspect(ctx, file); err == nil {
			offer(content, "a write that was broken off")
		}
	}
	if len(wanted) == 0 {
		return nil
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
			offer(other, "blob "+file.Ref.String())
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
