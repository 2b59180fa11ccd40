package local

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/inverted"
	"golang.org/x/sync/errgroup"
)

// UpdateOptions says how to update an index.
type UpdateOptions struct {
	Extract fetch.Extractor // required
	// Now dates the update, and lets it tell files that were written so recently
	// that their next change may not show in their time. Nil: neither.
	Now func() time.Time
	// Progress receives an event of StageIndex every 50 files or so, one at a
	// time; nil for none.
	Progress marchwarden.Sink
}

// Report is what an update did. Files that were neither added, changed, removed
// nor unchanged are in Skipped or in Notes.
type Report struct {
	Folder    string  `json:"folder"`
	Added     int     `json:"added"`
	Changed   int     `json:"changed"`
	Removed   int     `json:"removed"`
	Unchanged int     `json:"unchanged"`
	Skipped   Skipped `json:"skipped"`
	Notes     []Note  `json:"notes,omitempty"` // in order of name
	// Rebuilt says why the index was started anew when it was opened, or "".
	Rebuilt string `json:"rebuilt,omitempty"`
}

// A batch is what one write transaction holds: small enough that other processes
// get their turn and that little is lost, large enough to be fast.
const (
	batchFiles  = 50
	batchBytes  = 4 << 20
	removeFiles = 1000 // which are quick to remove
)

// mtimeSlack is how far apart two changes of a file must be for its time to tell
// them apart, on the coarsest file systems in use.
const mtimeSlack = 2 * time.Second

// known is what the index has of a file.
type known struct {
	name                    string
	id, size, mtime, chunks int64
	hash                    []byte
	note                    string
}

// outcome is what reading one file gave.
type outcome struct {
	entry
	knownID int64 // of its row when the update began, or 0
	hash    []byte
	doc     extract.Document
	same    bool   // the bytes are those in the index
	note    string // why it cannot be found
	retry   bool   // the note may not hold next time: keep nothing
	title   string
	pieces  []string // the chunks of the text
	number  uint32   // in the batch's segment
}

// batch is what one write transaction puts into the index.
type batch struct {
	files   []outcome
	segment []byte // the chunks of the files, indexed
	span    uint32 // numbers in it
	chunks  int
}

// Update brings the index in line with a folder. Files whose size and time did
// not change are not read; files whose bytes did not change are not extracted;
// files that are gone leave the index. A file that cannot be read is a Note,
// never a failure; with CodeUnavailable fails only a folder that cannot be read
// itself, or an index that is damaged or cannot be written.
//
// When ctx ends, what was indexed by then stays, and Update returns the report
// of it together with a CodeCanceled error. Several updates, of this process or
// others, may run at once, even of one folder.
func (ix *Index) Update(ctx context.Context, f *fetch.Folder, opts UpdateOptions) (Report, error) {
	u := &updater{ix: ix, folder: f, opts: opts, report: Report{Folder: f.Name, Rebuilt: ix.rebuilt}}
	err := u.run(ctx)
	slices.SortFunc(u.report.Notes, func(a, b Note) int { return strings.Compare(a.Name, b.Name) })
	return u.report, ix.coded(ctx, err, "index folder %q", f.Name)
}

type updater struct {
	ix     *Index
	folder *fetch.Folder
	opts   UpdateOptions
	now    time.Time        // when the update began; zero if unknown
	id     int64            // of the folder in the index
	known  map[string]known // by name, when the update began
	total  int              // files to read
	done   int              // files read and written
	report Report
}

func (u *updater) run(ctx context.Context) (err error) {
	if u.opts.Now != nil {
		u.now = u.opts.Now()
	}
	// First what is known, then what is there: a file that another process adds in
	// between must not look like one that is gone.
	if u.id, u.known, err = u.ix.load(ctx, u.folder.Name); err != nil {
		return err
	}
	list, err := walk(ctx, u.folder.FS)
	if err != nil {
		return err
	}
	if u.id == 0 {
		err := u.ix.w.QueryRowContext(ctx, "INSERT INTO folders (name) VALUES (?) ON CONFLICT DO UPDATE SET name = name RETURNING id", u.folder.Name).Scan(&u.id)
		if err != nil {
			return fmt.Errorf("add folder: %w", err)
		}
	}
	u.report.Skipped, u.report.Notes = list.skipped, list.notes
	todo, gone := u.compare(list.entries)
	u.total = len(todo)
	if err := u.readAndWrite(ctx, todo); err != nil {
		return err
	}
	if err := u.ix.removeDocs(ctx, u.id, gone); err != nil {
		return err
	}
	u.report.Removed = len(gone)
	if u.report.Added+u.report.Changed+u.report.Removed == 0 || u.now.IsZero() {
		return nil
	}
	_, err = u.ix.w.ExecContext(ctx, "UPDATE folders SET updated = ? WHERE id = ?", u.now.UTC().Format(time.RFC3339Nano), u.id)
	return err
}

// compare splits the files into those to read and those, by id, that are gone
// from the folder; the rest is unchanged.
func (u *updater) compare(entries []entry) (todo []entry, gone []int64) {
	left := maps.Clone(u.known)
	for _, e := range entries {
		k, ok := u.known[e.name]
		delete(left, e.name)
		switch {
		case !ok || e.mtime == 0 || e.mtime != k.mtime || e.size != k.size || len(k.hash) > sha256.Size && u.scans():
			todo = append(todo, e)
		case k.note != "":
			u.note(e.name, k.note)
		default:
			u.report.Unchanged++
		}
	}
	return todo, idsOf(left)
}

// readAndWrite reads and indexes one batch after the other.
func (u *updater) readAndWrite(ctx context.Context, todo []entry) error {
	for entries, rest := cut(todo); len(entries) > 0; entries, rest = cut(rest) {
		u.progress()
		if err := u.write(ctx, pack(u.readBatch(ctx, entries))); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if len(todo) > 0 {
		u.progress()
	}
	return nil
}

// pack indexes what was read.
func pack(files []outcome) *batch {
	size := 0
	for i := range files {
		size += len(files[i].doc.Text)
	}
	b := inverted.NewBuilder(size)
	for i := range files {
		if o := &files[i]; !o.same && !o.retry {
			o.number = b.Add(inverted.Document{Title: o.title, Path: strings.TrimSuffix(o.name, path.Ext(o.name)), Chunks: o.pieces})
		}
	}
	return &batch{files: files, span: b.Numbers(), chunks: b.Chunks(), segment: b.Bytes()}
}

// cut cuts the next batch off the files. A large file is alone in its batch.
func cut(entries []entry) (batch, rest []entry) {
	n, bytes := 0, int64(0)
	for n < len(entries) && n < batchFiles && (n == 0 || bytes+entries[n].size <= batchBytes) {
		bytes += entries[n].size
		n++
	}
	return entries[:n], entries[n:]
}

func (u *updater) readBatch(ctx context.Context, batch []entry) []outcome {
	results := make([]outcome, len(batch))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, e := range batch {
		g.Go(func() error {
			results[i] = u.read(ctx, e)
			return nil
		})
	}
	_ = g.Wait() // every failure is in the results
	return slices.DeleteFunc(results, func(o outcome) bool { return o.name == "" })
}

// read reads and extracts one file; the outcome is empty when the work was cancelled before it was done.
func (u *updater) read(ctx context.Context, e entry) outcome {
	o := outcome{entry: e, knownID: u.known[e.name].id}
	if ctx.Err() != nil {
		return outcome{}
	}
	raw, err := u.folder.Read(e.name)
	if err != nil {
		o.note, o.retry = durable.Cause(err), true
		return o
	}
	sum := sha256.Sum256(raw)
	o.hash = sum[:]
	if !u.now.IsZero() && u.now.Sub(time.Unix(0, e.mtime)) < mtimeSlack {
		o.mtime = 0
	}
	if k, ok := u.known[e.name]; ok && slices.Equal(k.hash, o.hash) {
		o.same, o.note = true, k.note
		return o
	}
	o.doc, err = u.opts.Extract.Extract(ctx, e.name, raw)
	if o.doc.Again || o.doc.Unread != "" && !u.scans() { // another time the same bytes may give another text
		sum = sha256.Sum256(append(o.hash, o.doc.Text...))
		o.hash = append(sum[:], 0)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return outcome{}
	case err != nil:
		o.note = durable.Cause(err)
		// What is wrong with the bytes will be so again.
		o.retry = !errors.Is(err, extract.ErrDamaged) && !errors.Is(err, extract.ErrEncrypted) && !errors.Is(err, extract.ErrTooLarge)
	case o.doc.NonText:
		o.note = cmp.Or(o.doc.Unread, "no text in this file")
		o.retry = o.doc.Again
	case o.doc.Again:
		o.mtime = 0
	}
	if o.same = !o.retry && slices.Equal(u.known[e.name].hash, o.hash); !o.retry && !o.same {
		o.title = fetch.Title(e.name, o.doc)
		o.pieces = chunk(o.doc.Text)
	}
	return o
}

// scans reports whether the extractor reads pages that are pictures.
func (u *updater) scans() bool {
	x, ok := u.opts.Extract.(interface{ Scans() bool })
	return ok && x.Scans()
}

// write stores one batch and counts it. It goes on when ctx has ended, since the
// work is done already and soon written; only a large file is given up.
func (u *updater) write(ctx context.Context, b *batch) error {
	// Files without a time are read every time; unchanged, or unknown and unreadable, they cost no write.
	news := slices.ContainsFunc(b.files, func(o outcome) bool {
		k := u.known[o.name]
		if o.retry {
			return k.id != 0
		}
		return !o.same || o.size != k.size || o.mtime != k.mtime
	})
	if news {
		if err := u.ix.writeBatch(ctx, u.id, b); err != nil {
			return err
		}
	}
	for _, o := range b.files {
		_, wasKnown := u.known[o.name]
		switch {
		case o.note != "":
			u.note(o.name, o.note)
		case o.same:
			u.report.Unchanged++
		case wasKnown:
			u.report.Changed++
		default:
			u.report.Added++
		}
	}
	u.done += len(b.files)
	return nil
}

func (u *updater) note(name, reason string) {
	u.report.Notes = append(u.report.Notes, Note{Name: name, Reason: reason})
}

func (u *updater) progress() {
	if u.opts.Progress == nil {
		return
	}
	u.opts.Progress(marchwarden.Event{
		Stage: marchwarden.StageIndex, Message: "indexing " + fetch.Printable(u.folder.Name), Done: u.done, Total: u.total,
	})
}

func idsOf(docs map[string]known) []int64 {
	var ids []int64
	for _, k := range docs {
		ids = append(ids, k.id)
	}
	slices.Sort(ids)
	return ids
}
