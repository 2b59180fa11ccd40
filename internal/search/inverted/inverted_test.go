package inverted

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func parse(t interface{ Fatal(...any) }, b []byte) *Segment {
	s, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func build(docs ...Document) []byte {
	b := NewBuilder(0)
	for _, d := range docs {
		b.Add(d)
	}
	return b.Bytes()
}

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"Crops grow, slowly.":           "crops grow slowly",
		"COVID-19 is":                   "covid 19 [covid 19] is",
		"6,000 feet":                    "6 000 [6 000] feet",
		"don't Utah's state-of-the-art": "don t utah s state of the art [state of the art]",
		"a.b.c.d.e":                     "a b c d e",
		"Éléphant élan CAFÉ ế":          "elephant elan cafe e",
		"e\u0301t\u00e9":                "ete",
		"Ωμέγα й":                       "ωμεγα й",
		"東京は":                           "東 <東京> 京 <京は> は",
		"東 京":                           "東 京",
		"GPT模型":                         "gpt 模 <模型> 型",
		"\xff\xfeab\xffcd":              "ab cd [ab cd]",
		"\u0301":                        "",
		"हिन्दी भाषा":                   "हिन्दी भाषा",
		"x\u2003y z":                    "x y z",
		" \t\n":                         "",
		strings.Repeat("ü", 100):        strings.Repeat("u", 64),
	} {
		var got []string
		each(text, func(term []byte, k kind) {
			s := string(term)
			switch k {
			case compound:
				s = "[" + s + "]"
			case pair:
				s = "<" + s + ">"
			}
			got = append(got, s)
		})
		if strings.Join(got, " ") != want {
			t.Errorf("%q has the terms %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

func TestTerms(t *testing.T) {
	for word, want := range map[string][]Term{
		"Crops":    {{"crop", "crops", 1}},
		"covid 19": {{"covid 19", "covid 19", 0.25}},
		"東京都":      {{"東京", "東京", 1}, {"京都", "京都", 1}},
		"東":        {{"東", "東", 1}},
		"?":        nil,
	} {
		if diff := gocmp.Diff(want, Terms(word)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", word, diff)
		}
	}
}

// library is what a random test indexes, and the same done by hand.
type library struct {
	docs  []Document
	dead  []bool
	first []uint32
	span  uint32
}

var vocabulary = strings.Fields("apple apples pear pears fig figs plum quince run runs running ran")

func drawText(t *rapid.T, longest int) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, longest).Draw(t, "text"), " ")
}

func drawLibrary(t *rapid.T) *library {
	l := &library{}
	for range rapid.IntRange(1, 25).Draw(t, "docs") {
		d := Document{Title: drawText(t, 3), Path: drawText(t, 2)}
		for range rapid.IntRange(0, 4).Draw(t, "chunks") {
			d.Chunks = append(d.Chunks, drawText(t, 12))
		}
		l.docs = append(l.docs, d)
		l.first = append(l.first, l.span)
		l.span += max(1, uint32(len(d.Chunks)))
		l.dead = append(l.dead, rapid.IntRange(0, 3).Draw(t, "dead") == 0)
	}
	return l
}

const testBase = 7 << 32

// parts indexes the library in as many segments as the test draws, and merges some.
func (l *library) parts(t *rapid.T) []Part {
	var parts []Part
	for at := 0; at < len(l.docs); {
		n := rapid.IntRange(1, len(l.docs)-at).Draw(t, "segment")
		b := NewBuilder(0)
		p := Part{Base: testBase + int64(l.first[at]), Live: []int64{}}
		for i := at; i < at+n; i++ {
			b.Add(l.docs[i])
			if !l.dead[i] {
				p.Live = append(p.Live, testBase+int64(l.first[i]))
			}
		}
		p.Segment = parse(t, b.Bytes())
		parts = append(parts, p)
		at += n
	}
	from := rapid.IntRange(0, len(parts)).Draw(t, "merge from")
	to := rapid.IntRange(from, len(parts)).Draw(t, "merge to")
	if from == to {
		return parts
	}
	data, _, err := Merge(parts[from:to])
	if err != nil {
		t.Fatal(err)
	}
	return slices.Replace(parts, from, to, Part{Segment: parse(t, data), Base: parts[from].Base})
}

// search scores every chunk from its words, without an index, and returns those that
// have any, best first.
func (l *library) search(terms []Term) []Hit {
	type chunk struct {
		id, doc int64
		fields  [fields][]string
	}
	var chunks []chunk
	words := 0
	for i, d := range l.docs {
		for j, text := range d.Chunks {
			if l.dead[i] {
				continue
			}
			c := chunk{id: testBase + int64(l.first[i]) + int64(j), doc: testBase + int64(l.first[i])}
			c.fields = [fields][]string{body: strings.Fields(text), title: strings.Fields(d.Title), path: strings.Fields(d.Path)}
			words += len(c.fields[body]) + len(c.fields[title]) + len(c.fields[path])
			chunks = append(chunks, c)
		}
	}
	mean := max(1, float64(words)/float64(max(1, len(chunks))))
	scores := make([]float64, len(chunks))
	add := func(weight float64, is func(word string) bool) {
		counts, found := make([]float64, len(chunks)), 0
		for i, c := range chunks {
			for f, words := range c.fields {
				for _, w := range words {
					if is(w) {
						counts[i] += fieldWeight[f]
					}
				}
			}
			if counts[i] > 0 {
				found++
			}
		}
		rarity := max(1e-6, math.Log((float64(len(chunks)-found)+0.5)/(float64(found)+0.5)))
		for i, c := range chunks {
			length := float64(len(c.fields[body]) + len(c.fields[title]) + len(c.fields[path]))
			scores[i] += weight * rarity * counts[i] * (k1 + 1) / (counts[i] + k1*(1-lengthWeight+lengthWeight*length/mean))
		}
	}
	for _, t := range terms {
		add(t.Weight, func(w string) bool { return lexicon.Stem(w) == t.Stem })
		if t.Word != "" {
			add(t.Weight*wordWeight, func(w string) bool { return w == t.Word })
		}
	}
	var hits []Hit
	for i, c := range chunks {
		if scores[i] > 0 {
			hits = append(hits, Hit{c.id, c.doc, scores[i]})
		}
	}
	slices.SortFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
	})
	return hits
}

// However the documents came into the index, what is found is what reading every
// chunk finds.
func TestSearchFindsWhatReadingFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLibrary(t)
		v := NewView(l.parts(t))
		var terms []Term
		for range rapid.IntRange(1, 4).Draw(t, "terms") {
			w := rapid.SampledFrom(vocabulary).Draw(t, "word")
			term := Term{Stem: lexicon.Stem(w), Weight: rapid.Float64Range(0.1, 3).Draw(t, "weight")}
			if rapid.Bool().Draw(t, "exact") {
				term.Word = w
			}
			terms = append(terms, term)
		}
		k := rapid.IntRange(1, 30).Draw(t, "k")
		got, err := v.Search(context.Background(), terms, k, nil)
		if err != nil {
			t.Fatal(err)
		}
		all := l.search(terms)
		n := min(k, len(all))
		if len(got) < n {
			t.Fatalf("%+v found %d chunks, want %d", terms, len(got), n)
		}
		// The two round differently: what is as good as the last may be there or not.
		const tie = 1e-9
		found := map[int64]Hit{}
		for _, h := range got {
			found[h.Chunk] = h
		}
		for i, want := range all {
			h, ok := found[want.Chunk]
			delete(found, want.Chunk)
			switch last := all[n-1].Score; {
			case ok && (h.Doc != want.Doc || math.Abs(h.Score-want.Score) > tie || want.Score < last-tie):
				t.Fatalf("%+v: found %+v as one of %d, reading gives %+v in place %d", terms, h, n, want, i+1)
			case !ok && want.Score > last+tie:
				t.Fatalf("%+v: %+v is not found, in place %d of %d", terms, want, i+1, n)
			}
		}
		if len(found) > 0 {
			t.Fatalf("%+v: found where reading finds nothing: %v", terms, found)
		}
		for i := 1; i < len(got); i++ {
			if got[i].Score > got[i-1].Score {
				t.Fatalf("hits out of order: %v", got)
			}
		}
	})
}

// A score must not depend on history to the last bit, or ties would.
func TestScoresAreTheSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := drawLibrary(t)
		terms := []Term{{"appl", "apples", 1}, {"run", "", 0.3}, {"fig", "fig", 1.7}}
		a, errA := NewView(l.parts(t)).Search(context.Background(), terms, 10, nil)
		b, errB := NewView(l.parts(t)).Search(context.Background(), terms, 10, nil)
		if errA != nil || errB != nil || !slices.Equal(a, b) {
			t.Fatalf("%v %v\n%v %v", a, errA, b, errB)
		}
	})
}

func TestNumbersMakeNoTextLonger(t *testing.T) {
	v := NewView([]Part{{Segment: parse(t, build(Document{Chunks: []string{"apple fig", "apple fig 1 22 333 4444"}}, Document{Chunks: []string{"plum", "pear"}}))}})
	hits, err := v.Search(t.Context(), Terms("apple"), 2, nil)
	if err != nil || len(hits) != 2 || hits[0].Score != hits[1].Score {
		t.Errorf("hits %v (%v), want two of one score", hits, err)
	}
	if hits, err := v.Search(t.Context(), Terms("333"), 2, nil); err != nil || len(hits) != 1 {
		t.Errorf("hits %v (%v), want the number found", hits, err)
	}
}

func TestAllow(t *testing.T) {
	v := NewView([]Part{{Segment: parse(t, build(
		Document{Chunks: []string{"apple", "apple apple"}}, Document{Chunks: []string{"apple pear"}}, Document{Chunks: []string{"fig"}}))}})
	hits, err := v.Search(t.Context(), Terms("apple"), 1, func(doc int64) bool { return doc != 0 })
	if err != nil || len(hits) != 1 || hits[0].Doc != 2 {
		t.Errorf("hits %v (%v), want the second document alone", hits, err)
	}
	rare, errRare := v.IDF("fig")
	common, errCommon := v.IDF("appl")
	if errRare != nil || errCommon != nil || rare <= common {
		t.Errorf("idf of one chunk %v (%v), of three %v (%v)", rare, errRare, common, errCommon)
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	v := NewView([]Part{{Segment: parse(t, build(Document{Chunks: []string{"apple"}}))}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Search(ctx, Terms("apple"), 1, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestBytesDependOnDocumentsAlone(t *testing.T) {
	docs := []Document{{Title: "Apples", Chunks: []string{"apple pear", "fig"}}, {Path: "a/b", Chunks: []string{"quince covid-19 東京"}}}
	one := build(docs...)
	for range 5 {
		if !bytes.Equal(one, build(docs...)) {
			t.Fatal("the same documents gave other bytes")
		}
	}
	merged, chunks, err := Merge([]Part{{Segment: parse(t, build(docs[0]))}, {Segment: parse(t, build(docs[1])), Base: 2}})
	if err != nil || chunks != 3 || !bytes.Equal(one, merged) {
		t.Errorf("merged segments differ from one made at once (%v)", err)
	}
}

func TestDamageIsFound(t *testing.T) {
	data := build(Document{Title: "Apples", Chunks: []string{"apple pear", "fig"}})
	for i := range data {
		bad := slices.Clone(data)
		bad[i] ^= 0x40
		if _, err := Parse(bad); !errors.Is(err, ErrDamaged) {
			t.Fatalf("byte %d changed gave %v", i, err)
		}
		if _, err := Parse(data[:i]); !errors.Is(err, ErrDamaged) {
			t.Fatalf("cut to %d bytes gave %v", i, err)
		}
	}
}

// A document has chunks and numbers of its own, or their reader goes astray.
func TestDocumentsMakeSense(t *testing.T) {
	for name, docs := range map[string][]doc{
		"without chunks":         {{number: 0, chunks: 2}, {number: 2, chunks: 0}},
		"beyond the last number": {{number: 1<<32 - 1, chunks: 2}},
		"before the one before":  {{number: 8, chunks: 1}, {number: 4, chunks: 1}},
	} {
		if _, err := Parse(newWriter(docs, []uint32{3, 4}).bytes()); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A search that fails leaves nothing behind for the next one, which gets its memory.
func TestFailedSearchLeavesNothing(t *testing.T) {
	sound, broken := parse(t, build(Document{Chunks: []string{"apple"}})), parse(t, build(Document{Chunks: []string{"apple"}}))
	broken.posts[0] = 0xff
	v := NewView([]Part{{Segment: sound}, {Segment: broken, Base: 1}})
	s := v.pool.New().(*scratch)
	if err := v.match(s, Terms("apple")[0]); !errors.Is(err, ErrDamaged) {
		t.Fatalf("got %v", err)
	}
	if slices.ContainsFunc(s.counts, func(n float64) bool { return n != 0 }) {
		t.Errorf("counts %v are left", s.counts)
	}
}

// What is wrong although its sum is right may find anything or fail, but not panic.
func TestNoBytesPanic(t *testing.T) {
	var docs []Document
	for i := range 60 {
		docs = append(docs, Document{Title: "Apples", Chunks: []string{fmt.Sprintf("apple word%d pear fig%d", i, i*7), "fig fig"}})
	}
	data := build(docs...)
	rapid.Check(t, func(t *rapid.T) {
		bad := slices.Clone(data)
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			bad[rapid.IntRange(4, len(bad)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		binary.LittleEndian.PutUint32(bad, crc32.Checksum(bad[4:], castagnoli))
		s, err := Parse(bad)
		if err != nil {
			return
		}
		v := NewView([]Part{{Segment: s}})
		for _, w := range []string{"apple", "word7", "fig", "zzz", "aaa"} {
			if _, err := v.Search(context.Background(), Terms(w), 5, nil); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
		}
		if _, _, err := Merge([]Part{{Segment: s, Live: []int64{2, 118}}, {Segment: s, Base: 1 << 20}}); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
	})
}
