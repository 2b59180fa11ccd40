package bench

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"strings"
	"testing/fstest"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
)

// prose makes text whose words are as frequent as those of a language: word n is
// about n times as rare as the first. It is the same for the same seed.
type prose struct {
	r     *rand.Rand
	words []string
	upTo  []float64 // share of the words before and including each
}

func newProse(seed uint64) *prose {
	const vocabulary, letters = 60_000, "etaoinshrdlucmfwypvbgkjqxz"
	p := &prose{r: rand.New(rand.NewPCG(seed, 7))}
	sum := 0.0
	for i := range vocabulary {
		w := make([]byte, 2+p.r.IntN(9))
		for j := range w {
			w[j] = letters[min(len(letters)-1, int(p.r.ExpFloat64()*6))]
		}
		p.words = append(p.words, string(w))
		sum += 1 / math.Pow(float64(i+3), 1.05)
		p.upTo = append(p.upTo, sum)
	}
	for i := range p.upTo {
		p.upTo[i] /= sum
	}
	return p
}

// word draws one word.
func (p *prose) word() string {
	x := p.r.Float64()
	low, high := 0, len(p.upTo)-1
	for low < high {
		if mid := (low + high) / 2; p.upTo[mid] < x {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return p.words[low]
}

// passage makes sentences of n words altogether.
func (p *prose) passage(n int) string {
	var b strings.Builder
	left := 0
	for i := range n {
		w := p.word()
		if left == 0 {
			left = 8 + p.r.IntN(16)
			w = strings.ToUpper(w[:1]) + w[1:]
		}
		b.WriteString(w)
		if left--; left == 0 || i == n-1 {
			b.WriteByte('.')
			left = 0
		}
		b.WriteByte(' ')
	}
	return strings.TrimSpace(b.String())
}

// library is documents of passages. A passage is about as long as a chunk of the
// index, so that all that is compared ranks the same pieces.
type library struct {
	docs     [][]string
	passages int
	bytes    int64
}

const (
	passagesPerDoc  = 100
	wordsPerPassage = 150
)

func (p *prose) library(passages int) *library {
	l := &library{passages: passages}
	for at := 0; at < passages; at++ {
		if at%passagesPerDoc == 0 {
			l.docs = append(l.docs, nil)
		}
		text := p.passage(wordsPerPassage)
		l.docs[len(l.docs)-1] = append(l.docs[len(l.docs)-1], text)
		l.bytes += int64(len(text))
	}
	return l
}

func (l *library) megabytes() float64 { return float64(l.bytes) / 1e6 }

// fs gives the documents as files.
func (l *library) fs() fs.FS {
	fsys := fstest.MapFS{}
	for i, d := range l.docs {
		fsys[fmt.Sprintf("d%05d.md", i)] = &fstest.MapFile{Data: []byte(strings.Join(d, "\n\n"))}
	}
	return fsys
}

// queries are n queries of four words of one passage each, neither the most
// frequent words nor the rarest.
func (l *library) queries(p *prose, n int) []string {
	rank := map[string]int{}
	for i, w := range p.words {
		if _, ok := rank[w]; !ok {
			rank[w] = i
		}
	}
	var out []string
	for len(out) < n {
		d := l.docs[p.r.IntN(len(l.docs))]
		var picked []string
		for _, w := range strings.Fields(strings.ToLower(d[p.r.IntN(len(d))])) {
			w = strings.TrimSuffix(w, ".")
			if r := rank[w]; r > 50 && r < 20_000 && p.r.IntN(6) == 0 {
				picked = append(picked, w)
			}
			if len(picked) == 4 {
				out = append(out, strings.Join(picked, " "))
				break
			}
		}
	}
	return out
}

// plain takes bytes for text, so that the index is measured and not a format.
type plain struct{}

func (plain) Extract(_ context.Context, _ string, raw []byte) (extract.Document, error) {
	return extract.Document{Text: string(raw), MediaType: "text/plain", Extractor: "plain/1"}, nil
}
