package report

import (
	"archive/zip"
	"bytes"
	"embed"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// docxParts are the parts of a document of Word that are the same in all of them.
//
//go:embed docx/*.xml
var docxParts embed.FS

// DOCX writes the report as a document of Word (Office Open XML): headings, lists, tables, the
// numbers of the citations, references and the excerpts. All text is text: it has no field, macro
// or picture, and its links lead to the web. Equal reports give equal bytes. It writes once.
func DOCX(w io.Writer, r *Report) error {
	d := &word{}
	v := r.View()
	d.styled("Title", text(v.Title))
	d.styled("Subtitle", text("Marchwarden research report · "+strings.Join(v.About, " · ")))
	r.print(d)
	var out bytes.Buffer
	if err := d.pack(&out, v.Title, r.StartedAt); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// word is paper.
type word struct {
	body  strings.Builder
	links []string // by their number from one
}

const (
	wordSpace = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	wordHead  = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
	wordRel   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
)

// xmlText is a text on one line for XML.
func xmlText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(plaintext.Fold(s))) // to memory
	return b.String()
}

func textRun(look, text string) string {
	if text == "" {
		return ""
	}
	return `<w:r><w:rPr>` + look + `</w:rPr><w:t xml:space="preserve">` + xmlText(text) + `</w:t></w:r>`
}

// runs are spans as runs of text.
func (d *word) runs(all []span) string {
	var b strings.Builder
	for i, s := range all {
		if i > 0 && (s.text != "" || len(s.notes) > 0) {
			b.WriteString(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
		}
		switch {
		case s.link != "":
			d.links = append(d.links, s.link)
			fmt.Fprintf(&b, `<w:hyperlink r:id="link%d">%s</w:hyperlink>`, len(d.links), textRun(`<w:rStyle w:val="Hyperlink"/>`, s.text))
		case s.mono:
			b.WriteString(textRun(`<w:rStyle w:val="Code"/>`, s.text))
		case s.bold:
			b.WriteString(textRun(`<w:b/>`, s.text))
		default:
			b.WriteString(textRun("", s.text))
		}
		b.WriteString(textRun(`<w:rStyle w:val="Marker"/>`, marked("", s.notes)))
	}
	return b.String()
}

func (d *word) write(properties string, s []span) {
	d.body.WriteString(`<w:p><w:pPr>` + properties + `</w:pPr>` + d.runs(s) + "</w:p>\n")
}

func (d *word) styled(style string, s ...span) { d.write(`<w:pStyle w:val="`+style+`"/>`, s) }
func (d *word) heading(level int, heading string) {
	d.styled(fmt.Sprintf("Heading%d", level), text(heading))
}
func (d *word) paragraph(s ...span) { d.write("", s) }

func (d *word) item(number int, asides []string, s ...span) {
	mark := "•"
	if number > 0 {
		mark = fmt.Sprintf("%d.", number)
	}
	const form = `<w:p><w:pPr><w:pStyle w:val="ListParagraph"/><w:ind w:left="%d" w:hanging="360"/></w:pPr>%s<w:r><w:tab/></w:r>%s</w:p>` + "\n"
	fmt.Fprintf(&d.body, form, 360, textRun("", mark), d.runs(s))
	for _, a := range asides {
		fmt.Fprintf(&d.body, form, 720, textRun("", "•"), textRun("", a))
	}
}

func (d *word) quote(excerpt string, s ...span) {
	var lines [][]span
	for line := range strings.Lines(strings.TrimSpace(excerpt)) {
		lines = append(lines, []span{text(line)})
	}
	if len(lines) == 0 {
		lines = [][]span{nil}
	}
	last := len(lines) - 1
	lines[last] = append(lines[last], s...)
	for _, l := range lines {
		d.styled("Quote", l...)
	}
}

func (d *word) table(rows [][][]span) {
	d.body.WriteString(`<w:tbl><w:tblPr><w:tblStyle w:val="TableGrid"/><w:tblW w:w="5000" w:type="pct"/></w:tblPr><w:tblGrid>` + strings.Repeat(`<w:gridCol/>`, len(rows[0])) + `</w:tblGrid>`)
	for i, row := range rows {
		d.body.WriteString(`<w:tr>`)
		if i == 0 {
			d.body.WriteString(`<w:trPr><w:tblHeader/></w:trPr>`)
		}
		for _, cell := range row {
			if i == 0 && len(cell) > 0 {
				cell = []span{strong(cell[0].text)}
			}
			d.body.WriteString(`<w:tc><w:tcPr><w:tcW w:w="0" w:type="auto"/></w:tcPr>`)
			d.write("", cell)
			d.body.WriteString(`</w:tc>`)
		}
		d.body.WriteString("</w:tr>\n")
	}
	d.body.WriteString("</w:tbl>\n<w:p/>\n") // what parts it from another table
}

// pack writes the parts of the document.
func (d *word) pack(w io.Writer, title string, created time.Time) error {
	z := zip.NewWriter(w)
	when := ""
	if !created.IsZero() {
		when = `<dcterms:created xsi:type="dcterms:W3CDTF">` + created.UTC().Format(time.RFC3339) + `</dcterms:created>`
	}
	for _, part := range [][2]string{
		{"[Content_Types].xml", d.fixed("content-types")}, {"_rels/.rels", d.fixed("rels")}, {"word/styles.xml", d.fixed("styles")},
		{"docProps/core.xml", wordHead + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>` +
			xmlText(title) + `</dc:title><dc:creator>Marchwarden</dc:creator>` + when + `</cp:coreProperties>`},
		{"word/document.xml", wordHead + `<w:document ` + wordSpace + `><w:body>` + d.body.String() + `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="709" w:footer="709" w:gutter="0"/></w:sectPr></w:body></w:document>`},
		{"word/_rels/document.xml.rels", d.relationships()},
	} {
		to, err := z.CreateHeader(&zip.FileHeader{Name: part[0], Method: zip.Deflate})
		if err != nil {
			return err
		}
		if _, err := io.WriteString(to, part[1]); err != nil {
			return err
		}
	}
	return z.Close()
}

func (d *word) fixed(name string) string {
	content, err := docxParts.ReadFile("docx/" + name + ".xml")
	if err != nil {
		panic(err) // unreachable: it is part of this program
	}
	return string(content)
}

// relationships are to the styles, and to where links lead.
func (d *word) relationships() string {
	var b strings.Builder
	fmt.Fprintf(&b, wordHead+`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="styles" Type="%sstyles" Target="styles.xml"/>`, wordRel)
	for i, to := range d.links {
		fmt.Fprintf(&b, `<Relationship Id="link%d" Type="%shyperlink" Target="%s" TargetMode="External"/>`, i+1, wordRel, xmlText(to))
	}
	return b.String() + `</Relationships>`
}
