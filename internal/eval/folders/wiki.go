package folders

import (
	"strings"
	"unicode"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/eval"
)

// wikiDocs are the articles as Markdown files.
func wikiDocs(data eval.Data) (eval.Docs, error) {
	list, err := eval.Rows[eval.Article](data, eval.FreshWiki)
	if err != nil {
		return nil, err
	}
	docs := eval.Docs{}
	for _, a := range list {
		name := fileName(a.Title)
		if _, twice := docs[name]; twice {
			return nil, marchwarden.Errorf(marchwarden.CodeInvalid, "two articles of %s are called %s", eval.FreshWiki, name)
		}
		docs[name] = a.Markdown()
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
