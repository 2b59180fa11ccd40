package datatest

// This part reads the SQuAD2 questions that tests measure on. It is for tests
// only. The data is not part of the repository: it is read where it lies, and a
// test that finds none skips and says so.

import (
	"slices"
	"strings"
	"testing"
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
	return Rows[Article](t, "qa/squad2")
}
