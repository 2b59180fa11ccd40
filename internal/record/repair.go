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

const remedyLater = "use the version of the program that wrote it"

// remedies finds out what a repair can do, and what else the user can.
func (c *checker) remedies(ctx context.Context) error {
	c.report.Findings = slices.DeleteFunc(c.report.Findings, func(f Finding) bool { return f.Kind == EmptyTrace && c.begunSince(f.id) })
	wanted := map[blob.Ref]*Finding{}
	for i := range c.report.Findings {
		f := &c.report.Findings[i]
		for _, id := range f.MayNeed {
			if id = c.family(id); !slices.Contains(f.runs, id) {
				f.runs = append(f.runs, id)
			}
		}
		switch {
		case len(f.runs) > 0:
			f.Remedy = lost(f.runs)
		case f.Kind == LaterFormat:
			f.Remedy = remedyLater
		case f.Kind == DamagedTrace && f.mend == nil:
			f.Remedy = "what can still be read in it is left alone; to remove the run: marchwarden gc --run " + c.family(f.id).String()
		}
		if f.Kind == MissingBlob {
			wanted[f.ref] = f
		}
	}
	return c.search(ctx, wanted, func(f *Finding, _ []byte, _ string) { f.Repairable, f.mend = true, c.want })
}

// family is the run that gc takes for one: itself, or the investigation that it is part of.
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

// mend does what is safe about each finding, and says in it what was done, or why nothing
// could be. Doing it again finds nothing more to do.
func (r *Report) mend(ctx context.Context) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		if f.mend == nil {
			continue
		}
		err := f.mend(f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.mend = nil; err != nil {
			f.Done, f.Fixed = "could not be repaired: "+err.Error(), false
			r.fail(err)
		}
	}
	return nil
}

// sweep removes old files that were never renamed, or counts them if no repair is wanted.
func (r *Report) sweep(o CheckOptions, paths []string) (removed int) {
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.ModTime().After(o.old()) {
			continue // gone, or another process may still write it
		}
		if o.Repair {
			if err = os.Remove(path); err == nil {
				removed++
				continue
			}
			r.fail(err)
		}
		r.Leftovers++
	}
	return removed
}

// repair does what is safe, if that is wanted.
func (c *checker) repair(ctx context.Context) error {
	removed := c.report.sweep(c.o, c.unfinished)
	if !c.o.Repair {
		return nil
	}
	if err := c.report.mend(ctx); err != nil {
		return err
	}
	if err := c.restore(ctx); err != nil {
		return err
	}
	n, err := c.Shelf.Sweep(ctx, c.o.old())
	if c.report.Leftovers = max(0, c.report.Leftovers-n); err != nil {
		c.report.fail(err)
	}
	if n += removed; n > 0 {
		c.report.Done = append(c.report.Done, fmt.Sprintf("files of broken-off writes removed: %d", n))
	}
	return ctx.Err()
}

// want has a blob restored when all else is done.
func (c *checker) want(f *Finding) error {
	c.wanted[f.ref] = f
	return nil
}

// setAside moves a damaged blob out of the store.
func (c *checker) setAside(ctx context.Context, f *Finding) error {
	path, err := aside(c.Damaged, f.ref.Hex()+".blob")
	if err != nil {
		return err
	}
	moved, err := c.Shelf.SetAside(ctx, f.ref, path)
	if err != nil {
		return err
	}
	f.Done, f.Fixed = "moved to "+path, len(f.runs) == 0
	if !moved {
		f.Done, f.Fixed = "sound again: another process stored it anew", true
	}
	return c.want(f)
}

// aside is a path in the folder of damaged files, which it makes, that is not taken.
func aside(folder, name string) (string, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(folder, name)
	for i := 2; ; i++ {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return path, nil
		} else if err != nil {
			return "", err
		}
		path = filepath.Join(folder, fmt.Sprintf("%s.%d", name, i))
	}
}

// keepAside writes a copy of what is about to go into the folder of damaged files.
func keepAside(folder, name string, text []byte) (path string, err error) {
	if path, err = aside(folder, name); err == nil {
		err = durable.ReplaceFile(path, text)
	}
	return path, err
}

// moveAside is the repair that moves what is at a path to the folder of damaged files.
func moveAside(folder, path string) func(*Finding) error {
	return func(f *Finding) error {
		to, err := aside(folder, filepath.Base(path))
		if err == nil {
			err = os.Rename(path, to)
		}
		f.Done, f.Fixed = "moved to "+to, true
		return err
	}
}

// restore puts the content of blobs back that is found elsewhere in the store.
func (c *checker) restore(ctx context.Context) error {
	return c.search(ctx, c.wanted, func(f *Finding, content []byte, from string) {
		if f.Done != "" {
			f.Done += "; "
		}
		if _, err := c.Blobs.Put(ctx, content); err != nil {
			f.Done += "could not be restored: " + err.Error()
			c.report.fail(err)
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
func relatives(content []byte) (all [][]byte) {
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
		if around, err := json.Marshal(o); err == nil {
			all = append(all, around)
		}
		return all
	}
	all = append(all, o.OK)
	if res, err := marchwarden.DecodeResult(o.OK); err == nil && res.TraceID.Valid() {
		if line, err := marchwarden.EncodeResult(res); err == nil {
			all = append(all, line)
		}
	}
	return all
}
