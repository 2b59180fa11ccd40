package local

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search/searchtest"
)

// bags is an embedder that takes a text for a bag of words: two texts are as near as
// they share words. It may hold that one word means another, "" nothing.
type bags struct {
	means map[string]string
	err   error

	mu    sync.Mutex
	texts []string // that were asked for
}

func (b *bags) ID() string { return "bags/1" }

func (b *bags) Embed(_ context.Context, texts []string) ([]embed.Vector, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, texts...)
	if b.err != nil {
		return nil, b.err
	}
	out := make([]embed.Vector, len(texts))
	for i, t := range texts {
		v := make(embed.Vector, 256)
		for _, w := range strings.Fields(strings.ToLower(t)) {
			w = strings.Trim(w, ".,?#")
			if m, ok := b.means[w]; ok {
				w = m
			}
			if w == "" {
				continue
			}
			h := fnv.New32a()
			h.Write([]byte(w))
			v[h.Sum32()%256]++
		}
		length := 0.0
		for _, x := range v {
			length += float64(x * x)
		}
		for k := range v {
			v[k] /= float32(max(1, math.Sqrt(length)))
		}
		out[i] = v
	}
	return out, nil
}

// names searches and returns the files that were found, best first.
func names(t *testing.T, e search.Engine, query string, limit int) []string {
	t.Helper()
	hits, err := e.Search(t.Context(), search.Query{Text: query, Limit: limit})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for i, h := range hits {
		if !(h.Score > 0) || i > 0 && h.Score > hits[i-1].Score {
			t.Errorf("hit %d scores %v", i, h.Score)
		}
		found = append(found, path.Base(h.Locator))
	}
	return found
}

func TestEngineContractWithVectors(t *testing.T) {
	searchtest.Run(t, func(t *testing.T, docs map[string]string) search.Engine {
		fsys := fstest.MapFS{}
		for name, text := range docs {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		f := fetch.EmbeddedFolder("test library", "embedded", fsys)
		ix := open(t, "")
		update(t, ix, f, newCounter(t))
		return ix.Engine(&bags{}, f)
	})
}

func TestMeaningDecides(t *testing.T) {
	f := tree(t,
		"words.txt", "Car price. Sand, sea, sun, beach, waves, wind, holiday, shells, boats, nets, gulls, rocks, tide, moon, stars, sails.",
		"meaning.txt", "Automobile costs, price of automobile, automobile costs.",
		"none.txt", "Roses need sun.")
	ix := open(t, "")
	update(t, ix, f, newCounter(t))
	e := &bags{means: map[string]string{"automobile": "car", "costs": "price", "a": "", "of": ""}}
	words, meaning := ix.Engine(nil, f), ix.Engine(e, f)
	equal(t, "by words", names(t, words, "price of a car", 5), []string{"words.txt", "meaning.txt"})
	for i := range 10 {
		equal(t, fmt.Sprintf("by meaning too, time %d", i), names(t, meaning, "price of a car", 5), []string{"meaning.txt", "words.txt"})
	}
}

// In a small library a text is found that has no word of the query.
func TestMeaningFinds(t *testing.T) {
	f := tree(t, "pets.txt", "Hounds are welcome.", "rooms.txt", "Rooms are let by the hour.")
	ix := open(t, "")
	update(t, ix, f, newCounter(t))
	e := &bags{means: map[string]string{"hounds": "dog"}}
	equal(t, "by words", len(names(t, ix.Engine(nil, f), "dog", 5)), 0)
	equal(t, "by meaning", names(t, ix.Engine(e, f), "dog", 5), []string{"pets.txt"})
}

// library is n files about one thing, each with a word of its own.
func library(t *testing.T, n int) (*Index, *fetch.Folder) {
	t.Helper()
	var files []string
	for i := range n {
		files = append(files, fmt.Sprintf("f%03d.txt", i), fmt.Sprintf("Beetles number%d live in trees%s.", i, strings.Repeat(" and in bark", i%7)))
	}
	f, ix := tree(t, files...), open(t, "")
	update(t, ix, f, newCounter(t))
	return ix, f
}

func TestFewTextsAreEmbedded(t *testing.T) {
	ix, f := library(t, 200)
	e := &bags{}
	equal(t, "hits", len(names(t, ix.Engine(e, f), "beetles in trees", 100)), 100)
	if n := len(e.texts); n > 1+MaxTexts || n < MaxTexts/2 {
		t.Errorf("%d texts were embedded, want at most %d and the query", n, MaxTexts)
	}
	e.texts = nil
	if hits, err := ix.Engine(e, f).Search(t.Context(), search.Query{Text: "beetles in trees", Limit: 10, ByWords: true}); err != nil || len(hits) != 10 || len(e.texts) > 0 {
		t.Errorf("by words: %d hits, %d texts embedded, %v", len(hits), len(e.texts), err)
	}
}

func TestFailingEmbedder(t *testing.T) {
	ix, f := library(t, 30)
	broken := ix.Engine(&bags{err: errors.New("no such model")}, f)
	equal(t, "order by words", names(t, broken, "beetles in bark", 10), names(t, ix.Engine(nil, f), "beetles in bark", 10))

	ctx, cancel := context.WithCancel(t.Context())
	stops := stopping{&bags{err: context.Canceled}, cancel}
	_, err := ix.Engine(stops, f).Search(ctx, search.Query{Text: "beetles"})
	equal(t, "code", marchwarden.CodeOf(err), marchwarden.CodeCanceled)
}

// stopping is an embedder during which the search is given up.
type stopping struct {
	embed.Embedder
	stop func()
}

func (s stopping) Embed(ctx context.Context, texts []string) ([]embed.Vector, error) {
	s.stop()
	return s.Embedder.Embed(ctx, texts)
}

// What is asked for by its very words is found first, whatever else means the same.
func TestKnownItems(t *testing.T) {
	files := []string{
		"order.txt", "Order ZX-4471-B was shipped on 3 March to the depot in Leeds.",
		"orders.txt", "Orders are shipped within two days. Ask the depot about a shipment that is late.",
		"error.txt", "The log says E_CONN_0x80072EE7 when the name of the server cannot be resolved.",
		"errors.txt", "An error that a server cannot be reached is mostly one of the network: check cables, names and the firewall.",
		"quote.txt", "He said that the map is not the territory, and went home.",
		"maps.txt", "Maps show territories. A territory can be larger than its map shows, as every traveller knows.",
	}
	for i := range 12 {
		files = append(files, fmt.Sprintf("more%02d.txt", i), fmt.Sprintf("Shipment number %d left the server room of the depot with a map of the territory and an error in order %d.", i, 7000+i))
	}
	f, ix := tree(t, files...), open(t, "")
	update(t, ix, f, newCounter(t))
	e := ix.Engine(bert.MiniLM(), f)
	for query, want := range map[string]string{
		"ZX-4471-B":                         "order.txt",
		"When was order ZX-4471-B shipped?": "order.txt",
		"E_CONN_0x80072EE7":                 "error.txt",
		"what does E_CONN_0x80072EE7 mean":  "error.txt",
		`"the map is not the territory"`:    "quote.txt",
	} {
		equal(t, query, names(t, e, query, 3)[:1], []string{want})
	}
}
