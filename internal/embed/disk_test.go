package embed_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
)

const diskModel = "test-model/1"

// vectorOf is a vector that belongs to a text and to no other.
func vectorOf(text string, n int) embed.Vector {
	seed := uint64(len(text))
	for _, b := range []byte(text) {
		seed = seed*1099511628211 + uint64(b)
	}
	r := rand.New(rand.NewPCG(seed, 7))
	v := make(embed.Vector, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func textsOf(from, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("sentence number %d of a long book", from+i)
	}
	return out
}

func vectorsOf(texts []string, n int) []embed.Vector {
	out := make([]embed.Vector, len(texts))
	for i, t := range texts {
		out[i] = vectorOf(t, n)
	}
	return out
}

func open(t testing.TB, dir string, most int64) *embed.DiskStore {
	t.Helper()
	return embed.OpenDiskStore(dir, most)
}

func put(t testing.TB, s *embed.DiskStore, texts []string) {
	t.Helper()
	if err := s.Put(diskModel, texts, vectorsOf(texts, 32)); err != nil {
		t.Fatal(err)
	}
}

// check reads texts and fails on a vector that is not the text's own. It returns how
// many are there.
func check(t testing.TB, s *embed.DiskStore, texts []string) (known int) {
	t.Helper()
	got, err := s.Get(diskModel, texts)
	if err != nil || len(got) != len(texts) {
		t.Fatalf("%d vectors: %v", len(got), err)
	}
	for i, v := range got {
		if v == nil {
			continue
		}
		known++
		if want := vectorOf(texts[i], 32); !slices.Equal(v, want) {
			t.Errorf("%q has the vector of another: %v, want %v", texts[i], v, want)
		}
	}
	return known
}

// What was put comes back to the bit, to every process that opens the folder, and not for another
// model.
func TestVectorsComeBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "vectors")
	s := open(t, dir, 0)
	if n := check(t, s, textsOf(0, 3)); n != 0 {
		t.Fatalf("%d vectors out of nothing", n)
	}
	odd := embed.Vector{0, float32(math.Copysign(0, -1)), float32(math.NaN()), math.SmallestNonzeroFloat32, -math.MaxFloat32, float32(math.Inf(1))}
	if err := s.Put("odd", []string{"x", ""}, []embed.Vector{odd, odd}); err != nil {
		t.Fatal(err)
	}
	put(t, s, textsOf(0, 100))
	put(t, s, textsOf(50, 100)) // half of them again
	for name, s := range map[string]*embed.DiskStore{"the same": s, "another": open(t, dir, 0)} {
		if n := check(t, s, textsOf(0, 160)); n != 150 {
			t.Errorf("%s: %d of 150", name, n)
		}
		got, err := s.Get("odd", []string{"x", "", "y"})
		if err != nil || got[0] == nil || got[1] == nil || got[2] != nil {
			t.Fatalf("%s: %v, %v", name, got, err)
		}
		for i := range odd {
			if math.Float32bits(got[0][i]) != math.Float32bits(odd[i]) {
				t.Errorf("%s: number %d is %x", name, i, math.Float32bits(got[0][i]))
			}
		}
		if got, err := s.Get("test-model/2", textsOf(0, 2)); err != nil || got[0] != nil || got[1] != nil {
			t.Errorf("%s: another model has them, too: %v", name, err)
		}
	}
	if size := sizeOf(t, dir); size < 150*32*4 {
		t.Errorf("150 vectors in %d bytes", size)
	}
	private(t, dir)
}

// sizeOf is how many bytes the files of a folder have.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil { // one that is replaced now counts by its new name
			size += info.Size()
		}
	}
	return size
}

// private fails if any but the owner may look.
func private(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Whatever happens to the files, a vector is the right one or none, and new ones are
// kept all the same.
func TestDamage(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	hurt := map[string]func(b []byte) []byte{
		"cut":        func(b []byte) []byte { return b[:r.IntN(len(b))] },
		"flipped":    func(b []byte) []byte { b[r.IntN(len(b))] ^= 1 << r.IntN(8); return b },
		"zeroed":     func(b []byte) []byte { clear(b[r.IntN(len(b)):]); return b },
		"grown":      func(b []byte) []byte { return append(b, make([]byte, r.IntN(100))...) },
		"emptied":    func([]byte) []byte { return nil },
		"a stranger": func([]byte) []byte { return []byte("something else\n") },
	}
	for name, how := range hurt {
		for _, end := range []string{"*.keys", "*.vec"} {
			for range 4 {
				dir := t.TempDir()
				s := embed.OpenDiskStore(dir, 0)
				put(t, s, textsOf(0, 20))
				path := only(t, dir, end)
				b, err := os.ReadFile(path)
				if err == nil {
					err = os.WriteFile(path, how(b), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
				s = embed.OpenDiskStore(dir, 0)
				check(t, s, textsOf(0, 20))
				put(t, s, textsOf(0, 40))
				again := embed.OpenDiskStore(dir, 0)
				for _, s := range []*embed.DiskStore{s, again} {
					if n := check(t, s, textsOf(0, 40)); n != 40 {
						t.Errorf("%s %s: %d of 40", name, end, n)
					}
				}
			}
		}
	}
}

func only(t testing.TB, dir, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	return found[0]
}

// The files of a model do not grow without end; what is newest stays.
func TestBound(t *testing.T) {
	t.Parallel()
	const most = 200_000 // about 1,190 vectors
	dir := t.TempDir()
	s, reader := open(t, dir, most), open(t, dir, most)
	for i := range 60 {
		put(t, s, textsOf(100*i, 100))
		if n := check(t, reader, textsOf(100*i, 100)); n != 100 {
			t.Fatalf("%d of 100 of batch %d", n, i)
		}
		if size := sizeOf(t, dir); size > 2*most {
			t.Fatalf("%d bytes", size)
		}
	}
	if n := check(t, open(t, dir, most), textsOf(5900, 100)); n != 100 {
		t.Errorf("%d of the newest 100", n)
	}
}

// The folder may be deleted at any time.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "vectors")
	s := open(t, dir, 0)
	put(t, s, textsOf(0, 10))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	put(t, s, textsOf(10, 10))
	if n := check(t, open(t, dir, 0), textsOf(0, 20)); n != 10 {
		t.Errorf("%d of the 10 that were put after that", n)
	}
}

// A folder that cannot be written keeps nothing and says so; what is in it is read.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := open(t, file, 0) // no user, whatever their rights, writes below a file
		if err := s.Put(diskModel, []string{"a"}, []embed.Vector{{1}}); err == nil {
			t.Error("kept below a file")
		}
		if got, _ := s.Get(diskModel, []string{"a"}); len(got) != 1 || got[0] != nil {
			t.Errorf("%v", got)
		}
		return
	}
	dir := t.TempDir()
	put(t, open(t, dir, 0), textsOf(0, 5))
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	s := open(t, dir, 1) // the files would begin anew
	if err := s.Put(diskModel, []string{"new"}, []embed.Vector{make(embed.Vector, 32)}); err == nil {
		t.Error("kept in a folder that cannot be written")
	}
	if n := check(t, s, textsOf(0, 5)); n != 5 {
		t.Errorf("%d of 5", n)
	}
}

// Many goroutines of several processes put and get at once; no vector is ever wrong,
// and at the end all are there, although one of the processes was killed.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv("SHELF_TEST_DIR"); dir != "" {
		work(t, dir)
		return
	}
	dir := t.TempDir()
	ctx, kill := context.WithCancel(t.Context())
	var g errgroup.Group
	for i := range 3 {
		g.Go(func() error {
			ctx := ctx
			if i > 0 {
				ctx = t.Context()
			}
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestManyAtOnce$")
			cmd.Env = append(os.Environ(), "SHELF_TEST_DIR="+dir)
			out, err := cmd.CombinedOutput()
			if err != nil && i > 0 {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	time.Sleep(50 * time.Millisecond)
	kill()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if n := check(t, open(t, dir, 0), textsOf(0, 400)); n != 400 {
		t.Errorf("%d of 400", n)
	}
}

func work(t *testing.T, dir string) {
	s := open(t, dir, 0)
	var g errgroup.Group
	for i := range 4 {
		g.Go(func() error {
			for j := range 12 {
				texts := textsOf((i*100+j*40)%400, 40)
				if err := s.Put(diskModel, texts, vectorsOf(texts, 32)); err != nil && !strings.Contains(err.Error(), "locked") {
					return err
				}
				check(t, s, textsOf(0, 400))
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// filled is a folder with as many vectors as a large library has.
func filled(tb testing.TB, n int) string {
	tb.Helper()
	dir := tb.TempDir()
	s := embed.OpenDiskStore(dir, 0)
	for i := 0; i < n; i += 1000 {
		texts := textsOf(i, 1000)
		if err := s.Put(diskModel, texts, vectorsOf(texts, 384)); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

func BenchmarkOpen50k(b *testing.B) {
	dir := filled(b, 50_000)
	texts := textsOf(49_000, 1)
	for b.Loop() {
		s := embed.OpenDiskStore(dir, 0)
		if got, err := s.Get(diskModel, texts); err != nil || got[0] == nil {
			b.Fatal(err)
		}
	}
}

// slow counts how often it embeds each text, and takes long enough for others to come.
type slow struct {
	mu   sync.Mutex
	made int
}

func (*slow) ID() string { return diskModel }

func (s *slow) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	s.mu.Lock()
	s.made += len(texts)
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	return vectorsOf(texts, 8), ctx.Err()
}

// A library that many tasks ask at once, through several stores of one folder, is embedded once.
func TestALibraryIsEmbeddedOnce(t *testing.T) {
	t.Parallel()
	dir, e := t.TempDir(), &slow{}
	library := textsOf(0, 100)
	var g errgroup.Group
	for range 3 {
		s := open(t, dir, 0)
		for range 10 {
			g.Go(func() error {
				got, err := embed.Cached(e, s).Embed(t.Context(), library)
				if err == nil && (len(got) != 100 || !slices.Equal(got[99], vectorOf(library[99], 8))) {
					err = fmt.Errorf("%d vectors, the last %v", len(got), got[len(got)-1])
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if e.made != 100 {
		t.Errorf("a library of 100 texts was embedded by %d", e.made)
	}
}
