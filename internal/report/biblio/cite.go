package biblio

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

// Reference writes an entry on one line as IEEE has it: who, what, where, when it was published and
// when it was read, and behind all that its address, which is apart if it is of the web. What is
// not known is left out.
func (e Entry) Reference() (line, address string) {
	e = e.fold()
	at := cmp.Or(e.URL, e.Locator)
	if e.DOI != "" {
		at = "https://doi.org/" + e.DOI
	}
	where := cmp.Or(e.Journal, e.Publisher)
	if site, err := url.Parse(e.URL); err == nil && where == "" {
		where = site.Hostname()
	}
	if e.ArXiv != "" && e.Journal == "" {
		where = "arXiv:" + e.ArXiv
	}
	title := cmp.Or(e.Title, where, "Untitled")
	if title == where {
		where = ""
	}
	var said []string
	if who := e.names(); who != "" {
		said = append(said, who+",")
	}
	rest := slices.DeleteFunc([]string{where, dated(e.Published)}, func(s string) bool { return s == "" })
	if len(rest) > 0 {
		said = append(said, "“"+title+",”", stopped(strings.Join(rest, ", ")))
	} else {
		said = append(said, "“"+stopped(title)+"”")
	}
	if read := dated(e.Accessed); read != "" {
		said = append(said, "Accessed: "+read+".")
	}
	if e.URL != "" || e.DOI != "" {
		return strings.Join(append(said, "[Online]. Available:"), " "), at
	}
	if at != "" {
		said = append(said, stopped(at))
	}
	return strings.Join(said, " "), ""
}

// stopped is a text that ends a sentence.
func stopped(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// dated is a date with as much of it as is known.
func dated(s string) string {
	t, known := date(s)
	return strings.Replace(t.Format([]string{"", "2006", "Jan. 2006", "Jan. 2, 2006"}[known]), "May.", "May", 1)
}

// mostNames is how many authors are named before "et al.".
const mostNames = 6

// names are the authors, each with initials before the family name.
func (e Entry) names() string {
	var all []string
	for _, n := range e.Authors[:min(len(e.Authors), mostNames)] {
		n.Given = initials(n.Given)
		all = append(all, n.String())
	}
	switch n := len(all); {
	case n < len(e.Authors) || e.MoreAuthors > 0 && n > 0:
		return strings.Join(all, ", ") + ", et al."
	case n > 2:
		return strings.Join(all[:n-1], ", ") + ", and " + all[n-1]
	}
	return strings.Join(all, " and ")
}

func initials(given string) string {
	var out []string
	for w := range strings.FieldsSeq(given) {
		out = append(out, string([]rune(w)[:1])+".")
	}
	return strings.Join(out, " ")
}
