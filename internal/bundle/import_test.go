package bundle

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob/blobtest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

func TestImport(t *testing.T) {
	ctx := context.Background()
	data := pack(t)
	b, err := open(data)
	check(t, err)
	dst := home(t)
	in, err := b.Import(ctx, dst)
	check(t, err)
	both := []marchwarden.TraceID{id(t, rihlaID), id(t, mainID)}
	same := cmp.Comparer(func(a, b marchwarden.TraceID) bool { return a == b })
	if !cmp.Equal(in.New, both, same) || in.Kept != nil {
		t.Errorf("Import = %v new, %v kept", in.New, in.Kept)
	}
	// What came in can be exported again, to the byte.
	run, err := dst.Load(id(t, mainID))
	check(t, err)
	var again bytes.Buffer
	check(t, Write(ctx, &again, dst, run, Options{Now: when, Version: "1.0"}))
	if !bytes.Equal(again.Bytes(), data) {
		t.Error("exporting it again gives another bundle")
	}
	in, err = b.Import(ctx, dst)
	if err != nil || in.New != nil || !cmp.Equal(in.Kept, both, same) {
		t.Errorf("again: %v new, %v kept, %v", in.New, in.Kept, err)
	}
	left, err := os.ReadDir(dst.Traces.Path())
	check(t, err)
	if len(left) != 5 { // two traces, their marks, and what an import locks
		t.Errorf("left behind: %v", left)
	}
	for _, id := range both {
		if foreign, err := dst.Traces.Foreign(id); !foreign || err != nil {
			t.Errorf("Foreign(%s) = %v, %v", id, foreign, err)
		}
	}
	src, _ := recorded(t)
	if foreign, err := src.Traces.Foreign(id(t, mainID)); foreign || err != nil {
		t.Errorf("Foreign of a run that was made here = %v, %v", foreign, err)
	}
}

// What a killed import leaves, marks and half-written files, does not stop the next.
func TestImportAfterAKill(t *testing.T) {
	b, err := open(pack(t))
	check(t, err)
	dst := home(t)
	for _, name := range []string{rihlaID + trace.ForeignSuffix, rihlaID + traceSuffix + ".new"} {
		check(t, os.WriteFile(filepath.Join(dst.Traces.Path(), name), nil, 0o600))
	}
	if ids, err := dst.Traces.List(); err != nil || len(ids) != 0 {
		t.Errorf("half a trace is listed: %v, %v", ids, err)
	}
	if in, err := b.Import(context.Background(), dst); err != nil || len(in.New) != 2 {
		t.Errorf("Import = %v, %v", in.New, err)
	}
}

// A trace that is there with other content stays as it is, and nothing comes in.
func TestImportNeverReplaces(t *testing.T) {
	ctx := context.Background()
	b, err := open(pack(t))
	check(t, err)
	dst := home(t)
	noted := &blobtest.Noted{Store: dst.Blobs}
	dst.Blobs = noted
	write(t, dst, rihlaID, start(t, rihlaID))
	path := filepath.Join(dst.Traces.Path(), rihlaID+traceSuffix)
	before, err := os.ReadFile(path)
	check(t, err)
	_, err = b.Import(ctx, dst)
	if !errors.Is(err, marchwarden.CodeDenied) || !strings.Contains(err.Error(), rihlaID) {
		t.Errorf("Import: %v", err)
	}
	after, err := os.ReadFile(path)
	check(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the trace was changed")
	}
	if refs := noted.Refs(); len(refs) > 0 {
		t.Errorf("blobs came in: %v", refs)
	}
	if _, err := dst.Traces.Load(id(t, mainID)); !errors.Is(err, marchwarden.CodeNotFound) {
		t.Errorf("the run came in: %v", err)
	}
}

// What is not whole does not come in, even if everything that would come in is.
func TestImportVerifies(t *testing.T) {
	data := pack(t)
	flipped := bytes.Clone(data)
	flipped[len(data)/2] ^= 1
	files := unpack(t, data)
	i := slices.IndexFunc(files, func(f file) bool { return f.name == resultName })
	files[i].content = bytes.Replace(files[i].content, []byte("1887"), []byte("1888"), 1)
	for what, bad := range map[string][]byte{"a flipped bit": flipped, "a byte more": append(bytes.Clone(data), 0), "another result": forge(t, files)} {
		dst := home(t)
		b, err := open(bad)
		if err == nil {
			_, err = b.Import(t.Context(), dst)
		}
		if !errors.Is(err, marchwarden.CodeCorrupt) {
			t.Errorf("%s: Import: %v", what, err)
		}
		if ids, err := dst.Traces.List(); err != nil || len(ids) != 0 {
			t.Errorf("%s: traces %v, %v", what, ids, err)
		}
	}
}

// A store that fails in the middle leaves no trace; importing again goes on.
func TestImportBreaksOff(t *testing.T) {
	ctx := context.Background()
	b, err := open(pack(t))
	check(t, err)
	for fail := range 8 {
		dst := home(t)
		whole := dst.Blobs
		for _, broken := range []blob.Store{&failing{Store: whole, left: fail}, blob.Rescue(&failing{Store: whole, left: fail})} {
			dst.Blobs = broken
			if _, err := b.Import(ctx, dst); err == nil {
				t.Fatal("no blob failed")
			}
			if ids, err := dst.Traces.List(); err != nil || len(ids) != 0 {
				t.Errorf("traces without their blobs: %v, %v", ids, err)
			}
		}
		dst.Blobs = whole
		if _, err := b.Import(ctx, dst); err != nil {
			t.Errorf("again: %v", err)
		}
	}
}

// Imports of one bundle that go on at the same time all succeed, and one of them brings
// all of it.
func TestImportsAtOnce(t *testing.T) {
	data := pack(t)
	const many, rounds = 8, 10
	for range rounds {
		dst := home(t)
		var all [many]Imported
		var g errgroup.Group
		for i := range many {
			g.Go(func() error {
				b, err := open(data)
				if err == nil {
					all[i], err = b.Import(context.Background(), dst)
				}
				return err
			})
		}
		check(t, g.Wait())
		brought := 0
		for _, in := range all {
			switch {
			case in.Brought() && len(in.New) == 2 && len(in.Kept) == 0:
				brought++
			case in.Brought() || len(in.New) != 0 || len(in.Kept) != 2:
				t.Errorf("%v new, %v kept", in.New, in.Kept)
			}
		}
		left, err := os.ReadDir(dst.Traces.Path())
		if err != nil || brought != 1 || len(left) != 5 {
			t.Errorf("brought %d times, left %v, %v", brought, left, err)
		}
	}
}

// An import that fails halfway leaves no trace in part, and another goes on from there.
func TestImportFailsHalfway(t *testing.T) {
	data, dst := pack(t), home(t)
	second := make(chan error, 1)
	var in Imported
	broken := &halting{ReaderAt: bytes.NewReader(data)}
	first, err := Open(broken, int64(len(data)))
	check(t, err)
	at, err := first.members[traceName(id(t, mainID))].DataOffset()
	check(t, err)
	broken.halt = func(off int64) error {
		if _, err := dst.Traces.Stat(id(t, rihlaID)); off != at || err != nil {
			return nil
		}
		go func() {
			b, err := open(data)
			if err == nil {
				in, err = b.Import(context.Background(), dst)
			}
			second <- err
		}()
		select { // it must wait for this one, whatever time there is
		case err := <-second:
			second <- err
		case <-time.After(200 * time.Millisecond):
		}
		return errors.New("the disk fails")
	}
	if _, err := first.Import(context.Background(), dst); !errors.Is(err, marchwarden.CodeCorrupt) {
		t.Fatalf("the first import: %v", err)
	}
	check(t, <-second)
	run, err := dst.Load(id(t, mainID))
	check(t, err)
	if !in.Brought() || len(in.New) != 1 || len(in.Kept) != 1 || len(run.Rihlas) != 1 {
		t.Errorf("%v new, %v kept; the run has %d rihlas", in.New, in.Kept, len(run.Rihlas))
	}
}

// halting is a file of which some places cannot be read.
type halting struct {
	io.ReaderAt
	halt func(off int64) error // nil for none
}

func (h *halting) ReadAt(p []byte, off int64) (int, error) {
	if h.halt != nil {
		if err := h.halt(off); err != nil {
			return 0, err
		}
	}
	return h.ReaderAt.ReadAt(p, off)
}

// An import that another keeps waiting says so, and that is no fault.
func TestImportIsKeptWaiting(t *testing.T) {
	if !datatest.Full() {
		t.Skip("it waits for seconds: set MARCHWARDEN_TEST_FULL=1")
	}
	t.Parallel()
	b, err := open(pack(t))
	check(t, err)
	dst := home(t)
	unlock, err := durable.LockFile(filepath.Join(dst.Traces.Path(), "lock"))
	check(t, err)
	defer unlock()
	if _, err = b.Import(context.Background(), dst); !errors.Is(err, marchwarden.CodeUnavailable) || !errors.Is(err, durable.ErrLocked) {
		t.Errorf("Import: %v", err)
	}
}

// The folder of traces may be the only one that can be written.
func TestImportIntoAFolderAlone(t *testing.T) {
	b, err := open(pack(t))
	check(t, err)
	dst := home(t)
	above := filepath.Dir(dst.Traces.Path())
	check(t, os.Chmod(above, 0o500))
	t.Cleanup(func() { check(t, os.Chmod(above, 0o700)) })
	_, err = b.Import(context.Background(), dst)
	check(t, err)
	if left, err := os.ReadDir(above); err != nil || len(left) != 1 {
		t.Errorf("beside the folder: %v, %v", left, err)
	}
}

// A home that cannot be written is named, and no file of the import's own.
func TestImportIntoNoHome(t *testing.T) {
	for _, tt := range []struct {
		err        error
		want, hint string
	}{
		{&fs.PathError{Op: "openat", Path: ".x.ABC.tmp", Err: syscall.EACCES}, "import " + mainID + ": home/traces cannot be written: permission denied", "set MARCHWARDEN_HOME to a folder that can be written"},
		{&os.LinkError{Op: "linkat", Old: ".x.ABC.tmp", New: "x", Err: syscall.EROFS}, "import " + mainID + ": home/traces cannot be written: read-only file system", "set MARCHWARDEN_HOME to a folder that can be written"},
		{&fs.PathError{Op: "write", Path: ".x.ABC.tmp", Err: syscall.ENOSPC}, "import " + mainID + ": home/traces cannot be written: no space left on device", ""},
		{marchwarden.Errorf(marchwarden.CodeDenied, "no"), "import " + mainID + ": no", ""},
	} {
		err := unwritten(tt.err, id(t, mainID), "home/traces")
		if err.Error() != tt.want || marchwarden.HintOf(err) != tt.hint {
			t.Errorf("%q, hint %q; want %q, %q", err, marchwarden.HintOf(err), tt.want, tt.hint)
		}
	}
}

// failing is a store whose disk is full after some blobs.
type failing struct {
	blob.Store
	left int
}

func (f *failing) Put(ctx context.Context, content []byte) (blob.Ref, error) {
	if f.left--; f.left < 0 {
		return blob.Ref{}, errors.New("no space left on device")
	}
	return f.Store.Put(ctx, content)
}

// TestConversation: a bundle of a turn holds the runs that it follows, each once, also where they follow one another in a
// circle, and all of them are imported, the turn itself last.
func TestConversation(t *testing.T) {
	s := home(t)
	ids := []string{mainID, rihlaID, awayID}
	for i, name := range ids {
		turn := start(t, name)
		turn.Request.Follow = ids[(i+1)%len(ids)]
		data, err := marchwarden.EncodeResult(&marchwarden.Result{Answer: "Lit in 1887.", TraceID: id(t, name)})
		check(t, err)
		write(t, s, name, turn, &trace.Complete{Result: put(t, s, string(data))})
	}
	whole, err := s.Load(id(t, mainID))
	check(t, err)
	var b bytes.Buffer
	check(t, Write(t.Context(), &b, s, whole, Options{Now: when, Version: "1.0"}))
	opened, err := Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	check(t, err)
	if report, err := opened.Verify(t.Context()); err != nil || !report.OK() || opened.About.Format != formatNow || len(opened.About.Runs) != 3 {
		t.Fatalf("%+v, %v, %+v", report, err, opened.About)
	}
	dst := home(t)
	in, err := opened.Import(t.Context(), dst)
	check(t, err)
	if len(in.New) != 3 || in.New[2] != id(t, mainID) {
		t.Errorf("imported %v", in.New)
	}
	for _, name := range ids {
		if foreign, err := dst.Traces.Foreign(id(t, name)); err != nil || !foreign {
			t.Errorf("%s: foreign %t, %v", name, foreign, err)
		}
	}
}
