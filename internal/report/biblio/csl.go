package biblio

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

type cslItem struct {
	ID             string    `json:"id"`
	Type           string    `json:"type"`
	Title          string    `json:"title,omitempty"`
	Author         []cslName `json:"author,omitempty"`
	ContainerTitle string    `json:"container-title,omitempty"`
	Publisher      string    `json:"publisher,omitempty"`
	Issued         *cslDate  `json:"issued,omitempty"`
	Accessed       *cslDate  `json:"accessed,omitempty"`
	Number         string    `json:"number,omitempty"`
	DOI            string    `json:"DOI,omitempty"`
	URL            string    `json:"URL,omitempty"`
	Note           string    `json:"note,omitempty"`
}

type cslName struct {
	Family  string `json:"family,omitempty"`
	Given   string `json:"given,omitempty"`
	Literal string `json:"literal,omitempty"`
}

type cslDate struct {
	Parts [][]int `json:"date-parts"`
}

// CSL writes entries as CSL-JSON, the form of citeproc and its kin: a list of items,
// [] if there are none.
func CSL(w io.Writer, entries []Entry) error {
	items := []cslItem{}
	for _, e := range prepare(entries) {
		item := cslItem{ID: e.key, Type: e.cslType(), Title: e.Title, ContainerTitle: e.Journal, Publisher: e.Publisher,
			Issued: cslDateOf(date(e.Published)), Accessed: cslDateOf(date(e.Accessed)), DOI: e.DOI, URL: e.URL, Note: e.note()}
		if e.ArXiv != "" {
			item.Number = "arXiv:" + e.ArXiv
			if item.Publisher == "" {
				item.Publisher = "arXiv"
			}
		}
		for _, n := range e.Authors {
			item.Author = append(item.Author, cslName(n))
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

func (e keyed) cslType() string {
	switch {
	case e.Kind == Paper && e.Journal != "":
		return "article-journal"
	case e.Kind == Paper:
		return "article"
	case e.Kind == WebPage:
		return "webpage"
	case e.Kind == Dataset:
		return "dataset"
	}
	return "document"
}

func cslDateOf(d []int) *cslDate {
	if d == nil {
		return nil
	}
	return &cslDate{Parts: [][]int{d}}
}
