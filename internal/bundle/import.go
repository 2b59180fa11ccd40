package bundle

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/record"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// Imported is what came into a home.
type Imported struct {
	Run  *record.Run
	New  []marchwarden.TraceID // traces that were not there before, the run's own last
	Kept []marchwarden.TraceID // those that were
}

// mark is the content of the file that marks a trace as Foreign. It stands beside the
// trace, which itself is kept to the byte. Fields are only ever added.
type mark struct {
	Format     int       `json:"format"`
	ExportedAt time.Time `json:"exported_at"`
	SignedBy   string    `json:"signed_by,omitempty"` // a fingerprint
}

// Import puts a bundle into a home. It verifies it first and puts nothing if it is
// not whole. The blobs come first, then the traces, each marked as foreign, the
// run's own last: whatever ends it in the middle, no trace is there in part or
// without its blobs, and importing again goes on. A trace of the same id with other content is never
// replaced: that is CodeDenied, before anything is put.
func (b *Bundle) Import(ctx context.Context, dst record.Store) (Imported, error) {
	report, err := b.Verify(ctx)
	if err != nil {
		return Imported{}, marchwarden.Wrap(err, marchwarden.CodeCanceled, "verify the bundle")
	}
	if !report.OK() {
		return Imported{}, marchwarden.Errorf(marchwarden.CodeCorrupt, "%s", report.Problems[0])
	}
	in := Imported{Run: report.Run}
	if err := b.compare(&in, dst); err != nil {
		return Imported{}, err
	}
	for _, ref := range in.Run.Refs() {
		content, err := b.payload(blobName(ref))
		if err != nil {
			return Imported{}, err
		}
		if _, err := dst.Blobs.Put(ctx, content); err != nil {
			return Imported{}, fmt.Errorf("import %s: %w", in.Run.ID, err)
		}
	}
	m := mark{Format: 1, ExportedAt: b.About.ExportedAt}
	if report.Signature != nil {
		m.SignedBy = report.Signature.By.Fingerprint()
	}
	if err := b.place(in.New, m, dst.Traces.Path()); err != nil {
		return Imported{}, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "import %s", in.Run.ID)
	}
	return in, nil
}

// compare tells the traces that are there from those that are not, rihlas first.
func (b *Bundle) compare(in *Imported, dst record.Store) error {
	runs := distinct(in.Run)
	for i := len(runs) - 1; i >= 0; i-- {
		id := runs[i].ID
		there, err := kept(dst, id)
		if marchwarden.CodeOf(err) == marchwarden.CodeNotFound {
			in.New = append(in.New, id)
			continue
		}
		if err != nil {
			return err
		}
		lines, err := b.payload(traceName(id))
		if err != nil {
			return err
		}
		if !bytes.Equal(there, lines) {
			return &marchwarden.Error{Code: marchwarden.CodeDenied, Message: fmt.Sprintf("trace %s is here already, with other content", id),
				Hint: "import it into another home: MARCHWARDEN_HOME=DIR marchwarden import …"}
		}
		in.Kept = append(in.Kept, id)
	}
	return nil
}

// kept are the whole lines of a trace that is there.
func kept(dst record.Store, id marchwarden.TraceID) ([]byte, error) {
	log, err := dst.Traces.Load(id)
	if err != nil {
		return nil, err
	}
	return traceBytes(dst, &record.Run{ID: id, Log: log})
}

// place writes the traces, each at once or not at all, after its mark. If one cannot
// be written, those before it are taken back.
func (b *Bundle) place(ids []marchwarden.TraceID, m mark, path string) (err error) {
	sign, err := encode(m)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	var done []string
	defer func() {
		for _, name := range done {
			if err != nil {
				err = errors.Join(err, root.Remove(name))
			}
		}
	}()
	for _, id := range ids {
		lines, err := b.payload(traceName(id))
		if err != nil {
			return err
		}
		// A mark that is there is what an import left that was cut off.
		if err := placeFile(root, id.String()+trace.ForeignSuffix, sign); err == nil {
			done = append(done, id.String()+trace.ForeignSuffix)
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := placeFile(root, id.String()+traceSuffix, lines); err != nil {
			return err
		}
		done = append(done, id.String()+traceSuffix)
	}
	return durable.SyncDir(root.Open("."))
}

// placeFile writes a new file beside its place and gives it its name when it is
// whole and on the disk. A file that has the name already is an error.
func placeFile(root *os.Root, name string, content []byte) (err error) {
	tmp := "." + name + "." + rand.Text() + ".tmp"
	f, err := root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if gone := root.Remove(tmp); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	_, err = io.Copy(f, bytes.NewReader(content))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	err = root.Link(tmp, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// Some file systems have no links. Between this look and the renaming another
	// process could only import the same run.
	if _, err := root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	return root.Rename(tmp, name)
}
