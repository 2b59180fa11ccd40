package evidence

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
)

// plainIndex is the index as a map of all terms, which takes much memory and no
// thought: what the index says is held against it.
type plainIndex struct {
	passages []Passage
	lengths  []float64
	total    float64
	terms    map[string][]posting
}

// add takes in the passages of a document with the given title.
func (x *plainIndex) add(title string, passages []Passage) {
	if x.terms == nil {
		x.terms = make(map[string][]posting)
	}
	titleTerms := lexicon.Terms(title)
	words := make([][]string, len(passages))  // of each passage
	sentences := make([][]int, len(passages)) // which sentence each of them is in
	for i, p := range passages {
		for k, span := range p.Sentences {
			terms := lexicon.Terms(p.Text[span.Start-p.Span.Start : span.End-p.Span.Start])
			words[i] = append(words[i], terms...)
			for range terms {
				sentences[i] = append(sentences[i], min(k, 63))
			}
		}
	}
	for i, p := range passages {
		e := plainEntry{at: len(x.passages), postings: make(map[string]*posting)}
		for k, term := range words[i] {
			e.count(term, 1, true).sentences |= 1 << sentences[i][k]
		}
		e.countAll(lexicon.Terms(p.Heading), headingWeight, true)
		e.countAll(titleTerms, titleWeight, true)
		for _, near := range []int{i - 1, i + 1} {
			if near >= 0 && near < len(passages) && passages[near].Paragraph == p.Paragraph {
				e.countAll(words[near], contextWeight, false)
			}
		}
		for term, post := range e.postings {
			x.terms[term] = append(x.terms[term], *post)
		}
		x.passages = append(x.passages, p)
		x.lengths = append(x.lengths, e.length)
		x.total += e.length
	}
}

// plainEntry gathers the terms of one passage.
type plainEntry struct {
	at       int
	postings map[string]*posting
	length   float64
}

// count adds one occurrence of a term.
func (e *plainEntry) count(term string, weight float64, own bool) *posting {
	p := e.postings[term]
	if p == nil {
		p = &posting{passage: e.at}
		e.postings[term] = p
	}
	p.weight += weight
	p.own = p.own || own
	e.length += weight
	return p
}

func (e *plainEntry) countAll(terms []string, weight float64, own bool) {
	for _, term := range terms {
		e.count(term, weight, own)
	}
}

// allocated is how many bytes work allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A large text is read for its words when it is ranked, and that costs a fraction of
// what a plain index costs.
func TestALargeTextIsCheap(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		for k := range 6 {
			fmt.Fprintf(&b, "The pump of well %d delivers %d litres an hour, since it was built in Ulm. ", i%1000, k)
		}
		b.WriteString("\n\n")
	}
	set := &Set{}
	adding := allocated(func() { set.Add(fetch.Page{Locator: "a"}, b.String()) })
	split := allocated(func() { Split(b.String()) })
	ranking := allocated(func() { set.Rank(lexicon.Terms("Which well delivers 70 litres?"), 3) })
	plain := allocated(func() { (&plainIndex{}).add("", set.Sources()[0].Passages) })
	if adding > 2*split || ranking > plain/2 {
		t.Errorf("of %d bytes, adding allocates %d (splitting %d), ranking %d (a plain index %d)", b.Len(), adding, split, ranking, plain)
	}
}

// The index says of every term what a plain one says, to the last bit: a rerun ranks
// as the run did. Documents may be added between two rankings.
func TestIndexIsAsAPlainOne(t *testing.T) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(7, 12))
	words := strings.Fields("The the it Wells U.S. don't 6,000 3.5 wells' pumping pumps pumped Pump's of COVID-19 Ångström naïve 漢字 AT&T running ran v2.37 — ... a.b")
	sentence := func() string {
		var out []string
		for range 1 + dice.IntN(9) {
			out = append(out, words[dice.IntN(len(words))])
		}
		return strings.Join(out, " ") + ". "
	}
	set, plain := &Set{}, &plainIndex{}
	for n := range 12 {
		var text strings.Builder
		for range dice.IntN(12) {
			if dice.IntN(3) == 0 {
				fmt.Fprintf(&text, "## %s\n\n", strings.TrimSuffix(sentence(), ". "))
			}
			for range dice.IntN(90) {
				text.WriteString(sentence())
			}
			text.WriteString("\n\n")
		}
		title := []string{"", "Wells and pumps", "the"}[n%3]
		src, _ := set.Add(fetch.Page{Locator: fmt.Sprint(n), Title: title}, fmt.Sprint(n, ". ")+text.String())
		plain.add(title, src.Passages)
		if n%4 > 0 {
			continue
		}
		for _, term := range append(lexicon.Terms(strings.Join(words, " ")), "nowhere") {
			if got, want := set.index.postings(term), plain.terms[term]; !slices.Equal(got, want) {
				t.Fatalf("%q in %d documents: %+v, want %+v", term, n+1, got, want)
			}
		}
		if !slices.Equal(set.index.lengths, plain.lengths) || set.index.total != plain.total {
			t.Fatalf("%d documents are %v long, want %v", n+1, set.index.total, plain.total)
		}
	}
}

// Several rank one set at once, whose words none has read yet.
func TestRankAtOnce(t *testing.T) {
	for range 20 {
		var set Set
		for i := range 40 {
			set.Add(fetch.Page{Locator: fmt.Sprint(i)}, fmt.Sprintf("The pump of well %d delivers water. It was built in Ulm.\n\nNothing else is known.", i))
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if got := len(set.Rank([]string{"pump", fmt.Sprint(i)}, 0)); got != 40 || set.Holding("water") != 40 {
					t.Errorf("%d passages", got)
				}
			})
		}
		wg.Wait()
	}
}
