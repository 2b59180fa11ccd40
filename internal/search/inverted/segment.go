package inverted

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A segment is laid out so that it can be searched as it is. Numbers are unsigned
// and little-endian, those called short take as many bytes as they need.
//
//	4 bytes   CRC-32C of all that follows
//	7 × 4     version, documents, chunks, words, bytes of the three parts below
//	          before the postings
//	documents of each, short: its number less the one before, chunks, words of its
//	          title and of its path; then of every chunk the words of its body
//	blocks    of each 8 bytes: where in the words it begins, and where its postings
//	words     in order of their keys, 32 to a block; of each, short: how many bytes
//	          of its key are those of the key before it in the block, how many come
//	          then and these, and the bytes of its postings
//	postings  of each word, in order of chunks, short: four times the chunk's place
//	          less that of the one before, and 0 for a word that stands once in the
//	          body alone, 1 and the count for the body alone, 2 and three counts for
//	          body, title and path
const (
	version    = 1
	headBytes  = 4 + 7*4
	perBlock   = 32
	blockBytes = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// doc is a document of a segment.
type doc struct {
	number uint32 // of its first chunk
	first  uint32 // place of its first chunk in the segment
	chunks uint32
	size   [fields]uint32 // words of its title and path
}

// writer lays a segment out.
type writer struct {
	docs, blocks, words, posts []byte
	numDocs, numChunks, count  int
	key, last                  []byte
	begun                      int    // where the postings of this word begin
	prev                       uint32 // chunk of the posting before
}

func newWriter(docs []doc, sizes []uint32) *writer {
	w := &writer{numDocs: len(docs), numChunks: len(sizes)}
	next := uint32(0)
	for _, d := range docs {
		w.docs = binary.AppendUvarint(w.docs, uint64(d.number-next))
		for _, n := range []uint32{d.chunks, d.size[title], d.size[path]} {
			w.docs = binary.AppendUvarint(w.docs, uint64(n))
		}
		next = d.number + d.chunks
	}
	for _, n := range sizes {
		w.docs = binary.AppendUvarint(w.docs, uint64(n))
	}
	return w
}

// begin begins a word; words come in order of their keys.
func (w *writer) begin(key []byte) {
	w.key = append(w.key[:0], key...)
	w.begun, w.prev = len(w.posts), 0
}

// posting adds a chunk to the word; chunks come in order.
func (w *writer) posting(chunk uint32, n [fields]uint16) {
	step := uint64(chunk-w.prev) << 2
	w.prev = chunk
	switch {
	case n[title] != 0 || n[path] != 0:
		w.posts = binary.AppendUvarint(w.posts, step|2)
		for _, c := range n {
			w.posts = binary.AppendUvarint(w.posts, uint64(c))
		}
	case n[body] == 1:
		w.posts = binary.AppendUvarint(w.posts, step)
	default:
		w.posts = binary.AppendUvarint(w.posts, step|1)
		w.posts = binary.AppendUvarint(w.posts, uint64(n[body]))
	}
}

// end ends the word. One without postings is left out.
func (w *writer) end() {
	if len(w.posts) == w.begun {
		return
	}
	same := 0
	if w.count%perBlock == 0 {
		w.blocks = binary.LittleEndian.AppendUint32(w.blocks, uint32(len(w.words)))
		w.blocks = binary.LittleEndian.AppendUint32(w.blocks, uint32(w.begun))
	} else {
		for same < min(len(w.key), len(w.last)) && w.key[same] == w.last[same] {
			same++
		}
	}
	w.words = binary.AppendUvarint(w.words, uint64(same))
	w.words = binary.AppendUvarint(w.words, uint64(len(w.key)-same))
	w.words = append(w.words, w.key[same:]...)
	w.words = binary.AppendUvarint(w.words, uint64(len(w.posts)-w.begun))
	w.last = append(w.last[:0], w.key...)
	w.count++
}

func (w *writer) bytes() []byte {
	b := make([]byte, 4, headBytes+len(w.docs)+len(w.blocks)+len(w.words)+len(w.posts))
	for _, n := range []int{version, w.numDocs, w.numChunks, w.count, len(w.docs), len(w.blocks), len(w.words)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(append(append(append(b, w.docs...), w.blocks...), w.words...), w.posts...)
	binary.LittleEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli))
	return b
}

// Segment is an index of some documents. It never changes and is safe for
// concurrent use.
type Segment struct {
	docs                 []doc
	docOf                []uint32 // document of every chunk
	sizes                []uint32 // words in the body of every chunk
	count                int      // words
	blocks, words, posts []byte
}

// Parse reads a segment, which keeps the bytes. Bytes that are none, or of another
// version, give ErrDamaged.
func Parse(b []byte) (*Segment, error) {
	if len(b) < headBytes || binary.LittleEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli) {
		return nil, fmt.Errorf("check sum: %w", ErrDamaged)
	}
	var head [7]int
	for i := range head {
		head[i] = int(binary.LittleEndian.Uint32(b[4+4*i:]))
	}
	docs, chunks, rest := head[1], head[2], b[headBytes:]
	if head[0] != version || docs > len(b) || chunks > len(b) || head[4]+head[5]+head[6] > len(rest) {
		return nil, fmt.Errorf("read head: %w", ErrDamaged)
	}
	s := &Segment{count: head[3]}
	d := reader{b: rest[:head[4]]}
	s.blocks = rest[head[4] : head[4]+head[5]]
	s.words = rest[head[4]+head[5] : head[4]+head[5]+head[6]]
	s.posts = rest[head[4]+head[5]+head[6]:]
	if err := s.readDocs(&d, docs, chunks); err != nil {
		return nil, err
	}
	if (s.count+perBlock-1)/perBlock*blockBytes != len(s.blocks) {
		return nil, fmt.Errorf("read blocks: %w", ErrDamaged)
	}
	return s, nil
}

func (s *Segment) readDocs(d *reader, docs, chunks int) error {
	s.docs, s.docOf, s.sizes = make([]doc, 0, docs), make([]uint32, 0, chunks), make([]uint32, 0, chunks)
	next := uint32(0)
	for i := range docs {
		rec := doc{number: next + d.short(), first: uint32(len(s.docOf)), chunks: d.short()}
		rec.size[title], rec.size[path] = d.short(), d.short()
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

func (r *reader) take(n uint32) []byte {
	if int64(n) > int64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	head := r.b[:n]
	r.b = r.b[n:]
	return head
}

// cursor goes through the words of a segment.
type cursor struct {
	s    *Segment
	r    reader
	at   int // number of the next word
	key  []byte
	post []byte // postings of the word
	next uint32 // where those of the next word begin
}

// block sets the cursor before the first word of a block.
func (c *cursor) block(i int) {
	c.at = i * perBlock
	at := binary.LittleEndian.Uint32(c.s.blocks[i*blockBytes:])
	c.next = binary.LittleEndian.Uint32(c.s.blocks[i*blockBytes+4:])
	c.r = reader{b: c.s.words}
	c.r.take(at)
	c.key = c.key[:0]
}

// advance goes to the next word and reports whether there is one. At the end, bad
// tells whether it is the true one.
func (c *cursor) advance() bool {
	if c.at >= c.s.count || c.r.bad {
		return false
	}
	if c.at%perBlock == 0 {
		c.key = c.key[:0]
	}
	same, more := c.r.short(), c.r.short()
	tail, size := c.r.take(more), c.r.short()
	if c.r.bad || int(same) > len(c.key) || uint64(c.next)+uint64(size) > uint64(len(c.s.posts)) {
		c.r.bad = true
		return false
	}
	c.key = append(c.key[:same], tail...)
	c.post = c.s.posts[c.next : c.next+size]
	c.next += size
	c.at++
	return true
}

// find calls use with the postings of every word that has this stem, and with
// whether the word is the one given.
func (s *Segment) find(stem, word string, use func(post []byte, exact bool) error) error {
	prefix := append([]byte(stem), 0)
	c := cursor{s: s, key: make([]byte, 0, 2*maxWord)}
	low, high := 0, len(s.blocks)/blockBytes // the last block that begins at or before prefix
	for high-low > 1 {
		mid := (low + high) / 2
		c.block(mid)
		if !c.advance() {
			return fmt.Errorf("look up word: %w", ErrDamaged)
		}
		if bytes.Compare(c.key, prefix) <= 0 {
			low = mid
		} else {
			high = mid
		}
	}
	if s.count == 0 {
		return nil
	}
	form := formOf(stem, word)
	for c.block(low); c.advance(); {
		switch {
		case bytes.Compare(c.key, prefix) < 0:
		case len(c.key) < len(prefix) || string(c.key[:len(prefix)]) != string(prefix):
			return nil
		default:
			if err := use(c.post, word != "" && string(c.key[len(prefix):]) == form); err != nil {
				return err
			}
		}
	}
	if c.r.bad {
		return fmt.Errorf("look up word: %w", ErrDamaged)
	}
	return nil
}

// posting is where and how often a word stands.
type posting struct {
	chunk uint32
	n     [fields]uint32
}

// postings goes through the chunks of a word.
type postings struct {
	r reader
	posting
}

// advance goes to the next chunk and reports whether there is one.
func (p *postings) advance() bool {
	if len(p.r.b) == 0 {
		return false
	}
	head := p.r.short()
	p.chunk += head >> 2
	switch head & 3 {
	case 0:
		p.n = [fields]uint32{body: 1}
	case 1:
		p.n = [fields]uint32{body: p.r.short()}
	default:
		p.n = [fields]uint32{body: p.r.short()}
		p.n[title], p.n[path] = p.r.short(), p.r.short()
	}
	return !p.r.bad
}
