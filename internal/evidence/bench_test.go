package evidence

import (
	"fmt"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// megabyte returns about a megabyte of English-like prose in paragraphs.
func megabyte() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "In %d, Dr. Weber’s garden near the river grew %d tomatoes of kind %d, which ripened in about %d days — a record for the U.S. Southwest. "+
			"Neighbours said “it was the soil,” but nobody had measured it until 1994. The harvest was sold at $%d.50 a pound, e.g. in the market of number %d.\n\n",
			1900+i%120, i, i%17, 60+i%40, i%9, i%31)
	}
	return b.String()
}

func BenchmarkSplit(b *testing.B) {
	text := megabyte()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Split(text)
	}
}

func BenchmarkLocate(b *testing.B) {
	text := megabyte()
	quote := Fold(text[len(text)-300 : len(text)-100])
	if _, ok := Locate(text, quote); !ok {
		b.Fatal("the quote is not found")
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Locate(text, quote)
	}
}

func BenchmarkLocateManyPlaces(b *testing.B) {
	text := strings.Repeat("a", 1<<20)
	quote := strings.Repeat("a", 1<<10)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Locate("x"+text+"x", quote)
	}
}

func BenchmarkAdd(b *testing.B) {
	text := megabyte()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		var s Set
		s.Add(page("a", "A garden", text), text)
	}
}

func BenchmarkRank(b *testing.B) {
	text := megabyte()
	var s Set
	for i := 0; len(s.Passages()) < 2000; i++ {
		part := fmt.Sprintf("Part %d. %s", i, text[:100_000])
		s.Add(page(part[:10], "A garden", part), part)
	}
	query := lexicon.Terms("How many days did the tomatoes in the garden of Dr. Weber need to ripen, and who measured the soil?")
	b.ReportMetric(float64(len(s.Passages())), "passages")
	for b.Loop() {
		s.Rank(query, 20)
	}
}
