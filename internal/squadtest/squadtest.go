// Package squadtest reads the SQuAD2 questions that quality is measured on, and
// scores how well a number tells answerable from unanswerable. It is for tests
// only. The data is not part of the repository: it is read where it lies, and a
// test that finds none skips and says so.
package squadtest

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/datatest"
)

// Article is one article: paragraphs, each with the questions asked about it.
type Article struct {
	Title      string
	Paragraphs []struct {
		Context string
		QAs     []Question
	}
}

// Question is one question. Impossible ones have no answer in the article.
type Question struct {
	Question   string
	Answers    []string
	Impossible bool `json:"is_impossible"`
}

// Name is the title as people write it.
func (a Article) Name() string { return strings.ReplaceAll(a.Title, "_", " ") }

// HeldIn reports whether a text holds one of the question's answers.
func (q Question) HeldIn(text string) bool {
	return slices.ContainsFunc(q.Answers, func(a string) bool { return strings.Contains(text, a) })
}

// Read reads the articles; without them the test is skipped.
func Read(t *testing.T) []Article {
	t.Helper()
	return datatest.Rows[Article](t, "qa/squad2")
}

// AUROC is the chance that a random positive scores above a random negative,
// ties counting half.
func AUROC(pos, neg []float64) float64 {
	type scored struct {
		v   float64
		pos bool
	}
	var all []scored
	for _, v := range pos {
		all = append(all, scored{v, true})
	}
	for _, v := range neg {
		all = append(all, scored{v, false})
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(a.v, b.v) })
	var area, below float64
	for i := 0; i < len(all); {
		j, p, n := i, 0.0, 0.0
		for ; j < len(all) && all[j].v == all[i].v; j++ {
			if all[j].pos {
				p++
			} else {
				n++
			}
		}
		area += p * (below + n/2)
		below += n
		i = j
	}
	return area / float64(max(1, len(pos)*len(neg)))
}
