package inverted

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"sort"
)

// A segment is laid out so that it can be searched as it is. Numbers are unsigned
// and little-endian, those called short take as many bytes as they need.
//
//	4 bytes   CRC-32C of all that follows
//	6 × 4     version, documents, chunks, bytes of the three parts below before the
//	          postings
//	documents of each, short: its number less the end of the one before, chunks, words
//	          of its title and path; then of every chunk the words of its body
//	ends      of each word, in order of their keys, 8 bytes: where its key ends in the
//	          words and where its postings end
//	words     the keys
//	postings  of each word, in order of chunks, short: twice the chunk's place less that
//	          of the one before; 1 more where its counts in body, title and path follow,
//	          which are 1, 0 and 0 elsewhere
const (
	version   = 2
	headBytes = 4 + 6*4
	endBytes  = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// doc is a document of a segment.
type doc struct {
	number uint32 // of its first chunk
	first  uint32 // place of its first chunk in the segment
	chunks uint32
	size   uint32 // words of its title and path
}

// writer lays a segment out.
type writer struct {
	docs, ends, words, posts []byte
	numDocs, numChunks       int
}

func newWriter(docs []doc, sizes []uint32) *writer {
	w := &writer{numDocs: len(docs), numChunks: len(sizes)}
	next := uint32(0)
	for _, d := range docs {
		for _, n := range []uint32{d.number - next, d.chunks, d.size} {
			w.docs = binary.AppendUvarint(w.docs, uint64(n))
		}
		next = d.number + d.chunks
	}
	for _, n := range sizes {
		w.docs = binary.AppendUvarint(w.docs, uint64(n))
	}
	return w
}

// posting adds a chunk to the word that comes next, so many chunks behind the last.
func (w *writer) posting(step uint32, n counts) {
	if n == (counts{body: 1}) {
		w.posts = binary.AppendUvarint(w.posts, uint64(step)<<1)
		return
	}
	w.posts = binary.AppendUvarint(w.posts, uint64(step)<<1|1)
	for _, c := range n {
		w.posts = binary.AppendUvarint(w.posts, uint64(c))
	}
}

// word ends the postings of a word; words come in order of their keys.
func (w *writer) word(key string) {
	w.words = append(w.words, key...)
	w.ends = binary.LittleEndian.AppendUint32(w.ends, uint32(len(w.words)))
	w.ends = binary.LittleEndian.AppendUint32(w.ends, uint32(len(w.posts)))
}

func (w *writer) bytes() []byte {
	b := make([]byte, 4, headBytes+len(w.docs)+len(w.ends)+len(w.words)+len(w.posts))
	for _, n := range []int{version, w.numDocs, w.numChunks, len(w.docs), len(w.ends), len(w.words)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(append(append(b, w.docs...), w.ends...), w.words...), w.posts...)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// Segment is an index of some documents. It never changes and is safe for
// concurrent use.
type Segment struct {
	docs               []doc
	docOf              []uint32 // document of every chunk
	sizes              []uint32 // words in the body of every chunk
	ends, words, posts []byte
}

// Parse reads a segment, which keeps the bytes. Bytes that are none, or of another
// version, give ErrDamaged.
func Parse(b []byte) (*Segment, error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return nil, fmt.Errorf("check sum: %w", ErrDamaged)
	}
	var head [6]int
	for i := range head {
		head[i] = int(binary.LittleEndian.Uint32(b[4+4*i:]))
	}
	docs, chunks, rest := head[1], head[2], b[headBytes:]
	if head[0] != version || docs > len(b) || chunks > len(b) || head[3]+head[4]+head[5] > len(rest) || head[4]%endBytes != 0 {
		return nil, fmt.Errorf("read head: %w", ErrDamaged)
	}
	var parts [3][]byte
	for i := range parts {
		parts[i], rest = rest[:head[3+i]], rest[head[3+i]:]
	}
	s := &Segment{ends: parts[1], words: parts[2], posts: rest}
	return s, s.readDocs(&reader{b: parts[0]}, docs, chunks)
}

func (s *Segment) readDocs(d *reader, docs, chunks int) error {
	s.docs, s.docOf, s.sizes = make([]doc, 0, docs), make([]uint32, 0, chunks), make([]uint32, 0, chunks)
	next := uint32(0)
	for i := range docs {
		rec := doc{number: next + d.short(), first: uint32(len(s.docOf)), chunks: d.short(), size: d.short()}
		if d.bad || rec.number < next || rec.chunks == 0 || int64(rec.chunks) > int64(chunks-len(s.docOf)) || rec.number+rec.chunks < rec.number {
			return fmt.Errorf("read documents: %w", ErrDamaged)
		}
		for range rec.chunks {
			s.docOf = append(s.docOf, uint32(i))
		}
		next = rec.number + rec.chunks
		s.docs = append(s.docs, rec)
	}
	for range chunks {
		s.sizes = append(s.sizes, d.short())
	}
	if d.bad || len(s.docOf) != chunks {
		return fmt.Errorf("read documents: %w", ErrDamaged)
	}
	return nil
}

// Chunks is how many chunks the segment holds.
func (s *Segment) Chunks() int { return len(s.sizes) }

// count is how many words the segment holds.
func (s *Segment) count() int { return len(s.ends) / endBytes }

// key is the key of a word.
func (s *Segment) key(word int) []byte { return s.part(s.words, word, 0) }

// part is what of b belongs to a word, by the ends at an offset; nothing where they
// make no sense.
func (s *Segment) part(b []byte, word, offset int) []byte {
	at, from := word*endBytes+offset, uint32(0)
	if word > 0 {
		from = binary.LittleEndian.Uint32(s.ends[at-endBytes:])
	}
	to := binary.LittleEndian.Uint32(s.ends[at:])
	if from > to || int64(to) > int64(len(b)) {
		return nil
	}
	return b[from:to]
}

// postings calls use with the chunks of a word.
func (s *Segment) postings(word int, use func(chunk uint32, n counts)) error {
	r, chunk := reader{b: s.part(s.posts, word, 4)}, uint32(0)
	for len(r.b) > 0 {
		head, n := r.short(), counts{body: 1}
		chunk += head >> 1
		if head&1 != 0 {
			for f := range n {
				n[f] = uint16(r.short())
			}
		}
		if r.bad || int64(chunk) >= int64(len(s.sizes)) {
			return fmt.Errorf("read postings: %w", ErrDamaged)
		}
		use(chunk, n)
	}
	return nil
}

// find calls use with every word that has this stem, and with whether it is the one given.
func (s *Segment) find(stem, word string, use func(at int, exact bool) error) error {
	prefix, form := append([]byte(stem), 0), formOf(stem, word)
	for i := sort.Search(s.count(), func(i int) bool { return bytes.Compare(s.key(i), prefix) >= 0 }); i < s.count(); i++ {
		rest, ok := bytes.CutPrefix(s.key(i), prefix)
		if !ok {
			return nil
		}
		if err := use(i, word != "" && string(rest) == form); err != nil {
			return err
		}
	}
	return nil
}

// reader reads short numbers. Once there is none, it is bad and gives zeros.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) short() uint32 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return uint32(v)
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > 1<<32-1 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return uint32(v)
}
