package evidence

import (
	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/blob"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/fetch"
)

// Cited is the page of a document that another researcher has read, as far as a citation of it
// tells. The text is the one stored here, with its length in bytes.
func Cited(c marchwarden.Citation, text blob.Ref, size int) fetch.Page {
	p := fetch.Page{
		Locator: c.Locator, Source: c.Source, Title: c.Title, Published: c.Published, Origin: c.Origin, Standing: c.Authority,
		Unchecked: c.Unchecked, Text: text, TextBytes: size,
	}
	if c.FetchedAt != nil {
		p.FetchedAt = *c.FetchedAt
	}
	return p
}
