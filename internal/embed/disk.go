package embed

// This part keeps vectors on disk by the hash of model and text, so that a text is embedded
// once. A vector comes back bit for bit as it was put, or not at all: every one has a
// checksum. What a crash or another process left unfinished costs a vector, never gives a
// wrong one. The folder may be deleted at any time.

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/durable"
)

// diskStoreBytes is room for about 170,000 vectors of 384 numbers.
const diskStoreBytes = 256 << 20

// A model has two files that only grow, until they are full and begin anew:
//
//	<model>.vec   the vectors, four bytes a number
//	<model>.keys  56 bytes a vector: its key, where it begins, how many numbers it has, a checksum over all of it
//
// A vector is written before its key, by one process at a time.
const (
	keysEnd    = ".keys"
	dataEnd    = ".vec"
	recordLen  = len(vectorKey{}) + 3*8
	maxNumbers = 1 << 16
	patience   = time.Second // for another process that writes
)

// DiskStore is a folder of vectors. It is safe for concurrent use, also by several
// processes. No file stays open.
type DiskStore struct {
	dir string
	max int64

	mu     sync.Mutex // guards models
	models map[string]*diskModel
}

// OpenDiskStore makes a store of a folder, which is made with the first vector. At most about
// maxBytes are kept of each model; 0 is for 256 MB. Nothing is read before it is needed.
func OpenDiskStore(dir string, maxBytes int64) *DiskStore {
	return &DiskStore{dir: dir, max: cmp.Or(maxBytes, diskStoreBytes), models: map[string]*diskModel{}}
}

// diskModel is what is kept for one model, as far as it was read.
type diskModel struct {
	path  string // without its end
	read  int64  // bytes of its keys
	where map[vectorKey]diskPlace
}

// diskPlace is where a vector is.
type diskPlace struct{ at, numbers, sum uint64 }

// open is the state of a model; s.mu is held.
func (s *DiskStore) open(name string) *diskModel {
	if s.models[name] == nil {
		hash := hashOf("marchwarden/vectors/v2", name)
		s.models[name] = &diskModel{path: filepath.Join(s.dir, hex.EncodeToString(hash[:8])), where: map[vectorKey]diskPlace{}}
	}
	return s.models[name]
}

// Get gives the vectors of texts, nil for those that are not kept or are damaged. The
// error says that the folder cannot be read.
func (s *DiskStore) Get(name string, texts []string) ([]Vector, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.open(name)
	if err := m.refresh(); err != nil {
		return make([]Vector, len(texts)), fmt.Errorf("read the kept vectors: %w", err)
	}
	return m.get(keysOf(name, texts)), nil
}

// get reads vectors, nil for those that are not there.
func (m *diskModel) get(keys []vectorKey) []Vector {
	found := make([]Vector, len(keys))
	f, err := os.Open(m.path + dataEnd)
	if err != nil {
		return found
	}
	defer f.Close()
	for i, k := range keys {
		p, ok := m.where[k]
		if !ok || p.numbers > maxNumbers {
			continue
		}
		raw := make([]byte, 4*p.numbers)
		if _, err := f.ReadAt(raw, int64(p.at)); err != nil || p.sum != p.sumOf(k, raw) {
			continue
		}
		found[i] = make(Vector, p.numbers)
		_, _ = binary.Decode(raw, binary.LittleEndian, []float32(found[i])) // it is as long
	}
	return found
}

// refresh reads the keys that were added since the last time. Files that are shorter were
// begun anew.
func (m *diskModel) refresh() error {
	f, err := os.Open(m.path + keysEnd)
	if errors.Is(err, fs.ErrNotExist) {
		m.forget()
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < m.read {
		m.forget()
	}
	raw, err := io.ReadAll(io.NewSectionReader(f, m.read, info.Size()-m.read))
	for ; len(raw) >= recordLen; raw = raw[recordLen:] {
		rest := raw[len(vectorKey{}):]
		m.where[vectorKey(raw)] = diskPlace{binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:]), binary.LittleEndian.Uint64(rest[16:])}
		m.read += int64(recordLen)
	}
	return err
}

func (m *diskModel) forget() {
	m.read = 0
	clear(m.where)
}

// Put keeps vectors, as many as texts. Those that are kept already are left alone. An error
// costs nothing but what it says.
func (s *DiskStore) Put(name string, texts []string, vs []Vector) error {
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
	if err := m.refresh(); err != nil {
		return err
	}
	size := int64(0)
	if info, err := os.Stat(m.path + dataEnd); err == nil {
		size = info.Size()
	}
	known := m.get(keys)
	if size >= s.max { // the keys first: without them the vectors are nothing
		for _, end := range []string{keysEnd, dataEnd} {
			if err := os.Remove(m.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		m.forget()
		size, known = 0, make([]Vector, len(keys))
	}
	var records, raw []byte
	for i, k := range keys {
		if known[i] != nil {
			continue
		}
		p, from := diskPlace{at: uint64(size) + uint64(len(raw)), numbers: uint64(len(vs[i]))}, len(raw)
		raw, _ = binary.Append(raw, binary.LittleEndian, []float32(vs[i])) // numbers can always be written
		p.sum = p.sumOf(k, raw[from:])
		records = append(records, k[:]...)
		records, _ = binary.Append(records, binary.LittleEndian, []uint64{p.at, p.numbers, p.sum})
	}
	if len(records) == 0 {
		return nil
	}
	if err := writeAt(m.path+dataEnd, raw, size); err != nil {
		return err
	}
	if err := writeAt(m.path+keysEnd, records, m.read); err != nil { // over half a record that a crash left
		return err
	}
	return m.refresh()
}

func writeAt(path string, content []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, at)
	return errors.Join(err, f.Close())
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func (p diskPlace) sumOf(k vectorKey, raw []byte) uint64 {
	head := binary.LittleEndian.AppendUint64(k[:], p.numbers)
	return crc64.Update(crc64.Checksum(head, crcTable), crcTable, raw)
}

// vectorKey is the identity of a text under a model.
type vectorKey [sha256.Size]byte

func keysOf(model string, texts []string) []vectorKey {
	keys := make([]vectorKey, len(texts))
	for i, t := range texts {
		keys[i] = hashOf("marchwarden/vector/v1", model, t)
	}
	return keys
}

// hashOf hashes parts, each framed by its length, the first of which is a tag.
func hashOf(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
