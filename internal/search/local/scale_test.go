package local

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch/extract"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/search"
)

// plainExtractor takes the bytes for the text.
type plainExtractor struct{}

func (plainExtractor) Extract(_ context.Context, _ string, raw []byte) (extract.Document, error) {
	return extract.Document{Text: string(raw), MediaType: "text/plain", Extractor: "plain/1"}, nil
}

// words makes text of n words whose frequencies fall as in language.
func words(r *rand.Rand, n int) string {
	zipf := rand.NewZipf(r, 1.1, 5, 50_000)
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", zipf.Uint64())
		if i%40 == 39 {
			b.WriteString("\n\n")
		}
	}
	return b.String()
}

// manyFiles is how many files TestManyFiles indexes.
var manyFiles = 20_000

func TestManyFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	r := rand.New(rand.NewPCG(1, 2))
	f := tree(t)
	manyFiles := manyFiles
	if !datatest.Full() {
		manyFiles /= 20
	}
	for i := range manyFiles {
		write(t, fmt.Sprintf("%s/d%02d/f%05d.md", f.Name, i%50, i), words(r, 20))
	}
	ix := open(t, t.TempDir()+"/index.db")
	start := time.Now()
	report := update(t, ix, f, plainExtractor{})
	t.Logf("%d files indexed in %v", report.Added, time.Since(start))
	equal(t, "added", report.Added, manyFiles)
	start = time.Now()
	report = update(t, ix, f, plainExtractor{})
	t.Logf("%d unchanged files looked at in %v", report.Unchanged, time.Since(start))
	equal(t, "unchanged", report.Unchanged, manyFiles)
}

func BenchmarkUpdateUnchanged5000(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	f := tree(b)
	for i := range 5000 {
		write(b, fmt.Sprintf("%s/d%02d/f%05d.md", f.Name, i%50, i), words(r, 100))
	}
	ix := open(b, b.TempDir()+"/index.db")
	update(b, ix, f, plainExtractor{})
	for b.Loop() {
		if report := update(b, ix, f, plainExtractor{}); report.Unchanged != 5000 {
			b.Fatal(report)
		}
	}
}

// BenchmarkSearch100kChunks reports the median and the 95th percentile of a
// search of four words in 100,000 chunks of 150 words.
func BenchmarkSearch100kChunks(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	fsys := fstest.MapFS{}
	for i := range 1000 {
		var text strings.Builder
		for range 100 {
			text.WriteString(strings.ReplaceAll(words(r, 150), "\n\n", "") + "\n\n")
		}
		fsys[fmt.Sprintf("f%04d.md", i)] = &fstest.MapFile{Data: []byte(text.String())}
	}
	f := fetch.EmbeddedFolder("many", "embedded", fsys)
	ix := open(b, b.TempDir()+"/index.db")
	start := time.Now()
	update(b, ix, f, plainExtractor{})
	infos, err := ix.Folders(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d chunks, %d MB indexed in %v", infos[0].Chunks, infos[0].Bytes>>20, time.Since(start))
	e := ix.Engine(nil, f)
	var took []time.Duration
	for b.Loop() {
		q := fmt.Sprintf("w%d w%d w%d w%d", 20+r.IntN(200), 100+r.IntN(2000), 200+r.IntN(5000), 1000+r.IntN(20000))
		start := time.Now()
		if _, err := e.Search(b.Context(), search.Query{Text: q, Limit: 10}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
