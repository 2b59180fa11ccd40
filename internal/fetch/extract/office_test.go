package extract

import (
	"errors"
	"strings"
	"testing"
)

const (
	odfBody = `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="tb" xmlns:draw="d" xmlns:presentation="p" xmlns:style="s"><office:automatic-styles>` +
		`<style:style style:name="H"><style:text-properties text:display="none"/></style:style></office:automatic-styles><office:body>`
	odfEnd = `</office:body></office:document-content>`
	rels   = `<Relationships><Relationship Id="r1" Type="x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`
)

func samples(t testing.TB) map[string]string {
	return map[string]string{
		"a.xlsx": zipOf(t, map[string]string{
			"xl/workbook.xml":            `<workbook xmlns:r="r"><sheets><sheet name="Stock" sheetId="1" r:id="r1"/><sheet name="Secret" state="hidden" r:id="r1"/></sheets></workbook>`,
			"xl/_rels/workbook.xml.rels": rels,
			"xl/sharedStrings.xml":       `<sst><si><t>Name</t></si><si><r><t>Amo</t></r><r><t>unt</t></r></si><si><t>Since</t></si><si><t>Pump</t></si></sst>`,
			"xl/styles.xml":              `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="&quot;$&quot;#,##0.00"/></numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
			"xl/worksheets/sheet1.xml": `<worksheet><sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c></row>` +
				`<row r="12"><c r="A12" t="s"><v>3</v></c><c r="B12" s="1"><v>1234.5</v></c><c r="C12" s="2"><v>45356</v></c></row><row r="13" hidden="1"><c r="A13" t="s"><v>3</v></c></row></sheetData></worksheet>`,
		}),
		"a.ods": zipOf(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.spreadsheet", "content.xml": odfBody + `<table:table table:name="Stock">` +
			`<table:table-row><table:table-cell><text:p>Name</text:p></table:table-cell><table:table-cell><text:p>Since</text:p></table:table-cell></table:table-row>` +
			`<table:table-row table:number-rows-repeated="3"><table:table-cell><text:p>Pump</text:p></table:table-cell><table:table-cell office:date-value="2024-03-05"><text:p>05.03.24</text:p></table:table-cell></table:table-row>` +
			`<table:table-row table:number-rows-repeated="1048576"><table:table-cell table:number-columns-repeated="16384"/></table:table-row></table:table>` + odfEnd}),
		"a.pptx": zipOf(t, map[string]string{
			"ppt/presentation.xml":             `<p:presentation xmlns:p="p" xmlns:r="r"><p:sldIdLst><p:sldId id="256" r:id="r1"/></p:sldIdLst></p:presentation>`,
			"ppt/_rels/presentation.xml.rels":  `<Relationships><Relationship Id="r1" Type="x/slide" Target="slides/slide1.xml"/></Relationships>`,
			"ppt/slides/slide1.xml":            `<p:sld xmlns:p="p" xmlns:a="a"><p:sp><p:ph type="title"/><a:p><a:r><a:t>The well</a:t></a:r></a:p></p:sp><p:sp><a:p><a:r><a:t>It is deep.</a:t></a:r></a:p></p:sp></p:sld>`,
			"ppt/slides/_rels/slide1.xml.rels": `<Relationships><Relationship Id="r1" Type="x/notesSlide" Target="../notesSlides/n1.xml"/></Relationships>`,
			"ppt/notesSlides/n1.xml":           `<p:notes xmlns:p="p" xmlns:a="a"><p:sp><p:ph type="body"/><a:p><a:r><a:t>Say it slowly.</a:t></a:r></a:p></p:sp><p:sp><p:ph type="sldNum"/><a:p><a:r><a:t>1</a:t></a:r></a:p></p:sp></p:notes>`,
		}),
		"a.odp": zipOf(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.presentation", "content.xml": odfBody + `<draw:page><draw:frame presentation:class="title"><text:p>The well</text:p></draw:frame>` +
			`<draw:frame><text:p>It is deep.</text:p></draw:frame><presentation:notes><draw:frame presentation:class="notes"><text:p>Say it slowly.</text:p></draw:frame></presentation:notes></draw:page>` + odfEnd}),
		"a.odt": zipOf(t, map[string]string{"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": odfBody + `<text:h text:outline-level="2">The well</text:h><text:p>It is<text:s/>deep.<text:span text:style-name="H">hidden</text:span></text:p>` + odfEnd}),
		"a.epub": zipOf(t, map[string]string{
			"META-INF/container.xml": `<container><rootfiles><rootfile full-path="in/list.opf"/></rootfiles></container>`,
			"in/list.opf":            `<package xmlns:dc="dc"><metadata><dc:title>Wells</dc:title></metadata><manifest><item id="b" href="b.xhtml" media-type="application/xhtml+xml"/><item id="a" href="a.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>`,
			"in/a.xhtml":             `<html><body><p>First.</p></body></html>`, "in/b.xhtml": `<html><body><p>Second.</p></body></html>`,
		}),
		"a.eml":   "From: =?utf-8?q?Ann_Ex=C3=A4mple?= <ann@example.org>\r\nTo: Bob\r\nDate: Tue, 5 Mar 2024 10:00:00 +0100\r\nSubject: The pump\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n<p>It is =C3=BCber.</p>\r\n--x\r\nContent-Type: application/pdf; name=plan.pdf\r\nContent-Disposition: attachment\r\n\r\nx\r\n--x--\r\n",
		"a.mbox":  "From a@b Fri Jul  8 12:08:34 2011\nFrom: Ann\nSubject: One\n\nFirst.\n>From here.\n\nFrom a@b Fri Jul  8 12:08:35 2011\nFrom: Bob\nSubject: Two\n\nSecond.\n",
		"a.ipynb": `{"cells":[{"cell_type":"markdown","source":["# Wells\n","Deep."]},{"cell_type":"code","execution_count":2,"source":"1+1","outputs":[{"data":{"text/plain":["2"]}}]}]}`,
		"a.srt":   "1\n00:01:04,000 --> 00:01:06,000\nThe well is\n\n2\n00:01:06,000 --> 00:01:08,000\n<i>deep</i>.\n\n3\n00:01:09,000 --> 00:01:10,000\nYes.\n",
		"a.rtf": `{\rtf1\ansi\ansicpg1252{\fonttbl\f0 Arial;}{\info{\title Wells}{\operator Bob}}\f0 The well is \b deep\b0 , caf\'e9 \u8364?5 {\v hidden}.\par {\*\generator X;}It\rquote s \u-10179?\u-8704? old.` +
			`\par \trowd Name\cell Depth\cell\row West\cell 9 m\cell\row {\pict\bin3 }}}}`,
		"a.tex": "\\documentclass{article}\n\\title{The \\emph{old} well}\n\\author{Ann \\and Bob\\thanks{Us}}\n\\begin{document}\n\\section*{Depth} \\label{s}\nThe well is 9~m deep, % so\n  they say \\cite{ann}. It cost \\$5 --- caf\\'e, Erd\\H{o}s, $x^2$.\n" +
			"\\begin{tabular}[t]{ll}\nName & Depth \\\\\nWest & 9 \\\\\n\\end{tabular}\n\\begin{comment}\nno\n\\end{comment}\n\\verb|a_b|\n\\begin{verbatim}\nx{}\n\\end{verbatim}\nLast.\n\\end{document}\n",
	}
}

func TestFormats(t *testing.T) {
	want := map[string]string{
		"a.xlsx": "Stock row 12: Name: Pump; Amount: $1,234.50; Since: 2024-03-05.",
		"a.ods":  "Stock row 2 to 4: Name: Pump; Since: 2024-03-05.",
		"a.pptx": "## Slide 1: The well\n\nIt is deep.\n\n### Speaker notes\n\nSay it slowly.",
		"a.odp":  "## Slide 1: The well\n\nIt is deep.\n\n### Speaker notes\n\nSay it slowly.",
		"a.odt":  "## The well\n\nIt is deep.", "a.epub": "First.\n\nSecond.",
		"a.eml":   "From: Ann Exämple <ann@example.org>\nTo: Bob\nDate: Tue, 5 Mar 2024 10:00:00 +0100\nSubject: The pump\nAttachments, not read: plan.pdf\n\nIt is über.",
		"a.mbox":  "From: Ann\nSubject: One\n\nFirst.\nFrom here.\n\nFrom: Bob\nSubject: Two\n\nSecond.",
		"a.ipynb": "# Wells\n\nDeep.\n\nIn [2]:\n1+1\n\nOut [2]:\n2", "a.srt": "00:01:04 The well is deep.\n\n00:01:09 Yes.",
		"a.rtf": "The well is deep, café €5 .\n\nIt’s 😀 old.\n\nName | Depth\nWest | 9 m",
		"a.tex": "## Depth\n\nThe well is 9 m deep, they say [ann]. It cost $5 — café, Erdős, $x^2$.\n\nName | Depth\nWest | 9\n\na_b\n\nx{}\n\nLast.",
	}
	for name, raw := range samples(t) {
		d, err := New(Config{}).Extract(t.Context(), name, []byte(raw))
		if err != nil || d.Text != want[name] {
			t.Errorf("%s: %q, want %q, err %v", name, d.Text, want[name], err)
		}
		if strings.HasPrefix(raw, "PK") { // told by the bytes alone; half of it is damaged
			if d, err := New(Config{}).Extract(t.Context(), "x", []byte(raw)); err != nil || d.Text != want[name] {
				t.Errorf("%s without its name: %q, err %v", name, d.Text, err)
			}
			if _, err := New(Config{}).Extract(t.Context(), name, []byte(raw[:len(raw)/2])); !errors.Is(err, ErrDamaged) {
				t.Errorf("half of %s: %v", name, err)
			}
		}
	}
}

func TestHostileArchives(t *testing.T) {
	odt := func(body string) string { return zipOf(t, map[string]string{"content.xml": body}) }
	for name, c := range map[string]struct {
		file, raw string
		want      error
	}{
		"unpacks to too much": {"a.odt", odt(odfBody + strings.Repeat("<a/>", maxUnzipped/4+1)), ErrTooLarge},
		"deep":                {"a.odt", odt(strings.Repeat("<a>", 1_000_000)), ErrTooLarge},
		"one endless tag":     {"a.odt", odt("<a " + strings.Repeat("b='' ", maxMarkup)), ErrTooLarge},
		"entities":            {"a.odt", odt(`<!DOCTYPE a [<!ENTITY b "cc">]><a>&b;</a>`), ErrDamaged},
		"a password":          {"a.ods", zipOf(t, map[string]string{"content.xml": "x", "META-INF/manifest.xml": "<m><encryption-data/></m>"}), ErrEncrypted},
		"an Office password":  {"a.xlsx", string(oldOffice) + string(encryptedOffice), ErrEncrypted},
		"an older Office":     {"a.pptx", string(oldOffice), ErrDamaged},
		"wide rows":           {"a.ods", odt(odfBody + strings.Repeat(`<table:table-row><table:table-cell table:number-columns-repeated="999999999"><text:p>aaaa</text:p></table:table-cell></table:table-row>`, 2000) + odfEnd), ErrTooLarge},
		"hidden wide rows": {"a.ods", odt(odfBody + strings.Repeat(`<table:table-column table:visibility="collapse" table:number-columns-repeated="16"/>`, maxColumns/16) +
			strings.Repeat(`<table:table-row><table:table-cell table:number-columns-repeated="16384"><text:p>a</text:p></table:table-cell></table:table-row>`, 2000) + odfEnd), ErrTooLarge},
		"columns hidden often": {"a.ods", odt(odfBody + strings.Repeat(`<table:table><table:table-column table:visibility="collapse" table:number-columns-repeated="16384"/><table:table-row/></table:table>`, 2000) + odfEnd), ErrTooLarge},
		"slides in slides": {"a.odp", odt(odfBody + strings.Repeat(strings.Repeat("<draw:page>", 200)+`<draw:frame presentation:class="title"><text:p>`+strings.Repeat("a", 200)+
			`</text:p></draw:frame>`+strings.Repeat("</draw:page>", 200), 1000) + odfEnd), ErrTooLarge},
		"an encrypted mail": {"a.eml", "From: a\nContent-Type: multipart/encrypted; boundary=x\n\n", ErrEncrypted},
		"a broken head":     {"a.eml", "no head at all\n\ntext", ErrDamaged},
		"deep groups":       {"a.rtf", `{\rtf1` + strings.Repeat("{", maxGroups+1), ErrTooLarge},
		"no Rich Text":      {"a.rtf", "words", ErrDamaged},
		"a long head":       {"a.eml", "From: " + strings.Repeat("a", 2*maxMailHead), ErrTooLarge},
	} {
		if _, err := New(Config{}).Extract(t.Context(), c.file, []byte(c.raw)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// What is wrong with one message, forwarded or of a mailbox, costs the others nothing.
func TestMailInPart(t *testing.T) {
	const head = "Content-Type: multipart/mixed; boundary=x\n\n"
	forwarded := func(raw string) string { return "--x\nContent-Type: message/rfc822\n\n" + raw + "\n" }
	many := head + strings.Repeat("--x\n\na\n", maxMailParts+1) + "--x--\n"
	many2 := strings.ReplaceAll(many, "x", "y")
	for name, c := range map[string]string{
		"a.eml":  "From: Ann\n" + head + "--x\n\nFirst.\n" + forwarded("no head") + forwarded("From: Bob\nContent-Type: multipart/encrypted; boundary=z\n\n") + forwarded("From: Bob\n"+many2) + "--x\n\nLast.\n--x--\n",
		"a.mbox": "From a@b Fri Jul  8 12:08:34 2011\nFrom: Ann\n\nFirst.\n\nFrom a@b Fri Jul  8 12:08:35 2011\nFrom: Bob\n" + many + "\nFrom a@b Fri Jul  8 12:08:36 2011\nFrom: Cy\n\nLast.\n",
	} {
		d, err := New(Config{}).Extract(t.Context(), name, []byte(c))
		if err != nil || !strings.Contains(d.Text, "First.") || !strings.Contains(d.Text, "Last.") || !strings.Contains(d.Text, "cannot be read: document") {
			t.Errorf("%s: %q, err %v", name, d.Text, err)
		}
		if _, err := New(Config{MaxBytes: 1 << 10}).Extract(t.Context(), name, []byte(strings.Replace(c, "First.", strings.Repeat("First.", 200), 1))); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s with a long text: %v", name, err)
		}
	}
}

// What an earlier version read as text or JSON keeps its lines.
func TestLinesOfTheVersionBefore(t *testing.T) {
	for _, name := range []string{"a.srt", "a.ipynb", "a.tex"} {
		raw := []byte(samples(t)[name])
		before, err := New(Config{}).Extract(t.Context(), map[string]string{"a.srt": "a.txt", "a.ipynb": "a.json", "a.tex": "a.txt"}[name], raw)
		if err != nil || LinesOf(name, raw, before.Text) == nil {
			t.Errorf("%s: no lines, err %v", name, err)
		}
	}
}

// TeX keeps its lines, and what has no end takes no longer than the rest.
func TestTeX(t *testing.T) {
	raw := []byte(samples(t)["a.tex"])
	d, err := New(Config{}).Extract(t.Context(), "a.tex", raw)
	if err != nil || d.Title != "The old well" || d.Author != "Ann, Bob" {
		t.Errorf("%+v, err %v", d, err)
	}
	lines := LinesOf("a.tex", raw, d.Text)
	for _, word := range []string{"Depth", "well is", "they say", "West", "a_b", "x{}", "Last."} {
		want := 1 + strings.Count(string(raw[:strings.LastIndex(string(raw), word)]), "\n")
		if got, ok := lines.At(strings.LastIndex(d.Text, word)); !ok || got != want && word != "Depth" {
			t.Errorf("%s is on line %d (%v), want %d", word, got, ok, want)
		}
	}
	for _, hostile := range []string{`\label{`, `\section[`, "$", `\[`, `\begin{verbatim}`, `\verb`, "{", `\'{`, "%"} {
		if _, err := New(Config{}).Extract(t.Context(), "a.tex", []byte(strings.Repeat(hostile, 1<<20))); err != nil {
			t.Errorf("%s: %v", hostile, err)
		}
	}
}

func FuzzFormats(f *testing.F) {
	for name, raw := range samples(f) {
		f.Add(name, []byte(raw))
	}
	x := New(Config{MaxBytes: 1 << 20})
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		d, err := x.Extract(t.Context(), name, raw)
		if err != nil && strings.Contains(err.Error(), "panic") {
			t.Errorf("parser panic: %v", err)
		} else if err == nil {
			checkForm(t, d)
		}
	})
}
