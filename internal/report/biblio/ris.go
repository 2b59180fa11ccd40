package biblio

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// RIS writes entries in the RIS form: a tag and a value on each line, lines ended by
// CR and LF, text in UTF-8. The form has no escapes and needs none: a value is what
// follows the first "  - " of its line.
func RIS(w io.Writer, entries []Entry) error {
	var b strings.Builder
	for _, e := range prepare(entries) {
		line := func(tag, value string) {
			if value != "" {
				b.WriteString(tag + "  - " + value + "\r\n")
			}
		}
		line("TY", e.risType())
		line("ID", e.key)
		line("TI", e.Title)
		for _, n := range e.Authors {
			if n.Literal == "" && n.Given != "" && !strings.Contains(n.Family+n.Given, ",") {
				line("AU", n.Family+", "+n.Given)
			} else {
				line("AU", n.String())
			}
		}
		line("JO", e.Journal)
		if d := date(e.Published); d != nil {
			line("PY", fmt.Sprintf("%04d", d[0]))
			line("DA", risDate(d))
		}
		if e.ArXiv != "" {
			line("AN", "arXiv:"+e.ArXiv)
			line("PB", cmp.Or(e.Publisher, "arXiv"))
		} else {
			line("PB", e.Publisher)
		}
		line("DO", e.DOI)
		line("UR", e.URL)
		line("Y2", risDate(date(e.Accessed)))
		line("N1", e.note())
		b.WriteString("ER  - \r\n\r\n")
	}
	return write(w, "RIS", b.String())
}

func (e keyed) risType() string {
	switch {
	case e.Kind == Paper && e.Journal != "":
		return "JOUR"
	case e.Kind == Paper && e.ArXiv != "":
		return "UNPB"
	case e.Kind == WebPage:
		return "ELEC"
	case e.Kind == Dataset:
		return "DATA"
	}
	return "GEN"
}

func risDate(d []int) string {
	if len(d) == 0 {
		return ""
	}
	parts := []string{fmt.Sprintf("%04d", d[0]), "", "", ""}
	for i, n := range d[1:] {
		parts[i+1] = fmt.Sprintf("%02d", n)
	}
	return strings.Join(parts, "/")
}
