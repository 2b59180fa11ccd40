package extract

import (
	"bytes"
	"encoding/xml"
	"errors"
	"strconv"
	"strings"
)

// readDocx reads the text, footnotes, links and properties of a Word document. Deleted and hidden text is left out.
func readDocx(s source, doc *Document) error {
	a, w := s.archive, &officeWriter{source: s}
	for _, part := range []string{docxMain, "word/footnotes.xml"} {
		if err := w.part(part); err != nil {
			return err
		}
	}
	doc.Text = w.out.String()
	found, err := a.relations(docxMain)
	addLinks(doc, found)
	return errors.Join(err, a.properties("docProps/core.xml", doc, nil))
}

// addLinks adds the addresses that a part leads to, which stand outside its text.
func addLinks(doc *Document, found []relation) {
	for _, r := range found {
		if isURL(r.target) && len(doc.Links) < 4*maxLinks {
			doc.Links = append(doc.Links, r.target)
		}
	}
}

// readPptx reads the slides of a presentation that are shown, in their order, each under its number and title, with the notes of the speaker.
func readPptx(s source, doc *Document) error {
	a := s.archive
	var order []string
	err := a.elements(pptxMain, func(t xml.StartElement) {
		if t.Name.Local == "sldId" && len(order) < maxMembers {
			order = append(order, relationID(t))
		}
	})
	found, related := a.relations(pptxMain)
	if err = errors.Join(err, related); err != nil {
		return err
	}
	w := &officeWriter{source: s}
	for i, id := range order {
		begin, slide := w.out.Len(), target(found, id)
		w.title = ""
		if err := w.part(slide); err != nil {
			return err
		}
		about, err := a.relations(slide)
		title := w.title
		for _, r := range about {
			if r.kind == "notesSlide" && !w.gone {
				err = errors.Join(err, w.part(r.target))
			}
		}
		if err != nil {
			return err
		}
		addLinks(doc, about)
		w.under(begin, slideHeading(i+1, title))
	}
	doc.Text = w.out.String()
	return a.properties("docProps/core.xml", doc, nil)
}

func slideHeading(n int, title string) string {
	return strings.TrimRight("## Slide "+strconv.Itoa(n)+": "+oneLine(title, 200), ": ")
}

// relationID is the id by which an element names a relation; it may have one of its own without a prefix.
func relationID(t xml.StartElement) string {
	for _, a := range t.Attr {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}
	return ""
}

// readOpenDocument reads a text, the slides of a presentation or the sheets of a workbook in the form of LibreOffice and its kin.
func readOpenDocument(s source, doc *Document) error {
	a, locked := s.archive, false
	err := a.elements("META-INF/manifest.xml", func(t xml.StartElement) { locked = locked || t.Name.Local == "encryption-data" })
	if locked {
		return ErrEncrypted
	}
	unseen := unseenStyles{set: map[string]bool{}}
	if err = errors.Join(err, a.elements("styles.xml", unseen.see)); err != nil {
		return err
	}
	if s.format == fmtOds {
		doc.Text, err = readOds(s, &unseen)
	} else {
		w := &officeWriter{source: s, open: &unseen}
		err = w.part(openDocumentMain)
		doc.Text = w.out.String()
	}
	return errors.Join(err, a.properties("meta.xml", doc, map[string]string{"title": "title", "initial-creator": "creator", "creation-date": "created"}))
}

// unseenStyles are the styles of an OpenDocument whose text, slides, rows or sheets are not shown.
type unseenStyles struct {
	name string // the one that is described
	set  map[string]bool
}

func (u *unseenStyles) see(t xml.StartElement) {
	if t.Name.Local == "style" {
		u.name = xmlAttr(t, "name")
	}
	if display := xmlAttr(t, "display"); strings.HasSuffix(t.Name.Local, "-properties") && (display == "none" || display == "false" || xmlAttr(t, "visibility") == "hidden") {
		u.set[u.name] = true
	}
}

// hides reports an element that is not shown.
func (u *unseenStyles) hides(t xml.StartElement) bool {
	visibility := xmlAttr(t, "visibility")
	return len(u.set) > 0 && u.set[xmlAttr(t, "style-name")] || visibility == "collapse" || visibility == "filter"
}

// officeWriter follows the stream of a part: runs make paragraphs, paragraphs make cells, cells make rows. It knows the names of Word, PowerPoint and OpenDocument,
// which do not contradict each other.
type officeWriter struct {
	source
	out                  bytes.Buffer
	open                 *unseenStyles // of OpenDocument, where text stands in paragraphs; in the others it has elements of its own
	para                 strings.Builder
	cell, row            []string // texts of the open cell and cells of the open row of the outermost table
	inText, hidden, item bool
	paras, tables, level int    // that are open; the level of the open heading
	gone                 bool   // all of the part is skipped
	place, title         string // the open place of a slide; its title so far
	slides, begun, notes int    // of OpenDocument: how many there are, where the last and its notes begin
}

// skipped are elements whose text is shown elsewhere, no more, or not as text of the document.
var skipped = map[string]bool{
	"Fallback": true, "moveFrom": true, "del": true,
	"annotation": true, "tracked-changes": true, "hidden-text": true, "note-citation": true, "binary-data": true, "title": true, "desc": true,
}

// unsaid are the places of a slide that say nothing of their own.
var unsaid = map[string]bool{
	"dt": true, "ftr": true, "hdr": true, "sldNum": true, "sldImg": true, "date-time": true, "footer": true, "header": true, "page-number": true, "page": true,
}

func (w *officeWriter) part(name string) error {
	w.gone = false
	return w.archive.part(name, markup{w.enter, w.end, func(s string) error {
		switch {
		case w.hidden:
		case w.open != nil && w.paras > 0:
			w.para.WriteString(spaces.Replace(s))
		case w.inText:
			w.para.WriteString(s)
		}
		return nil
	}})
}

// spaces are ends of lines where they mean nothing.
var spaces = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

func (w *officeWriter) enter(t xml.StartElement) bool {
	name := t.Name.Local
	if w.open != nil {
		if w.open.see(t); name == "page" {
			w.slides++
		}
	}
	w.gone = w.gone || name == "sld" && xmlAttr(t, "show") == "0"
	if w.gone || skipped[name] || w.open != nil && w.open.hides(t) {
		return false
	}
	switch name {
	case "t":
		w.inText = true
	case "p", "h":
		w.paras++
		w.level, _ = strconv.Atoi(xmlAttr(t, "outline-level")) // 0 is none
	case "vanish":
		w.hidden = true
	case "numPr", "list-item":
		w.item = true
	case "tab", "s":
		w.para.WriteByte(' ')
	case "br", "cr", "line-break":
		w.para.WriteByte('\n')
	case "noBreakHyphen":
		w.para.WriteByte('-')
	case "note-body":
		w.para.WriteString(" (")
	case "tbl", "table":
		w.tables++
	case "ph":
		w.place = xmlAttr(t, "type")
	case "frame":
		w.place = xmlAttr(t, "class")
	case "page":
		w.begun, w.title = w.out.Len(), ""
	case "notes":
		w.notes = w.out.Len()
	}
	return true
}

func (w *officeWriter) end(name string) error {
	switch name {
	case "t":
		w.inText = false
	case "r":
		w.hidden = false
	case "p", "h":
		if w.paras--; w.paras > 0 && w.open != nil { // of a note or a box, inside another
			w.para.WriteByte(' ')
		} else {
			w.paragraph()
		}
	case "note-body":
		w.para.WriteByte(')')
	case "tc", "table-cell":
		if w.tables == 1 {
			w.row = append(w.row, strings.Join(strings.Fields(strings.Join(w.cell, " ")), " "))
			w.cell = nil
		}
	case "tr", "table-row":
		if w.tables == 1 {
			w.out.WriteString(strings.Join(w.row, " | ") + "\n")
			w.row = nil
		}
	case "tbl", "table":
		if w.tables--; w.tables == 0 {
			w.out.WriteByte('\n')
		}
	case "sp", "frame":
		w.place = ""
	case "notes":
		w.under(w.notes, "### Speaker notes")
	case "page":
		w.under(w.begun, slideHeading(w.slides, w.title))
	}
	return w.tooLong(w.out.Len()) // headings of slides may be longer than what they are made of
}

// paragraph ends a paragraph: into the title, into the open cell, or out, list items on lines next to each other.
func (w *officeWriter) paragraph() {
	text := strings.TrimSpace(w.para.String())
	w.para.Reset()
	if w.open != nil {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		text = strings.Join(lines, "\n")
	}
	item := w.item
	w.item, w.hidden = false, false
	switch {
	case text == "", unsaid[w.place]:
	case w.tables > 0:
		w.cell = append(w.cell, text)
	case w.place == "title", w.place == "ctrTitle":
		w.title = strings.TrimSpace(w.title + " " + text)
	case w.level > 0:
		w.out.WriteString("\n" + strings.Repeat("#", min(w.level, 6)) + " " + strings.ReplaceAll(text, "\n", " ") + "\n\n")
	case item:
		w.out.WriteString(text + "\n")
	default:
		w.out.WriteString("\n" + text + "\n\n")
	}
}

// under puts what was written from begin on under a heading, which is left out where there is nothing and it has no title.
func (w *officeWriter) under(begin int, heading string) {
	body := strings.Trim(string(w.out.Bytes()[begin:]), "\n")
	w.out.Truncate(begin)
	if body != "" || strings.Contains(heading, ": ") {
		w.out.WriteString("\n\n" + heading + "\n\n" + body + "\n\n")
	}
}
