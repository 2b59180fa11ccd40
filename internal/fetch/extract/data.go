package extract

import (
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readTable writes each row of a CSV or TSV as one line, "header: value; header: value", so that a row can be quoted on its own. Empty cells are left out.
func readTable(src string, f format, maxBytes int64) (Document, error) {
	r := csv.NewReader(strings.NewReader(src))
	r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = true, -1, true
	if r.Comma = '\t'; f == fmtCSV {
		r.Comma = separator(src)
	}
	doc := Document{MediaType: f.mediaType(), Extractor: "table/1", Links: linksInText(src)}
	var header []string
	var out strings.Builder
	for first := true; ; first = false {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Document{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if first && isHeader(row) {
			for _, h := range row {
				header = append(header, oneLine(h, 200))
			}
			continue
		}
		writeRow(&out, header, row)
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

func writeRow(out *strings.Builder, header, row []string) {
	var cells []string
	for i, v := range row {
		v = strings.Join(strings.Fields(v), " ")
		if v == "" {
			continue
		}
		if i < len(header) && header[i] != "" {
			v = header[i] + ": " + v
		}
		cells = append(cells, v)
	}
	if len(cells) > 0 {
		out.WriteString(strings.Join(cells, "; "))
		out.WriteByte('\n')
	}
}

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

// isHeader takes the first row for names unless one of its cells is a number.
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

// readJSON writes one line "path: value" for each value, in document order; several values in a row (NDJSON) are apart by a blank line. What is not JSON is plain
// text.
func readJSON(src string, maxBytes int64) (Document, error) {
	doc := Document{MediaType: fmtJSON.mediaType(), Extractor: "json/1", Links: linksInText(src)}
	w := jsonWriter{dec: json.NewDecoder(strings.NewReader(src)), doc: &doc, max: maxBytes}
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
			return Document{Text: src, Links: doc.Links, MediaType: fmtText.mediaType(), Extractor: "text/1"}, nil
		}
		w.out.WriteByte('\n')
	}
	doc.Text = w.out.String()
	return doc, nil
}

type jsonWriter struct {
	dec *json.Decoder
	out strings.Builder
	doc *Document
	max int64
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
	if int64(w.out.Len()+len(path)+len(value)) > w.max {
		return fmt.Errorf("%w: text over %d bytes", ErrTooLarge, w.max)
	}
	if path != "" {
		w.out.WriteString(path + ": ")
	}
	w.out.WriteString(value + "\n")
	if depth == 1 {
		describe(w.doc, strings.ToLower(path), value)
	}
	return nil
}

// describe takes a field of the outermost object, or an element of a Word document's properties, for metadata; the first of a name counts.
func describe(doc *Document, name, value string) {
	var field *string
	switch name {
	case "title":
		field = &doc.Title
	case "author", "creator":
		field = &doc.Author
	case "date", "published", "published_at", "created":
		field = &doc.Published
	case "url":
		field = &doc.URL
	case "language", "lang":
		field = &doc.Language
	default:
		return
	}
	if *field == "" {
		*field = value
	}
}

// element is a node of an XML document: an element with a name, or text without.
type element struct {
	name, text string
	attrs      []xml.Attr
	kids       []*element
}

// maxElements bounds the tree of an XML document, which takes many times the size of its text.
const maxElements = 500_000

// lenientXML returns a decoder that forgives what feeds get wrong. Its input is UTF-8 already, whatever it declares.
func lenientXML(r io.Reader) *xml.Decoder {
	dec := xml.NewDecoder(r)
	dec.Strict, dec.Entity = false, xml.HTMLEntity
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	return dec
}

// parseXML refuses trees nested deeper than maxNesting or of more than maxElements.
func parseXML(r io.Reader) (*element, error) {
	dec := lenientXML(r)
	stack := []*element{{}}
	for count := 0; ; count++ {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return stack[0], nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		top := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			if len(stack) > maxNesting || count > maxElements {
				return nil, fmt.Errorf("%w: over %d levels or %d elements", ErrTooLarge, maxNesting, maxElements)
			}
			e := &element{name: t.Name.Local, attrs: t.Copy().Attr}
			top.kids = append(top.kids, e)
			stack = append(stack, e)
		case xml.EndElement:
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
		case xml.CharData:
			top.kids = append(top.kids, &element{text: string(t)})
		}
	}
}

// readXML gives the text of XML and feeds: a paragraph for each element that holds text, elements inside running text left in line. HTML that a feed carries in
// escaped form is read as such. What is not XML loses its tags only.
func readXML(src string) Document {
	doc := Document{MediaType: fmtXML.mediaType(), Extractor: "xml/1"}
	root, err := parseXML(strings.NewReader(src))
	if err != nil {
		doc.Text, doc.Title = htmlTokens(src)
		return doc
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

func (e *element) content(doc *Document) string {
	e.attribute("href", func(v string) { doc.Links = append(doc.Links, v) })
	var b strings.Builder
	b.WriteString(e.text)
	for _, k := range e.kids {
		b.WriteString(k.content(doc))
	}
	return b.String()
}

func (e *element) attribute(name string, use func(string)) {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			use(a.Value)
		}
	}
}
