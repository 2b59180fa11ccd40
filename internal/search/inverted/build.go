package inverted

import (
	"hash/maphash"
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

// entry is how often a word stands in a chunk.
type entry struct {
	word  uint32
	chunk uint32
	n     [fields]uint16
}

// Builder makes a segment of documents. It is not safe for concurrent use.
type Builder struct {
	next   uint32 // number of the next document
	docs   []doc
	sizes  []uint32 // words in the body of every chunk
	words  table
	latest []uint32 // of every word, its last entry
	all    []entry  // in order of chunks
	field  int      // that is being read
	size   uint32   // words of it
}

// NewBuilder returns an empty builder. About as many bytes of text are expected;
// fewer or more cost no more than memory or time.
func NewBuilder(bytes int) *Builder {
	const perEntry = 10 // bytes of prose for every different word of a chunk, or fewer
	return &Builder{words: newTable(), all: make([]entry, 0, bytes/perEntry)}
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
	rec.size[title] = b.read(d.Title, title)
	rec.size[path] = b.read(d.Path, path)
	head := slices.Clone(b.all[first:]) // stands in every chunk
	for i, text := range d.Chunks {
		if i > 0 {
			for _, e := range head {
				e.chunk = uint32(len(b.sizes))
				b.latest[e.word] = uint32(len(b.all))
				b.all = append(b.all, e)
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
	if k.word() && !digits(term) {
		b.size++
	}
	w, isNew := b.words.id(term)
	chunk := uint32(len(b.sizes))
	if isNew {
		b.latest = append(b.latest, uint32(len(b.all)))
	} else if e := &b.all[b.latest[w]]; e.chunk == chunk {
		if e.n[b.field] < math.MaxUint16 {
			e.n[b.field]++
		}
		return
	}
	b.latest[w] = uint32(len(b.all))
	e := entry{word: w, chunk: chunk}
	e.n[b.field] = 1
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
	order := b.words.sorted()
	rank := make([]uint32, len(order))
	for i, k := range order {
		rank[k.word] = uint32(i)
	}
	// Of every word its entries, in order of chunks.
	starts := make([]uint32, len(order)+1)
	for _, e := range b.all {
		starts[rank[e.word]+1]++
	}
	for i := range order {
		starts[i+1] += starts[i]
	}
	grouped, fill := make([]uint32, len(b.all)), slices.Clone(starts)
	for i, e := range b.all {
		r := rank[e.word]
		grouped[fill[r]] = uint32(i)
		fill[r]++
	}
	w := newWriter(b.docs, b.sizes)
	w.posts = make([]byte, 0, 2*len(b.all))
	w.words = make([]byte, 0, 12*len(order))
	for i, k := range order {
		w.begin([]byte(k.key))
		for _, at := range grouped[starts[i]:starts[i+1]] {
			e := &b.all[at]
			w.posting(e.chunk, e.n)
		}
		w.end()
	}
	return w.bytes()
}

// table gives every different word a number.
type table struct {
	seed   maphash.Seed
	slots  []uint32 // number + 1 of the word, 0 if free; a power of two of them
	hashes []uint32 // of the words, by number
	ends   []uint32 // of the words in text, by number
	text   []byte
}

func newTable() table {
	return table{seed: maphash.MakeSeed(), slots: make([]uint32, 1<<10)}
}

// id returns the number of a word and whether the word was unknown.
func (t *table) id(word []byte) (uint32, bool) {
	h := uint32(maphash.Bytes(t.seed, word))
	mask := uint32(len(t.slots) - 1)
	i := h & mask
	for ; t.slots[i] != 0; i = (i + 1) & mask {
		if id := t.slots[i] - 1; t.hashes[id] == h && string(t.word(id)) == string(word) {
			return id, false
		}
	}
	id := uint32(len(t.ends))
	t.slots[i] = id + 1
	t.hashes = append(t.hashes, h)
	t.text = append(t.text, word...)
	t.ends = append(t.ends, uint32(len(t.text)))
	if len(t.ends)*2 > len(t.slots) {
		t.grow()
	}
	return id, true
}

func (t *table) word(id uint32) []byte {
	start := uint32(0)
	if id > 0 {
		start = t.ends[id-1]
	}
	return t.text[start:t.ends[id]]
}

func (t *table) grow() {
	t.slots = make([]uint32, len(t.slots)*4)
	mask := uint32(len(t.slots) - 1)
	for id, h := range t.hashes {
		i := h & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(id) + 1
	}
}

// keyed is a word by its key.
type keyed struct {
	key  string
	word uint32
}

// sorted returns the words in order of their keys.
func (t *table) sorted() []keyed {
	list := make([]keyed, len(t.ends))
	for id := range t.ends {
		list[id] = keyed{keyOf(string(t.word(uint32(id)))), uint32(id)}
	}
	slices.SortFunc(list, func(a, b keyed) int { return strings.Compare(a.key, b.key) })
	return list
}

// keyOf is what a word is filed under: its stem, so that the forms of a word are
// neighbours, then how it differs from the stem.
func keyOf(word string) string {
	stem := stemOf(word)
	return stem + "\x00" + formOf(stem, word)
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
