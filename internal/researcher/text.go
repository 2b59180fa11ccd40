package researcher

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	marchwarden "forgejo.labbity.unbiasedgeek.com/archeious/marchwarden"
	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/scholar"
)

// standing is the authority of a paper, by the first row that holds:
//
//	retracted, removed or withdrawn                               low
//	under an expression of concern, or retracted in part          low
//	in a journal, a book or proceedings, and cited ≥ 50 times     high
//	all else: preprints, few citations, an unknown count          medium
//
// A count that no index gave is unknown and never makes a paper high.
func standing(r record) marchwarden.Authority {
	const wellCited = 50
	w := r.Work
	switch {
	case retracted(r), w != nil && w.Concern:
		return marchwarden.LowAuthority
	case w != nil && w.InPrint && w.DOI != "" && w.Citations != nil && *w.Citations >= wellCited:
		return marchwarden.HighAuthority
	}
	return marchwarden.MediumAuthority
}

func retracted(r record) bool {
	return r.Work != nil && r.Work.Retracted || r.Paper != nil && r.Paper.Withdrawn()
}

type subject struct {
	id        scholar.ID // what was read, at its version
	doi       string     // of the published version, where an index knows it
	claimed   string     // the same, by the authors' word
	title     string     // marked if it was taken back
	authors   []string
	more      int // authors beyond those
	published string
	year      int
	venue     string
	abstract  string
	origin    string // one for all versions of a paper, its arXiv id if it has one: they do not corroborate each other
}

// about joins what arXiv and the indexes say. arXiv's word goes first for what was read there.
func about(id scholar.ID, r record) subject {
	a := subject{id: id}
	if w := r.Work; w != nil {
		a.doi, a.title, a.authors, a.published, a.year, a.venue, a.abstract = w.DOI, w.Title, w.Authors, w.Published, w.Year, w.Venue, w.Abstract
		if preprint, ok := scholar.ParseID(w.ArXiv); ok {
			a.origin = preprint.Work().Locator()
		}
	}
	if p := r.Paper; p != nil {
		a.id, a.title, a.authors, a.more = p.ID, p.Title, p.Authors, p.More
		a.claimed = p.DOI
		a.published, a.venue, a.abstract = cmp.Or(p.Published, a.published), cmp.Or(p.Journal, a.venue), cmp.Or(p.Summary, a.abstract)
	}
	if a.id.ArXiv() != "" {
		a.origin = a.id.Work().Locator()
	}
	a.origin = cmp.Or(a.origin, a.id.Locator())
	a.title = cmp.Or(a.title, a.id.Locator())
	if retracted(r) {
		a.title = scholar.MarkRetracted(a.title)
	}
	return a
}

func (a subject) byline() string {
	const most = 10
	shown := a.authors[:min(len(a.authors), most)]
	line := strings.Join(shown, ", ")
	if more := len(a.authors) - len(shown) + a.more; more > 0 && line != "" {
		line += fmt.Sprintf(" and %d more", more)
	}
	return line
}

// compose writes the document that is read and cited: notices, what is known of the paper, the abstract, the full
// text. The same record and full text give the same bytes.
func compose(a subject, r record, body string) string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n\n", args...) }
	notices(a, r, say)
	say("# %s", a.title)
	if by := a.byline(); by != "" {
		say("Authors: %s.", by)
	}
	say("Published: %s.", dateOf(a, r))
	if a.venue != "" {
		say("Published in: %s.", strings.TrimSuffix(a.venue, "."))
	}
	say("Identifiers: %s.", identifiers(a))
	if p := r.Paper; p != nil && len(p.Categories) > 0 {
		say("Subjects: %s.", strings.Join(p.Categories, ", "))
	}
	if p := r.Paper; p != nil && p.Comment != "" {
		say("Comment of the authors: %s.", strings.TrimSuffix(p.Comment, "."))
	}
	known(r, say)
	if r.Full != nil {
		say("Full text: read from %s.", r.Full.URL)
	} else {
		say("Full text: not read, %s.", cmp.Or(r.FullFault, "no free copy is known"))
	}
	if a.abstract != "" {
		say("## Abstract\n\n%s", a.abstract)
	}
	if body != "" {
		say("## Full text\n\n%s", strings.TrimSpace(body))
	}
	return strings.TrimSpace(b.String()) + "\n"
}

// notices writes what a reader must know first.
func notices(a subject, r record, say func(string, ...any)) {
	w := r.Work
	switch {
	case r.Paper != nil && r.Paper.Withdrawn():
		say("RETRACTED: this paper was withdrawn from arXiv.")
	case retracted(r):
		say("RETRACTED: this paper was taken back, says %s%s.", cmp.Or(w.NoticeBy, "the publisher in its title"), noticeAt(w))
	case w != nil && w.Concern:
		say("EXPRESSION OF CONCERN: doubts about this paper were published, says %s%s.", cmp.Or(w.NoticeBy, scholar.Crossref), noticeAt(w))
	}
	if w != nil && len(w.Retracts) > 0 {
		say("RETRACTION NOTICE: this document takes back doi:%s.", strings.Join(w.Retracts, ", doi:"))
	}
}

func noticeAt(w *scholar.Work) string {
	if w.Notice == "" {
		return ""
	}
	return " (notice doi:" + w.Notice + ")"
}

func dateOf(a subject, r record) string {
	date := a.published
	if date == "" && a.year > 0 {
		date = strconv.Itoa(a.year)
	}
	date = cmp.Or(date, "date unknown")
	if p := r.Paper; p != nil && p.ID.Version() > 1 && p.Updated != "" {
		date += fmt.Sprintf("; this is version %d of %s", p.ID.Version(), p.Updated)
	}
	return date
}

func identifiers(a subject) string {
	var out []string
	if a.id.ArXiv() != "" {
		out = append(out, "arXiv:"+a.id.Versioned())
	} else if id, ok := scholar.ParseID(a.origin); ok && id.ArXiv() != "" {
		out = append(out, "arXiv:"+id.ArXiv())
	}
	switch {
	case a.doi != "":
		out = append(out, "doi:"+a.doi)
	case a.id.ArXiv() == "":
		out = append(out, a.id.Locator())
	case a.claimed != "":
		out = append(out, "and by its authors doi:"+a.claimed)
	}
	return strings.Join(out, ", ")
}

// known writes citations, retractions and who could not be asked: what is unknown is never written as none.
func known(r record, say func(string, ...any)) {
	w := r.Work
	if w == nil {
		w = &scholar.Work{}
	}
	switch {
	case w.Citations == nil:
		say("Cited by: unknown.")
	case *w.Citations == 1:
		say("Cited by: 1 work, counts %s.", w.CountedBy)
	default:
		say("Cited by: %d works, counts %s.", *w.Citations, w.CountedBy)
	}
	var knowing, missing []string
	for _, asked := range w.Asked {
		switch {
		case asked.Code != "":
			missing = append(missing, asked.Index+" ("+plain(asked.Code)+")")
		case asked.Known && asked.Index != scholar.SemanticScholar: // which has no retractions
			knowing = append(knowing, asked.Index)
		}
	}
	switch {
	case retracted(r) || w.Concern: // said above
	case len(knowing) > 0:
		say("Retraction: none known to %s.", strings.Join(knowing, " and "))
	default:
		say("Retraction: unknown.")
	}
	if r.APIFault != "" {
		missing = append([]string{"arXiv (" + plain(r.APIFault) + ")"}, missing...)
	}
	if len(missing) > 0 {
		say("Not answered by: %s.", strings.Join(missing, ", "))
	}
}

func plain(c marchwarden.Code) string {
	if c == marchwarden.CodeDenied {
		return "access was refused"
	}
	return strings.ReplaceAll(string(c), "_", " ")
}
