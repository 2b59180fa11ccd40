package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/sfnt"

	"forgejo.labbity.unbiasedgeek.com/archeious/marchwarden/internal/plaintext"
)

// PDF writes the report as a document to print, with fonts of its own: Latin, Greek and Cyrillic. A
// character that they lack is drawn as a box, is itself where the text is copied or searched, and a
// note says so; one beyond the first 65,536 stands as its code point. Equal reports give equal
// bytes. It writes once.
func PDF(w io.Writer, r *Report) error {
	d := newSheet(r)
	v := r.View()
	d.SetTitle(d.shown(v.Title), true)
	d.say(pdfLook{"", 9}, "Marchwarden research report")
	d.end(1)
	d.say(pdfLook{"B", 17}, v.Title)
	d.end(2)
	d.say(pdfLook{"", 9}, strings.Join(v.About, " · "))
	d.end(3)
	r.print(d)
	if d.boxes {
		d.end(3)
		d.paragraph(text("Boxes stand for characters that the fonts of this file lack. Copied text has them, and so do the other forms of this report."))
	}
	var out bytes.Buffer
	err := d.Output(&out)
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write PDF: %w", err)
	}
	return nil
}

// The measures of a page, in millimetres; of letters in points.
const (
	pdfMargin = 22.0
	pdfIndent = 5.0
	pdfText   = 10.0
)

// pdfLook is how text looks: "" or "B" for bold or "M" for code, and its size.
type pdfLook struct {
	face string
	size float64
}

// sheet is paper.
type sheet struct {
	*fpdf.Fpdf
	sources []int // by citation, the link to its excerpt
	known   *sfnt.Font
	boxes   bool // a character has no shape
}

func newSheet(r *Report) *sheet {
	d := &sheet{Fpdf: fpdf.New("P", "mm", "A4", "")}
	d.known, _ = sfnt.Parse(goregular.TTF)                        // it is part of this program
	d.AddUTF8FontFromBytes("go", "", slices.Clone(goregular.TTF)) // which Fpdf writes into
	d.AddUTF8FontFromBytes("go", "B", slices.Clone(gobold.TTF))
	d.AddUTF8FontFromBytes("gomono", "", slices.Clone(gomono.TTF))
	d.SetCatalogSort(true)
	d.SetCellMargin(0)
	d.SetCreator("Marchwarden", true)
	d.SetProducer("Marchwarden", true)
	made := r.StartedAt.UTC()
	if made.IsZero() {
		made = time.Unix(0, 0).UTC()
	}
	d.SetCreationDate(made)
	d.SetModificationDate(made)
	d.SetMargins(pdfMargin, pdfMargin, pdfMargin)
	d.SetAutoPageBreak(true, pdfMargin)
	d.SetFooterFunc(func() {
		d.SetY(-15)
		d.SetFont("go", "", 8)
		d.CellFormat(0, 5, strconv.Itoa(d.PageNo()), "", 0, "C", false, 0, "")
	})
	d.AddPage()
	for range r.Result.Citations {
		d.sources = append(d.sources, d.AddLink())
	}
	return d
}

// shown is a text on one line as it can be drawn.
func (d *sheet) shown(s string) string {
	var b strings.Builder
	var room sfnt.Buffer
	for _, c := range plaintext.Fold(s) {
		if c > 0xFFFF { // the form of fonts in a PDF has no place for it
			fmt.Fprintf(&b, "[U+%X]", c)
			continue
		}
		if glyph, err := d.known.GlyphIndex(&room, c); err != nil || glyph == 0 {
			d.boxes = true
		}
		b.WriteRune(c)
	}
	return b.String()
}

// look chooses letters, and is the height of their lines.
func (d *sheet) look(l pdfLook) (height float64) {
	if l.face == "M" {
		d.SetFont("gomono", "", l.size-1)
	} else {
		d.SetFont("go", l.face, l.size)
	}
	return l.size * 0.48
}

// wrapped is a text in lines, broken between words, of which the first has less room than the others
// may have. Fpdf's own takes a character that the fonts lack for one without width.
func (d *sheet) wrapped(s string, first, rest float64) []string {
	var lines []string
	line, used, room := "", 0.0, first
	end := func() { lines, line, used, room = append(lines, line), "", 0, rest }
	for i, word := range strings.Split(d.shown(s), " ") {
		if i > 0 {
			word = " " + word
		}
		if used+d.GetStringWidth(word) > room && (used > 0 || first < rest) {
			end()
			word = strings.TrimPrefix(word, " ")
		}
		for _, c := range word { // one that is longer than a line is cut
			wide := d.GetStringWidth(string(c))
			if used+wide > room && used > 0 {
				end()
			}
			line, used = line+string(c), used+wide
		}
	}
	return append(lines, line)
}

// write writes a text from where the last one ended, and leads to a place of the file or an address.
func (d *sheet) write(l pdfLook, s string, place int, address string) {
	height := d.look(l)
	wide, _ := d.GetPageSize()
	left, _, right, _ := d.GetMargins()
	for i, line := range d.wrapped(s, wide-right-d.GetX(), wide-right-left) {
		if i > 0 {
			d.Ln(height)
		}
		d.CellFormat(d.GetStringWidth(line), height, line, "", 0, "L", false, place, address)
	}
}

// say is write for text that leads nowhere.
func (d *sheet) say(l pdfLook, s string) { d.write(l, s, 0, "") }

// end ends a line, with so much room below it.
func (d *sheet) end(below float64) { d.Ln(pdfText*0.48 + below) }

// spans writes spans one after the other.
func (d *sheet) spans(all []span) {
	for i, s := range all {
		if i > 0 && (s.text != "" || len(s.notes) > 0) {
			d.SetX(d.GetX() + d.GetStringWidth(" "))
		}
		switch {
		case s.link != "":
			d.SetTextColor(20, 70, 150)
			d.write(pdfLook{"", pdfText}, s.text, 0, s.link)
		case s.mono:
			d.say(pdfLook{"M", pdfText}, s.text)
		case s.bold:
			d.say(pdfLook{"B", pdfText}, s.text)
		default:
			d.say(pdfLook{"", pdfText}, s.text)
		}
		d.SetTextColor(20, 70, 150)
		for _, n := range s.notes {
			d.SetX(d.GetX() + 0.7)
			d.write(pdfLook{"", pdfText - 2}, marked("", []int{n}), d.sources[n-1], "")
		}
		d.SetTextColor(0, 0, 0)
	}
}

func (d *sheet) heading(level int, heading string) {
	size := map[int]float64{1: 14, 2: 12}[level]
	if size == 0 {
		size = pdfText
	}
	_, tall := d.GetPageSize()
	if d.GetY() > tall-pdfMargin-25 { // a heading stands with what is below it
		d.AddPage()
	}
	var n int
	if _, err := fmt.Sscanf(heading, "Source %d", &n); err == nil && level == 2 && n >= 1 && n <= len(d.sources) {
		d.SetLink(d.sources[n-1], d.GetY(), d.PageNo())
	}
	d.Bookmark(d.shown(heading), level-1, -1)
	d.Ln(2)
	d.say(pdfLook{"B", size}, heading)
	d.end(2)
}

func (d *sheet) paragraph(s ...span) {
	d.spans(s)
	d.end(1.5)
}

// within writes something indented.
func (d *sheet) within(indent float64, do func()) {
	left, _, _, _ := d.GetMargins()
	d.SetLeftMargin(left + indent)
	d.SetX(left + indent)
	do()
	d.SetLeftMargin(left)
	d.SetX(left)
}

func (d *sheet) item(number int, asides []string, s ...span) {
	mark := "•"
	if number > 0 {
		mark = strconv.Itoa(number) + "."
	}
	left, _, _, _ := d.GetMargins()
	y, page := d.GetY(), d.PageNo()
	d.CellFormat(pdfIndent, d.look(pdfLook{"", pdfText}), mark, "", 0, "L", false, 0, "")
	if d.PageNo() == page { // else the mark has begun a page
		d.SetXY(left, y)
	}
	d.within(pdfIndent, func() {
		d.spans(s)
		d.end(0.8)
		for _, a := range asides {
			d.within(pdfIndent, func() { d.paragraph(text("→ " + a)) })
		}
	})
}

func (d *sheet) quote(excerpt string, s ...span) {
	d.within(pdfIndent, func() {
		d.SetTextColor(70, 70, 70)
		for line := range strings.Lines(strings.TrimSpace(excerpt)) {
			d.say(pdfLook{"", pdfText}, line)
			d.end(0)
		}
		d.SetTextColor(0, 0, 0)
		if len(s) > 0 {
			d.spans(s)
			d.end(0)
		}
		d.Ln(1.5)
	})
}

// table writes rows whose cells are wrapped; one that does not fit the page begins the next.
func (d *sheet) table(rows [][][]span) {
	wide, tall := d.GetPageSize()
	width := (wide - 2*pdfMargin) / float64(len(rows[0]))
	for i, row := range rows {
		look, least := pdfLook{"", pdfText - 1.5}, 3
		if i == 0 { // the head does not stand alone at the end of a page
			look.face, least = "B", 8
		}
		height := d.look(look)
		cells, lines := make([][]string, len(row)), 1
		for j, cell := range row {
			var said []string
			for _, s := range cell {
				said = append(said, marked(s.text, s.notes))
			}
			cells[j] = d.wrapped(strings.Join(said, " "), width-2, width-2)
			lines = max(lines, len(cells[j]))
		}
		for from := 0; from < lines; { // a row that is taller than a page goes on there
			room := int((tall - pdfMargin - d.GetY() - 2) / height)
			if room < least {
				least = 0
				d.AddPage()
				d.look(look)
				continue
			}
			to := min(lines, from+room)
			d.row(cells, from, to, width, height)
			from = to
		}
	}
	d.Ln(3)
}

// row draws some lines of a row's cells.
func (d *sheet) row(cells [][]string, from, to int, width, height float64) {
	x, y := d.GetXY()
	box := float64(to-from)*height + 2
	for j, lines := range cells {
		at := x + float64(j)*width
		d.Rect(at, y, width, box, "D")
		for i := from; i < min(to, len(lines)); i++ {
			d.SetXY(at+1, y+1+float64(i-from)*height)
			d.CellFormat(width, height, lines[i], "", 0, "L", false, 0, "")
		}
	}
	d.SetXY(x, y+box)
}
