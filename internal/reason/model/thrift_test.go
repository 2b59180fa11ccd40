package model

import (
	"fmt"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/evidence"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/llm"
)

// TestPackingKeepsTheAnswer measures how often the passage that holds the answer
// is among those packed from four long articles, beside the beginnings of the
// articles in the same allowance. The everyday form takes one article of six.
func TestPackingKeepsTheAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("packing: measured without -short")
	}
	articles := datatest.Read(t)
	for _, c := range []struct {
		tokens int
		floor  float64
	}{{250, 0.75}, {700, 0.88}, {2500, 0.94}} {
		packed, first, n := 0, 0, 0
		for i := range articles {
			if !datatest.Tried(i, 6) {
				continue
			}
			var pages []page
			for k := range 4 {
				a := articles[(i+k)%len(articles)]
				var text strings.Builder
				for _, p := range a.Paragraphs {
					text.WriteString(p.Context + "\n\n")
				}
				pages = append(pages, page{fmt.Sprintf("https://x%d.example/", k), a.Name(), text.String(), nil})
			}
			set := setOf(pages)
			heads := clipTokens(llm.ClipBytes(pages[0].text, 3000), c.tokens)
			for j, p := range articles[i].Paragraphs {
				for k, q := range p.QAs {
					if q.Impossible || (7*j+k)%25 != 0 {
						continue
					}
					n++
					pk := newPacker(newView(nonce), set, c.tokens, evidence.MaxPassageChars)
					pk.fill(queriesOf(stateOf(q.Question, set, balanced, nil)))
					for _, ps := range pk.passages() {
						if ps.Source == 1 && strings.Contains(p.Context, ps.Text) && q.HeldIn(ps.Text) {
							packed++
							break
						}
					}
					if q.HeldIn(heads) {
						first++
					}
				}
			}
		}
		ours, theirs := float64(packed)/float64(n), float64(first)/float64(n)
		t.Logf("%d tokens: %.3f of %d answers are packed, %.3f in the first 3,000 characters", c.tokens, ours, n, theirs)
		if ours < c.floor || ours <= theirs {
			t.Errorf("%d tokens: %.3f, want %.2f", c.tokens, ours, c.floor)
		}
	}
}
