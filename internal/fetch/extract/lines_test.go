package extract

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// utf16LE encodes as Windows programs do.
func utf16LE(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

// TestLinesOf gives each document with the line of an excerpt, 0 for none.
func TestLinesOf(t *testing.T) {
	x := newExtractor(t, Config{})
	html := "<html><body><p>Beans fix nitrogen in the soil of every garden that has them.</p>\n<p>Peas do.</p></body></html>"
	for name, c := range map[string]struct {
		file, raw, excerpt string
		want               int
	}{
		"text":                  {"a.txt", "Beans.\n\n\n\nPeas like cool soil.\n", "Peas", 5},
		"no line end":           {"a.txt", "Peas like cool soil.", "Peas", 1},
		"crlf":                  {"a.txt", "Beans.\r\n\r\n\r\nPeas like\r\ncool soil.\r\n", "Peas", 4},
		"old macintosh":         {"a.txt", "Beans.\r\rPeas.\r", "Peas", 3},
		"a carriage return":     {"a.log", "10 %\r20 %\r30 %\ndone\n", "done", 2},
		"form feed":             {"a.txt", "Beans.\fCorn.\vKale.\nPeas.\n", "Peas", 2},
		"on a form feed's page": {"a.txt", "Oats.\nBeans.\fCorn.\vKale.\nPeas.\n", "Kale", 2},
		"byte order mark":       {"a.txt", "\xef\xbb\xbfBeans.\nPeas.\n", "Peas", 2},
		"marked utf-16":         {"a.txt", utf16LE("Beans.\r\nPeas.\r\n"), "Peas", 2},
		"latin-1":               {"a.txt", "Caf\xe9 cr\xe8me br\xfbl\xe9e.\nPeas.\n", "Peas", 2},
		"broken utf-8":          {"a.txt", "Grüße über Äcker\xff und Gärten für Körner\nPeas.\n", "Peas", 2},
		"unseen characters":     {"a.txt", "Be\u200bans\u202e.\x1b[31m\n \u200b \nPeas.\n", "Peas", 3},
		"source code":           {"a.go", "package a\n\nfunc f() {\n\treturn // peas\n}\n", "return", 4},
		"restructured text":     {"a.rst", "Peas\n====\n\nCool soil.\n", "Cool", 4},
		"org":                   {"a.org", "* Peas\n  Cool soil.\n", "Cool", 2},

		"markdown":              {"a.md", "# Garden\n\nBeans.\n\nPeas like *cool* soil.\n", "Peas", 5},
		"front matter":          {"a.md", "---\ntitle: Peas like cool soil\ndate: 2024-03-05\n---\n\n# Garden\n\nPeas like cool soil.\n", "Peas", 8},
		"front matter, crlf":    {"a.md", "---\r\ntitle: Peas\r\n---\r\n\r\nBeans.\r\n\r\nPeas like cool soil.\r\n", "Peas", 7},
		"front matter, mark":    {"a.md", "\xef\xbb\xbf---\ntitle: Peas\n---\nPeas.\n", "Peas", 4},
		"folded lines":          {"a.md", "Beans fix\nnitrogen. Peas\nlike cool\nsoil. Corn needs\nheat.\n", "Corn", 4},
		"first of folded lines": {"a.md", "Beans.\n\nPeas like\ncool\nsoil.\n", "Peas", 3},
		"hard break":            {"a.md", "Beans.  \nCorn.\\\nPeas.\n", "Peas", 3},
		"list":                  {"a.md", "Crops:\n\n- beans\n- corn\n  of\n  Utah\n\n- peas\n", "peas", 8},
		"quote":                 {"a.md", "> Beans\n> fix\n>\n> Peas like it.\n", "Peas", 4},
		"table":                 {"a.md", "| crop | soil |\n|---|---|\n| beans | warm |\n| peas | cool |\n", "peas", 4},
		"code":                  {"a.md", "Beans:\n\n```go\n\nf()\npeas()\n```\n", "peas", 6},
		"indented code":         {"a.md", "Beans:\n\n    f()\n\n    peas()\n", "peas", 5},
		"footnote":              {"a.md", "Beans[^1] and corn.\n\n[^1]: Peas too.\n\nKale last.\n", "Peas", 3},
		"link at a line's head": {"a.md", "See\nhttps://peas.example/ and\nothers.\n", "https", 2},
		"image first":           {"a.md", "![beans](b.png)\nPeas like it.\n", "Peas", 2},
		"setext heading":        {"a.md", "Beans\n=====\n\nPeas\n----\n\nCool.\n", "Peas", 4},
		"markup of one kind":    {"a.md", "<div>\n<p>Beans</p>\n<p>Peas</p>\n</div>\n\nCorn.\n", "Peas", 0},
		"after markup":          {"a.md", "<div>\n<p>Beans</p>\n</div>\n\nPeas.\n", "Peas", 5},
		"vertical tab":          {"a.md", "Beans.\vCorn.\n\nPeas.\n", "Peas", 0},

		"csv":              {"a.csv", "crop,soil\nbeans,warm\n\npeas,cool\n", "crop: peas", 4},
		"csv, crlf":        {"a.csv", "crop,soil\r\nbeans,warm\r\npeas,cool\r\n", "crop: peas", 3},
		"csv, long cell":   {"a.csv", "crop,note\nbeans,\"Warm soil.\nMuch water.\n\nPeas beside them.\"\ncorn,none\n", "Peas", 5},
		"csv, after one":   {"a.csv", "crop,note\nbeans,\"Warm\nsoil.\"\npeas,none\n", "crop: peas", 4},
		"csv, second cell": {"a.csv", "crop,note\n\"be\nans\",Peas\n", "note: Peas", 3},
		"csv, one line":    {"a.csv", "crop,soil\rpeas,cool\r", "peas", 0},
		"tsv":              {"a.tsv", "crop\tsoil\npeas\tcool\n", "crop: peas", 2},
		"json":             {"a.json", "{\n  \"crops\": [\n    \"beans\",\n    \"peas\"\n  ]\n}\n", "crops[1]: peas", 4},
		"json, escapes":    {"a.json", "{\n \"a\": \"x\\r\\ny\\fz\",\n \"b\": \"peas\"\n}\n", "b: peas", 3},
		"json lines":       {"a.jsonl", "{\"crop\": \"beans\"}\n{\"crop\": \"peas\"}\n", "crop: peas", 2},
		"a long json line": {"a.jsonl", "{\"a\": 1}\n\n{\"text\": \"" + strings.Repeat("Beans. \\n", 300) + "\", \"crop\": \"peas\"}\n", "crop: peas", 3},
		"no json":          {"a.json", "{\n \"a\": 1,\n peas\n", "peas", 3},

		"html": {"a.html", html, "Peas", 0},
		"xml":  {"a.xml", "<a>\n<b>Beans.</b>\n<b>Peas.</b>\n</a>", "Peas", 0},
		"docx": {"a.docx", docx(t, "<w:p><w:r><w:t>Peas like it.</w:t></w:r></w:p>"), "Peas", 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := x.Extract(t.Context(), c.file, []byte(c.raw))
			if err != nil {
				t.Fatal(err)
			}
			at := strings.Index(d.Text, c.excerpt)
			if at < 0 {
				t.Fatalf("%q is not in %q", c.excerpt, d.Text)
			}
			if got, ok := LinesOf(c.file, []byte(c.raw), d.Text).At(at); got != c.want || ok != (c.want > 0) {
				t.Errorf("line %d %v of %q, want %d", got, ok, d.Text, c.want)
			}
		})
	}
}

// The same sentence twice stands on two lines.
func TestLinesOfDuplicates(t *testing.T) {
	raw := "Peas like cool soil.\n\nBeans do\nnot. Peas like cool soil.\n"
	text := "Peas like cool soil.\n\nBeans do not. Peas like cool soil."
	lines := LinesOf("a.md", []byte(raw), text)
	for at, want := range map[int]int{0: 1, strings.LastIndex(text, "Peas"): 4} {
		if got, ok := lines.At(at); !ok || got != want {
			t.Errorf("line %d %v, want %d", got, ok, want)
		}
	}
}

func TestLinesOfAnotherText(t *testing.T) {
	if l := LinesOf("a.md", []byte("Peas like cool soil.\n"), "Peas like warm soil."); l != nil {
		t.Errorf("%+v", l)
	}
	for name, raw := range map[string]string{"a.bin": "\x00\x01\x02", "a.pdf": "%PDF-1.4", "a.docx": "PK\x03\x04", "a.csv": "\"", "": ""} {
		if n, ok := LinesOf(name, []byte(raw), "peas").At(0); ok {
			t.Errorf("%q has a line %d", name, n)
		}
	}
}

// linedBlocks are pieces of Markdown; each "@" becomes a word that says on which line it stands.
var linedBlocks = []string{
	"# @ @", "@\n----", "@ *@*\n**@** [@](x) `@`", "@  \n@ <i>@</i>", "- @\n  @\n  1. @", "> @\n@", "```\n\t@\n@\n```", "| @ | b |\n|---|---|\n| | @ |",
	"@[^1]\n\n[^1]: @", "![@](y)\nhttps://@.example/ @", "@\u200b \u200d\n \u00ad@&amp;@", "<div>@\n</div>", "[@]: https://x.example\n\n@", "@\n: @\n  @", "`@\n@` ~~@~~",
	"* @\n\n      @\n\n  > @\n  > @", "<!-- @\n@ -->", "- [ ] @\n- [x] @", "\\@ \u00e9\u0301 @\n&#13;@ &#12; @", "    @\n\n    @",
}

var linedWord = regexp.MustCompile(`q(\d+)z`)

// checkLines holds every word of the text that names its line to LinesOf, and returns how many have one.
func checkLines(t *rapid.T, x *Extractor, name, raw string) (known, all int) {
	d, err := x.Extract(t.Context(), name, []byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	lines := LinesOf(name, []byte(raw), d.Text)
	for _, m := range linedWord.FindAllStringSubmatchIndex(d.Text, -1) {
		want, _ := strconv.Atoi(d.Text[m[2]:m[3]])
		got, ok := lines.At(m[0])
		if ok && got != want {
			t.Fatalf("line %d, want %d, at %d of %q from %q", got, want, m[0], d.Text, raw)
		}
		if all++; ok {
			known++
		}
	}
	return known, all
}

func TestLinesAreNeverWrong(t *testing.T) {
	x := newExtractor(t, Config{})
	var known, all int
	rapid.Check(t, func(t *rapid.T) {
		raw := ""
		if rapid.Bool().Draw(t, "front matter") {
			raw = "---\ntitle: @\n---\n"
		}
		for range rapid.IntRange(1, 12).Draw(t, "blocks") {
			raw += rapid.SampledFrom(linedBlocks).Draw(t, "block") + strings.Repeat("\n", rapid.IntRange(1, 4).Draw(t, "line ends"))
		}
		parts := strings.Split(raw, "\n")
		for i := range parts {
			parts[i] = strings.ReplaceAll(parts[i], "@", fmt.Sprintf("q%dz", i+1))
		}
		raw = strings.Join(parts, rapid.SampledFrom([]string{"\n", "\r\n", "\r"}).Draw(t, "line end"))
		k, n := checkLines(t, x, rapid.SampledFrom([]string{"a.md", "a.txt"}).Draw(t, "name"), raw)
		known, all = known+k, all+n
	})
	t.Logf("the lines of %d of %d words are known", known, all)
	if known*10 < all*8 {
		t.Errorf("the lines of %d of %d words are known", known, all)
	}
}

func TestLinesOfDataAreNeverWrong(t *testing.T) {
	x := newExtractor(t, Config{})
	var known, all int
	rapid.Check(t, func(t *rapid.T) {
		line := 2
		rows, objects, records := "a,b,c\n", "[\n", "{}\n"
		for i := range rapid.IntRange(1, 20).Draw(t, "rows") {
			if i > 0 {
				rows += "\n"
				objects += ",\n"
			}
			quoted, _ := json.Marshal(fmt.Sprintf("q%dz\n\n%s", line, rapid.String().Draw(t, "value")))
			objects += fmt.Sprintf("{\"k\": %s, \"n\": \"q%dz\"}", quoted, line)
			records += fmt.Sprintf("{\"k\": %s, \"n\": {\"o\": \"q%dz\"}}\n", quoted, line)
			rows += fmt.Sprintf("q%dz,\"x q%dz\", y\u200b q%dz", line, line, line)
			line++
		}
		k, n := checkLines(t, x, "a.csv", rows)
		known, all = known+k, all+n
		k, n = checkLines(t, x, "a.json", objects+"\n]\n")
		known, all = known+k, all+n
		k, n = checkLines(t, x, "a.jsonl", records)
		known, all = known+k, all+n
	})
	if known != all {
		t.Errorf("the lines of %d of %d words are known", known, all)
	}
}

func BenchmarkLinesOf(b *testing.B) {
	x := New(Config{})
	defer x.Close()
	para := strings.Repeat("Peas like cool soil and\nbeans do not, *as* a rule.\n", 20) + "\n"
	for _, c := range []struct{ name, raw string }{
		{"a.md", strings.Repeat(para, 1000)}, {"one.md", strings.Repeat("Peas like\n", 100_000)}, {"a.txt", strings.Repeat(para, 1000)},
		{"a.csv", "a,b\n" + strings.Repeat("peas,cool soil\n", 70_000)}, {"a.jsonl", strings.Repeat("{\"crop\": \"peas\"}\n", 60_000)},
	} {
		d, err := x.Extract(b.Context(), c.name, []byte(c.raw))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.raw)))
			for b.Loop() {
				if LinesOf(c.name, []byte(c.raw), d.Text) == nil {
					b.Fatal("no lines")
				}
			}
		})
	}
}

// Where pages begin is noted while the text is put together, so it must be in its final form then.
func TestPagesAreNormalised(t *testing.T) {
	page := rapid.StringOf(rapid.SampledFrom([]rune("ab \t\n\r\f\v\u200b\u200d\u00ad\ufeff\x02é")))
	rapid.Check(t, func(t *rapid.T) {
		pages := rapid.SliceOfN(page, 1, 6).Draw(t, "pages")
		var doc Document
		var text strings.Builder
		for _, p := range pages {
			addPage(&doc, &text, p)
		}
		if want := normalise(strings.Join(pages, "\n\n")); text.String() != want || normalise(want) != want {
			t.Fatalf("%q, want %q", text.String(), want)
		}
		for i, p := range pages {
			if p = normalise(p); !strings.HasPrefix(text.String()[doc.Pages[i]:], p) {
				t.Fatalf("page %d does not begin at %d of %q", i+1, doc.Pages[i], text.String())
			}
		}
	})
}
