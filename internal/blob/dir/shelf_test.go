package dir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// age makes the file of a blob look as if it was last used that long ago.
func age(t *testing.T, s *Store, ref blob.Ref, by time.Duration) {
	t.Helper()
	old := time.Now().Add(-by)
	if err := os.Chtimes(filepath.Join(s.files.path, nameOf(ref)), old, old); err != nil {
		t.Fatal(err)
	}
}

func used(t *testing.T, s *Store, ref blob.Ref) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(s.files.path, nameOf(ref)))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

func TestUseLeavesAMark(t *testing.T) {
	s := open(t, t.TempDir())
	ref := put(t, s, "a page")
	for _, c := range []struct {
		what  string
		age   time.Duration
		use   func() error
		marks bool
	}{
		{"Put", time.Minute, func() error { _, err := s.Put(t.Context(), []byte("a page")); return err }, true},
		{"Get of an old one", time.Hour, func() error { _, err := s.Get(t.Context(), ref); return err }, true},
		{"Get of a young one", time.Minute, func() error { _, err := s.Get(t.Context(), ref); return err }, false},
		{"Stat", time.Hour, func() error { _, err := s.Stat(t.Context(), ref); return err }, false},
		{"Inspect", time.Hour, func() error { _, err := s.Inspect(t.Context(), ref); return err }, false},
	} {
		age(t, s, ref, c.age)
		before := used(t, s, ref)
		if err := c.use(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		if marked := used(t, s, ref).After(before); marked != c.marks {
			t.Errorf("%s left a mark: %t, want %t", c.what, marked, c.marks)
		}
	}
}

func TestRemove(t *testing.T) {
	s := open(t, t.TempDir())
	old, young, needed := put(t, s, "old"), put(t, s, "young"), put(t, s, "needed")
	age(t, s, old, 2*time.Hour)
	age(t, s, needed, 2*time.Hour)
	refs := []blob.Ref{old, young, needed, blob.Of([]byte("never stored"))}
	cut := time.Now().Add(-time.Hour)
	gone, err := s.Remove(t.Context(), refs, cut, func() (map[blob.Ref]bool, error) { return map[blob.Ref]bool{needed: true}, nil })
	if err != nil || len(gone) != 1 || gone[0].Ref != old || gone[0].Size == 0 {
		t.Fatalf("removed %v, %v; want the old one alone", gone, err)
	}
	if _, err := s.Get(t.Context(), old); !errors.Is(err, blob.ErrNotFound) {
		t.Errorf("the old one: %v, want ErrNotFound", err)
	}
	wantContent(t, s, young, "young")
	wantContent(t, s, needed, "needed")
	fault := errors.New("cannot tell")
	age(t, s, needed, 2*time.Hour)
	if gone, err := s.Remove(t.Context(), refs, cut, func() (map[blob.Ref]bool, error) { return nil, fault }); len(gone) > 0 || !errors.Is(err, fault) {
		t.Errorf("when it cannot be told what is needed: removed %v, %v", gone, err)
	}
}

// A writer waits while another process removes, and a remover while one writes.
func TestRemoveAndWritersWaitForEachOther(t *testing.T) {
	s := open(t, t.TempDir())
	ref := put(t, s, "a page")
	lock, err := take(t.Context(), s.files.root, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := s.Put(ctx, []byte("a page")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put while somebody removes: %v", err)
	}
	wantContent(t, s, ref, "a page") // used just now: needs no lock
	_ = lock.Close()
	done, err := s.files.share(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.OpenFile(filepath.Join(s.files.path, lockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := durable.Lock(other, false); !errors.Is(err, durable.ErrLocked) {
		t.Errorf("the lock while one writes: %v, want ErrLocked", err)
	}
	done()
	if err := durable.Lock(other, false); err != nil {
		t.Errorf("the lock afterwards: %v", err)
	}
}

// Writers use blobs that have not been used for long, while others remove such as
// fast as they can: what Put or Get answered for is there afterwards.
func TestRemoveSparesWhatIsUsed(t *testing.T) {
	path := t.TempDir()
	enough := int64(100)
	if os.Getenv("MARCHWARDEN_TEST_FULL") != "" {
		enough = 1000
	}
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	const writers = 4
	var refs []blob.Ref
	for w := range writers {
		refs = append(refs, blob.Of([]byte(fmt.Sprint("page of ", w))))
	}
	var group errgroup.Group
	var used, lost, removed atomic.Int64
	tried := func() bool { return ctx.Err() != nil || used.Load() >= enough && removed.Load() >= enough }
	for w, ref := range refs {
		s := open(t, path)
		file := filepath.Join(path, nameOf(ref))
		group.Go(func() error {
			for i := 0; !tried(); i++ {
				time.Sleep(time.Millisecond) // lets those pass who remove
				old := time.Now().Add(-time.Hour)
				_ = os.Chtimes(file, old, old) // if it is there
				var err error
				if i%2 == 0 {
					_, err = s.Put(context.Background(), []byte(fmt.Sprint("page of ", w)))
				} else {
					_, err = s.Get(context.Background(), ref)
				}
				if errors.Is(err, blob.ErrNotFound) {
					lost.Add(1) // as it was said to be
					continue
				}
				if err != nil {
					return err
				}
				time.Sleep(500 * time.Microsecond)
				if _, err := os.Stat(file); err != nil {
					return fmt.Errorf("used, and then gone: %w", err)
				}
				used.Add(1)
			}
			return nil
		})
	}
	for range 2 {
		s := open(t, path)
		group.Go(func() error {
			for !tried() {
				gone, err := s.Remove(context.Background(), refs, time.Now().Add(-30*time.Minute), nothing)
				removed.Add(int64(len(gone)))
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d uses, %d removed, %d found gone", used.Load(), removed.Load(), lost.Load())
	if removed.Load() == 0 || used.Load() == 0 {
		t.Error("nothing was tried")
	}
}

func TestFilesAndLeftovers(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := put(t, s, "a page")
	name := filepath.Join(path, nameOf(ref))
	whole := readFile(t, name)
	writeFile(t, name+".AAAA.tmp", whole)
	writeFile(t, name+".BBBB.tmp", whole[:28])
	writeFile(t, filepath.Join(filepath.Dir(name), "stranger.tmp"), nil)
	var files []blob.File
	if err := s.Files(t.Context(), func(f blob.File) error { files = append(files, f); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(files) != 3 || files[0].Leftover || !files[1].Leftover || !files[2].Leftover {
		t.Fatalf("files: %+v", files)
	}
	if got, err := s.Inspect(t.Context(), files[0].Ref); string(got) != "a page" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// A store that cannot be written still takes what it has, and refuses to be cleared.
func TestStoreWithoutALock(t *testing.T) {
	path := t.TempDir()
	s := open(t, path)
	ref := put(t, s, "a page")
	if err := os.Remove(filepath.Join(path, lockName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(path, lockName), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, s, "a page")
	wantContent(t, s, ref, "a page")
	if gone, err := s.Remove(t.Context(), []blob.Ref{ref}, time.Now().Add(time.Hour), nothing); len(gone) > 0 || !errors.Is(err, errLockless) {
		t.Errorf("removed %v, %v", gone, err)
	}
}

// A foreign file is neither met nor removed.
func TestForeignFiles(t *testing.T) {
	s := open(t, t.TempDir())
	ref := put(t, s, "a page")
	shard := filepath.Join(s.files.path, shardOf(ref))
	foreign := []string{filepath.Join(s.files.path, "notes"), filepath.Join(s.files.path, digestDir, "garbage"), filepath.Join(s.files.path, digestDir, "zz"),
		filepath.Join(shard, "zzz"), filepath.Join(shard, "zzz.tmp")}
	for _, path := range append(foreign, filepath.Join(s.files.path, nameOf(ref)+".ABC.tmp")) { // the last is ours
		writeFile(t, path, nil)
		old := time.Now().Add(-day)
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	met := 0
	if err := s.Files(t.Context(), func(blob.File) error { met++; return nil }); err != nil || met != 2 {
		t.Errorf("%d files are met, %v", met, err)
	}
	if n, err := s.Sweep(t.Context(), time.Now()); n != 1 || err != nil {
		t.Errorf("Sweep removed %d, %v", n, err)
	}
	for _, path := range foreign {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

const day = 24 * time.Hour

func nothing() (map[blob.Ref]bool, error) { return nil, nil }
