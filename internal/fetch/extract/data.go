package extract

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
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
func readTable(s source, doc *Document) error {
	src := s.text()
	if s.lines.of(src); s.lines != nil && !strings.Contains(src, "\n") {
		s.lines.lost = true // the reader of rows knows no other line end
	}
	r := csv.NewReader(strings.NewReader(src))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if r.Comma = '\t'; s.format == fmtCSV {
		r.Comma = separator(src)
	}
	doc.Links = linksInText(src)
	var header []string
	var out strings.Builder
	at := headerRow(src, r.Comma)
	for n := 0; ; n++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if n == at {
			for _, h := range row {
				header = append(header, columnName(h))
			}
			continue
		}
		writeRow(&out, header, row, func(cell, below int) {
			line, _ := r.FieldPos(cell)
			s.lines.mark(out.Len(), line+below)
		})
		if err := s.tooLong(out.Len()); err != nil {
			return err
		}
	}
	if out.Len() == 0 {
		out.WriteString(strings.Join(header, "; "))
	}
	doc.Text = out.String()
	return nil
}

// columnName is the name of a column without a sign: "# id" would make a heading of every row.
func columnName(cell string) string { return strings.TrimLeft(oneLine(cell, 200), "# ") }

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

// quotedCell is a cell in which separators and ends of lines are text.
var quotedCell = regexp.MustCompile(`(?m)(^|[,;\t|])"(?:[^"]|"")*"`)

// headRows is how many rows tell what a table looks like.
const headRows = 20

// separator is the candidate that stands in most of the first lines, and of two such the one that the
// first line has more of: a remark above the table does not decide alone. It is a comma when none does.
func separator(src string) rune {
	head := quotedCell.ReplaceAllString(src[:min(len(src), 64<<10)], "$1")
	lines := strings.SplitN(head, "\n", headRows+1)
	lines = lines[:min(len(lines), headRows)]
	best, most, inFirst := ',', 0, 0
	for _, c := range ",;\t|" {
		has := 0
		for _, line := range lines {
			if strings.ContainsRune(line, c) {
				has++
			}
		}
		if first := strings.Count(lines[0], string(c)); has > most || has == most && first > inFirst {
			best, most, inFirst = c, has, first
		}
	}
	return best
}

// headerRow is headerOf the first rows of a table.
func headerRow(src string, comma rune) int {
	r := csv.NewReader(strings.NewReader(src))
	r.LazyQuotes, r.FieldsPerRecord, r.Comma = true, -1, comma
	var rows [][]string
	for len(rows) < headRows {
		row, err := r.Read()
		if err != nil {
			break
		}
		rows = append(rows, row)
	}
	return headerOf(rows)
}

// headerOf is which row names the columns, or -1: the first that is as wide as most
// of the rows after it and could be names. Where the rows are ragged, it is the first with several
// cells that few of them are wider than. What stands above it is a title or a remark.
func headerOf(rows [][]string) int {
	widths := map[int]int{}
	for _, row := range rows {
		widths[len(row)]++
	}
	i := slices.IndexFunc(rows, func(row []string) bool { return 2*widths[len(row)] > len(rows) || len(rows) < 3 })
	if i < 0 {
		i = slices.IndexFunc(rows, func(row []string) bool {
			wider := 0
			for width, times := range widths {
				if width > len(row) {
					wider += times
				}
			}
			return len(row) > 1 && 4*wider <= len(rows)
		})
	}
	if i >= 0 && slices.ContainsFunc(rows[i], isNumber) {
		return -1
	}
	return i
}

func isNumber(cell string) bool {
	_, err := strconv.ParseFloat(strings.TrimSpace(cell), 64)
	return err == nil
}

// readXML gives the text of XML, of feeds too: what stands between tags, in paragraphs where more than
// one tag stands between two texts, and else in line. HTML that is carried in escaped form is read as
// such. What is not XML loses its tags only.
func readXML(s source, doc *Document) error {
	src := s.text()
	doc.Links = linksInText(src)
	dec := xml.NewDecoder(strings.NewReader(src))
	dec.Strict, dec.Entity = false, xml.HTMLEntity
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // it is UTF-8, whatever it declares
	var out strings.Builder
	name, tags := "", 0
	write := func(text string) error {
		switch {
		case strings.TrimSpace(text) == "":
			return nil
		case strings.Contains(text, "</") || strings.Contains(text, "/>"):
			var links []string
			text, links = htmlFragment(text)
			doc.Links = append(doc.Links, links...)
		}
		if name == "title" {
			describe(doc, name, text)
		}
		if tags > 1 {
			out.WriteString("\n\n")
		}
		tags = 0
		out.WriteString(text)
		return nil
	}
	enter := func(t xml.StartElement) bool { name = t.Name.Local; tags++; return true }
	if err := (markup{enter, func(string) error { name = ""; tags++; return nil }, write}).read(dec); err != nil {
		doc.Text, doc.Title = htmlTokens(src)
		return nil
	}
	doc.Text = out.String()
	return nil
}

// maxJSONDepth bounds nesting; deeper input is read as plain text.
const maxJSONDepth = 200

// rowBytes is how long a record may be to be one row: a few passages. What is longer holds running text.
const rowBytes = 2000

// readJSON writes one line "path: value" for each value, in document order. An object in a list is a row, "key: value; key: value.", as those of a table are, and so
// is each of JSON lines; one over rowBytes is a block of lines. What is not JSON is plain text.
func readJSON(s source, doc *Document) error {
	src := s.text()
	doc.Links = linksInText(src)
	w := jsonWriter{source: s, dec: json.NewDecoder(strings.NewReader(src)), doc: doc}
	if first, rest, _ := strings.Cut(strings.TrimSpace(src), "\n"); rest != "" && json.Valid([]byte(first)) { // the first of several lines is a value by itself
		w.rows, doc.Extractor = true, "jsonl/1"
	}
	s.lines.of(src)
	w.dec.UseNumber()
	for {
		err := w.value("", 0)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, ErrTooLarge) {
			return err
		}
		if err != nil {
			*doc = Document{MediaType: textMedia, Extractor: textExtractor}
			return readText(s, doc)
		}
		w.end()
	}
	doc.Text = w.out.String()
	return nil
}

type jsonWriter struct {
	source
	dec    *json.Decoder
	out    strings.Builder
	doc    *Document
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
		var at string
		if delim == '[' {
			at = path + "[" + strconv.Itoa(i) + "]"
		} else {
			key, err := w.dec.Token()
			if err != nil {
				return errJSON
			}
			if at, _ = key.(string); path != "" { // a key is nothing else
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
	switch tok := tok.(type) {
	case nil:
	case string:
		value = strings.TrimSpace(tok)
	default:
		value = fmt.Sprint(tok)
	}
	if value == "" {
		return nil
	}
	size := len(path) + len(value)
	if err := w.tooLong(w.out.Len() + w.length + size); err != nil {
		return err
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
