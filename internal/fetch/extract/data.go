package extract

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readTable writes each row of a CSV or TSV as a paragraph of its own that ends like a sentence, "header: value; header: value.", so that a row is quoted whole and by
// itself. Empty cells are left out.
func readTable(src string, s source, maxBytes int64) (Document, error) {
	f := s.format
	if s.lines.of(src); s.lines != nil && !strings.Contains(src, "\n") {
		s.lines.lost = true // the reader of rows knows no other line end
	}
	r := csv.NewReader(strings.NewReader(src))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if r.Comma = '\t'; f == fmtCSV {
		r.Comma = separator(src)
	}
	doc := Document{MediaType: f.mediaType(), Extractor: "table/4", Links: linksInText(src)}
	var header []string
	var out strings.Builder
	at := headerRow(src, r.Comma)
	for n := 0; ; n++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Document{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if n == at {
			for _, h := range row {
				header = append(header, strings.TrimLeft(oneLine(h, 200), "# ")) // "# id" would make a heading of every row
			}
			continue
		}
		writeRow(&out, header, row, func(cell, below int) {
			line, _ := r.FieldPos(cell)
			s.lines.mark(out.Len(), line+below)
		})
		if int64(out.Len()) > maxBytes {
			return Document{}, fmt.Errorf("%w: text over %d bytes", ErrTooLarge, maxBytes)
		}
	}
	if out.Len() == 0 {
		out.WriteString(strings.Join(header, "; "))
	}
	doc.Text = out.String()
	return doc, nil
}

// writeRow calls at before it writes what stands so many lines below the beginning of a cell.
func writeRow(out *strings.Builder, header, row []string, at func(cell, below int)) {
	begun := false
	for i, v := range row {
		var lead, label string
		if begun {
			lead = "; "
		}
		if i < len(header) && header[i] != "" {
			label = header[i] + ": "
		}
		for below, part := range strings.Split(v, "\n") {
			if part = strings.Join(strings.Fields(part), " "); part == "" {
				continue
			}
			out.WriteString(lead)
			at(i, below)
			out.WriteString(label + part)
			lead, label, begun = " ", "", true
		}
	}
	if begun {
		endRow(out)
	}
}

// endRow ends what was written last as a sentence and a paragraph. A row states something even if its last cell asks.
func endRow(out *strings.Builder) {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(out.String(), rowClosers))
	if !strings.ContainsRune(".!…。！", last) {
		out.WriteByte('.')
	}
	out.WriteString("\n\n")
}

// rowClosers may stand between the end of a sentence and the end of a row.
const rowClosers = `"')]}”’»`

// separator is the candidate that occurs most in the first line; a comma when none does.
func separator(src string) rune {
	line, _, _ := strings.Cut(src, "\n")
	best, most := ',', 0
	for _, c := range ",;\t|" {
		if n := strings.Count(line, string(c)); n > most {
			best, most = c, n
		}
	}
	return best
}

// headerRow is which row names the columns, or -1: the first that is as wide as most
// of the rows after it and could be names. What stands above it is a title or a remark.
func headerRow(src string, comma rune) int {
	r := csv.NewReader(strings.NewReader(src))
	r.LazyQuotes, r.FieldsPerRecord, r.Comma = true, -1, comma
	var rows [][]string
	widths := map[int]int{}
	for len(rows) < 20 {
		row, err := r.Read()
		if err != nil {
			break
		}
		rows = append(rows, row)
		widths[len(row)]++
	}
	i := slices.IndexFunc(rows, func(row []string) bool { return 2*widths[len(row)] > len(rows) || len(rows) < 3 })
	if i >= 0 && slices.ContainsFunc(rows[i], isNumber) {
		return -1
	}
	return i
}

func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return err == nil
}

// readXML gives the text of XML: a feed item by item, anything else as a paragraph for each element that holds text, elements inside running text left in line. HTML
// that is carried in escaped form is read as such. What is not XML loses its tags only.
func readXML(src string) Document {
	doc := Document{MediaType: fmtXML.mediaType(), Extractor: "xml/2"}
	root, err := parseXML(src)
	if err != nil {
		doc.Text, doc.Title = htmlTokens(src)
		return doc
	}
	if channel, items := feedOf(root); channel != nil {
		return readFeed(channel, items)
	}
	var out strings.Builder
	root.paragraphs(&out, &doc)
	doc.Text = out.String()
	return doc
}

func (e *element) paragraphs(out *strings.Builder, doc *Document) {
	if !slices.ContainsFunc(e.kids, func(k *element) bool { return strings.TrimSpace(k.text) != "" }) {
		doc.Links = append(doc.Links, e.attribute("href"))
		for _, k := range e.kids {
			k.paragraphs(out, doc)
		}
		return
	}
	text := e.content(doc)
	if strings.Contains(text, "</") || strings.Contains(text, "/>") {
		var links []string
		text, links = htmlFragment(text)
		doc.Links = append(doc.Links, links...)
	} else {
		text = strings.Join(strings.Fields(text), " ")
		doc.Links = append(doc.Links, linksInText(text)...)
	}
	if e.name == "title" || e.name == "language" {
		describe(doc, e.name, text)
	}
	out.WriteString(text + "\n\n")
}

// feedOf finds the channel and the items of RSS, RSS 1.0 and Atom, or nil.
func feedOf(root *element) (channel *element, items []*element) {
	for _, top := range root.kids {
		switch top.name {
		case "rss":
			if channel = top.child("channel"); channel != nil {
				return channel, channel.children("item")
			}
		case "RDF": // items stand beside the channel
			if channel = top.child("channel"); channel != nil {
				return channel, top.children("item")
			}
		case "feed":
			return top, top.children("entry")
		}
	}
	return nil, nil
}

// readFeed writes the name of the feed, what it says of itself, and each item: title, date with author, address, text. The text is the fullest the feed gives.
func readFeed(channel *element, items []*element) Document {
	doc := Document{MediaType: fmtXML.mediaType(), Extractor: "feed/1"}
	doc.Title = oneLine(channel.markup("title", &doc), 500)
	doc.Language = cmp.Or(oneLine(channel.childText("language"), 35), channel.attribute("lang"))
	doc.Author = channel.author()
	doc.Published = channel.date()
	doc.URL = channel.link("self")
	if home := channel.link("alternate"); home != "" {
		doc.Links = append(doc.Links, home)
	}
	var out strings.Builder
	out.WriteString(doc.Title + "\n\n" + channel.longest(&doc, "description", "subtitle", "tagline") + "\n\n")
	for _, item := range items {
		line := func(s string) {
			if s != "" {
				out.WriteString(s + "\n")
			}
		}
		line(oneLine(item.markup("title", &doc), 500))
		line(strings.Trim(item.date()+", "+item.author(), ", "))
		if link := item.link("alternate"); link != "" {
			line(link)
			doc.Links = append(doc.Links, link)
		}
		out.WriteString("\n" + item.longest(&doc, "encoded", "content", "description", "summary") + "\n\n")
	}
	doc.Text = out.String()
	return doc
}

var escapedMarkup = regexp.MustCompile(`</?[A-Za-z][^<>]*>|&#?[A-Za-z0-9]+;|<!--`)

// markup gives the text of the first child of that name, in which HTML may stand escaped or as it is, and notes its links.
func (e *element) markup(name string, doc *Document) string {
	c := e.child(name)
	if c == nil {
		return ""
	}
	src := c.inner()
	if !escapedMarkup.MatchString(src) {
		return strings.Join(strings.Fields(src), " ")
	}
	text, links := htmlFragment(src)
	doc.Links = append(doc.Links, links...)
	return text
}

func (e *element) longest(doc *Document, names ...string) string {
	best := ""
	for _, name := range names {
		if s := e.markup(name, doc); len(s) > len(best) {
			best = s
		}
	}
	return best
}
