package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

const suffix = ".jsonl"

// ForeignSuffix ends the name of the file that marks a trace as one that came from
// somewhere else.
const ForeignSuffix = ".imported"

// importLock is the file in the folder that an import locks while it puts traces there.
const importLock = "lock"

// Dir is a folder of traces. It is safe for concurrent use, by several processes
// too: each run writes a file of its own, and holds a lock on it while it does.
type Dir struct {
	root *os.Root // nil for one that could not be opened
	path string
	now  func() time.Time
	err  error // why it could not be opened

	// Clean, if it is set, has every line before it is written; what it takes out is
	// written nowhere. It must leave JSON behind.
	Clean func(line []byte) []byte
}

// Nowhere is a folder that could not be opened: nothing is in it, and a write to it says why.
func Nowhere(path string, err error) *Dir { return &Dir{path: path, err: err} }

// OpenDir opens the folder, making it (mode 0700) when it is missing. Timestamps
// come from now. Close it when done.
func OpenDir(path string, now func() time.Time) (*Dir, error) {
	if err := durable.MakeDir(path); err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "make the trace folder")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open the trace folder")
	}
	return &Dir{root: root, path: path, now: now}, nil
}

// Close releases the folder. Writers that are open stay usable.
func (d *Dir) Close() error {
	if d.root == nil {
		return nil
	}
	return d.root.Close()
}

// Path is where the folder is.
func (d *Dir) Path() string { return d.path }

// Create begins a new trace; the id must not have been used before. A file in which no whole
// line stands, since a crash came before the first, is begun again.
func (d *Dir) Create(id marchwarden.TraceID) (*Writer, error) {
	f, err := d.hold(id, os.O_CREATE|os.O_WRONLY|os.O_APPEND, holdLimit)
	if err != nil {
		return nil, err
	}
	log, err := d.Load(id)
	if err == nil && (len(log.Steps) > 0 || log.Damaged) {
		err = fs.ErrExist
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err := errors.Join(err, d.sync()); err != nil {
		f.Close()
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "create trace %s", id)
	}
	return &Writer{f: locked{f}, now: d.now, clean: d.Clean, sums: true}, nil
}

// Mirror is the trace of a run that another machine records, as it grows: it is listed and
// followed like any other. It holds the lock of the trace.
type Mirror struct {
	f        *os.File
	at, size int64
}

// Mirror opens the trace of a run to add lines that are written elsewhere, from the first on.
func (d *Dir) Mirror(id marchwarden.TraceID) (*Mirror, error) {
	f, err := d.file(id, os.O_CREATE|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	if durable.Lock(f, false) != nil { // without locks two processes could both add the same lines
		return nil, errors.Join(Going(id), f.Close())
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &Mirror{f: f, size: info.Size()}, nil
}

// Onward says that the next line comes after those that are here.
func (m *Mirror) Onward() { m.at = max(m.at, m.size) }

// Add adds a line, unless it is here.
func (m *Mirror) Add(line []byte) error {
	here := min(max(0, m.size-m.at), int64(len(line)))
	m.at += int64(len(line))
	_, err := m.f.Write(line[here:])
	return err
}

// Close gives the trace up.
func (m *Mirror) Close() error { return durable.Release(m.f) }

// Unrecorded begins the warning of a result whose run could not be recorded.
const Unrecorded = "this answer is not recorded"

// holdLimit is how long a writer waits for another: one that was told to stop is about
// to. Where there are no locks, the user sees to it that a run is not resumed twice at
// once. Tests do not wait as long.
var holdLimit = 3 * time.Second

// Append opens a trace to continue it. A torn last line is cut off the file and reported in the
// log's Torn. A trace that another process writes is CodeUnavailable.
func (d *Dir) Append(id marchwarden.TraceID) (*Writer, *Log, error) {
	f, err := d.hold(id, os.O_WRONLY|os.O_APPEND, holdLimit)
	if err != nil {
		return nil, nil, err
	}
	log, err := d.Load(id)
	if err == nil && log.Damaged {
		err = &marchwarden.Error{Code: marchwarden.CodeCorrupt, Message: fmt.Sprintf("the last line of trace %s is damaged", id), Hint: "see 'marchwarden check'"}
	}
	if err == nil && log.Torn > 0 {
		err = marchwarden.Wrap(errors.Join(f.Truncate(log.Good), f.Sync()), marchwarden.CodeUnavailable, "cut the torn line of trace %s", id)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return &Writer{f: locked{f}, now: d.now, clean: d.Clean, steps: len(log.Steps), sum: log.sum, sums: log.sums}, log, nil
}

// ErrGoing is in the chain of the error that Going gives.
var ErrGoing = durable.ErrLocked

// Going says that a run is under way, so that no other process can resume it.
func Going(id marchwarden.TraceID) error {
	return going{&marchwarden.Error{Code: marchwarden.CodeUnavailable, Message: fmt.Sprintf("run %s is still going on in another process", id),
		Hint: "wait for it to end, or stop it"}}
}

type going struct{ error }

func (g going) Unwrap() error      { return g.error }
func (going) Is(target error) bool { return target == ErrGoing }

// Busy reports whether a process is writing a trace now.
func (d *Dir) Busy(id marchwarden.TraceID) (bool, error) {
	f, err := d.file(id, os.O_RDONLY)
	if err != nil {
		return false, err
	}
	defer durable.Release(f)
	return errors.Is(durable.Lock(f, true), durable.ErrLocked), nil
}

// Hold takes the lock of a trace, whatever is in it, until release is called; it fails with
// durable.ErrLocked while a process writes it. Where a file system has no locks it takes none.
func (d *Dir) Hold(id marchwarden.TraceID) (release func() error, err error) {
	f, err := d.hold(id, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return func() error { return durable.Release(f) }, nil
}

// hold opens the file of a trace as file does and takes its lock. It waits up to a limit for another
// process that has it, and then says Going.
func (d *Dir) hold(id marchwarden.TraceID, how int, limit time.Duration) (*os.File, error) {
	f, err := d.file(id, how)
	if err != nil {
		return nil, err
	}
	if err := durable.Hold(f, limit); err != nil {
		return nil, errors.Join(Going(id), f.Close())
	}
	return f, nil
}

// Stat says how large the file of a trace is and when it was last written.
func (d *Dir) Stat(id marchwarden.TraceID) (fs.FileInfo, error) {
	f, err := d.file(id, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	return info, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look at trace %s", id)
}

// Foreign reports whether a trace was made somewhere else and brought here. How its run was begun,
// which folders it searched and whom it told what was another user's choice: it should not be
// resumed in this user's name.
func (d *Dir) Foreign(id marchwarden.TraceID) (bool, error) {
	if d.root == nil {
		return false, d.err
	}
	_, err := d.root.Lstat(id.String() + ForeignSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return true, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "look where trace %s is from", id)
}

// importLimit is how long an import waits for another.
const importLimit = time.Minute

// Import has bring put files into the folder, each at once or not at all, while no other import does.
func (d *Dir) Import(bring func(put func(name string, content []byte) error) error) error {
	if d.root == nil {
		return d.err
	}
	lock, err := durable.Own(filepath.Join(d.path, importLock), func(f *os.File) error { return durable.Hold(f, importLimit) })
	if err != nil {
		return marchwarden.Wrap(err, marchwarden.CodeUnavailable, "wait for another import")
	}
	err = bring(func(name string, content []byte) error {
		return durable.ReplaceFile(filepath.Join(d.path, name), content)
	})
	return errors.Join(err, durable.Release(lock))
}

// Remove removes a trace for good, and keeps that over a power loss.
func (d *Dir) Remove(id marchwarden.TraceID) error {
	if _, err := d.Stat(id); err != nil {
		return err
	}
	err := d.root.Remove(id.String() + suffix)
	if mark := d.root.Remove(id.String() + ForeignSuffix); err == nil && !errors.Is(mark, fs.ErrNotExist) {
		err = mark
	}
	return marchwarden.Wrap(errors.Join(err, d.sync()), marchwarden.CodeUnavailable, "remove trace %s", id)
}

// Load reads a trace and changes nothing.
func (d *Dir) Load(id marchwarden.TraceID) (*Log, error) { return d.Skim(id) }

// Skim is Load for those who look at steps of some actions alone; none is all. Where
// lines have checksums, the other steps are Unknown, with their number, action and time:
// they are held against their checksums, and what is in them is not looked at. That
// takes a fraction of the time. With an error comes what stands before it, nil for nothing.
func (d *Dir) Skim(id marchwarden.TraceID, only ...Action) (*Log, error) {
	f, err := d.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	log := &Log{only: only}
	if err := log.ReadOn(f); err != nil {
		return log, fmt.Errorf("read trace %s: %w", id, err)
	}
	return log, nil
}

// Size says how long a trace is, and whether it is complete.
func (d *Dir) Size(_ context.Context, id marchwarden.TraceID) (bytes int64, ended bool, err error) {
	busy, err := d.Busy(id) // first: what is written after that is seen next time
	if err != nil {
		return 0, false, err
	}
	info, err := d.Stat(id)
	if err != nil {
		return 0, false, err
	}
	return info.Size(), !busy, nil
}

// Raw opens the lines of a trace as they are. The caller closes.
func (d *Dir) Raw(id marchwarden.TraceID) (io.ReadCloser, error) { return d.file(id, os.O_RDONLY) }

// Text is all that is in the file of a trace, or was read of it before an error.
func (d *Dir) Text(id marchwarden.TraceID) ([]byte, error) {
	f, err := d.Raw(id)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return text, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "read trace %s", id)
}

// file opens the file of a trace: CodeNotFound if it is missing and not to be made.
func (d *Dir) file(id marchwarden.TraceID, how int) (*os.File, error) {
	if !id.Valid() {
		return nil, marchwarden.Errorf(marchwarden.CodeInternal, "a trace needs an id")
	}
	if d.root == nil {
		return nil, d.err
	}
	f, err := d.root.OpenFile(id.String()+suffix, how, 0o600)
	switch {
	case err == nil:
		return f, nil
	case how&os.O_CREATE != 0:
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "create trace %s", id)
	case errors.Is(err, fs.ErrNotExist):
		return nil, &marchwarden.Error{Code: marchwarden.CodeNotFound, Message: fmt.Sprintf("no trace %s in %s", id, d.path),
			Hint: "run 'marchwarden traces' to list the traces there are"}
	}
	return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "open trace %s", id)
}

// List returns the ids of all traces, newest file first.
func (d *Dir) List() ([]marchwarden.TraceID, error) {
	files, err := d.Files()
	if err != nil {
		return nil, err
	}
	ids := make([]marchwarden.TraceID, len(files))
	for i, f := range files {
		ids[i] = f.ID
	}
	return ids, nil
}

// File is a trace as it lies in the folder.
type File struct {
	ID       marchwarden.TraceID
	Size     int64
	Modified time.Time
	Foreign  bool // see Dir.Foreign
}

// Files tells of all traces what can be told without opening them, newest file first.
func (d *Dir) Files() ([]File, error) {
	if d.root == nil {
		return nil, d.err
	}
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, marchwarden.Wrap(err, marchwarden.CodeUnavailable, "list the trace folder")
	}
	var found []File
	foreign := map[string]bool{}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ForeignSuffix); ok {
			foreign[id] = true
		}
		name, ok := strings.CutSuffix(e.Name(), suffix)
		id, err := marchwarden.ParseTraceID(name)
		if !ok || err != nil {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, File{ID: id, Size: info.Size(), Modified: info.ModTime()})
		}
	}
	for i := range found {
		found[i].Foreign = foreign[found[i].ID.String()]
	}
	slices.SortFunc(found, func(a, b File) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(b.ID.String(), a.ID.String()))
	})
	return found, nil
}

// sync makes a new name in the folder survive a power loss.
func (d *Dir) sync() error {
	return durable.SyncDir(d.root.Open("."))
}
