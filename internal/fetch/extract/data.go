package extract

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// readTable writes each row of a CSV or TSV as a paragraph of its own that ends like a sentence, "header: value; header: value.", so that a row is quoted whole and by
// itself. Empty cells are left out.
func readTable(src string, s source, maxBytes int64) (Document, error) {
	f := s.format
	if s.lines.of(src); !strings.Contains(src, "\n") {
		s.lines.lose() // the reader of rows knows no other line end
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
	for i, row := range rows {
		if 2*widths[len(row)] > len(rows) || len(rows) < 3 {
			if isHeader(row) {
				return i
			}
			return -1
		}
	}
	return -1
}

// isHeader takes a row for names unless one of its cells is a number.
func isHeader(row []string) bool {
	for _, v := range row {
		if _, err := strconv.ParseFloat(strings.TrimSpace(v), 64); err == nil {
			return false
		}
	}
	return true
}

// maxJSONDepth bounds nesting; deeper input is read as plain text.
const maxJSONDepth = 200

// rowBytes is how long a record may be to be one row: a few passages. What is longer holds running text.
const rowBytes = 2000

// readJSON writes one line "path: value" for each value, in document order. An object in a list is a row, "key: value; key: value.", as those of a table are, and so
// is each of JSON lines; one over rowBytes is a block of lines. What is not JSON is plain text.
func readJSON(src string, lines *Lines, maxBytes int64) (Document, error) {
	doc := Document{MediaType: fmtJSON.mediaType(), Extractor: "json/3", Links: linksInText(src)}
	w := jsonWriter{dec: json.NewDecoder(strings.NewReader(src)), doc: &doc, lines: lines, max: maxBytes, rows: isJSONLines(src)}
	if w.rows {
		doc.Extractor = "jsonl/1"
	}
	lines.of(src)
	w.dec.UseNumber()
	for {
		err := w.value("", 0)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, ErrTooLarge) {
			return Document{}, err
		}
		if err != nil {
			lines.verbatim(src)
			return Document{Text: src, Links: doc.Links, MediaType: fmtText.mediaType(), Extractor: "text/2"}, nil
		}
		w.end()
	}
	doc.Text = w.out.String()
	return doc, nil
}

// isJSONLines reports whether the first line is a value by itself and others follow.
func isJSONLines(src string) bool {
	first, rest, _ := strings.Cut(strings.TrimSpace(src), "\n")
	return rest != "" && json.Valid([]byte(first))
}

type jsonWriter struct {
	dec    *json.Decoder
	out    strings.Builder
	doc    *Document
	lines  *Lines
	max    int64
	rows   bool       // what is read belongs to a row
	base   string     // path of the object that is the row
	row    []jsonLeaf // of the row that is read
	length int        // of it as text
}

// jsonLeaf is a value that holds no others.
type jsonLeaf struct {
	path, value string
	from        int // its place in the source
}

// end ends an outermost value.
func (w *jsonWriter) end() {
	asRow := w.length <= rowBytes
	for i, l := range w.row {
		if asRow {
			if l.value = strings.Join(strings.Fields(l.value), " "); i > 0 {
				w.out.WriteString("; ")
			}
		}
		w.write(l)
		if !asRow {
			w.out.WriteByte('\n')
		}
	}
	if len(w.row) > 0 && asRow {
		endRow(&w.out)
	} else {
		w.out.WriteByte('\n')
	}
	w.row, w.length = w.row[:0], 0
}

func (w *jsonWriter) write(l jsonLeaf) {
	w.lines.at(w.out.Len(), l.from) // no value but an object or a list goes over a line end
	if l.path != "" {
		w.out.WriteString(l.path + ": ")
	}
	w.out.WriteString(l.value)
}

var errJSON = errors.New("not json")

// value writes the next value. io.EOF means there is none, which is an error inside another value only.
func (w *jsonWriter) value(path string, depth int) error {
	tok, err := w.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) && depth == 0 {
			return io.EOF
		}
		return errJSON
	}
	delim, nested := tok.(json.Delim)
	if !nested {
		return w.leaf(path, tok, depth)
	}
	if delim == '{' && !w.rows && strings.HasSuffix(path, "]") {
		w.rows, w.base = true, path+"."
		w.out.WriteByte('\n')
		defer func() { w.end(); w.rows, w.base = false, "" }()
	}
	if depth >= maxJSONDepth {
		return errJSON
	}
	for i := 0; w.dec.More(); i++ {
		at := path + "[" + strconv.Itoa(i) + "]"
		if delim == '{' {
			key, err := w.dec.Token()
			if err != nil {
				return errJSON
			}
			if at = fmt.Sprint(key); path != "" {
				at = path + "." + at
			}
		}
		if err := w.value(at, depth+1); err != nil {
			return err
		}
	}
	if _, err := w.dec.Token(); err != nil {
		return errJSON
	}
	return nil
}

func (w *jsonWriter) leaf(path string, tok json.Token, depth int) error {
	value := "null"
	if tok != nil {
		value = strings.TrimSpace(fmt.Sprint(tok))
	}
	if value == "" {
		return nil
	}
	size := len(path) + len(value)
	if int64(w.out.Len()+w.length+size) > w.max {
		return fmt.Errorf("%w: text over %d bytes", ErrTooLarge, w.max)
	}
	l := jsonLeaf{strings.TrimPrefix(path, w.base), value, int(w.dec.InputOffset())}
	if w.rows { // of which none describes the document
		w.row = append(w.row, l)
		w.length += size + len(": ; ")
		return nil
	}
	w.write(l)
	w.out.WriteByte('\n')
	if depth == 1 {
		describe(w.doc, strings.ToLower(path), value)
	}
	return nil
}

// readXML gives the text of XML: a feed item by item, anything else as a paragraph for each element that holds text, elements inside running text left in line. HTML
// that is carried in escaped form is read as such. What is not XML loses its tags only.
func readXML(src string) Document {
	doc := Document{MediaType: fmtXML.mediaType(), Extractor: "xml/2"}
	root, err := parseXML(strings.NewReader(src))
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
	e.attribute("href", func(v string) { doc.Links = append(doc.Links, v) })
	running := false
	for _, k := range e.kids {
		running = running || strings.TrimSpace(k.text) != ""
	}
	if !running {
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
	doc.Language = oneLine(channel.childText("language"), 35)
	if doc.Language == "" {
		channel.attribute("lang", func(v string) { doc.Language = v })
	}
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
