package embed

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A generation is two files that only grow:
//
//	<model>-<number>.keys  64 bytes of head, then 40 bytes a vector: the key and a checksum over key and vector
//	<model>-<number>.vec   the vectors, four bytes a number, in the order of their keys
//
// A vector is written before its key. A writer holds the lock of the folder and writes where the
// last whole key ends, so that what a crash left is overwritten.
const (
	keysEnd = ".keys"
	dataEnd = ".vec"

	diskMagic  = "marchwarden vec1"
	headLen    = 64
	recordLen  = len(vectorKey{}) + 8
	maxNumbers = 1 << 16
)

var crcTable = crc64.MakeTable(crc64.ECMA)

// wholeRecords is how many whole keys a file of keys has.
func wholeRecords(size int64) int { return int(max(0, size-headLen) / int64(recordLen)) }

// diskRecord is one vector with its key.
type diskRecord struct {
	key    vectorKey
	vector Vector
}

// diskPlace is where a vector is.
type diskPlace struct {
	in  *diskSegment
	at  int
	sum uint64
}

// diskModel is what is kept for one model, as far as it was read.
type diskModel struct {
	dir      string
	hash     vectorKey
	segments []*diskSegment // by number
	where    map[vectorKey]diskPlace
}

// diskSegment is one generation that is open for reading.
type diskSegment struct {
	dir, stem string
	number    int
	numbers   int // of a vector
	read      int // keys that are known
	data      *os.File
}

func (m *diskModel) close() error {
	var errs []error
	for _, s := range m.segments {
		errs = append(errs, s.data.Close())
	}
	m.segments = nil
	return errors.Join(errs...)
}

func (m *diskModel) last() *diskSegment {
	if len(m.segments) == 0 {
		return nil
	}
	return m.segments[len(m.segments)-1]
}

// prefix is how the names of the model's files begin.
func (m *diskModel) prefix() string { return hex.EncodeToString(m.hash[:8]) + "-" }

// gone reports whether the file that would be written next is not the one that is open.
func (m *diskModel) gone() bool {
	last := m.last()
	if last == nil {
		return false
	}
	open, err := last.data.Stat()
	if err != nil {
		return true
	}
	named, err := os.Stat(last.path(dataEnd))
	return err != nil || !os.SameFile(open, named)
}

// get reads a vector, or gives nil.
func (m *diskModel) get(k vectorKey) Vector {
	p, ok := m.where[k]
	if !ok {
		return nil
	}
	raw := make([]byte, 4*p.in.numbers)
	if _, err := p.in.data.ReadAt(raw, int64(p.at)*int64(len(raw))); err != nil || sumOf(k, raw) != p.sum {
		return nil
	}
	v := make(Vector, p.in.numbers)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}

func sumOf(k vectorKey, raw []byte) uint64 {
	return crc64.Update(crc64.Checksum(k[:], crcTable), crcTable, raw)
}

// numbersThere are the numbers of the model's generations, sound or not.
func (m *diskModel) numbersThere() ([]int, error) {
	kept, err := diskGenerations(m.dir)
	if err != nil {
		return nil, err
	}
	var there []int
	for _, g := range kept {
		if digits, ok := strings.CutPrefix(g.stem, m.prefix()); ok {
			if n, err := strconv.Atoi(digits); err == nil {
				there = append(there, n)
			}
		}
	}
	slices.Sort(there)
	return there, nil
}

// refresh reads the keys that were added since the last time.
func (m *diskModel) refresh() error {
	there, err := m.numbersThere()
	if err != nil {
		return err
	}
	if err := m.drop(there); err != nil {
		return err
	}
	for _, n := range there {
		if slices.ContainsFunc(m.segments, func(s *diskSegment) bool { return s.number == n }) {
			continue
		}
		s := &diskSegment{dir: m.dir, stem: m.stem(n), number: n}
		if s.data, err = os.Open(s.path(dataEnd)); err != nil {
			continue // it has just been removed, or is not whole yet
		}
		m.segments = append(m.segments, s)
	}
	slices.SortFunc(m.segments, func(a, b *diskSegment) int { return a.number - b.number })
	for _, s := range m.segments {
		if err := s.readKeys(m); err != nil {
			return err
		}
	}
	return nil
}

// drop lets go of the generations that are not there any more, since an open file takes
// room even when it is removed.
func (m *diskModel) drop(there []int) error {
	var errs []error
	m.segments = slices.DeleteFunc(m.segments, func(s *diskSegment) bool {
		if slices.Contains(there, s.number) {
			return false
		}
		errs = append(errs, s.data.Close())
		maps.DeleteFunc(m.where, func(_ vectorKey, p diskPlace) bool { return p.in == s })
		return true
	})
	return errors.Join(errs...)
}

func (m *diskModel) stem(number int) string { return fmt.Sprintf("%s%06d", m.prefix(), number) }

func (s *diskSegment) path(end string) string { return filepath.Join(s.dir, s.stem+end) }

func (s *diskSegment) size() int64 { return int64(s.read) * int64(recordLen+4*s.numbers) }

// readKeys takes in the keys that are not known yet. A file that is not one of ours is
// left alone.
func (s *diskSegment) readKeys(m *diskModel) error {
	f, err := os.Open(s.path(keysEnd))
	if errors.Is(err, fs.ErrNotExist) {
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
	if s.numbers == 0 {
		head := make([]byte, headLen)
		n, _ := f.ReadAt(head, 0) // a crash may have left it short
		if s.numbers = readHead(head[:n], m.hash); s.numbers == 0 {
			return nil
		}
	}
	n := wholeRecords(info.Size())
	if n <= s.read {
		return nil
	}
	raw := make([]byte, (n-s.read)*recordLen)
	if _, err := f.ReadAt(raw, headLen+int64(s.read)*int64(recordLen)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(m.where) == 0 {
		m.where = make(map[vectorKey]diskPlace, n)
	}
	for ; s.read < n; s.read++ {
		m.where[vectorKey(raw)] = diskPlace{s, s.read, binary.LittleEndian.Uint64(raw[len(vectorKey{}):])}
		raw = raw[recordLen:]
	}
	return nil
}

// begin starts the next generation. The lock is held.
func (m *diskModel) begin(numbers int) (*diskSegment, error) {
	there, err := m.numbersThere()
	if err != nil {
		return nil, err
	}
	number := 1
	if len(there) > 0 {
		number = there[len(there)-1] + 1
	}
	s := &diskSegment{dir: m.dir, stem: m.stem(number), number: number, numbers: numbers}
	if err := writeNew(s.path(dataEnd), nil); err != nil {
		return nil, err
	}
	if err := writeNew(s.path(keysEnd), headOf(m.hash, numbers)); err != nil {
		return nil, err
	}
	if s.data, err = os.Open(s.path(dataEnd)); err != nil {
		return nil, err
	}
	m.segments = append(m.segments, s)
	return s, nil
}

func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// append writes vectors behind the last whole one. The lock is held.
func (s *diskSegment) append(m *diskModel, fresh []diskRecord) error {
	raw := make([]byte, 0, len(fresh)*4*s.numbers)
	keys := make([]byte, 0, len(fresh)*recordLen)
	sums := make([]uint64, len(fresh))
	for i, r := range fresh {
		from := len(raw)
		for _, x := range r.vector {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
		}
		sums[i] = sumOf(r.key, raw[from:])
		keys = binary.LittleEndian.AppendUint64(append(keys, r.key[:]...), sums[i])
	}
	if err := writeAt(s.path(dataEnd), raw, int64(s.read)*int64(4*s.numbers)); err != nil {
		return err
	}
	if err := writeAt(s.path(keysEnd), keys, headLen+int64(s.read)*int64(recordLen)); err != nil {
		return err
	}
	for i, r := range fresh {
		m.where[r.key] = diskPlace{s, s.read, sums[i]}
		s.read++
	}
	return nil
}

func writeAt(path string, content []byte, at int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(content, at)
	return errors.Join(err, f.Close())
}

// headOf is the head of a file of keys.
func headOf(model vectorKey, numbers int) []byte {
	head := append(make([]byte, 0, headLen), diskMagic...)
	head = binary.LittleEndian.AppendUint64(head, uint64(numbers))
	head = append(head, model[:]...)
	return binary.LittleEndian.AppendUint64(head, crc64.Checksum(head, crcTable))
}

// readHead is how many numbers a vector has by the head of its file, or 0 if that is
// none of this model.
func readHead(head []byte, model vectorKey) int {
	if len(head) < headLen {
		return 0
	}
	n := binary.LittleEndian.Uint64(head[len(diskMagic):])
	if n == 0 || n > maxNumbers || !bytes.Equal(head, headOf(model, int(n))) {
		return 0
	}
	return int(n)
}
