package folders

import (
	"fmt"
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// article is a row of FreshWiki.
type article struct {
	Title   string    `json:"title"`
	Summary string    `json:"summary"`
	Content []section `json:"content"`
}

type section struct {
	Title   string `json:"section_title"`
	Content []struct {
		Sentence string `json:"sentence"`
	} `json:"section_content"`
	Sections []section `json:"subsections"`
}

// wikiDocs are the articles as Markdown files.
func wikiDocs(data eval.Data) (eval.Docs, error) {
	list, err := eval.Rows[article](data, articles)
	if err != nil {
		return nil, err
	}
	docs := eval.Docs{}
	for _, a := range list {
		name := fileName(a.Title)
		if _, twice := docs[name]; twice {
			return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "two articles of %s are called %s", articles, name)
		}
		docs[name] = a.markdown()
	}
	return docs, nil
}

// fileName is the title of an article as a name that every file system takes.
func fileName(title string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.,()'", r) {
			return r
		}
		return '_'
	}, title) + ".md"
}

// markdown is an article as people keep one: its title, its summary and its sections.
func (a article) markdown() string {
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

func (s section) write(b *strings.Builder, level int) {
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
