package scholar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// crossrefWork is the part of a record that is used.
type crossrefWork struct {
	DOI    string   `json:"DOI"`
	Title  []string `json:"title"`
	Author []struct {
		Given  string `json:"given"`
		Family string `json:"family"`
		Name   string `json:"name"` // of a group
	} `json:"author"`
	Container []string      `json:"container-title"`
	Type      string        `json:"type"`
	Issued    crossrefDate  `json:"issued"`
	Abstract  string        `json:"abstract"` // JATS
	CitedBy   *int          `json:"is-referenced-by-count"`
	UpdatedBy []crossUpdate `json:"updated-by"`
	UpdateTo  []crossUpdate `json:"update-to"`
	Relation  struct {
		HasPreprint json.RawMessage `json:"has-preprint"`
	} `json:"relation"`
}

// crossUpdate is a notice about a work, seen from either side.
type crossUpdate struct {
	DOI  string `json:"DOI"`
	Type string `json:"type"`
}

// crossrefDate is a date of which the day, and the month, may be missing.
type crossrefDate struct {
	Parts [][]*int `json:"date-parts"`
}

// day is the date if it is whole, and the year.
func (d crossrefDate) day() (date string, year int) {
	if len(d.Parts) == 0 || len(d.Parts[0]) == 0 || slices.Contains(d.Parts[0], nil) {
		return "", 0
	}
	p := d.Parts[0]
	if *p[0] < 1000 || *p[0] > 9999 {
		return "", 0
	}
	if len(p) < 3 {
		return "", *p[0]
	}
	date = fmt.Sprintf("%04d-%02d-%02d", *p[0], *p[1], *p[2])
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		date = ""
	}
	return date, *p[0]
}

// inPrint are the types of works that a publisher stands behind; "posted-content"
// is a preprint.
var inPrint = []string{"journal-article", "proceedings-article", "book", "book-chapter", "monograph", "edited-book", "reference-book", "reference-entry", "book-section"}

// The kinds of notice. A paper with one of the first is taken back.
var (
	retractions = []string{"retraction", "removal", "withdrawal"}
	concerns    = []string{"expression_of_concern", "partial_retraction"}
)

// askCrossref looks a DOI up.
func (s *Service) askCrossref(ctx context.Context, about names) (Work, error) {
	var a struct {
		Message *crossrefWork `json:"message"`
	}
	query := url.Values{}
	if s.mailto != "" {
		query.Set("mailto", s.mailto)
	}
	if err := s.crossref.GetJSON(ctx, "works/"+url.PathEscape(about.doi), query, &a); err != nil {
		return Work{}, failed(err)
	}
	if a.Message == nil || !strings.EqualFold(a.Message.DOI, about.doi) {
		return Work{}, another("crossref")
	}
	return a.Message.work(), nil
}

func (c *crossrefWork) work() Work {
	w := Work{DOI: strings.ToLower(c.DOI), Citations: c.CitedBy, Abstract: plainMarkup(c.Abstract), InPrint: slices.Contains(inPrint, c.Type)}
	w.Published, w.Year = c.Issued.day()
	if len(c.Title) > 0 {
		w.Title = Line(plainMarkup(c.Title[0]), maxLine)
	}
	if len(c.Container) > 0 {
		w.Venue = Line(plainMarkup(c.Container[0]), maxLine)
	}
	var authors []string
	for _, p := range c.Author {
		authors = append(authors, strings.TrimSpace(p.Given+" "+p.Family+p.Name))
	}
	w.Authors = lines(authors, maxAuthors)
	for _, u := range c.UpdatedBy {
		retracted, concern := slices.Contains(retractions, u.Type), slices.Contains(concerns, u.Type)
		w.Retracted, w.Concern = w.Retracted || retracted, w.Concern || concern
		if id, ok := ParseID(u.DOI); ok && (retracted || concern && w.Notice == "") {
			w.Notice, w.NoticeBy = id.DOI(), Crossref
		}
	}
	for _, u := range c.UpdateTo {
		if id, ok := ParseID(u.DOI); ok && slices.Contains(retractions, u.Type) && !strings.EqualFold(u.DOI, c.DOI) {
			w.Retracts = append(w.Retracts, id.DOI())
		}
	}
	w.ArXiv = c.preprint()
	return w
}

// preprint is the arXiv id of an earlier version that the publisher names.
func (c *crossrefWork) preprint() string {
	var related []struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(c.Relation.HasPreprint, &related) != nil { // absent, or of some other shape
		return ""
	}
	for _, r := range related {
		if id, ok := ParseID(r.ID); ok && id.arxiv != "" {
			return id.arxiv
		}
	}
	return ""
}
