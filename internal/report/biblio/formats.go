package biblio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// typeNames are what the forms call a kind of source.
type typeNames struct{ bibtex, csl string }

func (e Entry) types() typeNames {
	switch {
	case e.Kind == Paper && e.Journal != "":
		return typeNames{"article", "article-journal"}
	case e.Kind == Paper:
		return typeNames{"misc", "article"}
	case e.Kind == WebPage:
		return typeNames{"online", "webpage"}
	case e.Kind == Dataset:
		return typeNames{"misc", "dataset"}
	}
	return typeNames{"misc", "document"}
}

// BibTeX writes entries for BibTeX and biblatex: an article where the journal is
// known, else misc for a paper, a file or data and online for a page. Text fields are
// escaped for LaTeX; doi, eprint and url are as they are, as those programs want them.
// A title is in double braces, so that styles leave its capitals alone.
func BibTeX(w io.Writer, entries []Entry) error {
	var b strings.Builder
	for i, e := range prepare(entries) {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "@%s{%s", e.types().bibtex, e.key)
		field := func(name, value string) {
			if value != "" {
				fmt.Fprintf(&b, ",\n  %s = %s", name, value)
			}
		}
		field("title", braced(braced(bibtexEscapes.Replace(e.Title))))
		field("author", braced(e.bibtexAuthors()))
		field("journal", braced(bibtexEscapes.Replace(e.Journal)))
		if d := date(e.Published); d != nil {
			field("year", fmt.Sprintf("{%04d}", d[0]))
			if len(d) > 1 {
				field("month", months[d[1]-1])
			}
			if len(d) > 2 {
				field("day", fmt.Sprintf("{%d}", d[2]))
			}
		}
		field("organization", braced(bibtexEscapes.Replace(e.Publisher)))
		field("doi", braced(urlEscapes.Replace(e.DOI)))
		if e.ArXiv != "" {
			field("eprint", braced(urlEscapes.Replace(e.ArXiv)))
			field("archivePrefix", "{arXiv}")
		}
		field("url", braced(urlEscapes.Replace(e.URL)))
		field("howpublished", braced(bibtexEscapes.Replace(e.Locator)))
		if len(date(e.Accessed)) == 3 {
			field("urldate", braced(e.Accessed))
		}
		b.WriteString("\n}\n")
	}
	return write(w, "BibTeX", b.String())
}

func braced(s string) string {
	if s == "" {
		return ""
	}
	return "{" + s + "}"
}

// bibtexAuthors are the authors with "and" between them. What is not "family, given"
// in so many plain words is in braces, where BibTeX does not look for such.
func (e keyed) bibtexAuthors() string {
	var out []string
	for _, n := range e.Authors {
		family, given := bibtexEscapes.Replace(n.Family), bibtexEscapes.Replace(n.Given)
		plain := n.Literal == "" && given != "" && !strings.ContainsAny(family+given, `,{}\`) && !namesJoin(n.Family+" "+n.Given)
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

func namesJoin(name string) bool {
	for _, w := range strings.Fields(strings.ToLower(name)) {
		if w == "and" || w == "others" {
			return true
		}
	}
	return false
}

type cslItem struct {
	ID             string   `json:"id"`
	Type           string   `json:"type"`
	Title          string   `json:"title,omitempty"`
	Author         []Name   `json:"author,omitempty"`
	ContainerTitle string   `json:"container-title,omitempty"`
	Publisher      string   `json:"publisher,omitempty"`
	Issued         *cslDate `json:"issued,omitempty"`
	Accessed       *cslDate `json:"accessed,omitempty"`
	Number         string   `json:"number,omitempty"`
	DOI            string   `json:"DOI,omitempty"`
	URL            string   `json:"URL,omitempty"`
	Note           string   `json:"note,omitempty"`
}

type cslDate struct {
	Parts [][]int `json:"date-parts"`
}

// CSL writes entries as CSL-JSON, the form of citeproc and its kin: a list of items,
// [] if there are none.
func CSL(w io.Writer, entries []Entry) error {
	items := []cslItem{}
	for _, e := range prepare(entries) {
		item := cslItem{ID: e.key, Type: e.types().csl, Title: e.Title, ContainerTitle: e.Journal, Publisher: e.Publisher,
			Issued: cslDateOf(date(e.Published)), Accessed: cslDateOf(date(e.Accessed)), DOI: e.DOI, URL: e.URL, Note: e.note(), Author: e.Authors}
		if e.ArXiv != "" {
			item.Number = "arXiv:" + e.ArXiv
			if item.Publisher == "" {
				item.Publisher = "arXiv"
			}
		}
		items = append(items, item)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(items); err != nil {
		return fmt.Errorf("encode CSL-JSON: %w", err)
	}
	return write(w, "CSL-JSON", b.String())
}

func cslDateOf(d []int) *cslDate {
	if d == nil {
		return nil
	}
	return &cslDate{Parts: [][]int{d}}
}
