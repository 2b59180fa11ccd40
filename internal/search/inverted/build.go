package inverted

import (
	"math"
	"slices"
	"strings"
)

// The fields of a document.
const (
	body = iota
	title
	path
	fields
)

// counts is how often a word stands in the fields of a chunk.
type counts [fields]uint16

// entry is how often a word stands in a chunk.
type entry struct {
	word  uint32
	chunk uint32
	n     counts
}

// Builder makes a segment of documents. It is not safe for concurrent use.
type Builder struct {
	next   uint32 // number of the next document
	docs   []doc
	sizes  []uint32                 // words in the body of every chunk
	ids    map[string]uint32        // of the words
	words  []string                 // by id
	latest []uint32                 // of every word, its last entry
	all    []entry                  // in order of chunks
	file   func(word string) string // what a word is filed under
	field  int                      // that is being read
	size   uint32                   // words of it
}

// NewBuilder returns an empty builder. About as many bytes of text are expected;
// fewer or more cost no more than memory or time.
func NewBuilder(bytes int) *Builder {
	const perEntry = 7                 // bytes of prose for every different word of a chunk, or fewer
	file := func(word string) string { // its stem, so that the forms of a word are neighbours, then how it differs from the stem
		stem := stemOf(word)
		return stem + "\x00" + formOf(stem, word)
	}
	return &Builder{ids: map[string]uint32{}, file: file, all: make([]entry, 0, bytes/perEntry)}
}

// Add adds a document and returns its number, counted from 0: as many numbers as
// it has chunks are its own, and one if it has none. A chunk's number is that of
// its document plus its place there.
func (b *Builder) Add(d Document) (number uint32) {
	number = b.next
	b.next += max(1, uint32(len(d.Chunks)))
	if len(d.Chunks) == 0 {
		return number
	}
	rec := doc{number: number, first: uint32(len(b.sizes)), chunks: uint32(len(d.Chunks))}
	first := len(b.all)
	rec.size = b.read(d.Title, title) + b.read(d.Path, path)
	head := slices.Clone(b.all[first:]) // stands in every chunk
	for i, text := range d.Chunks {
		if i > 0 {
			for _, e := range head {
				b.add(entry{e.word, uint32(len(b.sizes)), e.n})
			}
		}
		b.sizes = append(b.sizes, b.read(text, body))
	}
	b.docs = append(b.docs, rec)
	return number
}

// Numbers is how many numbers the documents have taken.
func (b *Builder) Numbers() uint32 { return b.next }

// Chunks is how many chunks were added.
func (b *Builder) Chunks() int { return len(b.sizes) }

// read counts the words of a text as a field of the chunk that comes next, and
// returns how long it is.
func (b *Builder) read(text string, field int) uint32 {
	b.field, b.size = field, 0
	each(text, b.count)
	return b.size
}

func (b *Builder) count(term []byte, k kind) {
	if k <= glyph && !digits(term) {
		b.size++
	}
	w, known := b.id(term)
	chunk := uint32(len(b.sizes))
	if known {
		if e := &b.all[b.latest[w]]; e.chunk == chunk {
			if e.n[b.field] < math.MaxUint16 {
				e.n[b.field]++
			}
			return
		}
	}
	e := entry{word: w, chunk: chunk}
	e.n[b.field] = 1
	b.add(e)
}

// id is the number of a word, and whether it was known.
func (b *Builder) id(word []byte) (id uint32, known bool) {
	if id, known = b.ids[string(word)]; known {
		return id, true
	}
	id = uint32(len(b.words))
	b.words, b.latest = append(b.words, string(word)), append(b.latest, 0)
	b.ids[b.words[id]] = id
	return id, false
}

func (b *Builder) add(e entry) {
	b.latest[e.word] = uint32(len(b.all))
	b.all = append(b.all, e)
}

// digits reports whether a word is a number. Numbers do not make a chunk longer: a
// text with a table or a list of references says no less by its words.
func digits(word []byte) bool {
	for _, c := range word {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// Bytes returns the segment, which depends on the documents and their order
// alone. The builder must not be used afterwards.
func (b *Builder) Bytes() []byte {
	// Of every word its entries, in order of chunks.
	starts := make([]uint32, len(b.words)+1)
	for _, e := range b.all {
		starts[e.word+1]++
	}
	for i := range b.words {
		starts[i+1] += starts[i]
	}
	grouped, fill := make([]uint32, len(b.all)), slices.Clone(starts)
	for i, e := range b.all {
		grouped[fill[e.word]] = uint32(i)
		fill[e.word]++
	}
	type keyed struct {
		key  string
		word int
	}
	order := make([]keyed, 0, len(b.words))
	for id, word := range b.words {
		if starts[id] < starts[id+1] { // merging leaves words without entries
			order = append(order, keyed{b.file(word), id})
		}
	}
	slices.SortFunc(order, func(x, y keyed) int { return strings.Compare(x.key, y.key) })
	w := newWriter(b.docs, b.sizes)
	w.posts = make([]byte, 0, 2*len(b.all))
	w.words = make([]byte, 0, 16*len(order))
	for _, k := range order {
		prev := uint32(0)
		for _, at := range grouped[starts[k.word]:starts[k.word+1]] {
			e := &b.all[at]
			w.posting(e.chunk-prev, e.n)
			prev = e.chunk
		}
		w.word(k.key)
	}
	return w.bytes()
}

// formOf is how a word differs from its stem: how much of the stem it begins
// with, and what comes then.
func formOf(stem, word string) string {
	n := 0
	for n < min(len(stem), len(word)) && stem[n] == word[n] {
		n++
	}
	return string([]byte{byte(n)}) + word[n:]
}

// Merge makes one segment of several, without the documents that are gone, and says
// how many chunks it has. Parts come in order of their numbers, which do not overlap;
// those of the new segment are counted from the base of the first. An error is
// ErrDamaged.
func Merge(parts []Part) (data []byte, chunks int, err error) {
	b := NewBuilder(0)
	b.file = func(key string) string { return key }
	for i := range parts {
		p := &parts[i]
		live, place := p.live(), make([]uint32, p.Chunks())
		for _, d := range p.docs {
			if !live[d.first] {
				continue
			}
			for c := range d.chunks {
				place[d.first+c] = uint32(len(b.sizes))
				b.sizes = append(b.sizes, p.sizes[d.first+c])
			}
			d.number += uint32(p.Base - parts[0].Base)
			d.first = uint32(len(b.sizes)) - d.chunks
			b.docs = append(b.docs, d)
		}
		for w := range p.count() {
			id, _ := b.id(p.key(w))
			err := p.postings(w, func(chunk uint32, n counts) {
				if live[chunk] {
					b.add(entry{id, place[chunk], n})
				}
			})
			if err != nil {
				return nil, 0, err
			}
		}
	}
	return b.Bytes(), len(b.sizes), nil
}
