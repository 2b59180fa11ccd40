package embed

// This part keeps vectors on disk by the hash of model and text, so that a text is embedded
// once. A vector comes back bit for bit as it was put, or not at all: every one has a
// checksum. What a crash or another process left unfinished costs a vector, never gives a
// wrong one. The folder may be deleted at any time.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// DiskStoreBytes is room for about 170,000 vectors of 384 numbers.
const DiskStoreBytes = 256 << 20

// generations is into how many files the room is divided: that much of it goes at a
// time when it is full, the oldest first.
const generations = 8

// patience is how long Put waits for another process that writes, and turnPatience how
// long Turn waits for one that makes vectors, which takes about a second at a time: a
// process that stands still must not stop the others.
const (
	patience     = time.Second
	turnPatience = 10 * time.Second
)

// DiskStore is a folder of vectors. It is safe for concurrent use, also by several
// processes. Close it when done.
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

// Close closes the files.
func (s *DiskStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, m := range s.models {
		errs = append(errs, m.close())
	}
	clear(s.models)
	return errors.Join(errs...)
}

// Turn implements Turns: within the process those who ask stand in line, and
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

// Get gives the vectors of texts, nil for those that are not kept or are damaged. The
// error says that the folder cannot be read.
func (s *DiskStore) Get(name string, texts []string) ([]Vector, error) {
	keys := make([]vectorKey, len(texts))
	for i, t := range texts {
		keys[i] = vectorKeyOf(name, t)
	}
	found := make([]Vector, len(texts))
	if s.look(name, keys, found) == 0 {
		return found, nil
	}
	if err := s.refresh(name); err != nil {
		return found, fmt.Errorf("read the kept vectors: %w", err)
	}
	s.look(name, keys, found)
	return found, nil
}

// look fills in what is known and returns how many are missing.
func (s *DiskStore) look(name string, keys []vectorKey, found []Vector) (missing int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	m := s.models[name]
	for i, k := range keys {
		if found[i] == nil && m != nil {
			found[i] = m.get(k)
		}
		if found[i] == nil {
			missing++
		}
	}
	return missing
}

// refresh reads what others have added.
func (s *DiskStore) refresh(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(name).refresh()
}

// open is the state of a model; s.mu is held.
func (s *DiskStore) open(name string) *diskModel {
	if s.models[name] == nil {
		s.models[name] = &diskModel{dir: s.dir, hash: hashOf("marchwarden/vectors/v1", name), where: map[vectorKey]diskPlace{}}
	}
	return s.models[name]
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
	if err := s.put(name, texts, vs); err != nil {
		return fmt.Errorf("keep vectors: %w", err)
	}
	return nil
}

func (s *DiskStore) put(name string, texts []string, vs []Vector) (err error) {
	if err := durable.MakeDir(s.dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(s.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := durable.Hold(lock, patience); err != nil {
		return err
	}
	m := s.open(name)
	if m.gone() { // the folder was deleted
		err := m.close()
		delete(s.models, name)
		if m = s.open(name); err != nil {
			return err
		}
	}
	if err := m.refresh(); err != nil {
		return err
	}
	var fresh []diskRecord
	for i, t := range texts {
		k := vectorKeyOf(name, t)
		if m.get(k) == nil {
			fresh = append(fresh, diskRecord{k, vs[i]})
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	last := m.last()
	if last == nil || last.numbers != len(vs[0]) || last.size() >= s.max/generations {
		if last, err = m.begin(len(vs[0])); err != nil {
			return err
		}
		if err := s.trim(last.stem); err != nil {
			return err
		}
	}
	return last.append(m, fresh)
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

// diskGeneration is one pair of files.
type diskGeneration struct {
	stem    string
	bytes   int64
	records int
	written time.Time
}

// diskGenerations is what is in a folder, the oldest first.
func diskGenerations(dir string) ([]diskGeneration, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var kept []diskGeneration
	for _, e := range entries { // sorted by name
		stem, end, _ := strings.Cut(e.Name(), ".")
		if end = "." + end; end != keysEnd && end != dataEnd {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if len(kept) == 0 || kept[len(kept)-1].stem != stem {
			kept = append(kept, diskGeneration{stem: stem})
		}
		g := &kept[len(kept)-1]
		g.bytes += info.Size()
		if end == keysEnd {
			g.records = wholeRecords(info.Size())
		}
		if info.ModTime().After(g.written) {
			g.written = info.ModTime()
		}
	}
	slices.SortStableFunc(kept, func(a, b diskGeneration) int { return a.written.Compare(b.written) })
	return kept, nil
}

// vectorKey is the identity of a text under a model.
type vectorKey [sha256.Size]byte

func vectorKeyOf(model, text string) vectorKey { return hashOf("marchwarden/vector/v1", model, text) }

// hashOf hashes parts, each framed by its length, the first of which is a tag.
func hashOf(parts ...string) vectorKey {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return vectorKey(h.Sum(nil))
}
