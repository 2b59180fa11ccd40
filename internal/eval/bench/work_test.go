package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/embed/bert"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/lexicon"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/trace"
)

// megabyte is about a megabyte of paragraphs.
func megabyte() string {
	p := newProse(4)
	var b strings.Builder
	for b.Len() < 1<<20 {
		b.WriteString(p.passage(60) + "\n\n")
	}
	return b.String()
}

// splitting measures whole sentences in passages beside cutting every 480 bytes.
func splitting(testing.TB) []result {
	text := megabyte()
	var parts []string
	return rates("splitting a page into passages of whole sentences", "MB/s", float64(len(text))/1e6, 10,
		side{"", func() { evidence.Split(text) }},
		side{"a cut every 480 characters, in the middle of words", func() {
			parts = nil
			for runes := []rune(text); len(runes) > 0; {
				n := min(len(runes), evidence.MaxPassageChars)
				parts = append(parts, string(runes[:n]))
				runes = runes[n:]
			}
		}})
}

// locating measures finding a quote whatever its quotation marks and white space,
// beside finding the very bytes, and beside folding both sides as a whole.
func locating(t testing.TB) []result {
	text := strings.ReplaceAll(megabyte(), ". ", ".’ ")
	quote := evidence.Fold(text[len(text)-400 : len(text)-200])
	if _, ok := evidence.Locate(text, quote); !ok {
		t.Fatal("the quote is not found")
	}
	if strings.Contains(text, quote) {
		t.Fatal("the quote is there byte for byte, which a plain search would find")
	}
	return rates("locating a quote in a page, typography folded", "MB/s", float64(len(text))/1e6, 10,
		side{"", func() { evidence.Locate(text, quote) }},
		side{"strings.Index, which does not find it", func() { _ = strings.Index(text, quote) }},
		side{"both sides folded, then strings.Index, which does not tell where", func() { _ = strings.Index(evidence.Fold(text), evidence.Fold(quote)) }})
}

// packing measures choosing what a model is shown, beside showing the first 3,000
// characters of every page: how much of what was asked for is among it.
func packing(t testing.TB) []result {
	p := newProse(5)
	const pages, allowance = 20, 20 * 3000 / 4
	set := &evidence.Set{}
	var texts, needles []string
	for i := range pages {
		var parts []string
		for range 40 {
			parts = append(parts, p.passage(60))
		}
		needle := fmt.Sprintf("The zanzibar gauge of station %d showed %d metres.", i, 100+i)
		parts[p.r.IntN(len(parts))] += " " + needle
		text := strings.Join(parts, "\n\n")
		set.Add(fetch.Page{Locator: fmt.Sprintf("file:%d", i), Title: fmt.Sprintf("Page %d", i)}, text)
		texts, needles = append(texts, text), append(needles, needle)
	}
	query := [][]string{lexicon.Terms("What did the zanzibar gauge of the station show?")}
	held := func(shown string) float64 {
		n := 0
		for _, s := range needles {
			if strings.Contains(shown, s) {
				n++
			}
		}
		return float64(n) / pages
	}
	price := func(p evidence.Passage, _ bool) int { return lexicon.EstimateTokens(p.Text) + 8 }
	var ours, first strings.Builder
	for _, s := range evidence.PackFor(set, query, allowance, price) {
		ours.WriteString(s.Text + "\n")
	}
	for _, text := range texts {
		first.WriteString(text[:min(len(text), 3000)] + "\n")
	}
	a, b := held(ours.String()), held(first.String())
	if b == 0 || ours.Len() == 0 {
		t.Fatalf("held %v and %v", a, b)
	}
	const name = "the first 3,000 characters of each"
	return append([]result{{"what was asked for, among what a model is shown of 20 pages, for as many tokens", fmt.Sprintf("%.0f %%", 100*a), name, fmt.Sprintf("%.0f %%", 100*b), a / b}},
		times("choosing it", 10, side{"", func() { evidence.PackFor(set, query, allowance, price) }},
			side{name, func() {
				for _, text := range texts {
					_ = strings.Clone(text[:min(len(text), 3000)])
				}
			}})...)
}

// tracing measures reading a record back, every line checked, beside decoding the
// same lines into maps; and appending a line that outlasts a crash, beside the
// least that any program can do for that.
func tracing(t testing.TB) []result {
	dir, err := trace.OpenDir(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	id, err := marchwarden.ParseTraceID("01890a5d-ac96-774b-bcce-b302099a8057")
	if err != nil {
		t.Fatal(err)
	}
	w, err := dir.Create(id)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	step := func() trace.Step {
		return &trace.Message{Head: trace.Head{Decision: "look for what was asked in three ways"}, Iteration: 2,
			Queries: []string{"crops for a garden in utah", "frost dates of salt lake city", "soil of the wasatch front"}}
	}
	err = errors.Join(w.Append(&trace.Start{Format: 1, TraceID: id}), sequential(make([]int, 400), func(int) error { return w.Append(step()) }))
	if err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir.Path(), id.String()+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := os.Create(filepath.Join(t.TempDir(), "bare"))
	if err != nil {
		t.Fatal(err)
	}
	defer bare.Close()
	line := lines[bytes.LastIndexByte(lines[:len(lines)-1], '\n')+1:]
	out := rates("reading a record, every line checked", "MB/s", float64(len(lines))/1e6, 10,
		side{"", func() {
			if _, err := trace.Read(bytes.NewReader(lines)); err != nil {
				t.Fatal(err)
			}
		}},
		side{"json.Unmarshal of each line into a map, unchecked", func() {
			for sc := bufio.NewScanner(bytes.NewReader(lines)); sc.Scan(); {
				var m map[string]any
				if err := json.Unmarshal(sc.Bytes(), &m); err != nil {
					t.Fatal(err)
				}
			}
		}})
	out = append(out, times("appending a line that outlasts a crash", 50,
		side{"", func() {
			if err := w.Append(step()); err != nil {
				t.Fatal(err)
			}
		}},
		side{"one write and one sync of the same bytes", func() {
			if _, err := bare.Write(line); err != nil {
				t.Fatal(err)
			}
			if err := bare.Sync(); err != nil {
				t.Fatal(err)
			}
		}})...)
	return out
}

// embedding measures sentence vectors: the widest layer of the model by the best
// kernel of this machine beside the portable one. They give the same bits.
func embedding(testing.TB) []result {
	const rows = 128
	r := rand.New(rand.NewPCG(6, 6))
	m := &bert.Matrix{In: 384, Out: 1536, Weights: make([]byte, 384*1536), Scale: make([]float32, 1536), Bias: make([]float32, 1536)}
	for i := range m.Weights {
		m.Weights[i] = byte(r.IntN(255) - 127)
	}
	x, scale, y := make([]int16, rows*m.In), make([]float32, rows), make([]float32, rows*m.Out)
	for i := range x {
		x[i] = int16(r.IntN(2000) - 1000)
	}
	best := bert.BestKernel()
	return rates("sentence vectors, the widest layer ("+best.Name+")", "GMAC/s", rows*384*1536/1e9, 20,
		side{"", func() { best.Linear(y, x, scale, m, rows) }},
		side{"the portable kernel", func() { bert.Portable.Linear(y, x, scale, m, rows) }})
}

// vectors measures whole texts, first and again.
func vectors(t testing.TB) []result {
	e := bert.MiniLM()
	p := newProse(6)
	var texts []string
	for range 16 {
		texts = append(texts, p.passage(40))
	}
	embedAll := func(e embed.Embedder) {
		if _, err := e.Embed(t.Context(), texts); err != nil {
			t.Fatal(err)
		}
	}
	kept := embed.Cached(e, embed.OpenDiskStore(t.TempDir(), 0))
	embedAll(kept)
	return times("vectors of 16 passages, kept since the first time", 3, side{"", func() { embedAll(kept) }},
		side{"computed again", func() { embedAll(e) }})
}
