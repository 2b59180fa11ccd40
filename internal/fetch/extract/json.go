package extract

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

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
