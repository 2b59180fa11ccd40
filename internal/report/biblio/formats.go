package biblio

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// bibtexEscapes make the characters that LaTeX takes for commands stand for
// themselves. Braces are written as commands: BibTeX counts the others, escaped or
// not. All else stays as it is, in UTF-8.
var bibtexEscapes = strings.NewReplacer(
	`\`, `{\textbackslash}`, `{`, `{\textbraceleft}`, `}`, `{\textbraceright}`, `~`, `{\textasciitilde}`, `^`, `{\textasciicircum}`,
	`&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
)

// urlEscapes are what could end a field that is otherwise written as it is.
var urlEscapes = strings.NewReplacer(`\`, "%5C", "{", "%7B", "}", "%7D", " ", "%20", `"`, "%22")

// kind is what BibTeX calls a source.
func (e Entry) kind() string {
	switch {
	case e.Journal != "":
		return "article"
	case e.URL != "" && e.DOI == "" && e.ArXiv == "":
		return "online"
	}
	return "misc"
}

// BibTeX writes entries for BibTeX and biblatex: an article where the journal is
// known, else misc for a paper, a file or data and online for a page. Text fields are
// escaped for LaTeX; doi, eprint and url are as they are, as those programs want them.
// A title is in double braces, so that styles leave its capitals alone.
func BibTeX(w io.Writer, entries []Entry) error {
	var b strings.Builder
	used := map[string]bool{}
	for i, e := range entries {
		e = e.fold()
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "@%s{%s", e.kind(), e.key(used))
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, ",\n  %s = %s", name, value)
			}
		}
		field("title", braced(braced(bibtexEscapes.Replace(e.Title))))
		field("author", braced(e.bibtexAuthors()))
		field("journal", braced(bibtexEscapes.Replace(e.Journal)))
		published, known := date(e.Published)
		for _, part := range [][2]string{{"year", "{2006}"}, {"month", "Jan"}, {"day", "{2}"}}[:known] {
			field(part[0], strings.ToLower(published.Format(part[1])))
		}
		field("organization", braced(bibtexEscapes.Replace(e.Publisher)))
		field("doi", braced(urlEscapes.Replace(e.DOI)))
		if e.ArXiv != "" {
			field("eprint", braced(urlEscapes.Replace(e.ArXiv)))
			field("archivePrefix", "{arXiv}")
		}
		field("url", braced(urlEscapes.Replace(e.URL)))
		field("howpublished", braced(bibtexEscapes.Replace(e.Locator)))
		if _, known := date(e.Accessed); known == 3 {
			field("urldate", braced(e.Accessed))
		}
		b.WriteString("\n}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func braced(s string) string {
	if s == "" {
		return ""
	}
	return "{" + s + "}"
}

// joins are the words that part names for BibTeX.
var joins = regexp.MustCompile(`(?i)(^|\s)(and|others)(\s|$)`)

// bibtexAuthors are the authors with "and" between them. What is not "family, given"
// in so many plain words is in braces, where BibTeX does not look for such.
func (e Entry) bibtexAuthors() string {
	var out []string
	for _, n := range e.Authors {
		family, given := bibtexEscapes.Replace(n.Family), bibtexEscapes.Replace(n.Given)
		plain := n.Literal == "" && given != "" && !strings.ContainsAny(family+given, `,{}\`) && !joins.MatchString(n.Family+" "+n.Given)
		if plain {
			out = append(out, family+", "+given)
		} else {
			out = append(out, braced(bibtexEscapes.Replace(n.String())))
		}
	}
	if e.MoreAuthors > 0 && len(out) > 0 {
		out = append(out, "others")
	}
	return strings.Join(out, " and ")
}
