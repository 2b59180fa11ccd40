package inverted

import (
	"bytes"
	"fmt"
)

// gone marks a chunk that is left out of a merged segment.
const gone = 1<<32 - 1

// Merge makes one segment of several, without the documents that are gone. Parts
// come in order of their numbers, which do not overlap; those of the new segment
// are counted from the base of the first. An error is ErrDamaged.
func Merge(parts []Part) ([]byte, error) {
	var docs []doc
	var sizes []uint32
	ways := make([]*way, len(parts))
	for i := range parts {
		p := &parts[i]
		live := p.live()
		w := &way{cursor: cursor{s: p.Segment}, place: make([]uint32, p.Chunks())}
		for _, d := range p.docs {
			if live != nil && !live[d.first] {
				for c := range d.chunks {
					w.place[d.first+c] = gone
				}
				continue
			}
			for c := range d.chunks {
				w.place[d.first+c] = uint32(len(sizes))
				sizes = append(sizes, p.sizes[d.first+c])
			}
			d.number += uint32(p.Base - parts[0].Base)
			d.first = uint32(len(sizes)) - d.chunks
			docs = append(docs, d)
		}
		if p.count > 0 {
			w.block(0)
		}
		w.more = w.advance()
		ways[i] = w
	}
	out := newWriter(docs, sizes)
	for key, ok := least(ways, nil); ok; key, ok = least(ways, key) {
		out.begin(key)
		for _, w := range ways {
			if w.more && bytes.Equal(w.key, key) {
				if err := w.copy(out); err != nil {
					return nil, err
				}
				w.more = w.advance()
			}
		}
		out.end()
	}
	for _, w := range ways {
		if w.r.bad {
			return nil, fmt.Errorf("merge words: %w", ErrDamaged)
		}
	}
	return out.bytes(), nil
}

// way is one of the segments that are merged.
type way struct {
	cursor
	more  bool
	place []uint32 // of its chunks in the new segment
}

// least is the first key that any of the segments has next, written over buf.
func least(ways []*way, buf []byte) ([]byte, bool) {
	var low []byte
	found := false
	for _, w := range ways {
		if w.more && (!found || bytes.Compare(w.key, low) < 0) {
			low, found = w.key, true
		}
	}
	return append(buf[:0], low...), found
}

// copy copies the postings of the segment's word.
func (w *way) copy(out *writer) error {
	for it := (postings{r: reader{b: w.post}}); ; {
		if !it.advance() {
			if it.r.bad {
				return fmt.Errorf("merge postings: %w", ErrDamaged)
			}
			return nil
		}
		if int(it.chunk) >= len(w.place) {
			return fmt.Errorf("merge postings: %w", ErrDamaged)
		}
		if at := w.place[it.chunk]; at != gone {
			out.posting(at, [fields]uint16{uint16(it.n[body]), uint16(it.n[title]), uint16(it.n[path])})
		}
	}
}
