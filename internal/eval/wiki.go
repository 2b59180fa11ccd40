package eval

import (
	"fmt"
	"strings"
)

// FreshWiki is where the articles of FreshWiki are.
const FreshWiki = "multidoc/freshwiki"

// Article is a row of FreshWiki.
type Article struct {
	Title   string    `json:"title"`
	Summary string    `json:"summary"`
	Content []Section `json:"content"`
}

// Section is a part of an article.
type Section struct {
	Title    string    `json:"section_title"`
	Content  []Stated  `json:"section_content"`
	Sections []Section `json:"subsections"`
}

// Stated is a sentence with its references.
type Stated struct {
	Sentence string `json:"sentence"`
	Refs     []any  `json:"refs"`
}

// Markdown is an article as people keep one: its title, its summary and its sections.
func (a Article) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", strings.ReplaceAll(a.Title, "_", " "))
	if a.Summary != "" {
		fmt.Fprintf(&b, "%s\n\n", a.Summary)
	}
	for _, s := range a.Content {
		s.write(&b, 2)
	}
	return b.String()
}

func (s Section) write(b *strings.Builder, level int) {
	if s.Title != "" {
		fmt.Fprintf(b, "%s %s\n\n", strings.Repeat("#", min(level, 6)), s.Title)
	}
	for _, c := range s.Content {
		fmt.Fprintf(b, "%s. ", strings.TrimRight(c.Sentence, ". "))
	}
	if len(s.Content) > 0 {
		b.WriteString("\n\n")
	}
	for _, sub := range s.Sections {
		sub.write(b, level+1)
	}
}
