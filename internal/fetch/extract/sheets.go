package extract

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of a workbook, beside those of its archive.
const (
	maxStrings = 2 << 20 // different texts of its cells
	maxColumns = 16_384
	maxLooked  = 16 << 20 // columns that are hidden or filled by a few bytes each
	maxRow     = 1 << 20
	headWidth  = 200 // columns that tell which row names them
)

// sheetCell is a cell that is not empty.
type sheetCell struct {
	column int
	text   string
}

// sheetRow is a row, or several that are the same.
type sheetRow struct {
	from, to int
	cells    []sheetCell
}

// sheetWriter writes each row of a sheet as the rows of other tables are, after the name of the sheet and the number of the row.
type sheetWriter struct {
	of    source
	out   strings.Builder
	name  string
	heads map[int]string // of the columns
	held  []sheetRow     // the first rows, until it is known which of them names the columns
	begun bool           // that is known

	text         strings.Builder // of the open cell
	rows, column int             // so far; the column of the open cell, from zero
	cells        []sheetCell     // of the open row
	hidden       [maxColumns]bool
	looked       int // columns that were looked at in all sheets
}

func (w *sheetWriter) sheet(name string) {
	w.name, w.begun, w.rows, w.column, w.hidden = oneLine(name, 100), false, 0, 0, [maxColumns]bool{}
}

// hide takes columns from one up to another, which is no part of them, for hidden.
func (w *sheetWriter) hide(from, to int) {
	for i := max(from, 0); i < min(to, maxColumns) && w.looked <= maxLooked; i++ { // over it, the next row fails
		w.hidden[i] = true
		w.looked++
	}
}

// add ends a cell.
func (w *sheetWriter) add(text string) {
	if w.looked++; text != "" && w.column < maxColumns && !w.hidden[w.column] {
		w.cells = append(w.cells, sheetCell{w.column, text})
	}
}

// row ends a row, which stands there up to the number to.
func (w *sheetWriter) row(to int) error {
	if w.looked > maxLooked {
		return fmt.Errorf("%w: cells that stand in more than %d columns", ErrTooLarge, maxLooked)
	}
	r := sheetRow{w.rows, to, w.cells}
	w.rows = to
	if len(r.cells) == 0 {
		return nil
	}
	if w.begun {
		return w.write(r)
	}
	r.cells = slices.Clone(r.cells)
	if w.held = append(w.held, r); len(w.held) < headRows {
		return nil
	}
	return w.begin()
}

// begin writes the rows that were held, once there are enough of them or there are no more.
func (w *sheetWriter) begin() error {
	var rows [][]string
	for _, r := range w.held {
		var row []string
		for _, c := range r.cells {
			if c.column < headWidth {
				row = append(row, make([]string, c.column+1-len(row))...)
				row[c.column] = c.text
			}
		}
		rows = append(rows, row)
	}
	at := headerOf(rows)
	held := w.held
	w.held, w.begun, w.heads = nil, true, map[int]string{}
	for i, r := range held {
		if i == at && len(held) > 1 {
			for _, c := range r.cells {
				w.heads[c.column] = columnName(c.text)
			}
			continue
		}
		if err := w.write(r); err != nil {
			return err
		}
	}
	return nil
}

func (w *sheetWriter) write(r sheetRow) error {
	heads, texts, size := make([]string, len(r.cells)), make([]string, len(r.cells)), w.out.Len()
	for i, c := range r.cells {
		heads[i], texts[i] = w.heads[c.column], c.text
		size += len(heads[i]) + len(texts[i])
	}
	if err := w.of.tooLong(size); err != nil {
		return err
	}
	fmt.Fprintf(&w.out, "%s row %d", w.name, r.from)
	if r.to > r.from {
		fmt.Fprintf(&w.out, " to %d", r.to)
	}
	w.out.WriteString(": ")
	writeRow(&w.out, heads, texts, func(int, int) {})
	return nil
}

// readOds reads the sheets of an OpenDocument workbook that are shown, with cells as they are shown but for dates, which are written alike everywhere.
func readOds(s source, unseen *unseenStyles) (string, error) {
	r := &odsReader{sheetWriter: sheetWriter{of: s}, unseen: unseen}
	err := s.archive.part(openDocumentMain, markup{r.enter, r.end, func(s string) error {
		if r.paras > 0 {
			r.text.WriteString(s)
		}
		return nil
	}})
	return r.out.String(), err
}

type odsReader struct {
	sheetWriter
	unseen      *unseenStyles
	paras       int
	value       string // of a cell that says more exactly what it holds
	times, wide int    // how often the open row and the open cell stand there
}

func (r *odsReader) enter(t xml.StartElement) bool {
	r.unseen.see(t)
	name, hides := t.Name.Local, r.unseen.hides(t)
	times := 1
	for _, a := range t.Attr {
		if n, err := strconv.Atoi(a.Value); err == nil && strings.HasSuffix(a.Name.Local, "s-repeated") {
			times = min(max(n, 1), maxRow)
		}
	}
	switch {
	case name == "table-column":
		if hides {
			r.hide(r.column, r.column+times)
		}
		r.column = min(r.column+times, maxColumns)
		return true
	case name == "table-row" && hides:
		r.rows = min(r.rows+times, maxRow)
	}
	if hides || skipped[name] {
		return false
	}
	switch name {
	case "table":
		r.sheet(xmlAttr(t, "name"))
	case "table-row":
		r.times, r.column, r.cells = times, 0, r.cells[:0]
	case "table-cell", "covered-table-cell":
		r.wide, r.value = times, strings.TrimSuffix(strings.Replace(xmlAttr(t, "date-value"), "T", " ", 1), " 00:00:00")
		r.text.Reset()
	case "p":
		r.paras++
	case "s", "tab", "line-break":
		r.text.WriteByte(' ')
	}
	return true
}

func (r *odsReader) end(name string) error {
	switch name {
	case "p":
		r.paras--
		r.text.WriteByte(' ')
	case "table-cell", "covered-table-cell":
		text := cmp.Or(r.value, strings.TrimSpace(r.text.String()))
		end := min(r.column+r.wide, maxColumns)
		for ; text != "" && r.column < end; r.column++ {
			r.add(text)
		}
		r.column, r.value = end, ""
	case "table-row":
		r.rows = min(r.rows+1, maxRow)
		return r.row(min(r.rows+r.times-1, maxRow))
	case "table":
		return r.begin()
	}
	return nil
}

// readXlsx reads the sheets of an Excel workbook that are shown.
func readXlsx(s source, doc *Document) error {
	a, r := s.archive, &xlsxReader{sheetWriter: sheetWriter{of: s}}
	type sheet struct{ name, id string }
	var sheets []sheet
	err := a.elements(xlsxMain, func(t xml.StartElement) {
		switch state := xmlAttr(t, "state"); t.Name.Local {
		case "workbookPr":
			r.from1904 = slices.Contains([]string{"1", "true"}, xmlAttr(t, "date1904"))
		case "sheet":
			if state != "hidden" && state != "veryHidden" && len(sheets) < maxMembers {
				sheets = append(sheets, sheet{xmlAttr(t, "name"), relationID(t)})
			}
		}
	})
	found, related := a.relations(xlsxMain)
	if err = errors.Join(err, related, r.styles(a), r.strings(a)); err != nil {
		return err
	}
	for _, s := range sheets {
		r.sheet(s.name)
		if err := a.part(target(found, s.id), markup{r.enter, r.end, r.chars}); err != nil {
			return err
		}
		if err := r.begin(); err != nil {
			return err
		}
	}
	doc.Text = r.out.String()
	return a.properties("docProps/core.xml", doc, nil)
}

type xlsxReader struct {
	sheetWriter
	shared       []string
	formats      []string // of numbers, by the style of a cell
	from1904     bool
	kind, format string // of the open cell
	inValue      bool
}

// strings reads the texts that cells share. How a word is pronounced is no part of it.
func (r *xlsxReader) strings(a *archive) error {
	var text strings.Builder
	in := false
	enter := func(t xml.StartElement) bool {
		in = t.Name.Local == "t"
		return t.Name.Local != "rPh"
	}
	return a.part("xl/sharedStrings.xml", markup{enter, func(name string) error {
		if in = false; name == "si" {
			if r.shared = append(r.shared, text.String()); len(r.shared) > maxStrings {
				return fmt.Errorf("%w: more than %d texts of cells", ErrTooLarge, maxStrings)
			}
			text.Reset()
		}
		return nil
	}, func(s string) error {
		if in {
			text.WriteString(s)
		}
		return nil
	}})
}

// styles reads how the cells of each style show numbers.
func (r *xlsxReader) styles(a *archive) error {
	formats := maps.Clone(knownFormats)
	inCells := false
	enter := func(t xml.StartElement) bool {
		switch t.Name.Local {
		case "numFmt":
			formats[xmlAttr(t, "numFmtId")] = xmlAttr(t, "formatCode")
		case "cellXfs":
			inCells = true
		case "xf":
			if inCells {
				r.formats = append(r.formats, formats[xmlAttr(t, "numFmtId")])
			}
		}
		return true
	}
	return a.part("xl/styles.xml", markup{enter: enter, end: func(name string) error {
		inCells = inCells && name != "cellXfs"
		return nil
	}})
}

func (r *xlsxReader) enter(t xml.StartElement) bool {
	switch t.Name.Local {
	case "col":
		from, _ := strconv.Atoi(xmlAttr(t, "min")) // what is no number hides nothing
		to, _ := strconv.Atoi(xmlAttr(t, "max"))
		if xmlAttr(t, "hidden") == "1" {
			r.hide(from-1, to)
		}
	case "row":
		if n, err := strconv.Atoi(xmlAttr(t, "r")); err == nil && n > r.rows && n <= maxRow {
			r.rows = n
		} else {
			r.rows++
		}
		r.column, r.cells = -1, r.cells[:0]
		return xmlAttr(t, "hidden") != "1"
	case "c":
		r.column = columnOf(xmlAttr(t, "r"), r.column+1)
		r.kind, r.format = xmlAttr(t, "t"), ""
		if s, err := strconv.Atoi(xmlAttr(t, "s")); err == nil && s >= 0 && s < len(r.formats) {
			r.format = r.formats[s]
		}
		r.text.Reset()
	case "v", "t":
		r.inValue = true
	}
	return true
}

func (r *xlsxReader) chars(s string) error {
	if r.inValue {
		r.text.WriteString(s)
	}
	return nil
}

func (r *xlsxReader) end(name string) error {
	switch name {
	case "v", "t":
		r.inValue = false
	case "c":
		r.add(r.shown(strings.TrimSpace(r.text.String())))
	case "row":
		return r.row(r.rows)
	}
	return nil
}

// columnOf is the number of the column in a name such as "AB12", counted from zero; next where there is none.
func columnOf(name string, next int) int {
	n := 0
	for i := 0; i < len(name) && name[i] >= 'A' && name[i] <= 'Z' && n < maxColumns; i++ {
		n = n*26 + int(name[i]-'A') + 1
	}
	if n == 0 || n-1 < next {
		return next
	}
	return n - 1
}

// shown is the value of the open cell as people see it.
func (r *xlsxReader) shown(value string) string {
	switch r.kind {
	case "s":
		if i, err := strconv.Atoi(value); err == nil && i >= 0 && i < len(r.shared) {
			return strings.TrimSpace(r.shared[i])
		}
		return ""
	case "b":
		return map[string]string{"1": "TRUE", "0": "FALSE"}[value]
	case "", "n":
		if n, err := strconv.ParseFloat(value, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return showNumber(n, r.format, r.from1904)
		}
	}
	return value
}

// knownFormats are those of numbers that have an id instead of a description.
var knownFormats = map[string]string{
	"1": "0", "2": "0.00", "3": "#,##0", "4": "#,##0.00", "9": "0%", "10": "0.00%", "14": "yyyy-mm-dd", "15": "d-mmm-yy", "16": "d-mmm", "17": "mmm-yy",
	"18": "h:mm", "19": "h:mm:ss", "20": "h:mm", "21": "h:mm:ss", "22": "m/d/yy h:mm", "37": "#,##0", "38": "#,##0", "39": "#,##0.00", "40": "#,##0.00",
	"45": "mm:ss", "46": "[h]:mm:ss", "47": "mm:ss",
}

var (
	formatAside  = regexp.MustCompile(`"([^"]*)"|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[[^\]]{3,}\]|[_*].`) // texts, currencies, colours, conditions, fillers
	formatDigits = regexp.MustCompile(`[0#?][0#?,]*(?:\.([0#?]*))?`)
)

// showNumber writes a number as a format such as `"$"#,##0.00` asks: dates and times alike everywhere, other numbers with their signs, decimals and groups.
func showNumber(n float64, code string, from1904 bool) string {
	code, _, _ = strings.Cut(code, ";") // the rest is for negative numbers
	bare := strings.ToLower(formatAside.ReplaceAllString(code, ""))
	clock := strings.ContainsAny(bare, "hs")
	if day := strings.ContainsAny(bare, "yd") || strings.Contains(bare, "m") && !clock; (day || clock) && n >= 0 && n < 3e6 {
		return showTime(n, day, clock, strings.Contains(bare, "s"), from1904)
	}
	at := formatDigits.FindStringSubmatchIndex(code)
	if at == nil || strings.ContainsAny(bare, "eg/@") {
		if short, err := strconv.ParseFloat(strconv.FormatFloat(n, 'e', 14, 64), 64); err == nil && math.Abs(short) < 1e15 && (math.Abs(short) > 1e-9 || short == 0) {
			return strconv.FormatFloat(short, 'f', -1, 64)
		}
		return strconv.FormatFloat(n, 'g', 15, 64)
	}
	if strings.Contains(bare, "%") {
		n *= 100
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(math.Abs(n), 'f', min(at[3]-at[2], 10), 64), ".")
	if strings.Contains(code[at[0]:at[1]], ",") {
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
	}
	if rest != "" {
		whole += "." + rest
	}
	text := strings.TrimSpace(formatAside.ReplaceAllString(code[:at[0]], "$1$2$3") + whole + formatAside.ReplaceAllString(code[at[1]:], "$1$2$3"))
	if n < 0 {
		text = "-" + text
	}
	return text
}

// showTime is the day and time that a count of days means.
func showTime(n float64, day, clock, precise, from1904 bool) string {
	start := time.Date(1899, 12, 30, 0, 0, 0, 0, time.UTC)
	if from1904 {
		start = time.Date(1904, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	seconds := int64(math.Round(n * 86400))
	t := start.AddDate(0, 0, int(seconds/86400)).Add(time.Duration(seconds%86400) * time.Second)
	switch {
	case day && !clock:
		return t.Format(time.DateOnly)
	case day:
		return strings.TrimSuffix(t.Format(time.DateTime), map[bool]string{false: t.Format(":05")}[precise])
	case precise || seconds >= 86400: // a time that goes on for days is counted in hours
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return t.Format("15:04")
}
