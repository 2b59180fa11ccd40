package scholar

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// The sizes of what is taken from an entry, in characters and items.
const (
	maxSummary    = 12_000
	maxCategories = 20
	maxEntries    = 100
)

// Preprint is what arXiv says of one paper. All text is on one line and without
// control characters.
type Preprint struct {
	ID         ID       `json:"-"`  // with the version that this is
	Versioned  string   `json:"id"` // "2401.01234v2"
	Title      string   `json:"title"`
	Summary    string   `json:"summary"` // the abstract
	Authors    []string `json:"authors"`
	More       int      `json:"more_authors,omitempty"` // authors beyond those listed
	Published  string   `json:"published,omitempty"`    // of the first version, 2006-01-02
	Updated    string   `json:"updated,omitempty"`      // of this version
	DOI        string   `json:"doi,omitempty"`          // of the published version, as the authors gave it
	Journal    string   `json:"journal,omitempty"`
	Comment    string   `json:"comment,omitempty"`
	Categories []string `json:"categories,omitempty"` // the primary one first
}

var withdrawn = regexp.MustCompile(`(?i)\b(?:paper|submission|article|manuscript|preprint|work)\s+(?:has been|have been|is|was)\s+(?:\w+\s)?withdrawn\b|\bwithdrawn by (?:the )?(?:arxiv|authors?|submitter)\b|^withdrawn\b`)

// Withdrawn reports whether the authors or arXiv took the paper back, which arXiv
// says in the comment.
func (p Preprint) Withdrawn() bool { return withdrawn.MatchString(p.Comment) }

// feed is the part of an answer that is used.
type feed struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	Entries []entry  `xml:"http://www.w3.org/2005/Atom entry"`
}

type entry struct {
	ID        string `xml:"http://www.w3.org/2005/Atom id"`
	Title     string `xml:"http://www.w3.org/2005/Atom title"`
	Summary   string `xml:"http://www.w3.org/2005/Atom summary"`
	Published string `xml:"http://www.w3.org/2005/Atom published"`
	Updated   string `xml:"http://www.w3.org/2005/Atom updated"`
	Authors   []struct {
		Name string `xml:"http://www.w3.org/2005/Atom name"`
	} `xml:"http://www.w3.org/2005/Atom author"`
	Categories []term `xml:"http://www.w3.org/2005/Atom category"`
	Primary    term   `xml:"http://arxiv.org/schemas/atom primary_category"`
	DOI        string `xml:"http://arxiv.org/schemas/atom doi"`
	Journal    string `xml:"http://arxiv.org/schemas/atom journal_ref"`
	Comment    string `xml:"http://arxiv.org/schemas/atom comment"`
}

type term struct {
	Term string `xml:"term,attr"`
}

// parse reads an answer. An error that arXiv reports as an entry, with status 200,
// is CodeUnavailable; what is no feed of papers is CodeMalformed. Entities that a
// document defines for itself are not expanded: such a document is malformed.
func parse(body []byte) ([]Preprint, error) {
	var f feed
	if err := xml.Unmarshal(body, &f); err != nil {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: the answer is not the Atom feed it should be: %s", arxivName, Line(err.Error(), 160))
	}
	var papers []Preprint
	for _, e := range f.Entries[:min(len(f.Entries), maxEntries)] {
		if strings.Contains(e.ID, "/api/errors") {
			return nil, marchwarden.Errorf(marchwarden.CodeUnavailable, "%s: error: %s", arxivName, Line(e.Summary, 160))
		}
		if p, ok := e.paper(); ok {
			papers = append(papers, p)
		}
	}
	if len(papers) == 0 && len(f.Entries) > 0 {
		return nil, marchwarden.Errorf(marchwarden.CodeMalformed, "%s: none of its %d entries can be read", arxivName, len(f.Entries))
	}
	return papers, nil
}

// paper cleans an entry. It is false for one without an arXiv id or a title.
func (e entry) paper() (Preprint, bool) {
	id, ok := ParseID(e.ID)
	title := Line(e.Title, maxLine)
	if !ok || id.ArXiv() == "" || title == "" {
		return Preprint{}, false
	}
	p := Preprint{
		ID: id, Versioned: id.Versioned(), Title: title, Summary: Line(e.Summary, maxSummary),
		Published: plaintext.Date(e.Published), Updated: plaintext.Date(e.Updated),
		Journal: Line(e.Journal, maxLine), Comment: Line(e.Comment, maxLine), DOI: firstDOI(e.DOI),
	}
	for _, a := range e.Authors {
		who := Line(a.Name, 100)
		switch {
		case who == "":
		case len(p.Authors) < maxAuthors:
			p.Authors = append(p.Authors, who)
		default:
			p.More++
		}
	}
	for _, c := range append([]term{e.Primary}, e.Categories...) {
		if t := Line(c.Term, 40); t != "" && len(p.Categories) < maxCategories && !slices.Contains(p.Categories, t) {
			p.Categories = append(p.Categories, t)
		}
	}
	return p, true
}

// firstDOI is the first DOI of a field in which authors may write several, or "". The
// DOI that arXiv gives is none.
func firstDOI(s string) string {
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '\n' || r == '\t' }) {
		if id, ok := ParseID(f); ok && id.ArXiv() == "" {
			return id.DOI()
		}
	}
	return ""
}
