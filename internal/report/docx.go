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

// DOCX writes the report as a document of Word (Office Open XML): headings, lists, tables, footnotes
// with the citations, references and the excerpts. All text is text: it has no field, macro
// or picture, and its links lead to the web. Equal reports give equal bytes. It writes once.
func DOCX(w io.Writer, r *Report) error {
	d := &word{notes: r.notes(), noted: map[int]int{}}
	v := r.View()
	d.styled("Title", text(v.Title))
	d.styled("Subtitle", text("Marchwarden research report · "+strings.Join(v.About, " · ")))
	r.print(d)
	var out bytes.Buffer
	if err := d.pack(&out, v.Title, r.StartedAt); err != nil {
		return fmt.Errorf("write DOCX: %w", err)
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write DOCX: %w", err)
	}
	return nil
}

// word is paper.
type word struct {
	body      strings.Builder
	links     []string // of the body, by their number from one
	notes     [][]span
	noted     map[int]int // the footnote of a citation, from one
	footnotes strings.Builder
	noteLinks []string // of the footnotes
	lists     int      // ordered ones
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

// runs are spans as runs of text, with their links among those given.
func (d *word) runs(all []span, links *[]string) string {
	var b strings.Builder
	for i, s := range all {
		if i > 0 && (s.text != "" || len(s.notes) > 0) {
			b.WriteString(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
		}
		switch {
		case s.link != "":
			*links = append(*links, s.link)
			fmt.Fprintf(&b, `<w:hyperlink r:id="link%d">%s</w:hyperlink>`, len(*links), textRun(`<w:rStyle w:val="Hyperlink"/>`, s.text))
		case s.mono:
			b.WriteString(textRun(`<w:rStyle w:val="Code"/>`, s.text))
		case s.bold:
			b.WriteString(textRun(`<w:b/>`, s.text))
		default:
			b.WriteString(textRun("", s.text))
		}
		for j, n := range s.notes {
			if j > 0 {
				b.WriteString(`<w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:t>,</w:t></w:r>`)
			}
			b.WriteString(d.note(n))
		}
	}
	return b.String()
}

// note is the footnote of a citation: where it is met first with its text, later by its number.
func (d *word) note(n int) string {
	if at, ok := d.noted[n]; ok {
		return fmt.Sprintf(`<w:fldSimple w:instr=" NOTEREF _source%d \h "><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:t>%d</w:t></w:r></w:fldSimple>`, n, at)
	}
	at := len(d.noted) + 1
	d.noted[n] = at
	fmt.Fprintf(&d.footnotes, `<w:footnote w:id="%d"><w:p><w:pPr><w:pStyle w:val="FootnoteText"/></w:pPr><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteRef/></w:r><w:r><w:t xml:space="preserve"> </w:t></w:r>%s</w:p></w:footnote>`,
		at, d.runs(d.notes[n-1], &d.noteLinks))
	return fmt.Sprintf(`<w:bookmarkStart w:id="%d" w:name="_source%d"/><w:r><w:rPr><w:rStyle w:val="FootnoteReference"/></w:rPr><w:footnoteReference w:id="%d"/></w:r><w:bookmarkEnd w:id="%d"/>`, n, n, at, n)
}

func (d *word) write(properties string, s []span) {
	d.body.WriteString(`<w:p><w:pPr>` + properties + `</w:pPr>` + d.runs(s, &d.links) + "</w:p>\n")
}

func (d *word) styled(style string, s ...span) { d.write(`<w:pStyle w:val="`+style+`"/>`, s) }
func (d *word) heading(level int, heading string) {
	d.styled(fmt.Sprintf("Heading%d", level), text(heading))
}
func (d *word) paragraph(s ...span) { d.write("", s) }

// bullets is the number of the list with bullets; ordered lists come behind it.
const bullets = 1

func (d *word) item(number int, asides []string, s ...span) {
	list := bullets
	if number == 1 {
		d.lists++
	}
	if number > 0 {
		list += d.lists
	}
	const form = `<w:pStyle w:val="ListParagraph"/><w:numPr><w:ilvl w:val="%d"/><w:numId w:val="%d"/></w:numPr>`
	d.write(fmt.Sprintf(form, 0, list), s)
	for _, a := range asides {
		d.write(fmt.Sprintf(form, 1, bullets), []span{text(a)})
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
	put := func(name, content string) error {
		part, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err == nil {
			_, err = io.WriteString(part, content)
		}
		return err
	}
	when := ""
	if !created.IsZero() {
		when = `<dcterms:created xsi:type="dcterms:W3CDTF">` + created.UTC().Format(time.RFC3339) + `</dcterms:created>`
	}
	for _, part := range [][2]string{
		{"[Content_Types].xml", d.fixed("content-types")}, {"_rels/.rels", d.fixed("rels")}, {"word/styles.xml", d.fixed("styles")},
		{"docProps/core.xml", wordHead + `<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><dc:title>` +
			xmlText(title) + `</dc:title><dc:creator>Marchwarden</dc:creator>` + when + `</cp:coreProperties>`},
		{"word/document.xml", wordHead + `<w:document ` + wordSpace + `><w:body>` + d.body.String() + `<w:sectPr><w:pgSz w:w="11906" w:h="16838"/><w:pgMar w:top="1134" w:right="1134" w:bottom="1134" w:left="1134" w:header="709" w:footer="709" w:gutter="0"/></w:sectPr></w:body></w:document>`},
		{"word/footnotes.xml", wordHead + `<w:footnotes ` + wordSpace + `><w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote><w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p></w:footnote>` +
			d.footnotes.String() + `</w:footnotes>`},
		{"word/numbering.xml", d.numbering()},
		{"word/_rels/document.xml.rels", related(d.links, "styles", "numbering", "footnotes")}, {"word/_rels/footnotes.xml.rels", related(d.noteLinks)},
	} {
		if err := put(part[0], part[1]); err != nil {
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

// related are the relationships of a part: to other parts, and to where its links lead.
func related(links []string, parts ...string) string {
	var b strings.Builder
	b.WriteString(wordHead + `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for _, p := range parts {
		fmt.Fprintf(&b, `<Relationship Id="%s" Type="%s%s" Target="%s.xml"/>`, p, wordRel, p, p)
	}
	for i, to := range links {
		fmt.Fprintf(&b, `<Relationship Id="link%d" Type="%shyperlink" Target="%s" TargetMode="External"/>`, i+1, wordRel, xmlText(to))
	}
	return b.String() + `</Relationships>`
}

// numbering says how lists are numbered: one with bullets, and each ordered one from one.
func (d *word) numbering() string {
	var b strings.Builder
	b.WriteString(wordHead + `<w:numbering ` + wordSpace + `>`)
	for id, forms := range [][2]string{{"bullet", "•"}, {"decimal", "%%%d."}} {
		fmt.Fprintf(&b, `<w:abstractNum w:abstractNumId="%d"><w:multiLevelType w:val="multilevel"/>`, id)
		for level := range 2 {
			shown := forms[1]
			if id > 0 {
				shown = fmt.Sprintf(shown, level+1)
			}
			fmt.Fprintf(&b, `<w:lvl w:ilvl="%d"><w:start w:val="1"/><w:numFmt w:val="%s"/><w:lvlText w:val="%s"/><w:lvlJc w:val="left"/><w:pPr><w:ind w:left="%d" w:hanging="360"/></w:pPr></w:lvl>`, level, forms[0], shown, 360*(level+1))
		}
		b.WriteString(`</w:abstractNum>`)
	}
	fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="0"/></w:num>`, bullets)
	for i := range d.lists {
		fmt.Fprintf(&b, `<w:num w:numId="%d"><w:abstractNumId w:val="1"/><w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>`, bullets+1+i)
	}
	return b.String() + `</w:numbering>`
}
