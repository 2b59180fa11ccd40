package extract

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
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
		for _, a := range t.Attr {
			if a.Name.Local == "Target" && a.Value != "" && len(doc.Links) < 4*maxLinks {
				doc.Links = append(doc.Links, a.Value)
			}
		}
	}, nothing, nothing)
}
