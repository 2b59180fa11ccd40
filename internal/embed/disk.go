package embed

// This part keeps vectors on disk by the hash of model and text, so that a text is embedded
// once. A vector comes back bit for bit as it was put, or not at all: every one has a
// checksum. What a crash or another process left unfinished costs a vector, never gives a
// wrong one. The folder may be deleted at any time.

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// DiskStoreBytes is room for about 170,000 vectors of 384 numbers.
const DiskStoreBytes = 256 << 20

const (
	// generations is into how many files the room is divided: that much of it goes at a
	// time when it is full, the oldest first.
	generations = 8

	// patience is how long Put waits for another process that writes, and turnPatience how
	// long Turn waits for one that makes vectors, which takes about a second at a time: a
	// process that stands still must not stop the others.
	patience     = time.Second
	turnPatience = 10 * time.Second
)

// DiskStore is a folder of vectors. It is safe for concurrent use, also by several
// processes. No file stays open.
type DiskStore struct {
	dir string
	max int64

	making chan struct{} // full during a turn, and while it waits for other processes
	alone  bool          // another process has a turn that does not end; guarded by making

	mu     sync.RWMutex // guards models
	models map[string]*diskModel
}

var (
	_ Store = (*DiskStore)(nil)
	_ Turns = (*DiskStore)(nil)
)

// OpenDiskStore makes a store of a folder, which is made with the first vector. At most about
// maxBytes are kept in it; 0 is DiskStoreBytes. Nothing is read before it is needed.
func OpenDiskStore(dir string, maxBytes int64) *DiskStore {
	return &DiskStore{dir: dir, max: cmp.Or(maxBytes, DiskStoreBytes), making: make(chan struct{}, 1), models: map[string]*diskModel{}}
}

// Turn waits for the caller's turn. In the process those who ask stand in line, and
// processes take turns by a lock in the folder, which ends with its process. A process
// that holds it for longer than turnPatience is waited for no more until it lets go.
func (s *DiskStore) Turn(ctx context.Context) (end func()) {
	select {
	case s.making <- struct{}{}:
	case <-ctx.Done():
		return func() {}
	}
	lock, err := durable.Own(filepath.Join(s.dir, "turn"), func(f *os.File) error {
		const pause = 100 * time.Millisecond
		err := durable.Hold(f, 0)
		for waited := time.Duration(0); errors.Is(err, durable.ErrLocked) && !s.alone && ctx.Err() == nil; waited += pause {
			err = durable.Hold(f, pause)
			s.alone = waited >= turnPatience
		}
		return err
	})
	s.alone = s.alone && errors.Is(err, durable.ErrLocked)
	return func() {
		if err == nil {
			_ = lock.Close() // nothing was written
		}
		<-s.making
	}
}

// diskModel is what is kept for one model, as far as it was read.
type diskModel struct {
	dir   string
	hash  vectorKey
	files map[string]*diskFile // by stem
	where map[vectorKey]diskPlace
}

// diskFile is one generation of a model.
type diskFile struct {
	path    string // without its end
	numbers int    // of a vector; 0 of files that are none of this model
	read    int    // keys that are known
}

// diskPlace is where a vector is.
type diskPlace struct {
	in  *diskFile
	at  int
	sum uint64
}

// open is the state of a model; s.mu is held.
func (s *DiskStore) open(name string) *diskModel {
	if s.models[name] == nil {
		s.models[name] = &diskModel{s.dir, HashOf("marchwarden/vectors/v1", name), map[string]*diskFile{}, map[vectorKey]diskPlace{}}
	}
	return s.models[name]
}

// Get gives the vectors of texts, nil for those that are not kept or are damaged. The
// error says that the folder cannot be read.
func (s *DiskStore) Get(name string, texts []string) ([]Vector, error) {
	keys := keysOf(name, texts)
	s.mu.RLock()
	found := s.models[name].get(keys)
	s.mu.RUnlock()
	if !slices.ContainsFunc(found, func(v Vector) bool { return v == nil }) {
		return found, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.open(name)
	if _, err := m.refresh(); err != nil {
		return found, fmt.Errorf("read the kept vectors: %w", err)
	}
	return m.get(keys), nil
}

// get reads vectors, nil for those that are not there.
func (m *diskModel) get(keys []vectorKey) []Vector {
	found := make([]Vector, len(keys))
	if m == nil {
		return found
	}
	open := map[*diskFile]*os.File{}
	for i, k := range keys {
		p, ok := m.where[k]
		if !ok {
			continue
		}
		if open[p.in] == nil {
			f, err := os.Open(p.in.path + dataEnd)
			if err != nil {
				continue
			}
			defer f.Close()
			open[p.in] = f
		}
		raw := make([]byte, 4*p.in.numbers)
		if _, err := open[p.in].ReadAt(raw, int64(p.at)*int64(len(raw))); err != nil || sumOf(k, raw) != p.sum {
			continue
		}
		found[i] = make(Vector, p.in.numbers)
		_, _ = binary.Decode(raw, binary.LittleEndian, []float32(found[i])) // it is as long
	}
	return found
}

// refresh reads the keys that were added since the last time. It gives the newest
// generation, sound or not, as it is in the folder.
func (m *diskModel) refresh() (last diskGeneration, err error) {
	kept, err := diskGenerations(m.dir)
	if err != nil {
		return last, err
	}
	kept = slices.DeleteFunc(kept, func(g diskGeneration) bool { return !strings.HasPrefix(g.stem, m.prefix()) })
	there := map[string]int{}
	for _, g := range kept {
		there[g.stem] = g.records
		if g.stem > last.stem {
			last = g
		}
	}
	for stem, f := range m.files {
		if n, ok := there[stem]; !ok || n < f.read {
			clear(m.files) // one was removed or begun anew: all are read again
			clear(m.where)
			break
		}
	}
	for _, g := range kept {
		if m.files[g.stem] == nil {
			m.files[g.stem] = &diskFile{path: filepath.Join(m.dir, g.stem)}
		}
		if f := m.files[g.stem]; g.records > f.read {
			if err := m.readKeys(f, g.records); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return last, err
			}
		}
	}
	return last, nil
}

// readKeys takes in the keys of a file that are not known yet, up to n. A file that is
// not one of ours is left alone.
func (m *diskModel) readKeys(file *diskFile, n int) error {
	f, err := os.Open(file.path + keysEnd)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headLen)
	if _, err := f.ReadAt(head, 0); err != nil {
		return err
	}
	if file.numbers = readHead(head, m.hash); file.numbers == 0 {
		return nil
	}
	raw := make([]byte, (n-file.read)*recordLen)
	if _, err := f.ReadAt(raw, headLen+int64(file.read)*int64(recordLen)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for ; file.read < n; file.read++ {
		m.where[vectorKey(raw)] = diskPlace{file, file.read, binary.LittleEndian.Uint64(raw[len(vectorKey{}):])}
		raw = raw[recordLen:]
	}
	return nil
}

// Put keeps vectors, as many as texts and all of one length. Those that are kept
// already are left alone. An error costs nothing but what it says.
func (s *DiskStore) Put(name string, texts []string, vs []Vector) error {
	if len(texts) != len(vs) {
		return fmt.Errorf("keep vectors: %d texts and %d vectors", len(texts), len(vs))
	}
	if len(texts) == 0 {
		return nil
	}
	for _, v := range vs {
		if len(v) != len(vs[0]) || len(v) == 0 || len(v) > maxNumbers {
			return fmt.Errorf("keep vectors: they are of %d and %d numbers", len(vs[0]), len(v))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lock, err := durable.Own(filepath.Join(s.dir, "lock"), func(f *os.File) error { return durable.Hold(f, patience) })
	if err == nil {
		err = errors.Join(s.put(s.open(name), keysOf(name, texts), vs), lock.Close())
	}
	if err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	return nil
}

// put writes the vectors that are not kept yet. The lock of the folder is held.
func (s *DiskStore) put(m *diskModel, keys []vectorKey, vs []Vector) error {
	last, err := m.refresh()
	if err != nil {
		return err
	}
	var records, raw []byte
	for i, old := range m.get(keys) {
		if old == nil {
			from := len(raw)
			raw, _ = binary.Append(raw, binary.LittleEndian, []float32(vs[i])) // numbers can always be written
			records = binary.LittleEndian.AppendUint64(append(records, keys[i][:]...), sumOf(keys[i], raw[from:]))
		}
	}
	if len(records) == 0 {
		return nil
	}
	file := m.files[last.stem]
	if file == nil || file.numbers != len(vs[0]) || last.bytes >= s.max/generations {
		if file, err = m.begin(last.stem, len(vs[0])); err != nil {
			return err
		}
		if err := s.trim(filepath.Base(file.path)); err != nil {
			return err
		}
	}
	if err := writeAt(file.path+dataEnd, raw, int64(file.read)*int64(4*file.numbers), 0); err != nil {
		return err
	}
	if err := writeAt(file.path+keysEnd, records, headLen+int64(file.read)*int64(recordLen), 0); err != nil {
		return err
	}
	return m.readKeys(file, file.read+len(records)/recordLen)
}

func (m *diskModel) begin(last string, numbers int) (*diskFile, error) {
	number, _ := strconv.Atoi(strings.TrimPrefix(last, m.prefix())) // 0 where there is none
	stem := fmt.Sprintf("%s%06d", m.prefix(), number+1)
	f := &diskFile{path: filepath.Join(m.dir, stem), numbers: numbers}
	if err := writeAt(f.path+dataEnd, nil, 0, os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	if err := writeAt(f.path+keysEnd, headOf(m.hash, numbers), 0, os.O_CREATE|os.O_EXCL); err != nil {
		return nil, err
	}
	m.files[stem] = f
	return f, nil
}

func writeAt(path string, content []byte, at int64, flags int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|flags, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, at)
	return errors.Join(err, f.Close())
}

// trim removes the oldest files of all models until there is room for one more
// generation.
func (s *DiskStore) trim(keep string) error {
	kept, err := diskGenerations(s.dir)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, k := range kept {
		total += k.bytes
	}
	for _, k := range kept {
		if total <= s.max-s.max/generations {
			return nil
		}
		if k.stem == keep {
			continue
		}
		for _, end := range []string{keysEnd, dataEnd} {
			if err := os.Remove(filepath.Join(s.dir, k.stem+end)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		total -= k.bytes
	}
	return nil
}

// DiskStoreSize says how much is kept in a folder, which need not exist.
func DiskStoreSize(dir string) (bytes int64, vectors int, err error) {
	kept, err := diskGenerations(dir)
	for _, k := range kept {
		bytes += k.bytes
		vectors += k.records
	}
	return bytes, vectors, err
}
