package embed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc64"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"
)

// A generation is two files that only grow:
//
//	<model>-<number>.keys  64 bytes of head, then 40 bytes a vector: the key and a checksum over key and vector
//	<model>-<number>.vec   the vectors, four bytes a number, in the order of their keys
//
// A vector is written before its key. A writer holds the lock of the folder and writes where the
// last whole key ends, so that what a crash left is overwritten.
const (
	keysEnd    = ".keys"
	dataEnd    = ".vec"
	diskMagic  = "marchwarden vec1"
	headLen    = 64
	recordLen  = len(vectorKey{}) + 8
	maxNumbers = 1 << 16
)

// diskGeneration is one pair of files as they are in the folder.
type diskGeneration struct {
	stem    string
	bytes   int64
	records int // whole keys
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
			g.records = int(max(0, info.Size()-headLen) / int64(recordLen))
		}
		if info.ModTime().After(g.written) {
			g.written = info.ModTime()
		}
	}
	slices.SortStableFunc(kept, func(a, b diskGeneration) int { return a.written.Compare(b.written) })
	return kept, nil
}

// prefix is how the names of the model's files begin.
func (m *diskModel) prefix() string { return hex.EncodeToString(m.hash[:8]) + "-" }

func headOf(model vectorKey, numbers int) []byte {
	head := append(make([]byte, 0, headLen), diskMagic...)
	head = binary.LittleEndian.AppendUint64(head, uint64(numbers))
	head = append(head, model[:]...)
	return binary.LittleEndian.AppendUint64(head, crc64.Checksum(head, crcTable))
}

// readHead is how many numbers a vector has by the head of its file, or 0 if that is
// none of this model.
func readHead(head []byte, model vectorKey) int {
	n := binary.LittleEndian.Uint64(head[len(diskMagic):])
	if n == 0 || n > maxNumbers || !bytes.Equal(head, headOf(model, int(n))) {
		return 0
	}
	return int(n)
}

var crcTable = crc64.MakeTable(crc64.ECMA)

func sumOf(k vectorKey, raw []byte) uint64 {
	return crc64.Update(crc64.Checksum(k[:], crcTable), crcTable, raw)
}

// vectorKey is the identity of a text under a model.
type vectorKey [sha256.Size]byte

func keysOf(model string, texts []string) []vectorKey {
	keys := make([]vectorKey, len(texts))
	for i, t := range texts {
		keys[i] = HashOf("marchwarden/vector/v1", model, t)
	}
	return keys
}

// HashOf hashes parts, each framed by its length, the first of which is a tag.
func HashOf(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
