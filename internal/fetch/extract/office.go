package extract

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// maxUnzipped bounds what is decompressed from one Word document.
const maxUnzipped = 64 << 20

// isDocx looks for the main part of a Word document in a zip archive.
func isDocx(raw []byte) bool {
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	return err == nil && zipFile(z, docxMain) != nil
}

const docxMain = "word/document.xml"

func zipFile(z *zip.Reader, name string) *zip.File {
	if i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == name }); i >= 0 {
		return z.File[i]
	}
	return nil
}

// readDocx reads the text, footnotes, links and properties of a Word document. Deleted and hidden text is left out.
func readDocx(raw []byte, maxBytes int64) (Document, error) {
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return Document{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if zipFile(z, docxMain) == nil {
		return Document{}, fmt.Errorf("%w: no %s in the archive", ErrDamaged, docxMain)
	}
	doc := Document{MediaType: fmtDocx.mediaType(), Extractor: "docx/2"}
	w := &docxWriter{max: maxBytes}
	left := int64(maxUnzipped)
	properties := func(dec *xml.Decoder) error { return docxProperties(dec, &doc) }
	links := func(dec *xml.Decoder) error { return docxLinks(dec, &doc) }
	for _, part := range []struct {
		name string
		read func(*xml.Decoder) error
	}{{docxMain, w.part}, {"word/footnotes.xml", w.part}, {"docProps/core.xml", properties}, {"word/_rels/document.xml.rels", links}} {
		if err := readPart(zipFile(z, part.name), &left, part.read); err != nil {
			return Document{}, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	doc.Text = w.out.String()
	return doc, nil
}

// readPart gives one file of the archive to read and takes what it unpacks from left. A part that is not there has nothing to say.
func readPart(f *zip.File, left *int64, read func(*xml.Decoder) error) error {
	if f == nil {
		return nil
	}
	if f.UncompressedSize64 > uint64(*left) { // what it admits to; the reader below holds it to that
		return fmt.Errorf("%w: unpacks to more than %d bytes", ErrTooLarge, maxUnzipped)
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	limited := &io.LimitedReader{R: r, N: *left + 1}
	err = read(xml.NewDecoder(limited))
	*left = limited.N - 1
	switch {
	case *left < 0:
		err = fmt.Errorf("%w: unpacks to more than %d bytes", ErrTooLarge, maxUnzipped)
	case err != nil && !errors.Is(err, ErrTooLarge):
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return errors.Join(err, r.Close())
}

// tokens calls start and end for the elements of dec and text for the characters between them.
func tokens(dec *xml.Decoder, start func(xml.StartElement), end, text func(string) error) error {
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		switch t := tok.(type) {
		case xml.StartElement:
			start(t)
		case xml.EndElement:
			err = errors.Join(err, end(t.Name.Local))
		case xml.CharData:
			err = errors.Join(err, text(string(t)))
		}
		if err != nil {
			return err
		}
	}
}

// docxWriter follows the stream of a document part: runs make paragraphs, paragraphs make cells, cells make rows.
type docxWriter struct {
	out                  strings.Builder
	max                  int64
	para                 strings.Builder
	cell, row            []string // texts of the open cell and cells of the open row of the outermost table
	inText, hidden, item bool
	tables, skipping     int
}

// skipped are elements whose text is shown elsewhere or no more.
var skipped = map[string]bool{"Fallback": true, "moveFrom": true, "del": true}

func (w *docxWriter) part(dec *xml.Decoder) error {
	return tokens(dec, w.start, w.end, func(s string) error {
		if w.inText && !w.hidden && w.skipping == 0 {
			w.para.WriteString(s)
		}
		return nil
	})
}

func (w *docxWriter) start(t xml.StartElement) {
	if skipped[t.Name.Local] {
		w.skipping++
	}
	switch t.Name.Local {
	case "t":
		w.inText = true
	case "vanish":
		w.hidden = true
	case "numPr":
		w.item = true
	case "tab":
		w.para.WriteByte(' ')
	case "br", "cr":
		w.para.WriteByte('\n')
	case "noBreakHyphen":
		w.para.WriteByte('-')
	case "tbl":
		w.tables++
	}
}

func (w *docxWriter) end(name string) error {
	if skipped[name] {
		w.skipping--
	}
	switch name {
	case "t":
		w.inText = false
	case "r":
		w.hidden = false
	case "p":
		w.paragraph()
	case "tc":
		if w.tables == 1 {
			w.row = append(w.row, strings.Join(strings.Fields(strings.Join(w.cell, " ")), " "))
			w.cell = nil
		}
	case "tr":
		if w.tables == 1 {
			w.out.WriteString(strings.Join(w.row, " | ") + "\n")
			w.row = nil
		}
	case "tbl":
		if w.tables--; w.tables == 0 {
			w.out.WriteByte('\n')
		}
	}
	if int64(w.out.Len()) > w.max {
		return fmt.Errorf("%w: text over %d bytes", ErrTooLarge, w.max)
	}
	return nil
}

// paragraph ends a paragraph: into the open cell, or out, list items on lines next to each other.
func (w *docxWriter) paragraph() {
	text := strings.TrimSpace(w.para.String())
	w.para.Reset()
	item := w.item
	w.item, w.hidden = false, false
	switch {
	case text == "":
	case w.tables > 0:
		w.cell = append(w.cell, text)
	case item:
		w.out.WriteString(text + "\n")
	default:
		w.out.WriteString("\n" + text + "\n\n")
	}
}

func nothing(string) error { return nil }

// docxProperties reads title, creator, creation date and language.
func docxProperties(dec *xml.Decoder, doc *Document) error {
	name := ""
	return tokens(dec, func(t xml.StartElement) { name = t.Name.Local }, func(string) error { name = ""; return nil }, func(s string) error {
		describe(doc, name, strings.TrimSpace(s))
		return nil
	})
}

// docxLinks reads the targets of hyperlinks, which stand outside the text.
func docxLinks(dec *xml.Decoder, doc *Document) error {
	return tokens(dec, func(t xml.StartElement) {
		if target := (&element{attrs: t.Attr}).attribute("Target"); target != "" && len(doc.Links) < 4*maxLinks {
			doc.Links = append(doc.Links, target)
		}
	}, nothing, nothing)
}

// element is a node of an XML document: an element with a name, or text without.
type element struct {
	name, text string
	attrs      []xml.Attr
	kids       []*element
}

// maxElements bounds the tree of an XML document, which takes many times the size of its text.
const maxElements = 500_000

// parseXML forgives what feeds get wrong, and refuses trees nested deeper than maxNesting or of more than maxElements. The source is UTF-8, whatever it declares.
func parseXML(src string) (*element, error) {
	dec := xml.NewDecoder(strings.NewReader(src))
	dec.Strict, dec.Entity = false, xml.HTMLEntity
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
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

// content is all text below e in one. The addresses it names go to doc, unless that is nil.
func (e *element) content(doc *Document) string {
	if href := e.attribute("href"); doc != nil && href != "" {
		doc.Links = append(doc.Links, href)
	}
	var b strings.Builder
	b.WriteString(e.text)
	for _, k := range e.kids {
		b.WriteString(k.content(doc))
	}
	return b.String()
}

func (e *element) attribute(name string) string {
	for _, a := range e.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// child is the first element of that name directly below e, or nil.
func (e *element) child(name string) *element {
	if found := e.children(name); len(found) > 0 {
		return found[0]
	}
	return nil
}

// children lists the elements of that name directly below e; "" is the name of text.
func (e *element) children(name string) []*element {
	return slices.DeleteFunc(slices.Clone(e.kids), func(k *element) bool { return k.name != name })
}

func (e *element) childText(name string) string {
	if c := e.child(name); c != nil {
		return strings.TrimSpace(c.content(nil))
	}
	return ""
}

// inner writes what is below e as HTML. Text alone is given as it is: it may be HTML that was escaped once.
func (e *element) inner() string {
	if len(e.children("")) == len(e.kids) {
		return e.content(nil)
	}
	var b strings.Builder
	for _, k := range e.kids {
		k.markupTo(&b)
	}
	return b.String()
}

func (e *element) markupTo(b *strings.Builder) {
	if e.name == "" {
		b.WriteString(html.EscapeString(e.text))
		return
	}
	b.WriteString("<" + e.name)
	for _, a := range e.attrs {
		b.WriteString(" " + a.Name.Local + `="` + html.EscapeString(a.Value) + `"`)
	}
	b.WriteString(">")
	for _, k := range e.kids {
		k.markupTo(b)
	}
	b.WriteString("</" + e.name + ">")
}

// date, author and link are what a feed or an item of it says of itself.
func (e *element) date() string {
	for _, name := range []string{"pubDate", "published", "issued", "date", "lastBuildDate", "updated", "modified"} {
		if d := parseDate(e.childText(name)); d != "" {
			return d
		}
	}
	return ""
}

func (e *element) author() string {
	for _, name := range []string{"creator", "author", "managingEditor"} {
		c := e.child(name)
		if c == nil {
			continue
		}
		if named := c.childText("name"); named != "" {
			return oneLine(named, 100)
		}
		if s := oneLine(c.content(nil), 100); s != "" && len(c.children("")) == len(c.kids) {
			return s
		}
	}
	return ""
}

// link is the address an item names for this purpose: Atom says it in attributes, RSS means the page.
func (e *element) link(rel string) string {
	for _, c := range e.children("link") {
		is, href := cmp.Or(c.attribute("rel"), "alternate"), cmp.Or(c.attribute("href"), strings.TrimSpace(c.content(nil)))
		if href = absoluteURL(nil, href); is == rel && href != "" {
			return href
		}
	}
	if id := e.childText("guid"); rel == "alternate" && isURL(id) {
		return absoluteURL(nil, id)
	}
	return ""
}
